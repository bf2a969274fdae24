// A paper's figures with our data and the paper's numbers, and a table of all numbers.

/** One of an experiment's own figures. */
function figure(of) {
  const draw = () => {
    const lines = of.shape === "lines";
    // Lines of one scheme differ in dash and marker.
    const looks = new Map(of.series.map((s, i) => [s, look(s.scheme, of.series.slice(0, i).filter((t) => t.scheme === s.scheme).length)]));
    const numeric = lines && of.series.every((s) => s.x.every((x) => x !== "" && Number.isFinite(Number(x))));
    const categories = [...new Set(of.series.flatMap((s) => s.x))];
    const most = Math.max(...of.series.flatMap((s) => s.y), ...of.paper.map((m) => m.to ?? m.y), 0);
    // A value stands inside its bar where the paper's line would cross it above the bar.
    const crossed = (x, y) => of.paper.some((mark) => (mark.x === null || mark.x === x) && [mark.y, mark.to ?? mark.y].some((at) => at > y - most * 0.01 && at < y + most * 0.09));
    const traces = of.series.map((s) => ({
      name: s.name, x: numeric ? s.x.map(Number) : s.x, y: s.y,
      ...(lines ? lined(looks.get(s), { width: 2, markers: s.x.length > 12 ? 7 : s.x.length }) : { ...barred(looks.get(s)), text: s.y.map(number), textposition: s.y.map((y, i) => (crossed(s.x[i], y) ? "inside" : "outside")), insidetextanchor: "end", insidetextfont: { color: style("--bg") }, textfont: { size: 12 }, cliponaxis: false }),
    }));
    const ink = style("--fg");
    const shapes = [];
    const annotations = [];
    const below = new Map();
    const named = new Set();
    of.paper.forEach((mark, i) => {
      const at = mark.x === null ? -1 : categories.indexOf(mark.x);
      const span = at < 0 ? { xref: "paper", x0: 0, x1: 1 } : { xref: "x", x0: at - 0.44, x1: at + 0.44 };
      if (mark.to !== null && at < 0) {
        shapes.push({ type: "rect", ...span, y0: mark.y, y1: mark.to, fillcolor: style("--muted"), opacity: 0.13, line: { width: 0 }, layer: "below" });
      } else {
        shapes.push({ type: "line", ...span, y0: mark.to === null ? mark.y : (mark.y + mark.to) / 2, y1: mark.to === null ? mark.y : (mark.y + mark.to) / 2,
          line: { color: ink, width: 2, dash: "dot" } });
      }
      const value = mark.to === null ? `${mark.y}` : `${mark.y}–${mark.to}`;
      const label = { y: mark.to ?? mark.y, yanchor: "bottom", showarrow: false, font: { size: 12, color: ink }, bgcolor: style("--bg"), borderpad: 1 };
      // Values for a category stand below it, where they cover no bar. Labels of the whole axis are at the right, ranges side by side.
      if (at >= 0) below.set(mark.x, [...(below.get(mark.x) || []), value]);
      else if (mark.to === null) annotations.push({ ...label, xref: "paper", x: 1, xanchor: "right", text: mark.name });
      else annotations.push({ ...label, xref: "paper", x: i % 2 ? 1 : 0.5, xanchor: "right", text: `${mark.name}: ${value}` });
      if (at >= 0 && !named.has(mark.name)) {
        named.add(mark.name);
        traces.push({ type: "scatter", mode: "lines", name: mark.name, x: [null], y: [null], line: { color: ink, width: 2, dash: "dot" } });
      }
    });
    return { traces, layout: { barmode: "group", bargap: 0.22, bargroupgap: 0.08, shapes, annotations,
      xaxis: { title: of.x, type: numeric ? "linear" : "category", automargin: true,
        ...(below.size ? { tickmode: "array", tickvals: categories, ticktext: categories.map((name) => name + (below.has(name) ? `<br>the paper: ${below.get(name).join(", ")}` : "")) } : {}) }, yaxis: { title: of.y, rangemode: "tozero", range: lines ? undefined : [0, most * 1.12] } } };
  };
  const made = chart(`${of.title}. ${of.caption}`, of.caption, draw, 400);
  const columns = () => [{ name: of.x || "metric", text: true }, ...of.series.map((s) => ({ name: s.name, unit: of.y })), { name: "the paper" }];
  const rows = () => [...new Set(of.series.flatMap((s) => s.x))].map((x) => {
    const mark = of.paper.find((m) => m.x === x);
    return [x, ...of.series.map((s) => s.y[s.x.indexOf(x)] ?? null), mark ? (mark.to === null ? mark.y : `${mark.y}–${mark.to}`) : "–"];
  });
  return [h("h3", {}, of.title), made.element, dataTable(columns, rows)];
}

/** Our numbers (filled) and the paper's (hollow) for one metric of all cases. */
function dots(experiment) {
  const key = (row) => `${row.metric}${row.unit ? `, ${row.unit}` : ""}`;
  const metrics = [...new Set(experiment.rows.map(key))];
  const withPaper = metrics.filter((m) => experiment.rows.some((r) => key(r) === m && r.paper !== null));
  let chosen = withPaper[0] || metrics[0];
  // If cases are named `setting: scheme`, one setting is shown at a time.
  const cut = (row) => row.case.lastIndexOf(": ");
  const nested = experiment.rows.every((row) => cut(row) > 0);
  const settings = nested ? [...new Set(experiment.rows.map((row) => row.case.slice(0, cut(row))))] : [];
  let setting = settings[0];
  const draw = () => {
    const rows = experiment.rows.filter((row) => key(row) === chosen && (!nested || row.case.slice(0, cut(row)) === setting)).reverse();
    const y = rows.map((row) => (nested ? row.case.slice(cut(row) + 2) : row.case || row.metric));
    const lines = new Set(y).size;
    const beside = rows.some((row) => row.paper !== null);
    const values = rows.flatMap((row) => [row.measured, row.paper]).filter((v) => v !== null);
    // Room to the left of 0, so that no point lies on the name of its row.
    const [least, most] = [Math.min(...values, 0), Math.max(...values, 0)];
    const spare = (most - least || 1) * 0.03;
    const one = (name, pick, marker) => ({ type: "scatter", mode: "markers", name, x: rows.map(pick), y, marker, cliponaxis: false });
    return {
      traces: [
        one("ours", (row) => row.measured, { size: 11, color: style("--accent") }),
        ...(beside ? [one("the paper", (row) => row.paper, { size: 13, symbol: "circle-open", color: style("--fg"), line: { width: 2 } })] : []),
      ],
      layout: { xaxis: { title: chosen, range: [least - spare, most + spare] }, yaxis: { type: "category", tickfont: { size: 12 }, range: [-0.7, lines - 0.3] }, showlegend: beside,
        margin: { l: 20, r: 16, t: 16, b: 46 } },
      height: (beside ? 130 : 100) + 24 * lines,
    };
  };
  const caption = withPaper.length ? "Filled: our numbers. Hollow: the paper's numbers." : "Our numbers; no paper prints them.";
  const made = chart("Our numbers beside the paper's, by case", caption, draw);
  const pick = (label, options, set, first) => (options.length > 1 ? menu(label, options.map((o) => [o, o]), (o) => { set(o); made.redraw(); }, first) : null);
  const controls = h("div", { class: "controls" }, pick("Case", settings, (o) => { setting = o; }, setting), pick("Metric", metrics, (o) => { chosen = o; }, chosen));
  return [h("h3", {}, "Comparison by case"), controls, made.element];
}

/** Distributions of an experiment. */
function distributions(experiment) {
  const metrics = [...new Set(experiment.curves.map((c) => c.metric))];
  let chosen = metrics[0];
  const draw = () => {
    const curves = experiment.curves.filter((c) => c.metric === chosen);
    return {
      traces: curves.map((c, i) => ({ ...lined(nth(i), { width: 2, shape: "hv" }), name: c.case, x: c.points.map((p) => p[0]), y: c.points.map((p) => p[1]) })),
      layout: { xaxis: { title: `${chosen}, ${curves[0].unit}`, type: "log" }, yaxis: { title: "share of flows", range: [0, 1.01] } },
      height: 400,
    };
  };
  const made = chart("Distributions by case", "Share of flows that do not exceed a value.", draw);
  const controls = metrics.length > 1 ? h("div", { class: "controls" }, menu("Metric", metrics.map((m) => [m, m]), (m) => { chosen = m; made.redraw(); })) : null;
  return [h("h3", {}, "Distributions"), controls, made.element];
}

/** All numbers. */
function allRows(experiment) {
  const off = (row) => {
    if (row.deviation === null) return "";
    const percent = Math.round(row.deviation * 100);
    return `${percent < 0 ? "−" : percent > 0 ? "+" : ""}${Math.abs(percent)} %`;
  };
  const columns = [{ name: "case", text: true }, { name: "metric", text: true }, { name: "the paper" }, { name: "ours" }, { name: "unit", text: true }, { name: "off by" },
    { name: "note", text: true }];
  const name = (row, i) => (i > 0 && experiment.rows[i - 1].case === row.case ? h("span", { class: "again" }, row.case) : row.case);
  const rows = experiment.rows.map((row, i) => [name(row, i), h("span", { class: "whole" }, row.metric), { value: row.paper, show: row.paper === null ? "" : number(row.paper) }, row.measured, row.unit,
    { value: row.deviation, show: off(row) }, row.note ? h("span", { class: "prose" }, row.note) : ""]);
  return table(columns, rows, { tall: rows.length > 30, label: `${experiment.source}: the paper's numbers and ours` });
}

sections.push({
  id: "paper", title: data.experiments.some((e) => e.figures.length) ? "The paper's figure with our data"
    : data.experiments.some((e) => e.rows.some((row) => row.paper !== null)) ? "The paper's numbers beside ours" : "The numbers",
  short: "The paper",
  when: () => data.experiments.length > 0,
  fill(box) {
    for (const experiment of data.experiments) {
      if (data.experiments.length > 1) box.append(h("h2", {}, experiment.name), h("p", { class: "lead" }, experiment.source));
      box.append(...experiment.figures.flatMap(figure));
      if (experiment.rows.length) box.append(...dots(experiment).filter(Boolean));
      if (experiment.curves.length) box.append(...distributions(experiment).filter(Boolean));
      if (experiment.rows.length) box.append(h("h3", {}, "Table"), allRows(experiment));
    }
  },
});
