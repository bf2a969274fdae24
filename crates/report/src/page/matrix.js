// Links of a large fabric as matrices, one for each pair of tiers: a row is a switch, a column one of its links.

sections.push({
  id: "matrices", title: "Load of the links", short: "Links",
  when: () => data.parts.some((part) => part.matrix),
  fill(box) {
    const DIGITS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    const VALUE = Object.fromEntries([...DIGITS].map((digit, i) => [digit, i]));
    const ROW = 14; // px, by the height of a label
    const WIDEST = 130; // px of a cell, our choice
    const runs = data.parts.map((part, i) => i).filter((i) => data.parts[i].matrix);
    const state = { run: runs[0], what: "load", way: "both", order: "hot", bin: 0, at: null, playing: null };
    const of = () => data.parts[state.run].matrix;
    const shape = () => data.shapes.matrices[of().shape];

    /** A value as it is written in the page: a share between 0 and 1. */
    const read = (text, cell, digits) => {
      if (digits === 1) return VALUE[text[cell]] / 63;
      return (VALUE[text[2 * cell]] * 64 + VALUE[text[2 * cell + 1]]) / 4095;
    };
    const bytesOf = (share, top) => top * share * share;
    /** Values of a grid in one direction (0: to the row, 1: from it): shares, or bytes; NaN if not recorded. */
    const decoded = new Map();
    const valuesOf = (grid, way) => {
      const key = `${state.run} ${state.what} ${grid} ${way} ${state.bin}`;
      if (decoded.has(key)) return decoded.get(key);
      const all = of();
      const n = shape().grids[grid].ends.length;
      let values;
      if (state.bin === 0) {
        const text = all.grids[grid][way][state.what === "load" ? "busy" : "queue"];
        values = Float64Array.from({ length: n }, (_, cell) => {
          const share = read(text, cell, all.digits);
          return state.what === "load" ? share : bytesOf(share, all.queue_top);
        });
      } else {
        values = new Float64Array(n).fill(NaN);
        const time = all.over_time;
        time.at.forEach(([g, w, cell], i) => {
          if (g !== grid || w !== way) return;
          const share = VALUE[(state.what === "load" ? time.load : time.queue)[i][state.bin - 1]] / 63;
          values[cell] = state.what === "load" ? share : bytesOf(share, time.queue_top);
        });
      }
      if (decoded.size > 200) decoded.clear();
      decoded.set(key, values);
      return values;
    };
    /** Directions of a grid that are shown. */
    const ways = (grid) => {
      const { up } = shape().grids[grid];
      if (state.way === "both") return [0, 1];
      return [(state.way === "up") === up ? 1 : 0];
    };
    const valueOf = (grid, cell) => {
      const all = ways(grid).map((way) => valuesOf(grid, way)[cell]).filter((v) => !Number.isNaN(v));
      return all.length ? Math.max(...all) : NaN;
    };
    /** Value of the last colour: the same for all matrices of a run, and one for the whole run and one for all times. */
    const top = () => {
      const all = of();
      const { bin } = state;
      if (state.what === "queue") return Math.max(bin === 0 ? all.queue_top : all.over_time.queue_top, 1);
      let most = 0;
      if (bin === 0) most = Math.max(...all.totals.flat().map((t) => t.most ?? 0));
      else for (const line of all.over_time.load) for (const digit of line) most = Math.max(most, VALUE[digit] / 63);
      return [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1].find((step) => most <= step) ?? 1;
    };
    const show = (v) => (Number.isNaN(v) ? "not recorded" : state.what === "load" ? `${number(100 * v)} %` : bytes(v));
    const gridTitle = (grid) => {
      const { rows_role: row, ends_role: end, up, flat, columns } = shape().grids[grid];
      if (flat) return `Links between ${row}s${shape().grids.filter((g) => g.flat && g.rows_role === row).length > 1 ? (shape().grids.findIndex((g) => g.flat) === grid ? " of one group" : " of different groups") : ""}`;
      return up ? `${row} and ${end}, by ${row}` : `Hosts, by ${row} (${count(columns.length)} each)`;
    };
    const nameOf = (grid, cell) => {
      const { names, grids } = shape();
      const { rows, ends, columns } = grids[grid];
      return [names[rows[Math.floor(cell / columns.length)]], names[ends[cell]]];
    };
    const linkName = ([grid, way, cell]) => (way ? nameOf(grid, cell) : nameOf(grid, cell).reverse()).join(" → ");

    const live = h("div", { class: "live", "aria-live": "polite", id: "cell" });
    const tip = h("div", { class: "tip", "aria-hidden": "true" });
    const ramp = h("i", {});
    const ends = [h("span", {}), h("span", {})];
    const caption = h("figcaption", {});
    const pictures = h("div", { class: "matrices" });
    const tiers = h("div", {});
    const hot = h("div", {});
    let made = [];

    /** Rows of a grid in the chosen order. */
    const orderOf = (grid) => {
      const { rows, columns } = shape().grids[grid];
      const order = rows.map((_, i) => i);
      if (state.order === "name") return order;
      const most = order.map((row) => columns.reduce((best, _, c) => { const v = valueOf(grid, row * columns.length + c); return v > best ? v : best; }, -1));
      return order.sort((a, b) => most[b] - most[a] || a - b);
    };

    function build() {
      const { names, grids } = shape();
      made = grids.map((grid, g) => {
        const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": `${gridTitle(g)}. Arrow keys step through the cells; the table of the hottest links has numbers.` });
        const labels = h("div", { class: "rows" });
        const heads = h("div", { class: "columns" });
        const scroll = h("div", { class: "matrix" }, h("div", { class: "corner" }, grid.rows_role), heads, labels, canvas);
        const me = { grid: g, canvas, labels, heads, scroll, order: [], width: 0, cell: 0 };
        const find = (event) => {
          const column = Math.floor(event.offsetX / me.cell);
          const row = me.order[Math.floor(event.offsetY / ROW)];
          return row === undefined || column < 0 || column >= grid.columns.length ? -1 : row * grid.columns.length + column;
        };
        canvas.addEventListener("pointermove", (event) => say(me, find(event)));
        canvas.addEventListener("pointerleave", () => say(me, -1));
        canvas.addEventListener("blur", () => say(me, -1));
        canvas.addEventListener("keydown", (event) => {
          const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
          if (!step) return;
          event.preventDefault();
          const wide = grid.columns.length;
          const now = state.at?.grid === g ? state.at.cell : -1;
          if (now < 0) { say(me, me.order[0] * wide); return; }
          const wrap = (value, n) => (value + n) % n;
          say(me, me.order[wrap(me.order.indexOf(Math.floor(now / wide)) + step[0], me.order.length)] * wide + wrap((now % wide) + step[1], wide));
        });
        me.element = [h("h3", {}, gridTitle(g)), scroll];
        return me;
      });
      pictures.replaceChildren(...made.flatMap((me) => me.element), tip);
      for (const me of made) {
        me.longest = Math.max(...grids[me.grid].rows.map((row) => names[row].length));
      }
    }

    function draw(me) {
      const grid = shape().grids[me.grid];
      const { names } = shape();
      const wide = grid.columns.length;
      const left = Math.min(me.longest * 7 + 12, pictures.clientWidth * 0.4);
      const room = pictures.clientWidth - left - 14; // a bar for scrolling takes the rest
      if (room <= 0 || !drawn.drawn) return;
      me.order = orderOf(me.grid);
      me.cell = Math.max(7, Math.min(WIDEST, Math.floor(room / wide)));
      const [width, height] = [me.cell * wide, ROW * me.order.length];
      me.scroll.style.setProperty("--left", `${left}px`);
      me.labels.replaceChildren(...me.order.map((row) => h("span", {}, names[grid.rows[row]])));
      const every = Math.ceil(14 / me.cell);
      const longest = Math.max(...grid.columns.map((c) => c.length));
      const upright = longest * 7 > me.cell * every;
      me.heads.classList.toggle("upright", upright);
      me.heads.style.width = `${width}px`;
      me.heads.replaceChildren(...grid.columns.flatMap((name, c) => (c % every ? [] : [h("span", { style: `left:${c * me.cell}px;width:${me.cell * every}px` }, name)])));
      me.heads.style.height = `${upright ? Math.min(longest * 7 + 6, 80) : 18}px`;
      const ratio = window.devicePixelRatio || 1;
      me.canvas.width = Math.round(width * ratio);
      me.canvas.height = Math.round(height * ratio);
      me.canvas.style.width = `${width}px`;
      me.canvas.style.height = `${height}px`;
      paint(me);
    }

    function paint(me) {
      const grid = shape().grids[me.grid];
      const wide = grid.columns.length;
      const c = me.canvas.getContext("2d");
      const ratio = window.devicePixelRatio || 1;
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      c.clearRect(0, 0, me.cell * wide, ROW * me.order.length);
      const most = top();
      const gap = me.cell > 9 ? 1 : 0.5;
      me.order.forEach((row, r) => {
        for (let column = 0; column < wide; column += 1) {
          const cell = row * wide + column;
          if (grid.ends[cell] === null) continue;
          const value = valueOf(me.grid, cell);
          c.fillStyle = Number.isNaN(value) ? style("--panel") : heat(value / most);
          c.fillRect(column * me.cell, r * ROW, me.cell - gap, ROW - 1);
        }
      });
      if (state.at?.grid === me.grid) {
        const [row, column] = [me.order.indexOf(Math.floor(state.at.cell / wide)), state.at.cell % wide];
        c.strokeStyle = style("--accent");
        c.lineWidth = 2;
        c.strokeRect(column * me.cell, row * ROW, me.cell - gap, ROW - 1);
      }
    }

    function say(me, cell) {
      const before = state.at;
      if (cell < 0 || shape().grids[me.grid].ends[cell] === null) {
        state.at = null;
        tip.style.visibility = "hidden";
        live.textContent = "";
        if (before) paint(me);
        return;
      }
      if (before?.grid === me.grid && before.cell === cell) return;
      state.at = { grid: me.grid, cell };
      const wide = shape().grids[me.grid].columns.length;
      const lines = ways(me.grid).map((way) => `${linkName([me.grid, way, cell])}: ${show(valuesOf(me.grid, way)[cell])}`);
      tip.replaceChildren(...lines.flatMap((line, i) => [i ? h("br", {}) : null, line]).filter(Boolean));
      live.textContent = lines.join("; ");
      tip.style.visibility = "visible";
      const at = me.canvas.getBoundingClientRect();
      const frame = pictures.getBoundingClientRect();
      const x = at.left - frame.left + ((cell % wide) + 1) * me.cell + 8;
      tip.style.left = `${Math.max(0, Math.min(x, pictures.clientWidth - tip.offsetWidth))}px`;
      tip.style.top = `${at.top - frame.top + (me.order.indexOf(Math.floor(cell / wide)) + 1) * ROW + 6}px`;
      paint(me);
    }

    const direction = (grid, way) => (shape().grids[grid].flat ? "both" : (way === 1) === shape().grids[grid].up ? "up" : "down");
    function tables() {
      const all = of();
      const kinds = [...new Set(all.totals.flat().flatMap((t) => Object.keys(t.counts)))];
      const rows = all.totals.flatMap((both, grid) => (shape().grids[grid].flat ? [1] : [1, 0]).map((way) => {
        const t = both[way];
        return [gridTitle(grid), direction(grid, way), { value: t.links, show: count(t.links) }, { value: t.mean, show: number(100 * t.mean) }, { value: t.most, show: number(100 * t.most) },
          t.mean > 0 ? t.most / t.mean : null, { value: t.max_queue, show: bytes(t.max_queue) }, ...kinds.map((kind) => ({ value: t.counts[kind] ?? 0, show: count(t.counts[kind] ?? 0) }))];
      }));
      tiers.replaceChildren(table([{ name: "tier", text: true }, { name: "direction", text: true }, { name: "links" }, { name: "busy, mean", unit: "%" }, { name: "busy, most", unit: "%" },
        { name: "most / mean", unit: "x", about: "1 is an even load" }, { name: "longest queue" }, ...kinds.map((name) => ({ name }))], rows, { caption: "The tiers, over the whole run", label: "Load by tier" }));
      const key = state.what === "load" ? "busy" : "max_queue";
      const hottest = all.hottest.filter((link) => state.way === "both" || direction(link.at[0], link.at[1]) === state.way || shape().grids[link.at[0]].flat)
        .sort((a, b) => b[key] - a[key]).slice(0, 12);
      const sums = [...new Set(hottest.flatMap((link) => Object.keys(link.counts)))];
      hot.replaceChildren(table([{ name: "link", text: true }, { name: "busy", unit: "%" }, { name: "times its tier's mean", unit: "x" }, { name: "longest queue" }, { name: "rate", unit: "Gb/s" }, ...sums.map((name) => ({ name }))],
        hottest.map((link) => {
          const { mean } = all.totals[link.at[0]][link.at[1]];
          return [`${linkName(link.at)}${link.failures ? ` (${link.failures})` : ""}`, { value: link.busy, show: number(100 * link.busy) }, mean > 0 ? link.busy / mean : null, { value: link.max_queue, show: bytes(link.max_queue) }, link.gbps,
            ...sums.map((name) => ({ value: link.counts[name] ?? 0, show: count(link.counts[name] ?? 0) }))];
        }), { caption: `Hot spots: the links with ${state.what === "load" ? "the highest load" : "the longest queues"}, over the whole run`, label: "The hottest links", tall: hottest.length > 8 }));
    }

    function note() {
      const time = of().over_time;
      const when = state.bin === 0 ? (state.what === "load" ? "Share of the simulated time that a link was busy." : "Longest queue of data before a link in the whole run.")
        : `Bins of ${number(time.width_us)} µs: ${state.what === "load" ? "bytes sent, as a share of what the link could send" : "longest queue in the bin"}; ${count(time.at.length)} links over time${time.at.length < time.recorded ? `, the busiest of ${count(time.recorded)}` : ""}.`;
      caption.textContent = `${firstSeed(data.parts[state.run])}Every cell is a link: its row is one end, its column the other. ${state.way === "both" ? "A cell has the higher value of the two directions. " : ""}${when}`
        + (shape().hidden ? ` ${count(shape().hidden)} rows with the least load are left out.` : "");
      ramp.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(heat).join(",")})`;
      ends[0].textContent = state.what === "load" ? "idle" : "empty";
      ends[1].textContent = state.what === "load" ? `${number(100 * top())} % busy` : bytes(top());
    }

    const slider = h("input", { type: "range", min: "0", max: "0", value: "0", id: "moment", input: () => { state.bin = Number(slider.value); move(); } });
    const clock = h("output", { for: "moment" });
    const play = h("button", { type: "button", click: () => {
      if (state.playing) { stop(); return; }
      play.textContent = "Stop";
      state.playing = setInterval(() => { state.bin = (state.bin % Number(slider.max)) + 1; slider.value = String(state.bin); move(); }, 200);
    } }, "Play");
    const stop = () => { clearInterval(state.playing); state.playing = null; play.textContent = "Play"; };
    const when = h("label", { class: "wide" }, h("span", {}, "When: ", clock), slider);
    /** The order of the rows stays while time moves. */
    function move() {
      const time = of().over_time;
      clock.textContent = state.bin === 0 ? "the whole run" : `${number((state.bin - 1) * time.width_us)} to ${number(state.bin * time.width_us)} µs`;
      slider.setAttribute("aria-valuetext", clock.textContent);
      for (const me of made) if (me.cell) paint(me);
      note();
    }
    const update = () => { for (const me of made) draw(me); tables(); note(); };
    function turn() {
      stop();
      state.bin = 0;
      state.at = null;
      const time = of().over_time;
      slider.max = String(time ? time.bins : 0);
      slider.value = "0";
      clock.textContent = "the whole run";
      when.hidden = play.hidden = !time;
      build();
      update();
    }
    const what = menu("Show", [["load", "Load"], ["queue", "Longest queue"]], (value) => { state.what = value; update(); });
    const way = menu("Direction", [["both", "Both"], ["up", "Up, from hosts"], ["down", "Down, to hosts"]], (value) => { state.way = value; update(); });
    const order = menu("Rows", [["hot", "Hottest first"], ["name", "By number"]], (value) => { state.order = value; update(); });
    box.append(h("p", { class: "lead" }, "Which links carried the load, tier by tier."),
      h("div", { class: "controls" }, [runMenu(runs, (value) => { state.run = Number(value); turn(); }), what, way, order].filter(Boolean)), hot, tiers,
      h("div", { class: "controls" }, when, play),
      h("figure", {}, h("div", { class: "scale" }, ends[0], ramp, ends[1]), pictures, caption), live);
    const drawn = { drawn: false, redraw() { drawn.drawn = true; update(); } };
    charts.push(drawn);
    turn();
    let wide = 0;
    new ResizeObserver(() => { if (pictures.clientWidth !== wide) { wide = pictures.clientWidth; for (const me of made) draw(me); } }).observe(pictures);
  },
});
