// Packets of a queue pair by time and PSN. Packets in order lie on a line, packets that overtook others above it, and late packets below.

const KINDS = {
  "in order": { hue: "grey", symbol: "circle", size: 4 }, late: { hue: "red", symbol: "circle", size: 7 },
  ahead: { hue: "blue", symbol: "circle", size: 5, name: "ahead of ePSN, kept" }, discarded: { hue: "blue", symbol: "circle-open", size: 6, name: "ahead of ePSN, discarded" },
  duplicate: { hue: "purple", symbol: "diamond", size: 7 },
  sent: { hue: "sky", symbol: "circle-open", size: 5 }, resent: { hue: "wine", symbol: "triangle-up", size: 9, name: "retransmitted" },
  "data-dropped": { hue: "wine", symbol: "x", size: 8, name: "dropped: no buffer" }, "data-lost": { hue: "wine", symbol: "x-thin-open", size: 8, name: "lost on a link" },
  timeout: { hue: "ink", symbol: "star", size: 12 },
  "nack-sent": { hue: "gold", symbol: "triangle-down-open", size: 8, name: "NACK sent" }, "nack-blocked": { hue: "green", symbol: "square-open", size: 8, name: "NACK blocked" },
  "nack-made": { hue: "purple", symbol: "square", size: 8, name: "NACK sent by the scheme" }, "nack-received": { hue: "wine", symbol: "triangle-left", size: 8, name: "NACK received" },
  paused: { hue: "sky", symbol: "triangle-right-open", size: 9, name: "port paused" }, resumed: { hue: "green", symbol: "triangle-right", size: 9, name: "port resumed" },
  "cnp-sent": { hue: "ink", symbol: "pentagon-open", size: 8, name: "CNP sent" }, "cnp-received": { hue: "ink", symbol: "pentagon", size: 8, name: "CNP received" },
};

sections.push({
  id: "arrivals", title: "Order of packets", short: "Packet order",
  when: () => data.parts.some((part) => part.arrivals),
  fill(box) {
    const runs = data.parts.map((part, i) => i).filter((i) => data.parts[i].arrivals);
    /** Packets of a run's first queue pair that overtook others: the page opens on the run with the most. */
    const overtaking = (i) => {
      const { names, tracks } = data.parts[i].arrivals;
      return tracks[0].event.filter((event) => ["ahead", "discarded"].includes(names[event])).length;
    };
    const most = runs.reduce((best, i) => (overtaking(i) > overtaking(best) ? i : best), runs[0]);
    const state = { run: most, track: 0, size: 400, from: 0, lag: false };
    const track = () => data.parts[state.run].arrivals.tracks[state.track];
    const points = () => {
      const { names } = data.parts[state.run].arrivals;
      const of = track();
      let [time, psn, top] = [0, 0, -1];
      return of.time_ns.map((dt, i) => {
        time += dt;
        psn += of.psn[i];
        let kind = names[of.event[i]];
        if (kind === "arrived") kind = psn < top ? "late" : "in order";
        const lag = psn - top;
        if (kind === "in order" || kind === "ahead" || kind === "discarded") top = Math.max(top, psn);
        return { us: time / 1000, psn, lag, kind };
      });
    };
    const visible = () => points().slice(state.from, state.from + state.size);
    const draw = () => {
      const all = visible();
      const kinds = [...Object.keys(KINDS), ...new Set(all.map((p) => p.kind))].filter((k, i, list) => list.indexOf(k) === i);
      const traces = kinds.map((kind) => {
        const mine = all.filter((p) => p.kind === kind);
        const of = KINDS[kind] || { hue: "ink", symbol: "cross", size: 7 };
        return { type: "scatter", mode: "markers", name: of.name || kind, x: mine.map((p) => p.us), y: mine.map((p) => (state.lag ? p.lag : p.psn)), customdata: mine.map((p) => p.psn), visible: kind === "sent" ? "legendonly" : true,
          marker: { color: hue(of.hue), symbol: of.symbol, size: of.size }, hovertemplate: `PSN %{customdata} at %{x:.3f} µs<extra>${of.name || kind}</extra>` };
      }).filter((trace) => trace.x.length);
      const layout = { xaxis: { title: "time, µs" }, yaxis: { title: state.lag ? "PSN − highest PSN before" : "PSN" }, showlegend: true };
      return { traces, layout: faulty(layout, traces, [state.run]) };
    };
    const caption = () => {
      const of = track();
      const part = of.time_ns.length < of.of ? ` ${count(of.time_ns.length)} of its ${count(of.of)} events, from shortly before the first packet out of order.` : ` All of its ${count(of.of)} events.`;
      return `${firstSeed(data.parts[state.run])}QP ${of.qp}, ${of.from} → ${of.to}.${part} Packets in order lie on one line. A packet that overtook others lies above it, and the overtaken packets are late. Click a name in the legend to show or hide its events.${faultText([state.run])}`;
    };
    const made = chart("Packets by time of arrival and PSN", caption, draw, 460);
    const list = dataTable(() => [{ name: "event", text: true }, { name: "time", unit: "µs" }, { name: "PSN" }], () => points().map((p) => [p.kind, { value: p.us, show: p.us.toFixed(3) }, { value: p.psn, show: count(p.psn) }]));
    const waits = h("div", {});
    const fillWaits = () => {
      const links = track().links || [];
      waits.replaceChildren(...(links.length ? [dataTable(
        () => [{ name: "link", text: true }, { name: "packets" }, { name: "queue, mean", unit: "kB" }, { name: "queue, longest", unit: "kB" }, { name: "time to drain the mean", unit: "µs" }],
        () => links.map((l) => [`${l.from} port ${l.port} → ${l.to}`, { value: l.packets, show: count(l.packets) }, l.mean_queue_bytes / 1e3, l.max_queue_bytes / 1e3, l.drains_us]), "Queues that its packets met")] : []));
    };
    const slider = h("input", { type: "range", min: "0", value: "0", id: "from", input: () => { state.from = Number(slider.value); move(); } });
    const clock = h("output", { for: "from" });
    const where = h("label", { class: "wide" }, h("span", {}, "From: ", clock), slider);
    const move = () => {
      clock.textContent = `${number(points()[state.from]?.us)} µs`;
      slider.setAttribute("aria-valuetext", clock.textContent);
      made.redraw();
    };
    const update = () => {
      const n = track().time_ns.length;
      slider.max = String(Math.max(n - state.size, 0));
      slider.step = String(Math.max(1, Math.floor(state.size / 10)));
      state.from = Math.min(state.from, Number(slider.max));
      slider.value = String(state.from);
      where.hidden = n <= state.size;
      move();
      list.refresh();
      fillWaits();
    };
    const size = menu("Events at once", [["100", "100"], ["400", "400"], ["2000", "2,000"], ["1000000", "all"]], (value) => { state.size = Number(value); update(); }, "400");
    const height = menu("Height", [["", "PSN"], ["lag", "PSN − highest before"]], (value) => { state.lag = value === "lag"; update(); });
    const controls = h("div", { class: "controls" });
    const fill = () => {
      state.track = state.from = 0;
      const { tracks } = data.parts[state.run].arrivals;
      const pairs = menu("Queue pair", tracks.map((t, i) => [String(i), `QP ${t.qp}: ${t.from} → ${t.to}`]), (value) => { state.track = Number(value); state.from = 0; update(); });
      pairs.select.id = "pair";
      controls.replaceChildren(...[choice, pairs, height, size, where].filter(Boolean));
    };
    const choice = runMenu(runs, (value) => { state.run = Number(value); fill(); update(); });
    if (choice) choice.select.value = String(state.run);
    fill();
    box.append(h("p", { class: "lead" }, "Each packet of a queue pair by its time and its PSN."), controls, made.element, list, waits);
    update();
  },
});
