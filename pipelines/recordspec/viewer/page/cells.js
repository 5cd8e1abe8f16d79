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

const counted = (count) => count.toLocaleString("en");

const sizeText = (size) => (size < 1024 ? `${size} bytes` : `${counted(Math.round(size / 1024))} KiB`);

// Boxes over an image of so many pixels, with their classes.
const Boxes = ({ boxes, width, height, large }) => html`<svg viewBox=${`0 0 ${width} ${height}`} class="boxes" aria-hidden="true">
  ${boxes.map((cell) => {
    const [across, down] = cell.relative ? [width, height] : [1, 1];
    return cell.corners.map(([left, top, right, bottom], place) => {
      const name = cell.names?.[place];
      return html`<rect x=${left * across} y=${top * down} width=${(right - left) * across} height=${(bottom - top) * down} />
        ${name !== undefined && html`<text x=${left * across} y=${top * down} font-size=${height / (large ? 20 : 8)}>${seen(name)}</text>`}`;
    });
  })}</svg>`;

const Medium = ({ cell, at, large, boxes }) => {
  const asked = new URLSearchParams(Object.entries(at).filter(([, value]) => value !== null));
  if (large) asked.set("large", "");
  const url = `/api/medium?${asked}`;
  if (cell.is === "image") {
    const drawn = boxes?.flatMap((each) => each.names ?? each.corners.map(() => "a box")) ?? [];
    const over = drawn.length ? `, with ${drawn.map(seen).join(", ")}` : "";
    const alt = `${cell.form}, ${cell.width} x ${cell.height}, ${sizeText(cell.size)}${over}`;
    return html`<span class="image"><img class=${cell.width < 256 ? "little" : ""} src=${url} alt=${alt} title=${alt} loading="lazy" />
      ${drawn.length > 0 && html`<${Boxes} boxes=${boxes} width=${cell.width} height=${cell.height} large=${large} />`}</span>`;
  }
  const text = `${cell.form}, ${cell.seconds.toFixed(2)} s, ${sizeText(cell.size)}`;
  return html`<figure class="sound"><audio controls preload="none" src=${url} aria-label=${text}></audio>
    ${large && html`<${Wave} url=${url} />`}<figcaption>${text}</figcaption></figure>`;
};

// The loudest samples of each part of a sound, which is a WAV file of 16 bits with a header of 44 bytes.
const Wave = ({ url }) => {
  const [peaks, setPeaks] = useState([]);
  useEffect(() => {
    const control = new AbortController();
    fetch(url, { signal: control.signal })
      .then((response) => (response.ok ? response.arrayBuffer() : new ArrayBuffer(44)))
      .then((data) => {
        const samples = new Int16Array(data.slice(44, data.byteLength - (data.byteLength % 2)));
        const step = Math.max(1, Math.ceil(samples.length / 600));
        const parts = Array.from({ length: Math.ceil(samples.length / step) }, (_, part) => samples.subarray(part * step, (part + 1) * step));
        setPeaks(parts.map((part) => part.reduce(([low, high], sample) => [Math.min(low, sample), Math.max(high, sample)], [0, 0])));
      })
      .catch(() => {}); // the tab is closed, or the player tells
    return () => control.abort();
  }, [url]);
  const outline = peaks.map(([low, high], place) => `M${place} ${((1 - high / 32768) * 32).toFixed(1)}V${((1 - low / 32768) * 32).toFixed(1)}`);
  return html`<svg class="wave" viewBox=${`0 0 ${Math.max(peaks.length, 1)} 64`} preserveAspectRatio="none" role="img" aria-label="waveform"><path d=${outline.join("")} /></svg>`;
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
      return html`${seen(cell.text)}... <small>${cell.length === undefined ? sizeText(cell.size) : `${counted(cell.length)} characters`}</small>`;
    case "bytes":
      return html`<span class="hex">${cell.hex}</span> <small>${cell.form} ${sizeText(cell.size)}</small>`;
    case "image":
    case "audio":
      return html`<${Medium} cell=${cell} at=${at} large=${large} boxes=${boxes} />`;
    case "boxes":
      return html`<ul class="items">${cell.corners.slice(0, large ? 64 : 4).map((corners, place) => html`<li>${cell.names && html`<span class="label">${seen(cell.names[place])}</span> `}<small>${corners.map((side) => +side.toPrecision(4)).join(", ")}</small></li>`)}
        <li><small>${counted(cell.corners.length)} boxes</small></li></ul>`;
    case "numbers":
      return html`<${Numbers} cell=${cell} />`;
    case "fields":
      return html`<dl>${cell.fields.map(([name, one]) => html`<dt>${seen(name)}</dt><dd><${Cell} cell=${one} at=${at} /></dd>`)}</dl>`;
    default: {
      if (!cell.length) return html`<small>no items</small>`;
      const items = cell.items.slice(0, large ? undefined : 8).map((one, place) => {
        const inside = { ...at, place: at.place ? `${at.place}.${place}` : String(place) };
        return html`<li><${Cell} cell=${one} at=${inside} large=${large} /></li>`;
      });
      const more = cell.length > items.length && html`<li><small>${counted(cell.length)} in all</small></li>`;
      return html`<ul class="items">${items}${more}</ul>`;
    }
  }
};

const isNumber = (cell) => typeof cell === "number" || cell?.is === "number";
