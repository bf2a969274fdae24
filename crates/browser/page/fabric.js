// The fabric as a picture: switches and hosts by tier, load and queues of links, packets of one flow on their way.
"use strict";

/** Colours that colour-blind eyes tell apart (Okabe and Ito), for light and for dark pages. */
const PATHS = {
  light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a8a00", "#555555"],
  dark: ["#4aa8e8", "#ffb733", "#2fd0a0", "#e79ac4", "#8ed1fa", "#ff8c4d", "#d8d850", "#aaaaaa"],
};

/** A canvas that is as sharp as the screen; returns its context and size in CSS pixels. */
function sharp(canvas) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

/** Colours of the page's style. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const names = ["ink", "soft", "line", "face", "page", "good", "bad", "warn", "accent"];
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return { ...Object.fromEntries(names.map((name) => [name, of(`--${name}`)])), paths: PATHS[dark ? "dark" : "light"] };
}

/** The last of a link's changes until a time, if there is one. */
const last = (changes, time) => changes?.findLast((change) => change.at_us <= time);

class Fabric {
  constructor(canvas) {
    this.canvas = canvas;
  }

  /** Takes a run: its nodes by tier, the links' states over time. */
  show(run) {
    this.run = run;
    const { column } = run;
    const tier = column["node.tier"];
    this.rows = [];
    tier.forEach((of, node) => (this.rows[of] ??= []).push(node));
    this.rows = this.rows.filter(Boolean);
    this.track = new Map(Array.from(column["track.link"], (link, at) => [link, at]));
    const links = column["link.from"].length;
    this.degree = new Array(run.nodes.length).fill(0);
    for (const from of column["link.from"]) this.degree[from]++;
    this.top = new Map((this.rows.at(-1) ?? []).map((node, at) => [node, at]));
    this.drawn = run.nodes.length <= 320 && links <= 2048;
    let most = 1;
    for (const queue of column["link.queue"]) if (queue > most) most = queue;
    this.mostQueue = most;
    this.changes = Map.groupBy(run.failures, (change) => change.link);
    this.losses = Map.groupBy(run.losses, (change) => change.link);
  }

  /** The rate of a link at a time, Gb/s; 0 if it is down. */
  rate(link, time) {
    const change = last(this.changes.get(link), time);
    return change ? (change.gbps ?? 0) : this.run.column["link.gbps"][link];
  }

  /** True if a failure slows the link at a time. */
  slow(link, time) {
    const rate = this.rate(link, time);
    return rate > 0 && rate < this.run.column["link.gbps"][link];
  }

  /** True if a failure makes the link lose packets at random at a time. */
  gray(link, time) {
    return (last(this.losses.get(link), time)?.share ?? 0) > 0;
  }

  /** True if all links of a node are down. */
  dead(node, time) {
    const { column } = this.run;
    const mine = [...this.changes.keys()].filter((link) => column["link.from"][link] === node);
    const all = this.degree[node];
    return all > 0 && mine.length === all && mine.every((link) => this.rate(link, time) === 0);
  }

  /** Lays the rows out on the canvas. */
  place(width, height) {
    this.size = Math.max(7, Math.min(26, width / 24));
    this.at = [];
    const rows = this.rows.length;
    const [above, below] = [this.size + 6, this.size + 16];
    this.rows.forEach((nodes, row) => {
      const y = rows > 1 ? height - below - ((height - above - below) * row) / (rows - 1) : height / 2;
      nodes.forEach((node, at) => (this.at[node] = { x: (width * (at + 0.5)) / nodes.length, y }));
    });
  }

  /** The colour of a way: that of the highest switch on it. */
  colour(top, paths) {
    return this.top.has(top) ? paths[this.top.get(top) % paths.length] : paths[7];
  }

  draw(time, flow, ways, events) {
    const { context: c, width, height } = sharp(this.canvas);
    const look = colours();
    if (!this.run) return;
    if (!this.drawn) {
      c.fillStyle = look.soft;
      c.font = "14px system-ui, sans-serif";
      c.textAlign = "center";
      c.fillText(`${this.run.nodes.length} nodes are too many to draw; the charts show the run.`, width / 2, height / 2);
      return;
    }
    this.place(width, height);
    this.drawLinks(c, time, look);
    this.drawPackets(c, time, ways, look);
    this.drawNodes(c, time, flow, look, width);
    this.drawMarks(c, time, events, look);
  }

  drawLinks(c, time, look) {
    const { column, width_us, bins } = this.run;
    const bin = Math.min(bins - 1, Math.max(0, Math.floor(time / width_us)));
    const many = column["link.from"].length > 256;
    for (let link = 0; link < column["link.from"].length; link++) {
      const [a, b] = [this.at[column["link.from"][link]], this.at[column["link.to"][link]]];
      // The two directions of a cable lie side by side.
      const [dx, dy] = [b.x - a.x, b.y - a.y];
      const long = Math.hypot(dx, dy) || 1;
      const [ox, oy] = [(-dy / long) * 2, (dx / long) * 2];
      const at = (share) => [a.x + dx * share + ox, a.y + dy * share + oy];
      const line = (from, to) => {
        c.beginPath();
        c.moveTo(...at(from));
        c.lineTo(...at(to));
        c.stroke();
      };
      const rate = this.rate(link, time);
      const track = this.track.get(link);
      const gray = this.gray(link, time);
      const slow = this.slow(link, time);
      c.setLineDash(rate === 0 ? [3, 5] : gray ? [9, 3] : slow ? [9, 3, 2, 3] : []);
      c.strokeStyle = rate === 0 || gray || slow ? look.bad : look.line;
      c.lineWidth = many ? 0.5 : 1;
      line(0, 1);
      c.setLineDash([]);
      if (track === undefined || rate === 0) continue;
      const load = (column["link.bytes"][track * bins + bin] * 8) / (rate * 1e3 * width_us);
      if (load > 0.02) {
        c.globalAlpha = 0.25 + 0.4 * Math.min(1, load);
        c.strokeStyle = look.accent;
        c.lineWidth = (many ? 1 : 2.5) * Math.min(1, load) + 0.5;
        line(0, 1);
        c.globalAlpha = 1;
      }
      const queue = column["link.queue"][track * bins + bin];
      if (queue > 0.02 * this.mostQueue) {
        c.strokeStyle = look.warn;
        c.lineWidth = many ? 2 : 5;
        line(this.size / long, this.size / long + (0.3 * queue) / this.mostQueue);
      }
    }
  }

  drawPackets(c, time, ways, look) {
    const { column } = this.run;
    const radius = Math.max(2, this.size / 7);
    for (const way of ways) {
      if (way.start > time || way.kind === "ack") continue;
      const last = way.hops.at(-1);
      if (last.until + (way.lost ? 4 : 0) < time) continue;
      let hop = way.hops.findLastIndex((hop) => hop.at <= time);
      const { link, at, until } = way.hops[hop];
      const [a, b] = [this.at[column["link.from"][link]], this.at[column["link.to"][link]]];
      let share = Math.min(1, (time - at) / (until - at));
      if (way.lost && hop === way.hops.length - 1) share = Math.min(share, 0.5);
      let [x, y] = [a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share];
      if (share === 1 && hop < way.hops.length - 1) {
        // It waits at a port: beside the switch, so that waiting packets are seen.
        const next = this.at[column["link.to"][way.hops[hop + 1].link]];
        const long = Math.hypot(next.x - b.x, next.y - b.y) || 1;
        [x, y] = [b.x + ((next.x - b.x) / long) * this.size * 0.9, b.y + ((next.y - b.y) / long) * this.size * 0.9];
      }
      if (way.lost && share >= 0.5 && hop === way.hops.length - 1) {
        this.cross(c, x, y, radius * 1.6, look.bad);
        continue;
      }
      c.fillStyle = way.kind === "data" ? this.colour(way.top, look.paths) : look.bad;
      c.beginPath();
      if (way.kind === "data") c.arc(x, y, radius, 0, 7);
      else c.rect(x - radius, y - radius, 2 * radius, 2 * radius);
      c.fill();
      if (way.again) {
        c.strokeStyle = look.bad;
        c.lineWidth = 1.5;
        c.beginPath();
        c.arc(x, y, radius + 1.5, 0, 7);
        c.stroke();
      }
    }
  }

  drawNodes(c, time, flow, look, width) {
    const { run } = this;
    const tier = run.column["node.tier"];
    const ends = [run.column["flow.from"][flow], run.column["flow.to"][flow]];
    c.textAlign = "center";
    c.textBaseline = "middle";
    this.at.forEach(({ x, y }, node) => {
      const dead = this.changes.size > 0 && this.dead(node, time);
      const host = tier[node] === 0;
      const size = host ? this.size * 0.55 : this.size * 0.72;
      const top = this.top.has(node) && this.rows.length > 1;
      c.lineWidth = ends.includes(node) ? 3 : 1.5;
      c.strokeStyle = dead ? look.bad : ends.includes(node) ? look.accent : top ? this.colour(node, look.paths) : look.soft;
      c.fillStyle = look.face;
      c.globalAlpha = dead ? 0.6 : 1;
      c.beginPath();
      if (host) c.arc(x, y, size, 0, 7);
      else c.roundRect(x - size * 1.4, y - size, size * 2.8, size * 2, 5);
      c.fill();
      c.stroke();
      c.globalAlpha = 1;
      if (dead) this.cross(c, x, y, size * 0.9, look.bad);
      const name = host ? run.nodes[node].replace(/^\D+/, "") : run.nodes[node];
      if (this.size < 12 && host) return;
      c.fillStyle = look.ink;
      let points = Math.min(13, Math.max(8, size * 0.85));
      c.font = `${points}px system-ui, sans-serif`;
      const room = host ? size * 2.2 : size * 2.7;
      const wide = c.measureText(name).width;
      if (wide > room) c.font = `${Math.max(6, (points * room) / wide)}px system-ui, sans-serif`;
      if (!dead) c.fillText(name, x, y);
      else c.fillText(name, x, y - size - 7 < 6 ? y + size + 9 : y - size - 7);
      if (ends[0] === node || ends[1] === node) {
        c.font = "11px system-ui, sans-serif";
        const text = ends[0] === node ? "sends" : "receives";
        const half = c.measureText(text).width / 2;
        c.fillText(text, Math.min(width - half, Math.max(half, x)), y + this.size * 0.55 + 9);
      }
    });
  }

  /** Draws beside each switch how many NACKs it has blocked in the last 3 us. */
  drawMarks(c, time, events, look) {
    const { column } = this.run;
    // A flash lasts 3 us of simulated time: long enough for an eye, short enough that flashes do not pile up.
    for (const name of this.run.events.filter((name) => name.endsWith("-blocked"))) {
      const counts = new Map();
      for (const i of events.between(name, time - 3, time)) {
        const node = column["event.node"][i];
        counts.set(node, (counts.get(node) ?? 0) + 1);
      }
      for (const [node, count] of counts) {
        const { x, y } = this.at[node];
        // Beside the switch's name also on a phone: there the number is smaller.
        const radius = Math.min(11, 6 + count, Math.max(8, this.size * 0.45));
        const [left, up] = [x + this.size + radius * 0.4, y - this.size * 0.6 - radius * 0.2];
        c.fillStyle = look.bad;
        c.beginPath();
        c.arc(left, up, radius, 0, 7);
        c.fill();
        c.fillStyle = look.face;
        c.font = `bold ${radius > 8 ? 10 : 9}px system-ui, sans-serif`;
        c.fillText(count > 99 ? "99" : `${count}`, left, up + 0.5);
      }
    }
  }

  cross(c, x, y, size, colour) {
    c.strokeStyle = colour;
    c.lineWidth = 2.5;
    c.beginPath();
    c.moveTo(x - size, y - size);
    c.lineTo(x + size, y + size);
    c.moveTo(x + size, y - size);
    c.lineTo(x - size, y + size);
    c.stroke();
  }

  /** The node at a point of the canvas. */
  hit(x, y) {
    if (!this.at || !this.drawn) return -1;
    const near = (at) => Math.abs(at.x - x) < this.size * 1.1 && Math.abs(at.y - y) < this.size * 0.9;
    return this.at.findIndex(near);
  }
}
