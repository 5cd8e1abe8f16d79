// The page of `recordspec view`, and of `recordspec stats --html`, which has its data in it.
"use strict";

const PAGE = 100;

// ---- the state, all of which is in the URL, but not the token: the cookie has it ----

const NUMBERS = { first: 0, row: null, epoch: 0, step: 0 };
const TEXTS = ["tab", "split", "where", "text", "names", "sort", "descending", "run", "old", "new"];

const readState = () => {
  const asked = new URLSearchParams(location.search);
  const state = Object.fromEntries(TEXTS.map((name) => [name, asked.get(name)]));
  for (const [name, usual] of Object.entries(NUMBERS)) {
    state[name] = asked.has(name) ? Math.max(0, Number.parseInt(asked.get(name), 10) || 0) : usual;
  }
  return state;
};

const urlOf = (state) => {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value !== null && value !== "" && value !== NUMBERS[name]) asked.set(name, value);
  }
  const text = asked.toString();
  return location.pathname + (text ? `?${text}` : "");
};

const both = (before, where) => (before ? `(${before}\n) AND ${where}` : where) // it may end in a comment;

// ---- answers of the server ----

const asking = async (name, asked, signal) => {
  const given = Object.entries(asked).filter(([, value]) => value !== null && value !== undefined);
  let response;
  try {
    response = await fetch(`/api/${name}?${new URLSearchParams(given)}`, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server does not answer: `recordspec view` has ended");
  }
  const answer = await response.json().catch(() => ({ error: `the server answers ${response.status}` }));
  if (answer.error) throw new Error(answer.error);
  return answer;
};

// What the server answers, again when what is asked changes; the request before is cancelled. An answer that is
// not `done` is asked for again: `merged` joins it with the one before, and says what is asked next. An error
// keeps what was answered before it. Until the next answer is there, the one before it is shown: `asked` is the
// request that an answer belongs to.
const useAnswer = (name, asked, merged = (_, value) => [{ value }, {}]) => {
  const [answer, setAnswer] = useState({});
  useEffect(() => {
    if (asked === null) {
      setAnswer({});
      return undefined;
    }
    const control = new AbortController();
    const read = async () => {
      let [so_far, more] = [{}, {}];
      do {
        const next = await asking(name, { ...asked, ...more }, control.signal);
        [so_far, more] = merged(so_far, next);
        setAnswer({ ...so_far, asked });
      } while (so_far.done === false);
    };
    setAnswer((before) => ({ ...before, error: undefined, waits: true }));
    read().catch((error) => error.name === "AbortError" || setAnswer((before) => ({ ...before, error: error.message, waits: false })));
    return () => control.abort();
  }, [name, JSON.stringify(asked)]);
  return answer;
};

// Of one that is asked for with `value`: each is kept until there is a newer one.
const newest = (before, answer) => [{ ...answer, value: answer.value ?? before.value, waits: !answer.done }, { seen: answer.version }];

// Of rows: when the page is full, only how many there are is still of interest.
const filling = (before, answer) => {
  const rows = before.rows?.length >= PAGE ? before.rows : answer.rows;
  return [{ ...answer, rows, waits: !answer.done }, rows.length >= PAGE ? { count: 0 } : {}];
};

// ---- the parts of the page ----

const Progress = ({ answer }) => {
  if (answer.error) return html`<p class="bad" role="alert">${seen(answer.error)}</p>`;
  if (!answer.waits) return null;
  const read = answer.read > 0 ? `: ${counted(answer.read)}${answer.of ? ` of ${counted(answer.of)}` : ""} rows` : "";
  return html`<p class="note" role="status">${answer.stage || "reading"}${read} <progress max=${answer.of || undefined} value=${answer.of ? answer.read : undefined} aria-label="progress"></progress></p>`;
};

const Names = ({ state, go }) => html`<label>columns <${Field} value=${state.names ?? ""} placeholder="a part of their names" onInput=${(event) => go({ names: event.target.value || null }, true)} /></label>`;

const Columns = ({ files, answer, state, go }) => {
  const filter = (split, where) => go({ tab: null, split: files.splits.length > 1 ? split : null, where, text: null, first: 0 });
  return html`<div class="text"><${Progress} answer=${answer} />
    ${answer.value?.first && html`<p class="note">These are of the first ${counted(answer.value.first)} rows of each split${answer.waits ? ", until all are read" : ""}.
      ${!answer.waits && html` <button onClick=${() => go({ run: 1 })}>read all</button>`}</p>`}
    <p><${Names} state=${state} go=${go} /> A click on a bar shows its rows.</p>
    ${answer.value && html`<${Statistics} statistics=${answer.value} names=${state.names} filter=${filter} />`}</div>`;
};

const Problems = ({ state, go }) => {
  const answer = useAnswer("problems", state.run ? {} : null, newest);
  if (!state.run) {
    return html`<div class="text"><p>All records are read: their lengths and CRCs, what the manifest says of them, and their values, against the schema.</p>
      <button class="primary" onClick=${() => go({ run: 1 })}>verify and check</button></div>`;
  }
  const { value } = answer;
  const listed = value?.problems.map(({ row, text }) => html`<li>${row !== null && html`<a href=${urlOf({ ...state, row, split: null })} onClick=${(event) => { event.preventDefault(); go({ row, split: null }); }}>row ${counted(row)}</a>: `}${seen(text)}</li>`);
  return html`<div class="text"><${Progress} answer=${answer} />
    ${value && html`<h2>${value.count ? counted(value.count, "problem") : "No problem"}</h2>
      <p>${counted(value.records, "record")} verified: lengths, CRCs, and what the manifest says of the files. ${value.checked ? "Their values were checked against the schema." : "There is no schema: their values were not checked."}</p>
      ${value.count > listed.length && html`<p>These are the first ${counted(listed.length)}.</p>`}<ul class="bad">${listed}</ul>`}</div>`;
};

const Compare = ({ files, state, go }) => {
  const [old, other] = [state.old ?? files.pair[0], state.new ?? files.pair[1]];
  const isAsked = (state.old && state.new) || (old !== other && !files.remote);
  const answer = useAnswer("compare", isAsked ? { old, new: other } : null, newest);
  const [chosen, setChosen] = useState({ old, new: other });
  const apply = (event) => {
    event.preventDefault();
    go(chosen);
  };
  const choice = (name, text) => html`<label>${text} <select name=${name} value=${chosen[name]} onChange=${(event) => setChosen({ ...chosen, [name]: event.target.value })}>
    ${files.sides.map((side) => html`<option value=${side}>${seen(side)}</option>`)}</select></label>`;
  const value = answer.error ? undefined : answer.value;
  const notes = {};
  for (const { key, of, distance, at, different } of value?.measures ?? []) {
    if (distance > 0) notes[key] = [notes[key], html`<div class=${different ? "bad" : ""}>${of}: ${share(distance, 1)} apart${at && `, most at ${seen(at)}`}</div>`];
  }
  return html`<div class="text"><form onSubmit=${apply}>${choice("old", "compare")} ${choice("new", "with")} <button class="primary">compare</button></form>
    <p>By distribution: how far apart the shares of values are, at most. ${files.sides.length < 2 && "These files have one split: `recordspec view FILES --against OTHERS` compares with others."}</p>
    <${Progress} answer=${answer} />
    ${value?.keys && html`<h2>By key</h2><p>${counted(value.keys.added)} rows added, ${counted(value.keys.removed)} removed, ${counted(value.keys.moved)} in another split${value.keys.changed === null ? "" : `, ${counted(value.keys.changed)} changed`}.</p>`}
    ${value?.empty.length > 0 && html`<p class="bad">There are no rows in ${value.empty.map(seen).join(" and in ")}.</p>`}
    ${value && html`<${Distances} value=${value} /><${Features} statistics=${{ ...value, features: byDistance(value) }} names=${state.names} notes=${notes} />`}</div>`;
};

// The features by their largest distance, the worst first; each leads to its card.
const Distances = ({ value }) => {
  const largest = new Map();
  for (const measure of value.measures) if (!largest.has(measure.key)) largest.set(measure.key, measure);
  const lines = byDistance(value).map(({ key, name }) => {
    const { of, distance, at, different } = largest.get(key) ?? { of: "", distance: 0, at: "" };
    return html`<tr><th scope="row"><button class="link" onClick=${() => document.getElementById(key).scrollIntoView()}>${seen(name)}</button></th>
      <td class=${different ? "number bad" : "number"}>${share(distance, 1)}</td>
      <td><span class="share"><span style=${{ width: `${100 * distance}%` }}></span></span></td>
      <td>${distance > 0 && of}</td><td>${distance > 0 && seen(at)}</td></tr>`;
  });
  return html`<div class="wide"><table class="distances" aria-label="distances"><thead><tr><th scope="col">feature</th><th scope="col" class="number">distance</th><td></td><th scope="col">of</th><th scope="col">most at</th></tr></thead><tbody>${lines}</tbody></table></div>`;
};

// The features that differ most come first.
const byDistance = ({ features, measures }) => {
  const place = new Map(measures.map(({ key }, index) => [key, index]).reverse());
  return [...features].sort((a, b) => (place.get(a.key) ?? Infinity) - (place.get(b.key) ?? Infinity));
};

// A batch as the model gets it, beside what is stored of its rows.
const Batch = ({ files, state, go }) => {
  const { splits, batch, order, packed } = files.batches;
  const split = state.split ?? (splits.includes("train") ? "train" : splits[0]);
  const step = { split, epoch: state.epoch, step: state.step };
  const answer = useAnswer("batch", step, newest);
  const apply = (event) => {
    event.preventDefault();
    const entered = Object.fromEntries(new FormData(event.target));
    go({ epoch: Math.floor(Number(entered.epoch)) || 0, step: Math.floor(Number(entered.step)) || 0 });
  };
  const value = answer.value?.step === state.step && answer.value.epoch === state.epoch ? answer.value : undefined; // not the one before
  const steps = value?.steps ?? Infinity;
  const orders = { global: "in the global order of the epoch", buffer: "shuffled with a buffer", files: "in the order of the files" };
  const number = (name) => html`<label>${name} <${Field} type="number" name=${name} min="0" step="1" value=${state[name]} /></label>`;
  return html`<div class="text"><form onSubmit=${apply}><label>split <select value=${split} onChange=${(event) => go({ split: event.target.value, step: 0 })}>${splits.map((each) => html`<option value=${each}>${seen(each)}</option>`)}</select></label>
      ${number("epoch")} ${number("step")} <button class="primary">show</button>
      <button type="button" onClick=${() => go({ step: state.step - 1 })} disabled=${state.step === 0}>previous</button>
      <button type="button" onClick=${() => go({ step: state.step + 1 })} disabled=${state.step + 1 >= steps}>next</button></form>
    <p>${batch === null ? "Rows" : `Batches of ${counted(batch, packed ? "pack" : "row")}`}, ${orders[order]}${value?.steps ? `; ${counted(value.steps)} steps an epoch` : ""}.</p>
    <${Progress} answer=${answer} />
    ${value?.note && html`<p class="note">${seen(value.note)}</p>`}
    ${value?.of > value?.rows.length && html`<p class="note">The first ${counted(value.rows.length)} of ${counted(value.of)} rows.</p>`}
    ${value && html`<${BatchRows} files=${files} batch=${value} state=${state} go=${go} />`}</div>`;
};

// The stored rows of a pack, in the colours of their segments.
const PackedRows = ({ batch, rows, state, go }) => {
  const links = rows.map(({ row, dataset }, place) => {
    const of_row = { split: batch.split, row };
    const follow = (event) => {
      event.preventDefault();
      go(of_row);
    };
    return html`<li><${Dot} place=${place} /><a href=${urlOf({ ...state, ...of_row })} onClick=${follow}>${counted(row)}</a> <small>${seen(dataset ?? "")}</small></li>`;
  });
  return html`<ul class="packed">${links}</ul>`;
};

const BatchRows = ({ files, batch, state, go }) => {
  const table = useRef();
  useCuts(table, [batch]);
  const isKnown = batch.rows.every((row) => row.stored);
  const arePacks = batch.rows.some((row) => row.packed);
  const heads = batch.columns.map(
    (column, place) => html`<th scope="col" class=${isNumber(batch.rows[0]?.cells[place]) ? "number" : ""}>${seen(column.name)}<small>${column.role}, ${column.type}${column.padding === undefined ? "" : `, padded with ${column.padding}`}</small></th>`,
  );
  const stored = isKnown && files.columns.map((column) => html`<th scope="col" class=${column.number ? "number" : ""}>${seen(column.name)}<small>${seen(column.type)}</small></th>`);
  const rows = batch.rows.map((row, place) => {
    const at = { split: batch.split, epoch: batch.epoch, step: batch.step, row: place };
    const given = row.cells.map((cell, column) => html`<${Value} column=${batch.columns[column]} cell=${cell} at=${{ ...at, column }} boxes=${boxesOver(batch.columns, row.cells, batch.columns[column].name)} />`);
    if (row.packed) return html`<tr><th scope="row">${place}</th>${given}<td><div class="cell"><${PackedRows} batch=${batch} rows=${row.packed} state=${state} go=${go} /></div></td></tr>`;
    if (!isKnown) return html`<tr><th scope="row">${place}</th>${given}</tr>`;
    const of_row = { split: batch.split, row: row.row };
    const open = () => go(of_row);
    const follow = (event) => {
      event.preventDefault();
      open();
    };
    const head = html`<th scope="row"><a href=${urlOf({ ...state, ...of_row })} onClick=${follow}>${counted(row.row)}</a>${row.dataset !== undefined && html`<small>${seen(row.dataset)}</small>`}</th>`;
    const { cells, problems } = row.stored;
    const kept = problems
      ? html`<td class="bad" colspan=${files.columns.length}>${seen(problems.join("; "))}</td>`
      : files.columns.map((column, index) => html`<${Value} column=${{ ...column, key: false }} cell=${cells[index]} at=${{ ...of_row, column: column.name }} boxes=${boxesOver(files.columns, cells, column.name)} />`);
    return html`<tr onClick=${opening(open)}>${head}${given}${kept}</tr>`;
  });
  const groups = isKnown && html`<tr><td></td><th scope="colgroup" colspan=${heads.length}>what the model gets</th><th scope="colgroup" colspan=${files.columns.length}>what is stored</th></tr>`;
  return html`<div class="scroll" ref=${table} tabindex="0" role="region" aria-label="batch"><table class="rows batch"><thead>${groups}<tr><th scope="col">${arePacks ? "pack" : "row"}</th>${heads}${arePacks && html`<th scope="col">rows<small>of the pack</small></th>`}${stored}</tr></thead><tbody>${rows}</tbody></table></div>`;
};

const TABS = { rows: "Rows", columns: "Columns", problems: "Problems", compare: "Compare", batch: "Batch" };

const Tabs = ({ files, state, go }) => {
  const tabs = Object.entries(TABS).filter(([name]) => name !== "batch" || files.batches);
  return html`<nav aria-label="parts of the page">${tabs.map(([name, text]) => {
    const change = { tab: name === "rows" ? null : name, run: null };
    const open = (event) => {
      event.preventDefault();
      go(change);
    };
    return html`<a class="tab" href=${urlOf({ ...state, ...change })} aria-current=${(state.tab ?? "rows") === name ? "page" : undefined} onClick=${open}>${text}</a>`;
  })}</nav>`;
};

const App = () => {
  const [state, setState] = useState(readState);
  const files = useAnswer("files", {});
  const described = files.value;
  const isRows = (state.tab ?? "rows") === "rows";
  const choice = { where: state.where, text: state.text, sort: state.sort, descending: state.descending };
  const answer = useAnswer("rows", isRows ? { split: state.split, first: state.first, count: PAGE, ...choice } : null, filling);
  const needsStatistics = described && (isRows || state.tab === "columns");
  const all = described?.remote && !(state.tab === "columns" && state.run) ? { first: 1 } : {};
  const statistics = useAnswer("statistics", needsStatistics ? all : null, newest);
  useEffect(() => {
    history.replaceState(null, "", urlOf(state)); // without the token
    const back = () => setState(readState());
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  const go = (change, replaces) => {
    const next = { ...state, ...change };
    history[replaces ? "replaceState" : "pushState"](null, "", urlOf(next));
    setState(next);
  };
  if (files.error) return html`<main><h1>recordspec view</h1><p class="bad" role="alert">${files.error}</p></main>`;
  if (!described) return html`<main><h1>recordspec view</h1><p>reading...</p></main>`;
  const name = described.files.length === 1 ? described.files[0] : described.name;
  const parts = name.split("/");
  const last = parts.pop();
  document.title = `${[...parts.slice(-1), last].join("/")} - recordspec`;
  for (const column of described.columns) column.classes.forEach(colourOf);
  const splits = described.splits.length > 1 && html`<label>split
    <select value=${state.split ?? ""} onChange=${(event) => go({ split: event.target.value || null, first: 0, row: null })}>
      <option value="">all</option>${described.splits.map((split) => html`<option value=${split}>${seen(split)}</option>`)}
    </select></label>`;
  const part = {
    rows: () => html`<${Search} state=${state} error=${answer.error} go=${go} /><${Found} answer=${answer} state=${state} />
      ${described.compressed && html`<p class="note">These files are compressed: to show rows, all before them are read.</p>`}
      <${Table} files=${described} answer=${answer} statistics=${statistics.value} state=${state} go=${go} />`,
    columns: () => html`<${Columns} files=${described} answer=${statistics} state=${state} go=${go} />`,
    problems: () => html`<${Problems} state=${state} go=${go} />`,
    compare: () => html`<${Compare} files=${described} state=${state} go=${go} />`,
    batch: () => described.batches && html`<${Batch} files=${described} state=${state} go=${go} />`,
  }[state.tab ?? "rows"];
  return html`<a class="skip" href="#main">to the content</a>
    <header><div class="about"><img class="logo" src="/page/favicon.svg" alt="" />
      <h1 title=${described.files.join("\n")}>${parts.length > 0 && html`<small>${seen(`${parts.join("/")}/`)}</small>`}${seen(last)}</h1>
      <p>${seen(described.facts.join(" · "))}</p></div>
      <div class="parts"><${Tabs} files=${described} state=${state} go=${go} />
      <span role="status">${isRows && answer.waits ? "reading..." : ""}</span>
      ${isRows && splits}${isRows && html`<${Pages} state=${state} answer=${answer} go=${go} />`}</div></header>
    <main id="main">${part?.()}</main>
    ${state.row !== null && html`<${Record} key="record" files=${described} order=${(answer.rows ?? []).map(({ row }) => row)} total=${state.split ? answer.total : described.total} state=${state} go=${go} />`}`;
};

// The page of `stats --html`: its statistics are in it.
const Offline = ({ title, statistics }) => {
  const [names, setNames] = useState("");
  return html`<header><div class="about"><h1>${seen(title)}</h1></div></header><main class="text">
    <p><${Names} state=${{ names }} go=${(change) => setNames(change.names ?? "")} /></p>
    <${Statistics} statistics=${statistics} names=${names} /></main>`;
};

const data = document.getElementById("data");
render(data ? html`<${Offline} ...${JSON.parse(data.textContent)} />` : html`<${App} />`, document.body);
