// A sweep: a chart of its points along an axis, a table of all points, and the command that repeats it.

/** Values of an axis at a point. */
const said = (point, axis) => point.values[axis].join(" / ");

sections.push({
  id: "points", title: "Every point of the sweep", short: "Points",
  when: () => data.sweep && data.sweep.metrics.length > 0,
  fill(box) {
    const { axes, metrics, points, chosen, left_out } = data.sweep;
    const values = axes.map((_, axis) => [...new Set(points.map((point) => said(point, axis)))]);
    // The horizontal axis is the one with the most values. Colours show another axis: the schemes, if they are one.
    const byLength = axes.map((_, axis) => axis).sort((a, b) => values[b].length - values[a].length);
    const schemes = axes.findIndex((axis) => axis.keys.some((key) => key === "scheme" || key === "schemes"));
    const along = byLength.find((axis) => axis !== schemes) ?? 0;
    const state = { metric: chosen, along, colour: schemes >= 0 && schemes !== along ? schemes : byLength.find((axis) => axis !== along) ?? -1 };
    const paint = (point) => {
      if (state.colour < 0) return { color: style("--accent"), dash: "solid", symbol: "circle" };
      if (state.colour === schemes) return look(point.scheme);
      return nth(values[state.colour].indexOf(said(point, state.colour)));
    };
    const name = (m) => `${metrics[m].name}${metrics[m].unit ? `, ${metrics[m].unit}` : ""}`;
    const draw = () => {
      // One line for each combination of values of the other axes.
      const lines = new Map();
      for (const point of points) {
        const key = JSON.stringify(point.values.filter((_, axis) => axis !== state.along));
        if (!lines.has(key)) lines.set(key, []);
        lines.get(key).push(point);
      }
      const named = new Set();
      const traces = [...lines.values()].map((line) => {
        const group = state.colour < 0 ? "" : said(line[0], state.colour);
        const first = !named.has(group);
        named.add(group);
        const at = line.map((point) => axes.map((axis, i) => `${axis.name} ${said(point, i)}`).join("<br>") + (point.complete ? "" : "<br>not complete"));
        // Lines of one colour carry the values of the other axes at their ends.
        const others = axes.map((_, axis) => axis).filter((axis) => axis !== state.along && axis !== state.colour && values[axis].length > 1);
        const label = lines.size <= 12 ? others.map((axis) => said(line[0], axis)).join(", ") : "";
        const own = lined(paint(line[0]), { width: lines.size > 40 ? 1 : 2 });
        return {
          ...own, mode: (values[state.along].length > 1 ? "lines+markers" : "markers") + (label ? "+text" : ""), name: group, legendgroup: group, showlegend: first && group !== "",
          x: line.map((point) => said(point, state.along)), y: line.map((point) => point.cells[state.metric]), customdata: at, text: line.map((_, i) => (i === line.length - 1 ? label : "")), textposition: "top left", textfont: { size: 11, color: style("--muted") },
          hovertemplate: "%{customdata}<br>%{y:.4~g}<extra></extra>",
          opacity: lines.size > 40 ? 0.6 : 1, marker: { ...own.marker, maxdisplayed: 0, symbol: line.map((point) => (point.complete ? own.marker.symbol : `${own.marker.symbol}-open`)) },
        };
      });
      return { traces, layout: { xaxis: { title: axes[state.along]?.name ?? "", type: "category", categoryorder: "array", categoryarray: values[state.along] },
        yaxis: { title: name(state.metric), rangemode: "tozero" } } };
    };
    const caption = () => {
      const rest = axes.filter((_, axis) => axis !== state.along && axis !== state.colour).map((axis) => axis.name);
      const { about } = metrics[state.metric];
      return `${about.charAt(0).toUpperCase()}${about.slice(1)}. ${{ 1: "Higher is better.", "-1": "Lower is better." }[metrics[state.metric].better] ?? ""}`
        + (rest.length ? ` Each line is one combination of ${rest.join(", ")}; point at a line to see it.` : "");
    };
    const made = chart("The chosen metric at every point, along an axis", caption, draw, 420);
    const set = (key) => (value) => { state[key] = Number(value); made.redraw(); };
    const axisOptions = axes.map((axis, i) => [String(i), axis.name]);
    if (axes.length) {
      box.append(h("div", { class: "controls" },
        metrics.length > 1 ? menu("Metric", metrics.map((_, m) => [String(m), name(m)]), set("metric"), String(state.metric)) : null,
        axes.length > 1 ? menu("Horizontal axis", axisOptions, set("along"), String(state.along)) : null,
        axes.length > 1 ? menu("Colour", [["-1", "none"], ...axisOptions], set("colour"), String(state.colour)) : null), made.element);
    }
    const best = metrics.map((metric, m) => {
      const all = points.filter((point) => point.complete).map((point) => point.cells[m]).filter((x) => x !== null);
      if (!metric.better || new Set(all).size < 2) return null;
      const most = metric.better > 0 ? Math.max(...all) : Math.min(...all);
      // Where a third of the points are best, a mark tells nothing.
      return all.filter((x) => x === most).length * 3 > all.length ? null : most;
    });
    const keys = axes.flatMap((axis) => axis.keys);
    // Without axes, the first column is the number of the point.
    const columns = [...(keys.length ? keys.map((key) => ({ name: key.split(".").at(-1), about: key, text: true })) : [{ name: "point", text: true }]),
      ...metrics.map((metric) => ({ name: metric.name, unit: metric.unit, about: metric.about }))];
    const rows = points.map((point, i) => {
      const words = keys.length ? point.values.flat() : [String(i)];
      if (!point.complete) words[words.length - 1] += " (not complete)";
      return [...words, ...point.cells.map((value, m) => {
        const range = point.ranges && point.ranges[m];
        return { value, mark: point.complete && value !== null && value === best[m], range: range && range[0] !== range[1] ? range.map(measured(metrics[m].unit)).join("–") : null };
      })];
    });
    const several = points.some((point) => point.runs > 1);
    box.append(h("h3", {}, several ? "All choices" : "All points"), h("div", { id: "table" }, table(columns, rows.slice(0, MOST_ROWS),
      { tall: rows.length > 12, caption: `Green marks the best value of each column.${several ? " Numbers are means over seeds, with the lowest and the highest value below." : ""}` })));
    const hidden = Math.max(rows.length - MOST_ROWS, 0) + left_out;
    if (hidden) box.append(h("p", { class: "lead" }, `${count(hidden)} more ${several ? "choices" : "points"} are in points.parquet.`));
  },
});

sections.push({
  id: "again", title: "Settings, and how to run it again", short: "Settings",
  when: () => data.sweep,
  fill(box) {
    const { digest, version, command, text } = data.sweep;
    box.append(h("p", { class: "lead" }, "The same sweep gives the same digest on any machine. points.parquet has all numbers of all points, and configs.parquet has their configurations."),
      table([{ name: "digest", text: true }, { name: "ropewalk", text: true }], [[h("code", {}, digest), version]], { label: "Identification of the sweep" }),
      h("h3", {}, "Run it again"), h("pre", { class: "command", tabindex: "0" }, command),
      h("details", { id: "configuration" }, h("summary", {}, "The sweep's file"), h("pre", { class: "config", tabindex: "0" }, toml(text))));
  },
});
