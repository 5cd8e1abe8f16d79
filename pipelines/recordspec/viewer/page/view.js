// The page of `recordspec view`. Values of records become text nodes only; nothing is written as markup.
import { html, render, useEffect, useRef, useState } from "/page/vendor/htm-preact.js";

const PAGE = 100;

// ---- the state, all of which is in the URL, but not the token: the cookie has it ----

const readState = () => {
  const asked = new URLSearchParams(location.search);
  const number = (name) => (asked.has(name) ? Math.max(0, Number.parseInt(asked.get(name), 10) || 0) : null);
  return { split: asked.get("split"), first: number("first") ?? 0, row: number("row") };
};

const urlOf = (state) => {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value !== null && value !== "" && !(name === "first" && value === 0)) asked.set(name, value);
  }
  const text = asked.toString();
  return location.pathname + (text ? `?${text}` : "");
};

const asking = async (name, asked, signal) => {
  const given = Object.entries(asked).filter(([, value]) => value !== null && value !== undefined);
  const response = await fetch(`/api/${name}?${new URLSearchParams(given)}`, { signal });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.problems.join("; "));
  return answer;
};

// What the server answers, again when what is asked changes; the request before is cancelled.
const useAnswer = (name, asked) => {
  const [answer, setAnswer] = useState({});
  const key = JSON.stringify(asked);
  useEffect(() => {
    if (asked === null) return undefined;
    const control = new AbortController();
    setAnswer((before) => ({ ...before, waits: true }));
    asking(name, asked, control.signal).then(
      (value) => setAnswer({ value }),
      (error) => error.name === "AbortError" || setAnswer({ error: error.message }),
    );
    return () => control.abort();
  }, [name, key]);
  return answer;
};

// ---- cells ----

// Text with what is not seen, or turns the text around it, as escapes.
const seen = (text) =>
  String(text).replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (unseen) => `\\u${unseen.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

const counted = (count) => count.toLocaleString("en");

const sizeText = (size) => (size < 1024 ? `${size} bytes` : `${counted(Math.round(size / 1024))} KiB`);

const Medium = ({ cell, at, large }) => {
  const asked = new URLSearchParams(Object.entries(at).filter(([, value]) => value !== null));
  if (large) asked.set("large", "");
  const url = `/api/medium?${asked}`;
  if (cell.is === "image") {
    const alt = `${cell.form}, ${cell.width} x ${cell.height}, ${sizeText(cell.size)}`;
    return html`<img src=${url} alt=${alt} title=${alt} loading="lazy" />`;
  }
  const text = `${cell.form}, ${cell.seconds.toFixed(2)} s, ${sizeText(cell.size)}`;
  return html`<figure class="sound"><audio controls preload="none" src=${url} aria-label=${text}></audio>
    <figcaption>${text}</figcaption></figure>`;
};

const value = (number) => (typeof number === "number" ? number : Number(number.text));

const Line = ({ numbers, text }) => {
  const finite = numbers.map(value).filter(Number.isFinite);
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low || 1;
  const points = numbers
    .map((number, place) => [(160 * place) / Math.max(numbers.length - 1, 1), 30 - (28 * (value(number) - low)) / span])
    .filter(([, y]) => Number.isFinite(y))
    .map((point) => point.map((part) => part.toFixed(1)).join(","));
  return html`<svg class="line" viewBox="0 0 160 32" role="img" aria-label=${text}><polyline points=${points.join(" ")} /></svg>`;
};

const Heat = ({ numbers, shape, text }) => {
  const canvas = useRef();
  useEffect(() => {
    const [height, width] = shape;
    const context = canvas.current.getContext("2d");
    const image = context.createImageData(width, height);
    const finite = numbers.map(value).filter(Number.isFinite);
    const low = Math.min(...finite);
    const span = Math.max(...finite) - low || 1;
    numbers.forEach((number, place) => {
      const shade = (255 * (value(number) - low)) / span;
      image.data.set(Number.isFinite(shade) ? [shade, shade, shade, 255] : [255, 0, 0, 255], 4 * place);
    });
    context.putImageData(image, 0, 0);
  }, [numbers]);
  return html`<canvas class="heat" ref=${canvas} width=${shape[1]} height=${shape[0]} role="img" aria-label=${text}></canvas>`;
};

const Numbers = ({ cell }) => {
  const text = `${cell.type} [${cell.shape.join(", ")}]`;
  const first = cell.some.slice(0, 4).map((number) => number.text ?? number).join(", ");
  const whole = cell.some.length === cell.shape.reduce((product, size) => product * size, 1);
  const drawn =
    cell.shape.length === 2 && whole && cell.shape[0] > 1
      ? html`<${Heat} numbers=${cell.some} shape=${cell.shape} text=${text} />`
      : cell.some.length > 4 && html`<${Line} numbers=${cell.some} text=${text} />`;
  return html`${drawn}<div>${first}${cell.some.length > 4 ? ", ..." : ""} <small>${text}</small></div>`;
};

const Cell = ({ cell, at, large }) => {
  if (cell === null || typeof cell !== "object") return html`${seen(cell)}`;
  switch (cell.is) {
    case "missing":
      return html`<span class="missing">missing</span>`;
    case "label":
      return html`<span class="label">${seen(cell.text)}</span>`;
    case "number":
      return html`${cell.text}`;
    case "text":
      return html`${seen(cell.text)}... <small>${counted(cell.length)} characters</small>`;
    case "bytes":
      return html`<span class="hex">${cell.hex}</span> <small>${cell.form} ${sizeText(cell.size)}</small>`;
    case "image":
    case "sound":
      return html`<${Medium} cell=${cell} at=${at} large=${large} />`;
    case "numbers":
      return html`<${Numbers} cell=${cell} />`;
    case "fields":
      return html`<dl>${cell.fields.map(([name, one]) => html`<dt>${seen(name)}</dt><dd><${Cell} cell=${one} at=${at} /></dd>`)}</dl>`;
    default: {
      const items = cell.items.map((one, place) => {
        const inside = { ...at, place: at.place ? `${at.place}.${place}` : String(place) };
        return html`<li><${Cell} cell=${one} at=${inside} large=${large} /></li>`;
      });
      const more = cell.length > cell.items.length && html`<li><small>${counted(cell.length)} in all</small></li>`;
      return html`<ul class="items">${items}${more}</ul>`;
    }
  }
};

const isNumber = (cell) => typeof cell === "number" || cell?.is === "number";

// ---- the table ----

const Row = ({ row, columns, state, go }) => {
  const open = (event) => {
    event.preventDefault();
    go({ row: row.row });
  };
  const head = html`<th scope="row"><a href=${urlOf({ ...state, row: row.row })} onClick=${open}>${counted(row.row)}</a></th>`;
  if (row.problems) return html`<tr>${head}<td class="bad" colspan=${columns.length}>${seen(row.problems.join("; "))}</td></tr>`;
  const cells = row.cells.map((cell, place) => {
    const at = { split: state.split, row: row.row, column: columns[place].name };
    return html`<td class=${isNumber(cell) ? "number" : ""}><${Cell} cell=${cell} at=${at} /></td>`;
  });
  return html`<tr>${head}${cells}</tr>`;
};

const Table = ({ files, answer, state, go }) => {
  const top = useRef();
  useEffect(() => top.current?.scrollTo(0, 0), [state.first, state.split]);
  const heads = files.columns.map(
    (column) => html`<th scope="col">${seen(column.name)}<small>${column.kind ?? ""} ${column.type}</small></th>`,
  );
  return html`<div class="scroll" ref=${top} tabindex="0" role="region" aria-label="rows" aria-busy=${Boolean(answer.waits)}>
    <table>
      <thead><tr><th scope="col">row</th>${heads}</tr></thead>
      <tbody>${(answer.value?.rows ?? []).map((row) => html`<${Row} key=${row.row} row=${row} columns=${files.columns} state=${state} go=${go} />`)}</tbody>
    </table>
    ${answer.value?.rows.length === 0 && html`<p>There are no rows from ${counted(state.first)} on.</p>`}
  </div>`;
};

const Pages = ({ state, total, shown, go }) => {
  const to = (first) => go({ first: Math.max(0, first), row: null });
  const last = total === null || total === undefined ? null : Math.max(0, Math.floor((total - 1) / PAGE) * PAGE);
  const isLast = last === null ? shown < PAGE : state.first >= last;
  return html`<nav aria-label="pages">
    <button onClick=${() => to(0)} disabled=${state.first === 0}>first</button>
    <button onClick=${() => to(state.first - PAGE)} disabled=${state.first === 0}>previous</button>
    <label>row <input type="number" min="0" value=${state.first} onChange=${(event) => to(Number(event.target.value) || 0)} /></label>
    <span>${total === null || total === undefined ? "" : `of ${counted(total)}`}</span>
    <button onClick=${() => to(state.first + PAGE)} disabled=${isLast}>next</button>
    ${last !== null && html`<button onClick=${() => to(last)} disabled=${isLast}>last</button>`}
  </nav>`;
};

// ---- one record ----

const hexLines = (hex) => (hex.match(/.{1,32}/g) ?? []).map((line) => line.match(/../g).join(" ")).join("\n");

const Record = ({ files, state, go }) => {
  const box = useRef();
  const answer = useAnswer("record", { split: state.split, row: state.row });
  useEffect(() => box.current.showModal(), []);
  const close = () => go({ row: null });
  const keys = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, k: -1, j: 1 }[event.key];
    if (step && state.row + step >= 0) {
      event.preventDefault();
      go({ row: state.row + step });
    }
  };
  const record = answer.value;
  const cells =
    record?.cells &&
    files.columns.map((column, place) => {
      const at = { split: state.split, row: record.row, column: column.name };
      return html`<dt>${seen(column.name)}</dt><dd><${Cell} cell=${record.cells[place]} at=${at} large=${true} /></dd>`;
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
    }).map(([name, text]) => html`<dt>${name}</dt><dd>${seen(text)}</dd>`);
  return html`<dialog ref=${box} onClose=${close} onKeyDown=${keys} aria-label=${`row ${state.row}`}>
    <nav><h2>Row ${counted(state.row)}</h2>
      <button onClick=${() => go({ row: state.row - 1 })} disabled=${state.row === 0}>previous</button>
      <button onClick=${() => go({ row: state.row + 1 })}>next</button>
      <button onClick=${() => box.current.close()}>close</button></nav>
    ${answer.error && html`<p class="bad" role="alert">${seen(answer.error)}</p>`}
    ${record?.problems?.map((problem) => html`<p class="bad">${seen(problem)}</p>`)}
    ${cells && html`<dl>${cells}</dl>`}
    ${facts && html`<h2>Where it is</h2><dl>${facts}</dl>`}
    ${record?.stored && html`<details><summary>as it is stored</summary><pre>${seen(JSON.stringify(record.stored, null, 2))}</pre></details>`}
    ${record?.bytes && html`<details><summary>its first bytes</summary><pre class="hex">${hexLines(record.bytes)}</pre></details>`}
  </dialog>`;
};

const App = () => {
  const [state, setState] = useState(readState);
  const files = useAnswer("files", {});
  const answer = useAnswer("rows", { split: state.split, first: state.first, count: PAGE });
  useEffect(() => {
    history.replaceState(null, "", urlOf(state)); // without the token
    const back = () => setState(readState());
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  const go = (change) => {
    const next = { ...state, ...change };
    history.pushState(null, "", urlOf(next));
    setState(next);
  };
  if (files.error) return html`<p class="bad" role="alert">${files.error}</p>`;
  if (!files.value) return html`<p>reading...</p>`;
  const { value: described } = files;
  const name = described.files.length === 1 ? described.files[0] : `${counted(described.count)} files`;
  document.title = `${name.split("/").pop()} - recordspec view`;
  const splits = described.splits.length > 1 && html`<label>split
    <select value=${state.split ?? ""} onChange=${(event) => go({ split: event.target.value || null, first: 0, row: null })}>
      <option value="">all</option>${described.splits.map((split) => html`<option value=${split}>${split}</option>`)}
    </select></label>`;
  return html`<a class="skip" href="#rows">to the rows</a>
    <header><h1 title=${described.files.join("\n")}>${seen(name)}</h1>${splits}
      <${Pages} state=${state} total=${answer.value?.total} shown=${answer.value?.rows.length ?? PAGE} go=${go} />
      <span role="status">${answer.waits ? "reading..." : ""}</span></header>
    <main id="rows">
      ${answer.error ? html`<p class="bad" role="alert">${seen(answer.error)}</p>` : html`<${Table} files=${described} answer=${answer} state=${state} go=${go} />`}
    </main>
    ${state.row !== null && html`<${Record} key="record" files=${described} state=${state} go=${go} />`}`;
};

render(html`<${App} />`, document.body);
