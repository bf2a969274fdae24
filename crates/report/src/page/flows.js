// Completion times and slowdown: distributions by run, and the slowest flows.

sections.push({
  id: "flows", title: "How long flows took", short: "Flow times",
  when: () => data.parts.some((part) => part.curves.length || part.slowest),
  fill(box) {
    const NAMES = { slowdown: "slowdown (FCT / FCT alone on the fabric)", fct_us: "flow completion time, µs" };
    const known = ["slowdown", "fct_us"].filter((m) => data.parts.some((part) => part.curves.some((c) => c.metric === m)));
    const state = { metric: known[0], tail: false, log: false };
    const curves = () => data.parts.map((part, i) => ({ part, i, curve: part.curves.find((c) => c.metric === state.metric) })).filter((c) => c.curve);
    // A logarithmic axis if values differ by more than a factor of 30.
    const ends = () => curves().flatMap(({ curve }) => [curve.values[0], curve.values.at(-1)]);
    const spread = () => { const all = ends(); return Math.max(...all) / Math.min(...all) > 30; };
    state.log = spread();
    // A flow alone on the fabric has slowdown 1, so the axis starts there unless a flow was quicker.
    const start = () => (state.metric === "slowdown" ? Math.min(1, ...curves().map(({ curve }) => curve.values[0])) : null);
    const range = () => {
      const [low, high] = [start(), Math.max(...ends(), 1.01) * 1.02];
      return low === null ? {} : { range: state.log ? [Math.log10(low), Math.log10(high)] : [low, high] };
    };
    const draw = () => {
      const traces = curves().map(({ part, i, curve }) => {
        // The tail above the last value is 0, which a logarithmic axis cannot show.
        const y = state.tail ? curve.shares.map((s) => (s < 1 ? 1 - s : null)) : curve.shares;
        const first = state.tail ? [1, ...y] : [0, ...y];
        return { ...lined(lookOf(i), { shape: "hv" }), name: part.name, x: [start() ?? curve.values[0], ...curve.values], y: first,
          hovertemplate: `%{x:.4~g}: ${state.tail ? "%{y:.3~g} take longer" : "%{y:.1%} take no longer"}<extra>${part.name}</extra>` };
      });
      return { traces, layout: {
        xaxis: { title: NAMES[state.metric], type: state.log ? "log" : "linear", dtick: state.log ? "D2" : undefined, tickformat: state.log ? ",~r" : undefined, ...range() },
        yaxis: state.tail ? { title: "share of flows that take longer", type: "log", exponentformat: "power", dtick: 1 }
          : { title: "share of flows", range: [0, 1.02], tickformat: ".0%" },
        showlegend: traces.length > 1,
      } };
    };
    const caption = () => {
      const unfinished = curves().filter((c) => c.curve.unfinished).map((c) => `${c.part.name}: ${count(c.curve.unfinished)}`);
      return `${state.tail ? "Lower is better: fewer flows take longer than the value on the axis." : "Further left is better: a curve that ends early has no slow flows."} `
        + `${curves().map((c) => count(c.curve.flows)).filter((x, i, all) => all.indexOf(x) === i).join(" or ")} finished flows${data.parts.length > 1 ? " for each run" : ""}.`
        + (unfinished.length ? ` Flows that did not finish are left out: ${unfinished.join(", ")}.` : "");
    };
    const made = known.length && chart("Distribution of completion times", caption, draw, 400);
    const columns = () => [{ name: "run", text: true }, { name: state.metric === "fct_us" ? "FCT" : "slowdown", unit: state.metric === "fct_us" ? "µs" : "x" }, { name: "share of flows" }];
    const rows = () => curves().flatMap(({ part, curve }) => curve.values.map((v, i) => [part.name, v, { value: curve.shares[i], show: `${number(100 * curve.shares[i])} %` }]));
    const table1 = dataTable(columns, rows);
    const set = (key) => (value) => { state[key] = value; made.redraw(); table1.refresh(); };
    if (!known.length) box.append(h("p", { class: "lead" }, "No flow finished."));
    else box.append(
      h("p", { class: "lead" }, data.parts.length > 1 ? "Share of the flows that took no longer than a time, by run." : "Share of the flows that took no longer than a time."),
      h("div", { class: "controls" },
        known.length > 1 ? menu("Show", [["slowdown", "Slowdown"], ["fct_us", "Completion time"]].filter(([m]) => known.includes(m)), set("metric")) : null,
        menu("Plot", [["", "Share of flows up to a value"], ["tail", "Tail: share of flows above a value"]], (v) => set("tail")(v === "tail")),
        tick("Logarithmic", state.log, set("log"))),
      made.element, table1);
    for (const [kind, title] of [["size", "By size"], ["class", "By class"], ["distance", "By distance"]]) {
      const parts = data.parts.filter((part) => part.kinds?.some(([of]) => of === kind));
      const names = [...new Set(parts.flatMap((part) => part.kinds.filter(([of]) => of === kind).map(([, name]) => name)))];
      if (!names.length) continue;
      if (kind === "size") names.sort((a, b) => a - b);
      const several = parts.length > 1;
      const row = (name, part, i) => {
        const cells = part.kinds.find(([of, own]) => of === kind && own === name)?.[2] ?? data.flow_columns.map(() => null);
        const shown = kind === "size" ? bytes(Number(name)) : name;
        return [several && i > 0 ? "" : shown, ...(several ? [part.name] : []), ...cells];
      };
      const columns = [{ name: kind === "size" ? "up to" : kind, text: true }, ...(several ? [{ name: "run", text: true }] : []), ...data.flow_columns];
      box.append(h("h3", {}, title), table(columns, names.flatMap((name) => parts.map((part, i) => row(name, part, i))),
        { label: kind === "size" ? "Flows by size" : title, tall: names.length * parts.length > 16 }));
    }
    const slow = data.parts.map((part, i) => i).filter((i) => data.parts[i].slowest);
    if (!slow.length) return;
    let run = slow[0];
    const which = () => data.parts[run].slowest;
    const slowest = dataTable(
      () => [{ name: "flow", text: true }, { name: "queue pair" }, { name: "from", text: true }, { name: "to", text: true }, { name: "job", text: true }, { name: "bytes", unit: "B" },
        { name: "start", unit: "µs" }, { name: "FCT", unit: "µs" }, { name: "slowdown", unit: "x" }, { name: "retransmitted", unit: "packets" }],
      () => which().rows.map((r) => [String(r.flow), { value: r.qp, show: count(r.qp) }, r.from, r.to, r.job, { value: r.bytes, show: count(r.bytes) }, r.start_us, r.fct_us, r.slowdown,
        { value: r.retransmitted, show: count(r.retransmitted) }]),
      "The slowest flows");
    const choice = runMenu(slow, (value) => { run = Number(value); slowest.open = true; slowest.refresh(); });
    if (choice) slowest.append(h("div", { class: "controls" }, choice));
    // Refilling the table removes the menu, so put it back.
    const refill = slowest.refresh;
    slowest.refresh = () => { refill(); if (choice) slowest.querySelector("summary").after(h("div", { class: "controls" }, choice)); };
    slowest.addEventListener("toggle", () => slowest.open && choice && slowest.querySelector("summary").after(h("div", { class: "controls" }, choice)));
    const seeds = h("p", { class: "lead" });
    const say = () => { seeds.textContent = firstSeed(data.parts[run]); if (slowest.open && seeds.textContent) slowest.querySelector("summary").after(seeds); };
    slowest.addEventListener("toggle", say);
    const again = slowest.refresh;
    slowest.refresh = () => { again(); say(); };
    box.append(slowest);
  },
});
