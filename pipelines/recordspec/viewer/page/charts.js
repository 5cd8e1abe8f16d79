// Distributions: small ones above columns, and cards with those of each split side by side.
"use strict";

const share = (count, whole) => {
  const percent = (100 * count) / Math.max(whole, 1);
  return count > 0 && percent < 0.05 ? "<0.1%" : `${percent.toFixed(1)}%`;
};

const barText = ([text, count], of) => `${seen(text)}: ${counted(count)}${of ? ` ${of}` : ""}`;

// The chart above a column: a click on a bar filters by it.
const SmallChart = ({ chart, of, filter }) => {
  const bars = chart.bars.slice(0, 24);
  const most = Math.max(...bars.map(([, count]) => count), 1);
  const width = 120 / bars.length;
  const drawn = bars.map((bar, place) => {
    const [, count, where] = bar;
    const height = count ? Math.max((26 * count) / most, 1) : 0;
    return html`<g class=${where ? "bar" : ""} onClick=${where && (() => filter(where))}><title>${barText(bar, of)}</title>
      <rect class="room" x=${place * width} y="0" width=${width} height="28" /><rect x=${place * width + 0.5} y=${27 - height} width=${Math.max(width - 1, 0.5)} height=${height} /></g>`;
  });
  return html`<svg class="small" viewBox="0 0 120 28" role="img" aria-label=${`distribution of ${chart.of} ${of}`}>${drawn}</svg>`;
};

// A bar that filters is a button; others are text.
const Bar = ({ bar, filter, children, ...rest }) => {
  const where = bar[2];
  if (!where || !filter) return html`<span role=${rest["aria-label"] && "img"} ...${rest}>${children}</span>`;
  return html`<button ...${rest} onClick=${() => filter(where)}>${children}</button>`;
};

const Histogram = ({ chart, label, filter }) => {
  const most = Math.max(...chart.bars.map(([, count]) => count), 1);
  const bars = chart.bars.map((bar) => {
    const text = barText(bar);
    return html`<li><${Bar} bar=${bar} filter=${filter} aria-label=${text} title=${text} class="column">
      <span style=${{ height: `${bar[1] ? Math.max((100 * bar[1]) / most, 1) : 0}%` }}></span><//></li>`;
  });
  const ends = [chart.bars[0][0].split(" to ")[0], chart.bars.at(-1)[0].split(" to ").at(-1)];
  return html`<figure><ul class="histogram" aria-label=${label}>${bars}</ul>
    <figcaption><span>${ends[0]}</span> <span>${chart.of}</span> <span>${ends[1]}</span></figcaption></figure>`;
};

const Counts = ({ chart, label, filter }) => {
  const lines = chart.bars.map((bar) => {
    const part = share(bar[1], chart.whole);
    return html`<tr><th scope="row"><${Bar} bar=${bar} filter=${filter} class="value">${seen(bar[0])}<//></th><td>${counted(bar[1])}</td><td>${part}</td>
      <td><span class="share"><span style=${{ width: `${Math.min(100, (100 * bar[1]) / Math.max(chart.whole, 1))}%` }}></span></span></td></tr>`;
  });
  return html`<table class="counts" aria-label=${label}><thead><tr><th scope="col">${chart.of}</th><th scope="col">${chart.in}</th><th scope="col">share</th><td></td></tr></thead>
    <tbody>${lines}</tbody></table>`;
};

const Facts = ({ facts }) => html`<dl>${facts.map(([name, text]) => html`<dt>${name}</dt><dd>${seen(text)}</dd>`)}</dl>`;

const Warnings = ({ warnings }) => warnings.length > 0 && html`<ul class="bad">${warnings.map((warning) => html`<li>${seen(warning)}</li>`)}</ul>`;

const ofSplit = (feature, split, filter) => {
  const { facts, charts, warnings } = feature.splits[split];
  return html`<section class="split" key=${split}><h3>${seen(split)}</h3>
    ${charts.map((chart) => {
      const label = `${chart.of} of ${seen(feature.name)} in ${seen(split)}`;
      return chart.is === "counts"
        ? html`<${Counts} chart=${chart} label=${label} filter=${filter} />`
        : html`<${Histogram} chart=${chart} label=${label} filter=${filter} />`;
    })}
    <${Facts} facts=${facts} /><${Warnings} warnings=${warnings} /></section>`;
};

// All features with the splits beside each other. `filter` is called with a split and a condition.
const Features = ({ statistics, names, filter, notes }) => {
  const wanted = statistics.features.filter((feature) => feature.name.toLowerCase().includes((names ?? "").toLowerCase()));
  const cards = wanted.map((feature) => {
    const splits = statistics.splits.filter((split) => Object.hasOwn(feature.splits, split.name));
    return html`<article key=${feature.key}><h2>${seen(feature.name)} <small>${seen(feature.about)}</small></h2>
      ${notes?.[feature.key]}
      <div class="splits">${splits.map((split) => ofSplit(feature, split.name, filter && ((where) => filter(split.name, where))))}</div></article>`;
  });
  return html`<section aria-label="statistics">${cards}${cards.length === 0 && html`<p>No column has this name.</p>`}</section>`;
};

const Statistics = ({ statistics, names, filter }) => html`<ul class="plain">${statistics.splits.map((split) => html`<li>${seen(split.title)}${split.copies > 0 && html`; ${counted(split.copies)} copies of earlier rows`}</li>`)}</ul>
  ${statistics.warnings.length > 0 && html`<section class="warnings"><h2>Warnings</h2><${Warnings} warnings=${statistics.warnings} /></section>`}
  <${Warnings} warnings=${statistics.problems} />
  <${Features} statistics=${statistics} names=${names} filter=${filter} />`;
