// Distributions: small ones above columns, and cards in which the splits of a feature share one axis.
"use strict";

const MOST_VALUES = 12; // of a chart of counts, until all are wanted

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

// Histograms of one thing, those of the splits under each other: equal areas are equal shares of the rows.
const Histograms = ({ name, charts, filter }) => {
  const low = Math.min(...charts.map(({ chart }) => chart.edges[0]));
  const high = Math.max(...charts.map(({ chart }) => chart.edges.at(-1)));
  const span = high - low || 1;
  const dense = charts.map(({ chart }) => {
    const all = chart.bars.reduce((sum, [, count]) => sum + count, 0) || 1;
    return chart.bars.map(([, count], place) => count / all / ((chart.edges[place + 1] - chart.edges[place]) / span || 1));
  });
  const most = Math.max(...dense.flat(), Number.MIN_VALUE);
  const lines = charts.map(({ split, chart }, line) => {
    const bars = chart.bars.map((bar, place) => {
      const [start, stop] = [chart.edges[place], chart.edges[place + 1]];
      const text = barText(bar);
      const height = bar[1] ? Math.max((100 * dense[line][place]) / most, 2) : 0;
      return html`<li style=${{ left: `${(100 * (start - low)) / span}%`, width: `${high > low ? (100 * (stop - start)) / span : 100}%` }}>
        <${Bar} bar=${bar} filter=${filter(split)} aria-label=${text} title=${text} class="column"><span style=${{ height: `${height}%` }}></span><//></li>`;
    });
    return html`<div class="line">${charts.length > 1 && html`<small>${seen(split)}</small>`}
      <ul class="histogram" aria-label=${`${chart.of} of ${seen(name)} in ${seen(split)}`}>${bars}</ul></div>`;
  });
  const end = (place, edge) => charts.find(({ chart }) => chart.edges.at(place) === edge).chart.ends.at(place);
  return html`<figure class="histograms">${lines}
    <figcaption><span>${end(0, low)}</span> <span>${charts[0].chart.of}</span> <span>${end(-1, high)}</span></figcaption></figure>`;
};

// Counts of values, those of the splits beside each other.
const Counts = ({ name, charts, filter }) => {
  const [isWhole, setWhole] = useState(false);
  const values = [...new Set(charts.flatMap(({ chart }) => chart.bars.map(([text]) => text)))];
  const bars = charts.map(({ chart }) => new Map(chart.bars.map((bar) => [bar[0], bar])));
  const most = Math.max(...charts.flatMap(({ chart }) => chart.bars.map(([, count]) => count / Math.max(chart.whole, 1))), Number.MIN_VALUE);
  const lines = values.slice(0, isWhole ? undefined : MOST_VALUES).map((text) => {
    const cells = charts.map(({ split, chart }, place) => {
      const bar = bars[place].get(text);
      if (!bar) return html`<td></td>`; // rare in this split, or none
      const part = bar[1] / Math.max(chart.whole, 1);
      return html`<td><${Bar} bar=${bar} filter=${filter(split)} class="value" aria-label=${`${barText(bar)} in ${seen(split)}`}>
        <span class="share"><span style=${{ width: `${(100 * part) / most}%` }}></span></span>
        <span>${counted(bar[1])} <small>${share(bar[1], chart.whole)}</small></span><//></td>`;
    });
    return html`<tr><th scope="row">${seen(text)}</th>${cells}</tr>`;
  });
  const { of, in: what } = charts[0].chart;
  const heads = charts.map(({ split }) => html`<th scope="col">${charts.length > 1 ? seen(split) : what}</th>`);
  return html`<div><table class="counts" aria-label=${`${of} of ${seen(name)}`}><thead><tr><th scope="col">${of}</th>${heads}</tr></thead><tbody>${lines}</tbody></table>
    ${values.length > MOST_VALUES && !isWhole && html`<button onClick=${() => setWhole(true)}>all ${counted(values.length)}</button>`}</div>`;
};

// The facts of the splits, a column for each.
const SplitFacts = ({ feature, splits }) => {
  const facts = splits.map(({ name }) => new Map(feature.splits[name].facts));
  const titles = [...new Set(facts.flatMap((each) => [...each.keys()]))];
  const heads = splits.length > 1 && html`<thead><tr><td></td>${splits.map(({ name }) => html`<th scope="col">${seen(name)}</th>`)}</tr></thead>`;
  return html`<div class="wide"><table class="facts">${heads}<tbody>
    ${titles.map((title) => html`<tr><th scope="row">${title}</th>${facts.map((each) => html`<td>${seen(each.get(title) ?? "")}</td>`)}</tr>`)}</tbody></table></div>`;
};

const Facts = ({ facts }) => html`<dl>${facts.map(([name, text]) => html`<dt>${name}</dt><dd>${seen(text)}</dd>`)}</dl>`;

const Warnings = ({ warnings }) => warnings.length > 0 && html`<ul class="bad">${warnings.map((warning) => html`<li>${seen(warning)}</li>`)}</ul>`;

const Feature = ({ feature, splits, filter, note }) => {
  const groups = new Map(); // by what is counted
  for (const { name } of splits) {
    for (const chart of feature.splits[name].charts) {
      const key = `${chart.is} ${chart.of}`;
      groups.set(key, [...(groups.get(key) ?? []), { split: name, chart }]);
    }
  }
  const warnings = splits.flatMap(({ name }) => feature.splits[name].warnings.map((warning) => (splits.length > 1 ? `${name}: ${warning}` : warning)));
  return html`<article id=${feature.key}><h2>${seen(feature.name)} <small>${seen(feature.about)}</small></h2>${note}
    <div class="groups">${[...groups.values()].map((charts) => html`<${charts[0].chart.is === "counts" ? Counts : Histograms} name=${feature.name} charts=${charts} filter=${filter} />`)}</div>
    <${SplitFacts} feature=${feature} splits=${splits} /><${Warnings} warnings=${warnings} /></article>`;
};

// All features, each with its splits on one axis. `filter` is called with a split and a condition.
const Features = ({ statistics, names, filter, notes }) => {
  const wanted = statistics.features.filter((feature) => feature.name.toLowerCase().includes((names ?? "").toLowerCase()));
  const cards = wanted.map((feature) => {
    const splits = statistics.splits.filter((split) => Object.hasOwn(feature.splits, split.name));
    const filterOf = (split) => filter && ((where) => filter(split, where));
    return html`<${Feature} key=${feature.key} feature=${feature} splits=${splits} filter=${filterOf} note=${notes?.[feature.key]} />`;
  });
  return html`<section class="cards" aria-label="statistics">${cards}${cards.length === 0 && html`<p>No column has this name.</p>`}</section>`;
};

const Statistics = ({ statistics, names, filter }) => html`<ul class="plain">${statistics.splits.map((split) => html`<li>${seen(split.title)}${split.copies > 0 && html`; ${counted(split.copies)} copies of earlier rows`}</li>`)}</ul>
  ${statistics.warnings.length > 0 && html`<section class="warnings"><h2>Warnings</h2><${Warnings} warnings=${statistics.warnings} /></section>`}
  <${Warnings} warnings=${statistics.problems} />
  <${Features} statistics=${statistics} names=${names} filter=${filter} />`;
