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

// Colours that people with any colour vision can distinguish (after Okabe and Ito), for light and dark backgrounds.
const PALETTE = [
  ["#0072b2", "#5aaee8"], ["#c95700", "#f28b4b"], ["#008563", "#35c79b"], ["#68727d", "#a9b3bd"], ["#a8448f", "#dc8fca"],
  ["#2f97c6", "#86cdf3"], ["#a87900", "#e6b84a"], ["#7a4b2a", "#c99f7e"], ["#4b3fa0", "#a49bee"], ["#b3123f", "#f07590"],
];
// Common schemes have fixed places in the palette, so that their colours are the same on every page.
const PLACES = { ar: 0, rps: 1, themis: 2, ecmp: 3, flowcut: 4, drill: 5, dlbf: 6, flowlet: 7, conga: 8, conweave: 9 };
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];

/** Place in the palette: a fixed one, or one derived from the name. */
function place(scheme) {
  const own = PLACES[scheme.split(/[\s,]/)[0]];
  if (own !== undefined) return own;
  let sum = 0;
  for (const c of scheme) sum = (sum * 31 + c.charCodeAt(0)) % 997;
  return sum % PALETTE.length;
}
const colour = (scheme) => PALETTE[place(scheme)][dark() ? 1 : 0];

/** Dash of a run, which distinguishes runs of one colour. */
function dash(index) {
  const mine = place(data.parts[index].scheme);
  return DASHES[data.parts.slice(0, index).filter((part) => place(part.scheme) === mine).length % DASHES.length];
}

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

/** A chart. draw() returns {traces, layout}; redraw() calls it again. */
function chart(label, caption, draw, height = 380) {
  const div = h("div", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
  const text = h("figcaption", {}, typeof caption === "function" ? caption() : caption);
  const me = {
    element: h("figure", {}, div, text),
    div,
    drawn: false,
    redraw() {
      // Plotly is parsed after the text of the page is visible.
      if (typeof Plotly === "undefined") return;
      const { traces, layout, height: tall } = draw();
      if (tall) div.style.height = `${tall}px`;
      if (typeof caption === "function") text.textContent = caption();
      me.drawn = true;
      // With an explicit height, the chart also follows its box when the box shrinks.
      Plotly.react(div, traces, merged(tall ? { ...layout, height: tall } : layout, div.clientWidth), {
        responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      });
    },
  };
  charts.push(me);
  return me;
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
    margin: { l: 58, r: 12, t: 16, b: 46 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: width < 500 ? 12 : 13 } },
    hoverlabel: { font: { family: getComputedStyle(document.body).fontFamily } },
    width: "print" in root.dataset ? width : undefined,
    ...own,
  };
  for (const key of Object.keys(layout)) if (/^[xy]axis\d*$/.test(key)) layout[key] = axis(layout[key]);
  return layout;
}

/** Sections in order; each is {id, title, short, when(), fill(element)}. */
const sections = [];
