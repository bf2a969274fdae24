// Chosen queue pairs, links and switches over time.

const PANELS = [
  { title: "rate, Gb/s", columns: [["rate_gbps", "rate", null]] },
  { title: "packets per µs", counts: true, columns: [["out_of_order", "out of order", "gold", "dash"], ["nacks", "NACKs", "blue", "solid"], ["retransmitted", "retransmitted", "red", "dot"], ["cnps", "CNPs", "purple", "dashdot"], ["timeouts", "timeouts", "wine", "longdash"]] },
  { title: "packets ahead of ePSN", columns: [["out_of_order_depth", "reordering depth", "sky"]] },
  { title: "ePSN", columns: [["epsn", "ePSN at the receiver", "green"]] },
  { title: "queue, kB", columns: [["max_queue_bytes", "longest queue", "wine"]], scale: 1e-3 },
  { title: "buffer, kB", columns: [["max_buffer_bytes", "buffer in use", "wine"]], scale: 1e-3 },
  { title: "pauses per µs", counts: true, columns: [["pauses", "pause frames", "red"]] },
  { title: "losses per µs", counts: true, columns: [["lost", "lost or dropped", "red"]] },
];

/** Name of a track. */
function trackName(track) {
  if (track.kind === "qps" && track.id === 1) return "The recorded queue pair";
  if (track.kind === "qps") return `Mean of the ${count(track.id)} recorded queue pairs`;
  if (track.kind === "switch") return track.from;
  return `${track.kind === "qp" ? `QP ${track.id}: ` : ""}${track.from} → ${track.to}`;
}

sections.push({
  id: "time", title: "Rates and queues over time", short: "Over time",
  when: () => data.parts.some((part) => part.series),
  fill(box) {
    const runs = data.parts.map((part, i) => i).filter((i) => data.parts[i].series);
    const overlaid = runs.filter((i) => data.parts[i].series.tracks[0]?.kind === "qps");
    const ALL = "all";
    const extra = overlaid.length > 1 ? [[ALL, "All runs, mean over queue pairs"]] : [];
    const state = { run: extra.length ? ALL : String(runs[0]), track: 0 };
    const shown = () => (state.run === ALL ? overlaid.map((i) => [i, data.parts[i].series.tracks[0]])
      : [[Number(state.run), data.parts[Number(state.run)].series.tracks[state.track]]]);
    const at = (series) => Array.from({ length: series.bins }, (_, i) => (i + 0.5) * series.width_us);
    const panels = () => PANELS.map((panel) => ({ ...panel, columns: panel.columns.filter(([key]) => shown().some(([, track]) => track.columns[key])) }))
      .filter((panel) => panel.columns.length);
    const draw = () => {
      const traces = [];
      const layout = { xaxis: {}, showlegend: true };
      const all = panels();
      // If all runs are shown, each metric has its own panel, and colours distinguish runs.
      const wide = state.run === ALL ? all.flatMap((panel) => panel.columns.map((c) => ({ ...panel, title: panel.counts ? `${c[1]}, per µs` : panel.title, columns: [c] }))) : all;
      const gap = 0.07;
      const height = (1 - gap * (wide.length - 1)) / wide.length;
      wide.forEach((panel, p) => {
        const axis = p === 0 ? "" : String(p + 1);
        const top = 1 - p * (height + gap);
        layout[`yaxis${axis}`] = { title: panel.title, rangemode: "tozero", domain: [Math.max(top - height, 0), top] };
        for (const [key, name, place, dashed] of panel.columns) {
          for (const [i, track] of shown()) {
            if (!track.columns[key]) continue;
            const part = data.parts[i];
            // Runs of different lengths have bins of different widths.
            const scale = panel.scale || (panel.counts ? 1 / part.series.width_us : 1);
            const own = state.run === ALL ? lookOf(i) : { color: place === null ? style("--fg") : hue(place), dash: dashed || "solid", symbol: "circle" };
            traces.push({ ...lined(own, { width: 1.8, shape: "hvh", markers: state.run === ALL ? 7 : 0, size: 7 }), x: at(part.series), y: track.columns[key].map((v) => (v === null ? null : v * scale)), yaxis: `y${axis}`,
              name: state.run === ALL ? part.name : name, legendgroup: state.run === ALL ? part.name : name, showlegend: state.run !== ALL || p === 0 });
          }
        }
      });
      layout.xaxis = { title: "time, µs", anchor: wide.length > 1 ? `y${wide.length}` : "y" };
      return { traces, layout: faulty(layout, traces, shown().map(([i]) => i)), height: 120 + 165 * Math.max(wide.length, 1) };
    };
    const caption = () => {
      // A fact that holds for all shown runs is printed once; other facts carry the name of the run.
      const said = (say) => {
        const all = shown().map(([i]) => [data.parts[i].name, say(data.parts[i])]);
        return all.every(([, text]) => text === all[0][1]) ? all[0][1] : all.filter(([, text]) => text).map(([name, text]) => `${name}: ${text}`).join(" ");
      };
      const widths = shown().map(([i]) => data.parts[i].series.width_us);
      const bins = widths.length > 4 && new Set(widths).size > 1 // one range is clearer than many sentences
        ? `Bins of ${number(Math.min(...widths))} to ${number(Math.max(...widths))} µs; select one run to see its width. `
        : said(({ series }) => `Bins of ${number(series.width_us)} µs${series.merged > 1 ? `, each combining ${count(series.merged)} recorded bins` : ""}. `);
      if (state.run === ALL) return `${said(firstSeed)}${bins}${said(({ series }) => series.recorded.qp === 1 ? "One recorded queue pair. " : `Means over the ${count(series.recorded.qp)} recorded queue pairs, idle ones included. `)}${faultText(shown().map(([i]) => i))}`.trim();
      const part = data.parts[Number(state.run)];
      const { series } = part;
      const recorded = Object.entries(series.recorded).map(([kind, n]) => `${count(n)} ${{ qp: "queue pairs", link: "links", switch: "switches" }[kind] || kind}`).join(", ");
      return `${firstSeed(part)}${bins}Recorded: ${recorded}; `
        + `the menu lists the queue pairs with the slowest flows, the links with the longest queues and the switches with the fullest buffers.${series.recorded.switch ? "" : " The option --record records all of them."}${faultText([Number(state.run)])}`;
    };
    const made = chart("Rates, reordering and queues over time", caption, draw, 500);
    const columns = () => [{ name: "run", text: true }, { name: "start", unit: "µs" }, ...panels().flatMap((panel) => panel.columns.map(([key]) => ({ name: key })))];
    const rows = () => shown().flatMap(([i, track]) => at(data.parts[i].series).map((_, bin) => [data.parts[i].name, bin * data.parts[i].series.width_us,
      ...panels().flatMap((panel) => panel.columns.map(([key]) => track.columns[key]?.[bin] ?? 0))]));
    const list = dataTable(columns, rows);
    const update = () => { made.redraw(); list.refresh(); };
    const controls = h("div", { class: "controls" });
    const fill = () => {
      const of = state.run === ALL ? null : data.parts[Number(state.run)].series.tracks;
      state.track = 0;
      const option = (track, i) => [String(i), trackName(track)];
      const group = (title, kinds) => ({ group: title, options: (of || []).map(option).filter((_, i) => kinds.includes(of[i].kind)) });
      const groups = [group("Queue pairs, slowest first", ["qps", "qp"]), group("Links, longest queue first", ["link"]), group("Switches, fullest first", ["switch"])].filter((g) => g.options.length);
      const tracks = of ? menu("Subject", groups, (value) => { state.track = Number(value); update(); }) : null;
      if (tracks) tracks.select.id = "track";
      controls.replaceChildren(...[choice, tracks].filter(Boolean));
    };
    const choice = runMenu(runs, (value) => { state.run = value; fill(); update(); }, extra);
    fill();
    box.append(h("p", { class: "lead" }, "Sending rates, reordering, queues and buffers over time."), controls, made.element, list);
  },
});
