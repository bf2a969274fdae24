// Elements, numbers, colours, tables and charts, for all sections.

const data = JSON.parse(document.getElementById("payload").textContent);
const root = document.documentElement;

/** Makes an element. Attributes that are functions become listeners; children may be text, elements, lists or null. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Formats are made once, because making one takes far longer than using it.
const FORMATS = [0, 1, 2, 3, 4].map((digits) => new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
const WHOLE = new Intl.NumberFormat("en-US");

/** A number for people: three significant digits or so, as the command prints it. */
function number(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  const digits = size === 0 ? 0 : size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4;
  return FORMATS[digits].format(x).replace("-", "−");
}

/** A whole number with separated thousands. */
const count = (n) => (n === null || n === undefined ? "–" : WHOLE.format(n));

/** Formats numbers of a unit. Numbers without a unit are counts, or means of counts. */
const measured = (unit) => (x) => (unit === "" && Number.isInteger(x) ? count(x) : number(x));

/** Bytes with a decimal unit. */
function bytes(n) {
  if (!Number.isFinite(n)) return "–";
  const [unit, size] = n < 1e4 ? ["B", 1] : n < 1e7 ? ["kB", 1e3] : n < 1e10 ? ["MB", 1e6] : ["GB", 1e9];
  return `${size === 1 ? count(n) : number(n / size)} ${unit}`;
}

const dark = () => root.dataset.theme === "dark";
const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();

// Colours, dashes and markers from the program's list of looks, so that a scheme looks the same on every page and in Python.
const HUES = { ...Object.fromEntries(data.looks.hues.map(([name, ...both]) => [name, both])), grey: ["#68727d", "#a9b3bd"] };
const hue = (name) => HUES[name][dark() ? 1 : 0];
const { dashes: DASHES, markers: MARKERS } = data.looks;

/** Look of the n-th of several things that are no schemes. */
function nth(n) {
  const { length } = data.looks.hues;
  const turn = Math.floor(n / length);
  return { color: hue(data.looks.hues[n % length][0]), dash: DASHES[(n + turn) % DASHES.length], symbol: MARKERS[(n + turn) % MARKERS.length], pattern: PATTERNS[n % PATTERNS.length] };
}

/** Look of a scheme. The k-th thing of one scheme keeps its colour and gets another dash and marker. */
function look(scheme, k = 0) {
  const [at, line, marker] = data.looks.schemes[scheme];
  return { color: hue(data.looks.hues[at][0]), dash: DASHES[(line + k) % DASHES.length], symbol: MARKERS[(marker + k) % MARKERS.length], pattern: PATTERNS[(marker + k) % PATTERNS.length] };
}
const PATTERNS = ["", "/", "x", "-", "\\", "|", "+", "."];
const colour = (scheme) => look(scheme).color;

/** Look of a run. Runs of one scheme differ in dash and marker. */
function lookOf(index) {
  const { scheme } = data.parts[index];
  return look(scheme, data.parts.slice(0, index).filter((part) => part.scheme === scheme).length);
}

/** Plotly's settings of a line: its dash and a few markers tell it from others on paper. */
const lined = ({ color, dash, symbol }, { width = 2.2, shape = "linear", markers = 7, size = 8 } = {}) => ({
  type: "scatter", mode: markers ? "lines+markers" : "lines", line: { color, dash, width, shape }, marker: { color, symbol, size, maxdisplayed: markers },
});
/** Plotly's settings of bars. */
const barred = ({ color, pattern }) => ({ type: "bar", marker: { color, pattern: { shape: pattern, fillmode: "overlay", fgcolor: style("--bg"), fgopacity: 0.55, size: 7, solidity: 0.25 } } });

/** Colour between idle (0) and full (1), with monotonic lightness for any colour vision. */
const RAMPS = [
  ["#d8dee4", "#f3cf7a", "#ec8f3a", "#c23f45", "#571d4e"],
  ["#333b43", "#6a4c93", "#c04b83", "#f5824f", "#fdf1b5"],
];
function heat(value) {
  const ramp = RAMPS[dark() ? 1 : 0];
  const at = Math.min(Math.max(value, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(at), ramp.length - 2);
  const parse = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const [a, b] = [parse(ramp[low]), parse(ramp[low + 1])];
  return `rgb(${a.map((x, i) => Math.round(x + (b[i] - x) * (at - low))).join(",")})`;
}

/** A table. Columns: {name, unit, about, text}; cells: numbers, texts, or {show, value, mark, range}. */
function table(columns, rows, { tall = false, caption = null, label = caption } = {}) {
  const head = columns.map((c) =>
    h("th", { scope: "col", class: c.text ? null : "n", title: c.about }, c.name, c.unit ? h("span", { class: "unit" }, c.unit) : null));
  const cell = (content, i) => {
    if (columns[i].text) return i === 0 ? h("th", { scope: "row" }, content) : h("td", {}, content);
    const of = content !== null && typeof content === "object" ? content : { value: content };
    const shown = of.show ?? (typeof of.value === "string" ? of.value : measured(columns[i].unit)(of.value));
    return h("td", { class: `n${of.mark ? " best" : ""}`, "data-value": of.value ?? "" }, shown,
      of.range ? h("span", { class: "range" }, of.range) : null);
  };
  const body = rows.map((row) => h("tr", {}, row.map(cell)));
  const box = h("div", { class: `scroll${tall ? " tall" : ""}`, tabindex: "0", role: "group", "aria-label": label || "Table" },
    h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
  return caption ? h("div", {}, h("p", { class: "caption" }, caption), box) : box;
}

/** A table that is filled when the reader opens it. */
const MOST_ROWS = 400;
function dataTable(columns, rows, title = "Data") {
  const box = h("details", {}, h("summary", {}, title));
  const fill = () => {
    box.querySelectorAll(":scope > :not(summary)").forEach((old) => old.remove());
    const all = rows();
    box.append(table(columns(), all.slice(0, MOST_ROWS), { tall: all.length > 12 }));
    if (all.length > MOST_ROWS) box.append(h("p", { class: "lead" }, `The first ${MOST_ROWS} of ${count(all.length)} rows; all are in the Parquet file.`));
  };
  box.addEventListener("toggle", () => box.open && fill());
  box.refresh = () => box.open && fill();
  return box;
}

/** A menu. Options: [value, text] or {group, options}. */
function menu(label, options, change, chosen) {
  const option = ([value, text]) => h("option", { value, selected: value === chosen }, text);
  const items = options.map((o) => (o.group ? h("optgroup", { label: o.group }, o.options.map(option)) : option(o)));
  const select = h("select", { change: () => change(select.value) }, items);
  return Object.assign(h("label", {}, label, select), { select });
}

/** A checkbox. */
function tick(label, checked, change) {
  const box = h("input", { type: "checkbox", checked, change: () => change(box.checked) });
  return h("label", { class: "check" }, box, label);
}

/** The menu of runs; null if there is only one. */
function runMenu(parts, change, extra = []) {
  const options = [...extra, ...parts.map((i) => [String(i), data.parts[i].name])];
  return options.length > 1 ? menu("Run", options, change, options[0][0]) : null;
}

/** A note that a figure shows the first of several seeds, followed by a space; empty for a single seed. */
const firstSeed = (part) => (part.seeds.length > 1 ? `Seed ${part.seeds[0]}, the first of ${part.seeds.length} seeds. ` : "");

const charts = [];

const DASHED = { solid: null, dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "12 4" };
const SHAPES = {
  circle: "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", square: "M-3.6-3.6h7.2v7.2h-7.2z", "triangle-up": "M0-4.6L4.4 3.4H-4.4z", "triangle-down": "M0 4.6L4.4-3.4H-4.4z",
  diamond: "M0-5L5 0L0 5L-5 0z", x: "M-4.4-2.6L-2.6-4.4L0-1.8L2.6-4.4L4.4-2.6L1.8 0L4.4 2.6L2.6 4.4L0 1.8L-2.6 4.4L-4.4 2.6L-1.8 0z",
  cross: "M-1.4-4.6H1.4V-1.4H4.6V1.4H1.4V4.6H-1.4V1.4H-4.6V-1.4H-1.4z", star: "M0-5L1.3-1.7L4.8-1.5L2.1.7L3 4.1L0 2.2L-3 4.1L-2.1.7L-4.8-1.5L-1.3-1.7z",
  "line-ns": "M0-4V4", "line-ew": "M-5 0H5", pentagon: "M0-5L4.8-1.5L2.9 4H-2.9L-4.8-1.5z", "triangle-left": "M-4.6 0L3.4-4.4V4.4z",
};

const STROKES = { "/": "M8 13L18 1M15 13L25 1", "\\": "M8 1L18 13M15 1L25 13", x: "M9 1L21 13M21 1L9 13", "-": "M6 5H26M6 9H26", "|": "M12 1V13M20 1V13", "+": "M16 1V13M6 7H26", ".": "M11 7h2M19 7h2" };

/** Sample of a trace in a legend. */
function sample(trace) {
  const { line, marker, mode = "" } = trace;
  let inside = "";
  if (trace.type === "bar") {
    inside += `<rect x="6" y="1" width="20" height="12" rx="2" fill="${marker.color}"/><path d="${STROKES[marker.pattern?.shape] || ""}" stroke="${style("--bg")}" stroke-width="1.6" opacity="0.8"/>`;
  }
  if (mode.includes("lines")) inside += `<line x1="0" x2="32" y1="7" y2="7" stroke="${line.color}" stroke-width="2.2" stroke-dasharray="${DASHED[line.dash] || ""}"/>`;
  if (mode.includes("markers")) {
    const symbol = String([].concat(marker.symbol)[0]);
    const ends = symbol.includes("-open") ? `fill="none" stroke="${marker.color}"` : `fill="${marker.color}"`;
    inside += `<path transform="translate(16 7)" stroke-width="1.6" ${ends} d="${SHAPES[symbol.replace("-open", "").replace("-thin", "")] || SHAPES.circle}"/>`;
  }
  const box = h("span", { class: "sample" });
  box.innerHTML = `<svg width="32" height="14" viewBox="0 0 32 14" aria-hidden="true">${inside}</svg>`;
  return box;
}

/** A chart with its legend above it, where nothing can cover it. draw() returns {traces, layout}; redraw() calls it again. */
function chart(label, caption, draw, height = 380) {
  const div = h("div", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
  const text = h("figcaption", {}, typeof caption === "function" ? caption() : caption);
  const legend = h("div", { class: "legend" });
  const hidden = new Map(); // by name, what the reader has chosen
  const me = {
    element: h("figure", {}, legend, div, text),
    div,
    drawn: false,
    redraw() {
      // Plotly is parsed after the text of the page is visible.
      if (typeof Plotly === "undefined") return;
      const { traces, layout, height: tall } = draw();
      const key = (trace) => trace.legendgroup || trace.name;
      const named = layout.showlegend === false ? [] : traces.filter((t, i) => t.name && t.showlegend !== false && traces.findIndex((u) => key(u) === key(t) && u.showlegend !== false) === i);
      const gone = (trace) => hidden.get(key(trace)) ?? trace.visible === "legendonly";
      legend.replaceChildren(...(named.length > 1 || layout.showlegend ? named : []).map((trace) => h("button", { type: "button", class: "key", "aria-pressed": gone(trace) ? "false" : "true",
        click: () => { hidden.set(key(trace), !gone(trace)); me.redraw(); } }, sample(trace), trace.name)));
      for (const trace of traces) trace.visible = !gone(trace);
      if (tall) div.style.height = `${tall}px`;
      if (typeof caption === "function") text.textContent = caption();
      me.drawn = true;
      // With an explicit height, the chart also follows its box when the box shrinks.
      Plotly.react(div, traces, merged({ ...layout, showlegend: false, ...(tall ? { height: tall } : {}) }, div.clientWidth), {
        responsive: true, displaylogo: false, displayModeBar: div.clientWidth < 600 ? false : "hover", modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      });
    },
  };
  charts.push(me);
  return me;
}

/** The failures of runs, each once. */
const faultsOf = (runs) => [...new Map(runs.flatMap((i) => data.parts[i].faults || []).map((fault) => [JSON.stringify(fault), fault])).values()];

/** A layout over time with the failures of runs as bands behind the lines. */
function faulty(layout, traces, runs) {
  const times = traces.flatMap((trace) => trace.x);
  const [first, last] = [times.reduce((a, b) => Math.min(a, b), Infinity), times.reduce((a, b) => Math.max(a, b), -Infinity)];
  const color = style("--fault");
  const shapes = faultsOf(runs).filter((fault) => fault.at_us <= last && (fault.until_us ?? last) >= first).flatMap((fault) => {
    const band = { yref: "paper", y0: 0, y1: 1, layer: "below" };
    const [from, until] = [Math.max(fault.at_us, first), Math.min(fault.until_us ?? last, last)];
    return [{ type: "rect", ...band, x0: from, x1: until, fillcolor: color, opacity: 0.07, line: { width: 0 } },
      ...(fault.at_us >= first ? [{ type: "line", ...band, x0: from, x1: from, line: { color, width: 1.5, dash: "dash" } }] : [])];
  });
  return { ...layout, shapes };
}
/** The failures of runs for a caption. */
function faultText(runs) {
  const all = faultsOf(runs).map((fault) => fault.what);
  return all.length ? ` Red bands: ${all.slice(0, 3).join("; ")}${all.length > 3 ? ` and ${count(all.length - 3)} more` : ""}.` : "";
}

/** The layout of a chart, completed with common settings. */
function merged(own, width) {
  const line = style("--line");
  const axis = (a) => ({
    gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true, ticks: "", ...a,
    title: a.title ? { text: a.title, standoff: 10, font: { size: 13, color: style("--muted") } } : undefined,
  });
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: style("--fg") },
    margin: { l: width < 500 ? 44 : 58, r: 12, t: width < 600 ? 10 : 30, b: 46 }, // the tools of a wide chart are above it
    hoverlabel: { font: { family: getComputedStyle(document.body).fontFamily } },
    width: "print" in root.dataset ? width : undefined,
    ...own,
  };
  for (const key of Object.keys(layout)) {
    if (!/^[xy]axis\d*$/.test(key)) continue;
    // In a narrow chart the labels between powers of ten would collide.
    const own = layout[key].type === "log" && width < 600 ? { nticks: 4, tickangle: 0, ...layout[key] } : layout[key];
    layout[key] = axis(own);
  }
  return layout;
}

/** Sections in order; each is {id, title, short, when(), fill(element)}. */
const sections = [];
