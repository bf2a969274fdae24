// What the GPUs of a job did over time: a row per GPU, or per block of GPUs.

const DID = {
  compute: ["grey", "computes"], tp: ["blue", "tensor parallelism"], pp: ["red", "pipeline"], dp: ["purple", "data parallelism"], ep: ["green", "experts"],
  cp: ["gold", "context parallelism"], other: ["wine", "messages"],
};
const didColour = (kind) => hue(DID[kind][0]);

sections.push({
  id: "steps", title: "What the GPUs did", short: "GPUs",
  when: () => data.parts.some((part) => part.steps),
  fill(box) {
    const runs = data.parts.map((part, i) => i).filter((i) => data.parts[i].steps);
    const state = { run: runs[0], job: 0, row: -1, part: 0 };
    const job = () => data.parts[state.run].steps.jobs[state.job];
    const kinds = (what) => Object.keys(DID).filter((kind) => job().rows.some((row) => row.tracks[`${what} ${kind}`]));
    const share = (row, track, part) => (row.tracks[track] ? (row.tracks[track].charCodeAt(part) - 48) / 60 : 0);
    const time = (us) => (job().end_us - job().start_us >= 20000 ? `${number(us / 1000)} ms` : `${number(us)} µs`);
    const canvas = h("canvas", { tabindex: "0", role: "img", id: "gpus",
      "aria-label": "What each GPU did over time. Arrow keys up and down step through the rows, left and right through time. The table below has the shares of each row." });
    const tip = h("div", { class: "tip", "aria-hidden": "true" });
    const live = h("div", { class: "live", "aria-live": "polite", id: "gpu" });
    const keys = h("div", { class: "keys" });
    const caption = h("figcaption", {});
    const ROW = 26; // px: 15 for what the GPU does, 5 for communication under way
    const LANE = 15;
    const UNDER = 5;
    let wide = 0;
    let frame = { left: 0, width: 0 };

    /** Draws parts of one lane: for every part, shares from bottom to top. Equal neighbours share a rectangle. */
    function lane(c, row, tracks, y, height, x) {
      const parts = job().parts;
      let begun = 0;
      const at = (part) => tracks.map(([track]) => share(row, track, part));
      let now = at(0);
      for (let part = 1; part <= parts; part += 1) {
        const next = part < parts ? at(part) : null;
        if (next && next.every((v, i) => v === now[i])) continue;
        const scale = Math.max(1, now.reduce((sum, v) => sum + v, 0));
        let top = y + height;
        now.forEach((value, i) => {
          if (!value) return;
          const tall = (value / scale) * height;
          c.fillStyle = tracks[i][1];
          c.fillRect(x(begun), top - tall, Math.max(x(part) - x(begun), 0.5), tall);
          top -= tall;
        });
        begun = part;
        now = next;
      }
    }

    function draw() {
      const width = canvas.clientWidth;
      if (!width || !me.drawn) return;
      wide = width;
      const { rows, parts, start_us: start, end_us: end } = job();
      const height = rows.length * ROW + 30;
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
      const c = canvas.getContext("2d");
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      c.clearRect(0, 0, width, height);
      c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
      c.textBaseline = "middle";
      const widest = Math.max(...rows.map((row) => c.measureText(row.name).width));
      const left = Math.min(widest + 10, width * 0.4);
      frame = { left, width: width - left - 8 };
      const x = (part) => left + (part / parts) * frame.width;
      const doing = [["compute", didColour("compute")], ...kinds("exposed").map((kind) => [`exposed ${kind}`, didColour(kind)])];
      const under = kinds("under way").map((kind) => [`under way ${kind}`, didColour(kind)]);
      rows.forEach((row, i) => {
        const y = 4 + i * ROW;
        c.fillStyle = style("--panel");
        c.fillRect(left, y, frame.width, LANE + UNDER + 1);
        lane(c, row, doing, y, LANE, x);
        lane(c, row, under, y + LANE + 1, UNDER, x);
        c.fillStyle = i === state.row ? style("--accent") : style("--fg");
        c.textAlign = "left";
        let name = row.name;
        while (name.length > 4 && c.measureText(name).width > left - 8) name = `${name.slice(0, -2)}…`;
        c.fillText(name, 0, y + LANE / 2 + 1);
      });
      // Ends of steps, and the axis.
      c.strokeStyle = style("--fg");
      c.lineWidth = 1;
      c.setLineDash([3, 3]);
      for (const stop of job().steps.slice(0, -1)) {
        const px = left + ((stop - start) / (end - start)) * frame.width;
        c.beginPath(); c.moveTo(px, 2); c.lineTo(px, rows.length * ROW + 4); c.stroke();
      }
      c.setLineDash([]);
      // Failures of the run.
      c.fillStyle = style("--fault");
      for (const fault of faultsOf([state.run])) {
        const at = (us) => left + Math.min(Math.max((us - start) / (end - start), 0), 1) * frame.width;
        const [from, until] = [at(fault.at_us), at(fault.until_us ?? end)];
        c.globalAlpha = 0.12;
        c.fillRect(from, 2, until - from, rows.length * ROW + 2);
        c.globalAlpha = 1;
        if (until > from) c.fillRect(from, 2, 1.5, rows.length * ROW + 2);
      }
      const ticks = frame.width < 420 ? 2 : 5;
      c.fillStyle = style("--muted");
      for (let i = 0; i <= ticks; i += 1) {
        c.textAlign = i === 0 ? "left" : i === ticks ? "right" : "center";
        c.fillText(time(start + ((end - start) * i) / ticks), left + (frame.width * i) / ticks, rows.length * ROW + 17);
      }
      if (state.row >= 0) {
        c.strokeStyle = style("--accent");
        c.lineWidth = 2;
        c.strokeRect(x(state.part) - 1, 3 + state.row * ROW, Math.max(x(state.part + 1) - x(state.part), 2) + 2, LANE + UNDER + 3);
      }
    }

    const swatch = (kind, text) => h("span", {}, h("span", { class: "swatch", style: `background:${didColour(kind)}` }), text);
    function note() {
      const { ranks, rows, block, steps, parts, start_us: start, end_us: end } = job();
      const blocks = rows.filter((row) => row.ranks[0] !== row.ranks[1]).length;
      keys.replaceChildren(swatch("compute", DID.compute[1]), ...kinds("exposed").map((kind) => swatch(kind, `waits for ${DID[kind][1]}${kind === "other" ? "" : ` (${kind})`}`)),
        h("span", {}, h("span", { class: "swatch none" }), `${job().rest}: neither`));
      const others = data.parts[state.run].steps.left_out;
      caption.textContent = `${firstSeed(data.parts[state.run])}The tall part of a row is what the GPU does; heights are shares of the time where a GPU changes within one of the ${count(parts)} parts of ${time((end - start) / parts)}. `
        + "The thin part below is communication under way in these colours, also while the GPU computes. "
        + (block === 1 ? `All ${count(ranks)} GPUs are shown. `
          : `The first ${count(rows.length - blocks)} rows are single GPUs; the other ${count(blocks)} rows are means over up to ${count(block)} of the ${count(ranks)} GPUs. The other GPUs have no row of their own; timeline.parquet has all of them. `)
        + (steps.length > 1 ? `Dashed lines are ends of the ${count(steps.length)} steps. ` : "")
        + (others ? `${count(others)} more jobs are left out. ` : "") + faultText([state.run]);
    }

    const columns = () => [{ name: "GPU", text: true }, ...job().rows[0].shares.map(([name]) => ({ name, unit: "%" })), { name: "last task ends", unit: "µs" }];
    const rows = () => job().rows.map((row) => [row.name, ...row.shares.map(([, value]) => ({ value, show: number(100 * value) })), row.last_us]);
    const list = dataTable(columns, rows, "Shares of the time, by GPU");

    function say(row, part) {
      state.row = row;
      state.part = part;
      if (row < 0) { tip.style.visibility = "hidden"; live.textContent = ""; draw(); return; }
      const { rows: all, parts, start_us: start, end_us: end } = job();
      const at = (p) => start + ((end - start) * p) / parts;
      const of = all[row];
      const list = [["compute", "computes"], ...kinds("exposed").map((kind) => [`exposed ${kind}`, `waits for ${kind === "other" ? "messages" : kind}`])]
        .map(([track, name]) => [name, share(of, track, part)]);
      const rest = 1 - list.reduce((sum, [, v]) => sum + v, 0);
      if (rest > 0.01) list.push([job().rest, rest]);
      const text = `GPU ${of.name}, ${time(at(part))} to ${time(at(part + 1))}`;
      const under = kinds("under way").filter((kind) => share(of, `under way ${kind}`, part) > 0);
      const more = list.filter(([, v]) => v > 0).map(([name, v]) => `${name} ${number(100 * v)} %`).join(", ")
        + (under.length ? `; under way: ${under.join(", ")}` : "");
      tip.replaceChildren(h("strong", {}, text), h("br", {}), more);
      live.textContent = `${text}: ${more}`;
      tip.style.visibility = "visible";
      const px = frame.left + (part / parts) * frame.width;
      tip.style.left = `${Math.max(0, Math.min(px + 12, canvas.clientWidth - tip.offsetWidth))}px`;
      tip.style.top = `${(row + 1) * ROW + 8}px`;
      draw();
    }
    canvas.addEventListener("pointermove", (event) => {
      const row = Math.floor((event.offsetY - 4) / ROW);
      const part = Math.floor(((event.offsetX - frame.left) / frame.width) * job().parts);
      const inside = row >= 0 && row < job().rows.length && part >= 0 && part < job().parts;
      if (inside) say(row, part); else if (state.row >= 0) say(-1, 0);
    });
    canvas.addEventListener("pointerleave", () => say(-1, 0));
    canvas.addEventListener("blur", () => say(-1, 0));
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (!step) return;
      event.preventDefault();
      const wrap = (value, n) => (value + n) % n;
      say(state.row < 0 ? 0 : wrap(state.row + step[0], job().rows.length), wrap(state.part + step[1], job().parts));
    });
    const update = () => { state.row = -1; tip.style.visibility = "hidden"; draw(); note(); list.refresh(); };
    const controls = h("div", { class: "controls" });
    const fill = () => {
      const all = data.parts[state.run].steps.jobs;
      const jobs = all.length > 1 ? menu("Job", all.map((one, i) => [String(i), one.name]), (value) => { state.job = Number(value); update(); }) : null;
      controls.replaceChildren(...[choice, jobs].filter(Boolean));
    };
    const choice = runMenu(runs, (value) => { state.run = Number(value); state.job = 0; fill(); update(); });
    fill();
    box.append(h("p", { class: "lead" }, "Computation, waits for communication, and the rest of the time of each GPU, from the start of the job to its end."),
      controls, keys, h("figure", {}, h("div", { class: "fabric" }, canvas, tip), caption), live, list);
    const me = { drawn: false, redraw() { me.drawn = true; update(); } };
    charts.push(me);
    new ResizeObserver(() => { if (canvas.clientWidth !== wide) draw(); }).observe(canvas);
  },
});
