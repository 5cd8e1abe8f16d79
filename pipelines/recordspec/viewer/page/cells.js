// Cells of the tables, each drawn as what it is. Values of records become text nodes only: nothing is written
// as markup. The scripts of the page share their names; `htmPreact` is the library in `vendor`.
"use strict";
const { html, render, useEffect, useRef, useState } = htmPreact;

// Text with what is not seen, or turns the text around it, as escapes.
const seen = (text) =>
  String(text).replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (unseen) => `\\u${unseen.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

const counted = (count, noun) => {
  const text = count.toLocaleString("en");
  return noun === undefined ? text : `${text} ${noun}${count === 1 ? "" : /[sx]$/.test(noun) ? "es" : "s"}`;
};

const sizeText = (size) => (size < 1024 ? counted(size, "byte") : `${counted(Math.round(size / 1024))} KiB`);

// A number with few digits, for scales.
const figure = (number) => (Number.isInteger(number) && Math.abs(number) < 1e15 ? counted(number) : String(+number.toPrecision(4)));

// ---- images and boxes ----

// White text is read on each of them.
const COLOURS = ["#c2185b", "#1565c0", "#2e7d32", "#a84300", "#6a1b9a", "#00707a", "#8e5a00", "#4527a0", "#6d4c41", "#37474f", "#b71c1c", "#556b00"];
const colours = new Map();

// The colour of a class: the first classes of the schema have one each.
const colourOf = (name) => {
  if (!colours.has(name)) colours.set(name, COLOURS[colours.size % COLOURS.length]);
  return colours.get(name);
};

// The most pixels of an image in a cell, the least length of the longer side of any image (`LEAST_SIDE` of
// `html.py`), and that of an image alone.
const [WIDEST, HIGHEST, LEAST_SIDE, LEAST_ALONE] = [160, 112, 48, 256];

// The width and the height at which an image is drawn. Whole multiples keep the pixels of a small one square.
const drawnSize = ({ width, height }, large) => {
  const longer = Math.max(width, height, 1);
  const least = large ? LEAST_ALONE : LEAST_SIDE;
  const scale = longer < least ? Math.ceil(least / longer) : large ? 1 : Math.min(WIDEST / width, HIGHEST / height, 1);
  return [width, height].map((side) => Math.max(1, Math.round(side * scale)));
};

// Boxes over an image, and the names of their classes, of one size at any scale.
const Boxes = ({ boxes, cell, large }) => {
  const { width, height } = cell;
  const all = boxes.flatMap((each) => {
    const [across, down] = each.relative ? [width, height] : [1, 1];
    return each.corners.map(([left, top, right, bottom], place) => ({ left: left * across, top: top * down, right: right * across, bottom: bottom * down, name: each.names?.[place] }));
  });
  const [drawn] = drawnSize(cell, large);
  const percent = (part, whole) => `${Math.min(Math.max((100 * part) / whole, 0), 100)}%`;
  const names = all.filter(({ name, left, right }) => name !== undefined && (large || ((right - left) * drawn) / width >= 24));
  return html`<svg viewBox=${`0 0 ${width} ${height}`} preserveAspectRatio="none" class="boxes" aria-hidden="true">
      ${all.map(({ left, top, right, bottom, name }) => html`<rect x=${left} y=${top} width=${right - left} height=${bottom - top} stroke=${colourOf(name ?? "")} />`)}</svg>
    ${names.map(({ left, top, right, name }) => {
      const style = { left: percent(left, width), top: percent(top, height), maxWidth: percent(large ? width - left : right - left, width), background: colourOf(name) };
      return html`<span class="tag" aria-hidden="true" style=${style}>${seen(name)}</span>`;
    })}`;
};

const mediumUrl = (at, large) => `/api/medium?${new URLSearchParams(Object.entries({ ...at, large: large ? "" : null }).filter(([, value]) => value !== null))}`;

// Why an image or audio cannot be drawn.
const Reason = ({ url }) => {
  const [why, setWhy] = useState("");
  useEffect(() => {
    fetch(url)
      .then((response) => response.json())
      .then(({ error }) => setWhy(error))
      .catch(() => setWhy("the browser cannot draw it"));
  }, [url]);
  return html`<div class="bad">${seen(why)}</div>`;
};

const Medium = ({ cell, at, large, boxes }) => {
  const url = mediumUrl(at, large);
  const [failed, setFailed] = useState(); // the URL of what could not be drawn
  const fail = () => setFailed(url);
  const measures = cell.is === "image" ? `${cell.width} x ${cell.height}` : `${cell.seconds.toFixed(2)} s`;
  const text = `${cell.form}, ${measures}, ${sizeText(cell.size)}`;
  if (failed === url) return html`${text}<${Reason} url=${url} />`;
  if (cell.is === "image") {
    const drawn = boxes?.flatMap((each) => each.names ?? each.corners.map(() => "a box")) ?? [];
    const alt = `${text}${drawn.length ? `, with ${drawn.map(seen).join(", ")}` : ""}`;
    const [width, height] = drawnSize(cell, large);
    return html`<span class="image"><img class=${width > cell.width ? "little" : ""} width=${width} height=${height} src=${url} alt=${alt} title=${alt} loading="lazy" onError=${fail} />
      ${drawn.length > 0 && html`<${Boxes} boxes=${boxes} cell=${cell} large=${large} />`}</span>`;
  }
  return html`<figure class="sound"><audio controls preload="none" src=${url} aria-label=${text} onError=${fail}></audio>
    ${large && html`<${Wave} url=${url} />`}<figcaption>${text}</figcaption></figure>`;
};

// ---- sounds and numbers ----

// The loudest samples of each part of a sound, which is a WAV file of 16 bits with a header of 44 bytes.
const Wave = ({ url }) => {
  const [peaks, setPeaks] = useState([]);
  useEffect(() => {
    const control = new AbortController();
    fetch(url, { signal: control.signal })
      .then((response) => (response.headers.get("content-type") === "audio/wav" ? response.arrayBuffer() : new ArrayBuffer(44)))
      .then((data) => {
        const samples = new Int16Array(data.slice(44, data.byteLength - (data.byteLength % 2)));
        const step = Math.max(1, Math.ceil(samples.length / 600));
        const parts = Array.from({ length: Math.ceil(samples.length / step) }, (_, part) => samples.subarray(part * step, (part + 1) * step));
        setPeaks(parts.map((part) => part.reduce(([low, high], sample) => [Math.min(low, sample), Math.max(high, sample)], [0, 0])));
      })
      .catch(() => {}); // the tab is closed, or the player tells
    return () => control.abort();
  }, [url]);
  const peak = peaks.reduce((most, [low, high]) => Math.max(most, -low, high), 0);
  const height = (sample) => (32 - (31 * sample) / Math.max(peak, 1)).toFixed(1);
  const outline = peaks.map(([low, high], place) => `M${place} ${height(high)}V${height(low)}`);
  return html`<svg class="wave" viewBox=${`0 0 ${Math.max(peaks.length, 1)} 64`} preserveAspectRatio="none" role="img" aria-label="waveform"><path d=${outline.join("")} /></svg>
    <small>${peaks.length > 0 && `peak at ${((100 * peak) / 32768).toPrecision(2)}% of full scale`}</small>`;
};

const value = (number) => (typeof number === "number" ? number : Number(number.text));

const rangeOf = (numbers) => {
  const finite = numbers.map(value).filter(Number.isFinite);
  return finite.length ? [Math.min(...finite), Math.max(...finite)] : [0, 0];
};

// A curve; alone with the numbers and the places at its ends.
const Line = ({ numbers, count, text, large }) => {
  const [low, high] = rangeOf(numbers);
  const points = numbers
    .map((number, place) => [(160 * place) / Math.max(numbers.length - 1, 1), 30 - (28 * (value(number) - low)) / (high - low || 1)])
    .filter(([, y]) => Number.isFinite(y))
    .map((point) => point.map((part) => part.toFixed(1)).join(","));
  const line = html`<svg class="line" viewBox="0 0 160 32" preserveAspectRatio="none" role="img" aria-label=${text}><polyline points=${points.join(" ")} /></svg>`;
  if (!large) return line;
  return html`<figure class="plot"><div class="scale"><span>${figure(high)}</span><span>${figure(low)}</span></div>${line}
    <span></span><figcaption><span>0</span><span>${counted(count - 1)}</span></figcaption></figure>`;
};

// A heat map; alone with the numbers that are black and white.
const Heat = ({ numbers, shape, text, large }) => {
  const canvas = useRef();
  const [low, high] = rangeOf(numbers);
  useEffect(() => {
    const [height, width] = shape;
    const context = canvas.current.getContext("2d");
    const image = context.createImageData(width, height);
    numbers.forEach((number, place) => {
      const shade = (255 * (value(number) - low)) / (high - low || 1);
      image.data.set(Number.isFinite(shade) ? [shade, shade, shade, 255] : [255, 0, 0, 255], 4 * place);
    });
    context.putImageData(image, 0, 0);
  }, [numbers]);
  const [width, height] = drawnSize({ width: shape[1], height: shape[0] }, large);
  const map = html`<canvas class="heat" ref=${canvas} width=${shape[1]} height=${shape[0]} style=${{ width: `${width}px`, height: `${height}px` }} role="img" aria-label=${text}></canvas>`;
  if (!large) return map;
  return html`<figure class="heat">${map}<figcaption><span>${figure(low)}</span><span class="ramp"></span><span>${figure(high)}</span></figcaption></figure>`;
};

const Numbers = ({ cell, large }) => {
  const shape = `[${cell.shape.join(", ")}]`;
  const text = `${cell.type} ${shape}`;
  const first = cell.some.slice(0, large ? 64 : 4).map((number) => number.text ?? number).join(", ");
  const count = cell.shape.reduce((product, size) => product * size, 1);
  const isMatrix = cell.shape.length === 2 && cell.some.length === count && cell.shape[0] > 1;
  const isSampled = cell.some.length < count;
  const drawn = isMatrix
    ? html`<${Heat} numbers=${cell.some} shape=${cell.shape} text=${text} large=${large} />`
    : cell.some.length > 4 && html`<${Line} numbers=${cell.some} count=${count} text=${text} large=${large} />`;
  return html`${drawn}<div class="numbers">${!isSampled && `${first}${count > (large ? 64 : 4) ? ", ..." : ""} `}<small>${large ? text : shape}</small></div>`;
};

// ---- cells ----

// The rows of a pack have one colour each in all cells of the pack.
const segmentColour = (place) => COLOURS[place % COLOURS.length];
const Dot = ({ place }) => html`<span class="dot" style=${{ background: segmentColour(place) }}></span>`;

// A pack: where each row is, and its first values.
const Pack = ({ cell, large }) => {
  const percent = (part) => `${(100 * part) / cell.length}%`;
  const text = `${counted(cell.rows.length, "row")} in ${counted(cell.length, "place")}`;
  const spans = cell.rows.map(({ at, size }, place) => html`<span style=${{ left: percent(at), width: percent(size), background: segmentColour(place) }} title=${`segment ${place + 1}: ${counted(size, "value")} from place ${at}`}></span>`);
  const lines = cell.rows.slice(0, large ? undefined : 8).map(({ size, first }, place) => {
    const values = first.map((one) => seen(one.text ?? one)).join(", ");
    return html`<li><${Dot} place=${place} />${values}${first.length < size && "..."} <small>${counted(size)}</small></li>`;
  });
  return html`<div class="pack" role="img" aria-label=${text}>${spans}</div><ul class="packed">${lines}</ul>${cell.rows.length > lines.length && html`<small>${text}</small>`}`;
};

// Boxes: how many of each class; alone also their sides.
const BoxList = ({ cell, large }) => {
  const all = cell.count ?? cell.corners.length;
  const counts = new Map();
  for (const name of cell.names ?? []) counts.set(name, (counts.get(name) ?? 0) + 1);
  const dot = (name) => html`<span class="dot" style=${{ background: colourOf(name) }}></span>`;
  if (!all) return html`<span class="missing">no boxes</span>`;
  if (!large) {
    return html`${counted(all, "box")}<ul class="items">${[...counts].map(([name, count]) => html`<li class="label">${dot(name)}${seen(name)}${count > 1 && html` <small>${counted(count)}</small>`}</li>`)}</ul>`;
  }
  const lines = cell.corners.slice(0, 64).map((corners, place) => {
    const name = cell.names?.[place];
    return html`<tr><th scope="row">${name !== undefined && html`${dot(name)}${seen(name)}`}</th>${corners.map((side) => html`<td class="number">${figure(+side.toPrecision(4))}</td>`)}</tr>`;
  });
  return html`<table class="small"><thead><tr><th scope="col">${counted(all, "box")}</th>${["left", "top", "right", "bottom"].map((side) => html`<th scope="col" class="number">${side}</th>`)}</tr></thead><tbody>${lines}</tbody></table>`;
};

const Cell = ({ cell, at, large, boxes }) => {
  if (cell === null || typeof cell !== "object") return html`${seen(cell)}`;
  switch (cell.is) {
    case "missing":
      return html`<span class="missing">missing</span>`;
    case "label":
      return html`<span class="label">${seen(cell.text)}</span>`;
    case "number":
      return html`${cell.text}`;
    case "text":
      return html`${seen(cell.text)}... <small>${cell.length === undefined ? sizeText(cell.size) : counted(cell.length, "character")}</small>`;
    case "bytes":
      return html`<span class="hex">${cell.hex}</span> <small>${cell.form} ${sizeText(cell.size)}</small>${cell.damaged && html`<${Reason} url=${mediumUrl(at)} />`}`;
    case "image":
    case "audio":
      return html`<${Medium} cell=${cell} at=${at} large=${large} boxes=${boxes} />`;
    case "boxes":
      return html`<${BoxList} cell=${cell} large=${large} />`;
    case "numbers":
      return html`<${Numbers} cell=${cell} large=${large} />`;
    case "pack":
      return html`<${Pack} cell=${cell} large=${large} />`;
    case "fields":
      return html`<dl>${cell.fields.map(([name, one]) => html`<dt>${seen(name)}</dt><dd><${Cell} cell=${one} at=${at} /></dd>`)}</dl>`;
    default: {
      if (!cell.length) return html`<span class="missing">no items</span>`;
      const items = cell.items.slice(0, large ? undefined : 8).map((one, place) => {
        const inside = { ...at, place: at.place ? `${at.place}.${place}` : String(place) };
        return html`<li class=${typeof one === "object" ? "" : "word"}><${Cell} cell=${one} at=${inside} large=${large && cell.length === 1} /></li>`;
      });
      const more = cell.length > items.length && html`<li><small>${counted(cell.length)} in all</small></li>`;
      return html`<ul class="items">${items}${more}</ul>`;
    }
  }
};

const isNumber = (cell) => typeof cell === "number" || cell?.is === "number";

// A cell of a table, no higher than the others; what does not fit fades, and the row alone shows it.
const Value = ({ column, cell, at, boxes }) =>
  html`<td class=${`${isNumber(cell) || column.number ? "number" : ""} ${column.key ? "key" : ""}`}><div class="cell"><${Cell} cell=${cell} at=${at} boxes=${boxes} /></div></td>`;

// Marks the cells that are cut, once their heights are known.
const useCuts = (table, changes) =>
  useEffect(() => {
    const cells = [...(table.current?.querySelectorAll("td > .cell") ?? [])];
    const cut = cells.map((cell) => cell.scrollHeight > cell.clientHeight + 2);
    cells.forEach((cell, place) => cell.classList.toggle("cut", cut[place]));
  }, changes);
