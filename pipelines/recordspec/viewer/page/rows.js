// The table of rows, and one record.
"use strict";

// The boxes that are in the image of a column.
const boxesOver = (columns, cells, name) =>
  columns.flatMap((column, place) => (column.boxes === name && cells[place]?.is === "boxes" ? [cells[place]] : []));

const Row = ({ row, columns, shown, state, go }) => {
  const open = (event) => {
    event.preventDefault();
    go({ row: row.row });
  };
  const head = html`<th scope="row"><a href=${urlOf({ ...state, row: row.row })} onClick=${open}>${counted(row.row)}</a></th>`;
  if (row.problems) return html`<tr>${head}<td class="bad" colspan=${shown.length}>${seen(row.problems.join("; "))}</td></tr>`;
  const cells = shown.map((place) => {
    const { name } = columns[place];
    const at = { split: state.split, row: row.row, column: name };
    return html`<td class=${isNumber(row.cells[place]) ? "number" : ""}><${Cell} cell=${row.cells[place]} at=${at} boxes=${boxesOver(columns, row.cells, name)} /></td>`;
  });
  return html`<tr>${head}${cells}</tr>`;
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
  return html`<th scope="col" aria-sort=${sorted}>
    <button class="sort" title="sort" onClick=${() => go({ ...next, first: 0 })}>${seen(column.name)} <span aria-hidden="true">${{ none: "", ascending: "▲", descending: "▼" }[sorted]}</span></button>
    <small>${column.kind ?? ""} ${column.type}</small>
    ${chart && html`<${SmallChart} chart=${chart} of=${isOne ? "" : `in ${seen(of)}`} filter=${filter} />`}</th>`;
};

const Table = ({ files, answer, statistics, state, go }) => {
  const top = useRef();
  useEffect(() => top.current?.scrollTo(0, 0), [state.first, state.split]);
  const { columns } = files;
  const shown = columns.map((_, place) => place).filter((place) => columns[place].name.toLowerCase().includes((state.names ?? "").toLowerCase()));
  return html`<div class="scroll" ref=${top} tabindex="0" role="region" aria-label="rows" aria-busy=${Boolean(answer.waits)}>
    <table>
      <thead><tr><th scope="col">row</th>${shown.map((place) => html`<${Head} key=${place} column=${columns[place]} statistics=${statistics} state=${state} go=${go} />`)}</tr></thead>
      <tbody>${(answer.rows ?? []).map((row) => html`<${Row} key=${row.row} row=${row} columns=${columns} shown=${shown} state=${state} go=${go} />`)}</tbody>
    </table>
    ${answer.rows?.length === 0 && answer.done && html`<p>${state.where || state.text ? "No row matches." : `There are no rows from ${counted(state.first)} on.`}</p>`}
  </div>`;
};

const Pages = ({ state, answer, go }) => {
  const { total, done } = answer;
  const to = (first) => go({ first: Math.max(0, Math.floor(first)), row: null });
  const isKnown = typeof total === "number";
  const last = isKnown ? Math.max(0, Math.floor((total - 1) / PAGE) * PAGE) : null;
  const isLast = isKnown ? state.first >= last : (answer.rows?.length ?? PAGE) < PAGE;
  return html`<nav aria-label="pages">
    <button onClick=${() => to(0)} disabled=${state.first === 0}>first</button>
    <button onClick=${() => to(state.first - PAGE)} disabled=${state.first === 0}>previous</button>
    <label>row <${Field} type="number" min="0" step="1" value=${state.first} onChange=${(event) => to(Number(event.target.value) || 0)} /></label>
    <span>${isKnown ? `of ${counted(total)}${done ? "" : " so far"}` : ""}</span>
    <button onClick=${() => to(state.first + PAGE)} disabled=${isLast}>next</button>
    ${isKnown && html`<button onClick=${() => to(last)} disabled=${isLast}>last</button>`}
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

// What narrows the rows: a condition, a text, the names of columns. Enter applies it.
const Search = ({ state, go }) => {
  const apply = (event) => {
    event.preventDefault();
    const entered = Object.fromEntries(new FormData(event.target));
    go({ where: entered.where || null, text: entered.text || null, names: entered.names || null, first: 0 });
  };
  const clear = () => go({ where: null, text: null, names: null, sort: null, descending: null, first: 0 });
  const isSet = state.where || state.text || state.names || state.sort;
  return html`<form class="search" role="search" onSubmit=${apply}>
    <label>where <${Field} name="where" class="where" value=${state.where ?? ""} placeholder="SQL: fare > 20" spellcheck="false" autocomplete="off" /></label>
    <label>text <${Field} name="text" value=${state.text ?? ""} placeholder="in any value" autocomplete="off" /></label>
    <label>columns <${Field} name="names" value=${state.names ?? ""} placeholder="a part of their names" autocomplete="off" /></label>
    <button>apply</button>${isSet && html`<button type="button" onClick=${clear}>clear</button>`}</form>`;
};

// How far the search is, and what it left out.
const Found = ({ answer, state }) => {
  if (!(state.where || state.text || state.sort) || answer.error) return null;
  const part = answer.done || !answer.of ? "" : ` of ${counted(answer.of)}`;
  const progress = answer.done ? "" : `${answer.stage || "searching"}: ${counted(answer.read ?? 0)}${part} rows`;
  const skipped = answer.skipped > 0 && `${counted(answer.skipped)} could not be read, or have no value`;
  const text = [progress, skipped, answer.ends].filter(Boolean).join("; ");
  return text && html`<p class="note" role="status">${text}</p>`;
};

// ---- one record ----

const hexLines = (hex) => (hex.match(/.{1,32}/g) ?? []).map((line) => line.match(/../g).join(" ")).join("\n");

// `order` has the numbers of the rows that are shown, of which those before and after are reached.
const Record = ({ files, order, total, state, go }) => {
  const box = useRef();
  const answer = useAnswer("record", { split: state.split, row: state.row });
  useEffect(() => box.current.showModal(), []);
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
  const record = answer.value?.row === state.row ? answer.value : undefined; // not the one before
  const cells =
    record?.cells &&
    files.columns.map((column, index) => {
      const at = { split: state.split, row: record.row, column: column.name };
      const boxes = boxesOver(files.columns, record.cells, column.name);
      return html`<dt>${seen(column.name)}</dt><dd><${Cell} cell=${record.cells[index]} at=${at} large=${true} boxes=${boxes} /></dd>`;
    });
  const facts =
    record?.file &&
    Object.entries({
      file: record.file,
      split: record.split,
      record: counted(record.record) + (record.row_of_block === null ? "" : `, row ${record.row_of_block}`),
      "begins at byte": counted(record.offset),
      length: `${counted(record.length)} bytes`,
      CRC: record.crc,
      command: record.command,
    });
  return html`<dialog ref=${box} onClose=${close} onKeyDown=${keys} aria-label=${`row ${state.row}`}>
    <nav><h2>Row ${counted(state.row)}</h2>
      <button onClick=${() => move(-1)} disabled=${beside(-1) === undefined}>previous</button>
      <button onClick=${() => move(1)} disabled=${beside(1) === undefined}>next</button>
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
