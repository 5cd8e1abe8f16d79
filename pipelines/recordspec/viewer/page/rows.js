// The table of rows, and one record.
"use strict";

// The boxes that are in the image of a column.
const boxesOver = (columns, cells, name) =>
  columns.flatMap((column, place) => (column.boxes === name && cells[place]?.is === "boxes" ? [cells[place]] : []));

// A click on a row opens it, unless it is on something else that is clicked, or marks text.
const opening = (open) => (event) => {
  if (!event.target.closest("a, button, audio, input, summary") && !String(getSelection())) open();
};

// A row of `split`, which is not the split of `state` while the rows of another split are still shown.
const Row = ({ row, split, columns, shown, state, go }) => {
  const open = () => go({ split, row: row.row });
  const follow = (event) => {
    event.preventDefault();
    open();
  };
  const head = html`<th scope="row"><a href=${urlOf({ ...state, split, row: row.row })} onClick=${follow}>${counted(row.row)}</a></th>`;
  if (row.problems) return html`<tr onClick=${opening(open)}>${head}<td class="bad" colspan=${shown.length}>${seen(row.problems.join("; "))}</td></tr>`;
  const cells = shown.map((place) => {
    const { name } = columns[place];
    const at = { split, row: row.row, column: name };
    return html`<${Value} column=${columns[place]} cell=${row.cells[place]} at=${at} boxes=${boxesOver(columns, row.cells, name)} />`;
  });
  return html`<tr onClick=${opening(open)}>${head}${cells}</tr>`;
};

// The chart of a column: of the split that is shown, or of the largest.
const chartOf = (statistics, name, split) => {
  const feature = statistics?.features.find((each) => each.column === name);
  if (!feature) return {};
  const largest = [...statistics.splits].sort((a, b) => b.rows - a.rows).find(({ name: each }) => Object.hasOwn(feature.splits, each));
  const of = split ?? largest?.name;
  return { of, chart: Object.hasOwn(feature.splits, of) ? feature.splits[of].charts[0] : undefined };
};

const Head = ({ column, statistics, state, go }) => {
  const sorted = state.sort === column.name ? (state.descending ? "descending" : "ascending") : "none";
  const next = { none: { sort: column.name, descending: null }, ascending: { sort: column.name, descending: 1 }, descending: { sort: null, descending: null } }[sorted];
  const { of, chart } = chartOf(statistics, column.name, state.split);
  const isOne = statistics?.splits.length === 1;
  const filter = (where) => go({ where: both(state.where, where), split: isOne ? null : of, first: 0 });
  return html`<th scope="col" aria-sort=${sorted} class=${`${column.number ? "number" : ""} ${column.key ? "key" : ""}`}>
    <button class="sort" title="sort" onClick=${() => go({ ...next, first: 0 })}>${seen(column.name)}<span aria-hidden="true">${{ none: "", ascending: " ▲", descending: " ▼" }[sorted]}</span></button>
    <small>${seen(column.type)}</small>
    ${chart && html`<${SmallChart} chart=${chart} of=${isOne ? "" : `in ${seen(of)}`} filter=${filter} />`}</th>`;
};

const CLEAR = { where: null, text: null, names: null, sort: null, descending: null, first: 0 };

const Table = ({ files, answer, statistics, state, go }) => {
  const top = useRef();
  useEffect(() => top.current?.scrollTo(0, 0), [state.first, state.split]);
  useCuts(top, [answer.rows, statistics, state.names]);
  const { columns } = files;
  const shown = columns.map((_, place) => place).filter((place) => columns[place].name.toLowerCase().includes((state.names ?? "").toLowerCase()));
  const isEmpty = answer.rows?.length === 0 && answer.done;
  return html`<div class="scroll" ref=${top} tabindex="0" role="region" aria-label="rows" aria-busy=${Boolean(answer.waits)}>
    <table class="rows">
      <thead><tr><th scope="col">row</th>${shown.map((place) => html`<${Head} key=${place} column=${columns[place]} statistics=${statistics} state=${state} go=${go} />`)}</tr></thead>
      <tbody>${(answer.rows ?? []).map((row) => html`<${Row} key=${row.row} row=${row} split=${answer.asked.split} columns=${columns} shown=${shown} state=${state} go=${go} />`)}</tbody>
    </table>
    ${isEmpty && (state.where || state.text)
      ? html`<p class="empty">No row matches. <button onClick=${() => go(CLEAR)}>show all rows</button></p>`
      : isEmpty && html`<p class="empty">There are no rows from ${counted(state.first)} on. <button onClick=${() => go({ first: 0 })}>first rows</button></p>`}
  </div>`;
};

const Pages = ({ state, answer, go }) => {
  const { total, done } = answer;
  const to = (first) => go({ first: Math.max(0, Math.floor(first)), row: null });
  const isKnown = typeof total === "number";
  const last = isKnown ? Math.max(0, Math.floor((total - 1) / PAGE) * PAGE) : null;
  const isLast = isKnown ? state.first >= last : (answer.rows?.length ?? PAGE) < PAGE;
  return html`<nav class="pages" aria-label="pages">
    <button class="end" onClick=${() => to(0)} disabled=${state.first === 0}>first</button>
    <button onClick=${() => to(state.first - PAGE)} disabled=${state.first === 0}>previous</button>
    <label>row <${Field} type="number" min="0" step="1" value=${state.first} onChange=${(event) => to(Number(event.target.value) || 0)} /></label>
    <span class="narrow">${counted(state.first)} to ${counted(state.first + Math.max(1, answer.rows?.length ?? PAGE) - 1)}</span>
    <span>${isKnown ? `of ${counted(total)}${done ? "" : " so far"}` : ""}</span>
    <button onClick=${() => to(state.first + PAGE)} disabled=${isLast}>next</button>
    ${isKnown && html`<button class="end" onClick=${() => to(last)} disabled=${isLast}>last</button>`}
  </nav>`;
};

// An input with what is typed in it, until its value changes.
const Field = ({ value, onInput, ...rest }) => {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const input = (event) => {
    setTyped(event.target.value);
    onInput?.(event);
  };
  return html`<input ...${rest} value=${typed} onInput=${input} />`;
};

// What narrows the rows: a condition, a text, the names of columns. Enter applies it. On a narrow screen it is
// folded until it is wanted.
const Search = ({ state, error, go }) => {
  const [isOpen, setOpen] = useState(false);
  const apply = (event) => {
    event.preventDefault();
    const entered = Object.fromEntries(new FormData(event.target));
    go({ where: entered.where || null, text: entered.text || null, names: entered.names || null, first: 0 });
  };
  const isSet = state.where || state.text || state.names || state.sort;
  const isWrong = Boolean(error && state.where);
  return html`<button class="fold" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>search</button>
    <form class=${isOpen || isSet ? "search" : "search folded"} role="search" onSubmit=${apply}>
    <label>where <${Field} name="where" class="where" value=${state.where ?? ""} placeholder="SQL: fare > 20" spellcheck="false" autocomplete="off" aria-invalid=${isWrong} aria-describedby=${isWrong ? "wrong" : undefined} /></label>
    <label>text <${Field} name="text" value=${state.text ?? ""} placeholder="in any value" autocomplete="off" /></label>
    <label>columns <${Field} name="names" value=${state.names ?? ""} placeholder="a part of their names" autocomplete="off" /></label>
    <button class="primary">apply</button>${isSet && html`<button type="button" onClick=${() => go(CLEAR)}>clear</button>`}</form>
    ${error && html`<p class="note bad" id="wrong" role="alert">${seen(error)}</p>`}`;
};

// How far the search is, and what it left out.
const Found = ({ answer, state }) => {
  if (!(state.where || state.text || state.sort) || answer.error) return null;
  const part = answer.done || !answer.of ? "" : ` of ${counted(answer.of)}`;
  const progress = answer.done ? "" : `${answer.stage || "searching"}: ${counted(answer.read ?? 0)}${part} rows`;
  const skipped = answer.skipped > 0 && `${counted(answer.skipped, "row")} could not be read, or without a value`;
  const text = [progress, skipped, answer.ends].filter(Boolean).join("; ");
  return text && html`<p class="note" role="status">${text}</p>`;
};

// ---- one record ----

const hexLines = (hex) => (hex.match(/.{1,32}/g) ?? []).map((line) => line.match(/../g).join(" ")).join("\n");

// `order` has the numbers of the rows that are shown, of which those before and after are reached.
const Record = ({ files, order, total, state, go }) => {
  const box = useRef();
  const answer = useAnswer("record", { split: state.split, row: state.row });
  useEffect(() => {
    box.current.showModal();
    box.current.focus(); // not the first button, which would look pressed
  }, []);
  const close = () => go({ row: null });
  const place = order.indexOf(state.row);
  const beside = (step) => {
    if (state.where || state.text || state.sort) return place < 0 ? undefined : order[place + step];
    const row = state.row + step;
    return row < 0 || row >= (total ?? Infinity) ? undefined : row;
  };
  const move = (step) => beside(step) !== undefined && go({ row: beside(step) });
  const keys = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, k: -1, j: 1 }[event.key];
    if (step && event.target.tagName !== "AUDIO" && !(event.altKey || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      move(step);
    }
  };
  const isAsked = answer.asked?.row === state.row && answer.asked.split === state.split; // not the one before
  const record = isAsked ? answer.value : undefined;
  const cells =
    record?.cells &&
    files.columns.map((column, index) => {
      const at = { split: state.split, row: record.row, column: column.name };
      const boxes = boxesOver(files.columns, record.cells, column.name);
      return html`<dt>${seen(column.name)} <small>${seen(column.type)}</small></dt><dd><${Cell} cell=${record.cells[index]} at=${at} large=${true} boxes=${boxes} /></dd>`;
    });
  const facts =
    record?.file &&
    Object.entries({
      file: record.file,
      split: record.split,
      record: counted(record.record) + (record.row_of_block === null ? "" : `, row ${record.row_of_block}`),
      "begins at byte": counted(record.offset),
      length: counted(record.length, "byte"),
      CRC: record.crc,
      command: record.command,
    });
  return html`<dialog ref=${box} tabindex="-1" onClose=${close} onKeyDown=${keys} aria-label=${`row ${state.row}`}>
    <nav><button onClick=${() => move(-1)} disabled=${beside(-1) === undefined}>previous</button>
      <button onClick=${() => move(1)} disabled=${beside(1) === undefined}>next</button>
      <h2>Row ${counted(state.row)}</h2><small class="keys">← → for the rows beside it, Esc to close</small>
      <button onClick=${() => box.current.close()}>close</button></nav>
    ${answer.waits && html`<p role="status">reading...</p>`}
    ${answer.error && html`<p class="bad" role="alert">${seen(answer.error)}</p>`}
    ${record?.problems?.map((problem) => html`<p class="bad">${seen(problem)}</p>`)}
    ${cells && html`<dl>${cells}</dl>`}
    ${facts && html`<h2>Where it is</h2><${Facts} facts=${facts} />`}
    ${record?.stored && html`<details><summary>as it is stored</summary><pre>${seen(JSON.stringify(record.stored, null, 2))}</pre></details>`}
    ${record?.bytes && html`<details><summary>its first bytes</summary><pre class="hex">${hexLines(record.bytes)}</pre></details>`}
  </dialog>`;
};
