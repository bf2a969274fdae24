// The fabric by tiers. Links are a heat map of load or queue length, for the whole run or at one time.

/** Positions of the nodes of a shape, in a box of 1 by 1. */
function placed(shape) {
  const n = shape.name.length;
  const at = Array.from({ length: n }, () => ({ x: 0.5, y: 0.5 }));
  const numbers = [...Array(n).keys()];
  const switches = numbers.filter((i) => shape.tier[i] > 0);
  const parts = [...new Set(switches.map((i) => shape.part[i]))];
  const home = Array(n).fill(-1); // the switch of a host, the last of several
  const homes = Array.from({ length: n }, () => []); // all of them
  shape.from.forEach((a, link) => {
    if (shape.tier[a] !== 0) return;
    home[a] = shape.to[link];
    if (!homes[a].includes(home[a])) homes[a].push(home[a]);
  });
  const round = parts.length > 2 && !parts.includes("") && switches.every((i) => shape.tier[i] === 1);
  if (round) {
    // Groups on a circle, routers on an arc of it, hosts outside.
    parts.forEach((part, g) => {
      const routers = switches.filter((i) => shape.part[i] === part);
      routers.forEach((i, r) => {
        const angle = 2 * Math.PI * (g + (routers.length > 1 ? 0.14 + 0.72 * (r / (routers.length - 1)) : 0.5)) / parts.length - Math.PI / 2;
        at[i] = { x: 0.5 + 0.37 * Math.cos(angle), y: 0.5 + 0.4 * Math.sin(angle), angle };
        const hosts = numbers.filter((h) => home[h] === i);
        hosts.forEach((host, k) => {
          const spread = angle + (k - (hosts.length - 1) / 2) * Math.min(0.05, 0.6 / (parts.length * routers.length * hosts.length / 2));
          at[host] = { x: 0.5 + 0.45 * Math.cos(spread), y: 0.5 + 0.475 * Math.sin(spread) };
        });
      });
    });
    return { at, home, round, tiers: [] };
  }
  const sites = parts.filter((part) => /^dc\d+$/.test(part));
  const halves = sites.length > 1 ? sites : [null];
  const tiers = [...new Set(shape.tier)].sort((a, b) => a - b);
  const height = (tier) => 0.93 - 0.86 * (tiers.indexOf(tier) / Math.max(tiers.length - 1, 1));
  halves.forEach((site, s) => {
    const width = 1 / halves.length;
    const margin = 0.02;
    for (const tier of tiers.filter((t) => t > 0)) {
      const mine = numbers.filter((i) => shape.tier[i] === tier && (site === null || shape.part[i] === site));
      mine.forEach((i, k) => { at[i] = { x: s * width + margin + (width - 2 * margin) * (k + 0.5) / mine.length, y: height(tier) }; });
    }
  });
  // Servers with links to several switches stand below the middle of these.
  const racks = new Map();
  for (const i of numbers) {
    if (home[i] < 0) continue;
    const key = homes[i].join(",");
    racks.set(key, [...(racks.get(key) || []), i]);
  }
  for (const hosts of racks.values()) {
    const own = homes[hosts[0]];
    const rack = own[0];
    const middle = own.reduce((sum, i) => sum + at[i].x, 0) / own.length;
    const beside = switches.filter((i) => shape.tier[i] === shape.tier[rack] && (halves[0] === null || shape.part[i] === shape.part[rack])).length;
    const room = 0.9 / halves.length / beside * own.length;
    hosts.forEach((host, k) => { at[host] = { x: middle + room * ((k + 0.5) / hosts.length - 0.5), y: height(0) }; });
  }
  return { at, home, round, tiers: tiers.map((tier) => ({ y: height(tier), roles: [...new Set(numbers.filter((i) => shape.tier[i] === tier).map((i) => shape.role[i]))].join(", ") })) };
}

sections.push({
  id: "fabric", title: "Load of the links", short: "Links",
  when: () => data.parts.some((part) => part.fabric),
  fill(box) {
    const runs = data.parts.map((part, i) => i).filter((i) => data.parts[i].fabric);
    const state = { run: runs[0], what: "load", way: "both", bin: 0, link: -1, playing: null };
    const loads = () => data.parts[state.run].fabric;
    const shape = () => data.shapes.drawn[loads().shape];
    const places = new Map();
    const layout = () => {
      if (!places.has(loads().shape)) places.set(loads().shape, placed(shape()));
      return places.get(loads().shape);
    };
    /** Layers beside load and queue, of the whole run: values by link, the text of a value, and that of the largest. */
    const LAYERS = {
      paused: { name: "Pauses", of: (of) => of.paused, show: (v) => `paused ${number(100 * v)} % of the run`, zero: "never paused" },
      lost: { name: "Losses", of: (of) => (of.counts.lost || of.counts.drops) && of.busy.map((_, i) => (of.counts.lost?.[i] || 0) + (of.counts.drops?.[i] || 0)), show: (v) => `${count(v)} packets lost or dropped`, zero: "none" },
    };
    const layer = () => LAYERS[state.what];
    /** Load (share), queue (bytes) or another layer of every link now; null where it was not recorded. */
    const values = () => {
      const of = loads();
      if (layer()) return layer().of(of) || Array(shape().from.length).fill(0);
      if (state.bin === 0) return state.what === "load" ? of.busy : of.max_queue;
      const all = Array(shape().from.length).fill(null);
      const time = of.over_time;
      time.link.forEach((link, i) => { all[link] = state.what === "load" ? time.load[i][state.bin - 1] / 1000 : time.queue[i][state.bin - 1] * 100; });
      return all;
    };
    /** Value of the last colour. For load it is a round share that no link exceeds, so that a lightly loaded fabric has colours, too. */
    const STEPS = [0.05, 0.1, 0.2, 0.5, 1];
    const peaks = new Map();
    const most = () => {
      if (layer()) return Math.max(...values(), 1e-9);
      const key = `${state.run} ${state.what}`;
      if (!peaks.has(key)) {
        const of = loads();
        const [whole, timed, unit] = state.what === "load" ? [of.busy, of.over_time?.load, 1e-3] : [of.max_queue, of.over_time?.queue, 100];
        let top = 0;
        for (const v of whole) top = Math.max(top, v);
        for (const line of timed || []) for (const v of line) top = Math.max(top, v * unit);
        peaks.set(key, state.what === "load" ? STEPS.find((step) => top <= step) ?? 1 : Math.max(top, 1));
      }
      return peaks.get(key);
    };
    const show = (v) => (layer() && v !== null ? (v > 0 ? layer().show(v) : layer().zero) : v === null ? "not recorded" : state.what === "load" ? `${number(100 * v)} %` : bytes(v));
    const up = (link) => { const s = shape(); return s.tier[s.to[link]] > s.tier[s.from[link]] || (s.tier[s.to[link]] === s.tier[s.from[link]] && s.from[link] < s.to[link]); };
    const title = (link) => `${shape().name[shape().from[link]]} → ${shape().name[shape().to[link]]}${failures(link) && ` (${failures(link)})`}`;
    /** What failures did to a link; empty if nothing. */
    const failures = (link) => loads().failing?.[link]?.[1] ?? "";
    /** Mean rate of a link over the run, Gb/s. */
    const rate = (link) => loads().failing?.[link]?.[0] ?? shape().gbps[link];
    const canvas = h("canvas", { tabindex: "0", role: "img", id: "drawing",
      "aria-label": "The fabric by tiers; colours show the load of links. Arrow keys step through the links, the busiest first. The table below has the same numbers." });
    const tip = h("div", { class: "tip", "aria-hidden": "true" });
    const live = h("div", { class: "live", "aria-live": "polite", id: "link" });
    const ramp = h("i", {});
    const ends = [h("span", {}), h("span", {})];
    const caption = h("figcaption", {});
    let order = [];
    let lines = [];
    const tall = () => (layout().round ? Math.min(canvas.clientWidth, 620) : Math.min(Math.max(canvas.clientWidth * 0.5, 300), 520));

    let wide = 0;
    function draw() {
      const width = canvas.clientWidth;
      if (!width || !me.drawn) return;
      wide = width;
      const height = tall();
      const ratio = window.devicePixelRatio || 1;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        canvas.style.height = `${height}px`;
      }
      const c = canvas.getContext("2d");
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      c.clearRect(0, 0, width, height);
      const s = shape();
      const { at, tiers } = layout();
      const left = tiers.length ? (width < 520 ? 6 : 84) : 6;
      const x = (i) => left + at[i].x * (width - left - 6);
      const y = (i) => 16 + at[i].y * (height - 26);
      c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
      c.textBaseline = "middle";
      const now = values();
      const top = most();
      order = [...now.keys()].filter((link) => state.way === "both" || (state.way === "up") === up(link));
      order.sort((a, b) => (now[a] ?? -1) - (now[b] ?? -1));
      const dense = order.length > 1500 ? 0.45 : order.length > 400 ? 0.7 : 1;
      lines = [];
      c.lineCap = "round";
      for (const link of order) {
        const [a, b] = [s.from[link], s.to[link]];
        const [dx, dy] = [x(b) - x(a), y(b) - y(a)];
        const length = Math.hypot(dx, dy) || 1;
        // The two directions are drawn in parallel, each on its right-hand side.
        const side = state.way === "both" ? Math.min(order.length > 400 ? 2 : 3.2, length / 12) * dense : 0;
        const [ox, oy] = [(-dy / length) * side, (dx / length) * side];
        const value = now[link] === null ? null : now[link] / top;
        const line = { link, x0: x(a) + ox, y0: y(a) + oy, x1: x(b) + ox, y1: y(b) + oy };
        // A straight line within a tier would cross the nodes between.
        line.bend = Math.abs(dy) < 2 && Math.abs(dx) > 30 ? Math.min(60, Math.abs(dx) * 0.22) : 0;
        lines.push(line);
        c.strokeStyle = value === null ? style("--line") : heat(value);
        // Links that failed are dashed, whatever the layer.
        const failed = failures(link);
        if (failed) { c.setLineDash([7, 4]); c.strokeStyle = style("--fault"); }
        c.lineWidth = link === state.link ? 5 : failed ? 2.5 : value === null ? 0.6 : (0.8 + 2.8 * Math.min(value, 1)) * dense + 0.2;
        c.beginPath();
        c.moveTo(line.x0, line.y0);
        if (line.bend) c.quadraticCurveTo((line.x0 + line.x1) / 2, line.y0 - line.bend, line.x1, line.y1);
        else c.lineTo(line.x1, line.y1);
        c.stroke();
        c.setLineDash([]);
      }
      const ink = style("--fg");
      const few = s.name.length <= 64;
      s.name.forEach((name, i) => {
        const size = s.tier[i] === 0 ? (few ? 4.5 : 3) : few ? 8 : 4;
        c.fillStyle = s.tier[i] === 0 ? style("--muted") : ink;
        c.beginPath();
        if (s.tier[i] === 0) c.arc(x(i), y(i), size, 0, 2 * Math.PI);
        else c.roundRect(x(i) - size, y(i) - size * 0.7, size * 2, size * 1.4, 2);
        c.fill();
      });
      // Names are drawn if there is room for them.
      c.fillStyle = ink;
      c.textAlign = "center";
      for (const tier of new Set(s.tier)) {
        const mine = [...s.name.keys()].filter((i) => s.tier[i] === tier && tier > 0);
        const widest = Math.max(0, ...mine.map((i) => c.measureText(s.name[i]).width));
        if (tiers.length && mine.length * (widest + 10) < width - left) {
          for (const i of mine) {
            c.lineWidth = 4;
            c.strokeStyle = style("--bg");
            c.strokeText(s.name[i], x(i), y(i) - 15);
            c.fillText(s.name[i], x(i), y(i) - 15);
          }
        }
      }
      c.textAlign = "left";
      c.fillStyle = style("--muted");
      if (left > 10) for (const tier of tiers) c.fillText(tier.roles, 2, 16 + tier.y * (height - 26));
      ramp.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(heat).join(",")})`;
      ends[0].textContent = layer() ? layer().zero : state.what === "load" ? "idle" : "empty";
      ends[1].textContent = layer() ? layer().show(top) : state.what === "load" ? `${100 * top} % busy` : bytes(top);
      order.reverse();
    }

    function note() {
      const s = shape();
      const time = loads().over_time;
      const broken = Object.entries(loads().failing || {}).map(([link]) => title(Number(link)));
      const faults = broken.length ? ` Dashed: links with failures, such as ${broken.slice(0, 3).join("; ")}${broken.length > 3 ? ` and ${count(broken.length - 3)} more` : ""}.` : "";
      const when = layer() ? { paused: "Share of the simulated time for which the sender of each link was paused.", lost: "Packets lost on each link, or dropped before it, in the whole run." }[state.what] : state.bin === 0 ? (state.what === "load" ? "Share of the simulated time that each link was busy." : "Longest queue of data before each link in the whole run.")
        : `Bins of ${number(time.width_us)} µs: ${state.what === "load" ? "bytes sent, as a share of what the link could send" : "longest queue in the bin"}.`;
      const recorded = time && time.link.length < s.from.length ? ` Over time, ${count(time.link.length)} of ${count(s.from.length)} links were recorded (--record records all); the others are drawn thin.` : "";
      caption.textContent = `${firstSeed(data.parts[state.run])}${when}${recorded}${s.hidden ? ` The ${count(s.hidden)} links with the least load are not drawn.` : ""} ${state.way === "both" ? "Each direction of a link is a separate line." : ""}${faults}`;
    }

    const columns = () => {
      const of = loads();
      const counts = Object.keys(of.counts);
      return [{ name: "link", text: true }, { name: layer() ? layer().name.toLowerCase() : state.what === "load" ? "load" : "longest queue" }, { name: "rate", unit: "Gb/s" }, { name: "busy in the whole run", unit: "%" },
        { name: "longest queue in the whole run", unit: "B" }, ...counts.map((name) => ({ name }))];
    };
    const rows = () => {
      const now = values();
      const of = loads();
      return order.slice(0, 40).map((link) => [title(link), { value: now[link], show: show(now[link]) }, rate(link),
        { value: of.busy[link], show: number(100 * of.busy[link]) }, { value: of.max_queue[link], show: count(of.max_queue[link]) },
        ...Object.values(of.counts).map((values) => ({ value: values[link], show: count(values[link]) }))]);
    };
    const list = dataTable(columns, rows, "The busiest links");

    function say(link, x, y) {
      state.link = link;
      if (link < 0) { tip.style.visibility = "hidden"; live.textContent = ""; draw(); return; }
      const now = values();
      const of = loads();
      const text = `${title(link)}: ${show(now[link])}`;
      const more = `${number(rate(link))} Gb/s; whole run: busy ${number(100 * of.busy[link])} %, longest queue ${bytes(of.max_queue[link])}`
        + Object.entries(of.counts).filter(([, v]) => v[link]).map(([name, v]) => `, ${name} ${count(v[link])}`).join("");
      tip.replaceChildren(h("strong", {}, text), h("br", {}), more);
      live.textContent = `${text}. ${more}`;
      tip.style.visibility = "visible";
      tip.style.left = `${Math.max(0, Math.min(x + 12, canvas.clientWidth - tip.offsetWidth))}px`;
      tip.style.top = `${y + 16}px`;
      draw();
    }
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = [event.offsetX, event.offsetY];
      let best = { link: -1, d: 7 };
      for (const l of lines) {
        const points = l.bend ? [[l.x0, l.y0], [(l.x0 + l.x1) / 2, l.y0 - l.bend / 2], [l.x1, l.y1]] : [[l.x0, l.y0], [l.x1, l.y1]];
        for (let i = 0; i + 1 < points.length; i += 1) {
          const [[ax, ay], [bx, by]] = [points[i], points[i + 1]];
          const t = Math.min(1, Math.max(0, ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2 || 1)));
          const d = Math.hypot(ax + t * (bx - ax) - px, ay + t * (by - ay) - py);
          if (d <= best.d) best = { link: l.link, d };
        }
      }
      if (best.link !== state.link || best.link >= 0) say(best.link, px, py);
    });
    canvas.addEventListener("pointerleave", () => say(-1));
    canvas.addEventListener("blur", () => say(-1));
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || !order.length) return;
      event.preventDefault();
      const now = order.indexOf(state.link);
      const link = order[(now + step + order.length) % order.length];
      const line = lines.find((l) => l.link === link);
      say(link, (line.x0 + line.x1) / 2, (line.y0 + line.y1) / 2);
    });

    const slider = h("input", { type: "range", min: "0", max: "0", value: "0", id: "when", input: () => { state.bin = Number(slider.value); update(); } });
    const clock = h("output", { for: "when", id: "clock" });
    const play = h("button", { type: "button", click: () => {
      if (state.playing) { stop(); return; }
      play.textContent = "Stop";
      state.playing = setInterval(() => {
        state.bin = (state.bin % Number(slider.max)) + 1;
        slider.value = String(state.bin);
        update();
      }, 120);
    } }, "Play");
    const stop = () => { clearInterval(state.playing); state.playing = null; play.textContent = "Play"; };
    function update() {
      const time = loads().over_time;
      clock.textContent = state.bin === 0 ? "the whole run" : `${number((state.bin - 1) * time.width_us)} to ${number(state.bin * time.width_us)} µs`;
      slider.setAttribute("aria-valuetext", clock.textContent);
      draw();
      note();
      list.refresh();
    }
    const when = h("label", { class: "wide" }, h("span", {}, "When: ", clock), slider);
    function turn() {
      const time = loads().over_time;
      stop();
      state.bin = 0;
      state.link = -1;
      slider.max = String(time ? time.bins : 0);
      slider.value = "0";
      when.hidden = play.hidden = !time || Boolean(layer());
      update();
    }
    const what = menu("Show", [["load", "Load"], ["queue", "Longest queue"], ...Object.entries(LAYERS).map(([key, { name }]) => [key, name])],
      (value) => { state.what = value; turn(); });
    const way = menu("Direction", [["both", "Both"], ["up", "Up, from hosts"], ["down", "Down, to hosts"]], (value) => { state.way = value; update(); });
    box.append(...[h("p", { class: "lead" }, "Link load, queue lengths, pauses and losses, hosts at the bottom."),
      h("div", { class: "controls" }, runMenu(runs, (value) => { state.run = Number(value); turn(); }), what, way, when, play),
      h("figure", {}, h("div", { class: "fabric" }, canvas, tip), h("div", { class: "scale" }, ends[0], ramp, ends[1]), caption), live, list].filter(Boolean));
    // Like the charts, the drawing waits for its turn, because it may have tens of thousands of lines.
    const me = { drawn: false, redraw() { me.drawn = true; update(); } };
    charts.push(me);
    turn();
    new ResizeObserver(() => { if (canvas.clientWidth !== wide) draw(); }).observe(canvas);
  },
});
