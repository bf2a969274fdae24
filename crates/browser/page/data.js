// Answers of the module, and what follows from them.
"use strict";

const TYPES = { f64: Float64Array, u32: Uint32Array, u8: Uint8Array };

/** The header of an answer, with its columns as typed arrays; crates/browser/src/pack.rs describes the bytes. */
function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const { head, columns } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const first = Math.ceil((4 + length) / 8) * 8;
  const column = {};
  for (const [name, { type, at, length }] of Object.entries(columns)) {
    column[name] = new TYPES[type](buffer, first + at, length);
  }
  return { ...head, column };
}

/** The module in its worker. `stop` ends what it does; the next question starts it again. */
class Engine {
  constructor(onprogress) {
    this.onprogress = onprogress;
    this.packed = document.getElementById("module").textContent.trim();
    this.code = URL.createObjectURL(new Blob([document.getElementById("worker").textContent], { type: "text/javascript" }));
    this.next = 0;
    this.open = new Map();
  }

  start() {
    this.worker = new Worker(this.code);
    this.worker.onmessage = ({ data }) => {
      if (data.progress) {
        this.onprogress(data.progress);
        return;
      }
      const { done, fail } = this.open.get(data.id) ?? {};
      this.open.delete(data.id);
      if (data.failed) {
        this.stop();
        fail?.(new Error(data.failed));
      } else {
        done?.(data);
      }
    };
    this.send({ packed: this.packed }).catch(() => {});
  }

  send(question) {
    return new Promise((done, fail) => {
      const id = this.next++;
      this.open.set(id, { done, fail });
      this.worker.postMessage({ id, ...question });
    });
  }

  async ask(name, text, ...numbers) {
    if (!this.worker) this.start();
    const { answer, took } = await this.send({ name, text, numbers });
    return { ...unpack(answer), took };
  }

  stop() {
    this.worker?.terminate();
    this.worker = null;
    for (const { fail } of this.open.values()) fail(null);
    this.open.clear();
  }
}

/** The index of the first value above `limit` in ascending values. */
function above(values, limit) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * The ways of one queue pair's packets, in order of their starts: each has its hops, and the node of the highest tier that it
 * crosses.
 */
function journeys(run, packets) {
  const { at, until, link, psn, kind, again, lost } = packets.column;
  const [from, to, tier] = [run.column["link.from"], run.column["link.to"], run.column["node.tier"]];
  const open = new Map();
  const all = [];
  for (let i = 0; i < at.length; i++) {
    const key = kind[i] * 2 ** 24 + psn[i];
    const mine = open.get(key) ?? [];
    open.set(key, mine);
    // A frame continues the earliest journey that waits at its sender.
    let place = mine.findIndex((way) => way.node === from[link[i]] && way.end <= at[i] + 1e-6);
    if (place < 0) {
      place = mine.length;
      mine.push({ kind: run.kinds[kind[i]], psn: psn[i], again: !!again[i], start: at[i], hops: [], top: -1, lost: false });
      all.push(mine[place]);
    }
    const way = mine[place];
    way.hops.push({ link: link[i], at: at[i], until: until[i] });
    [way.node, way.end, way.lost] = [to[link[i]], until[i], !!lost[i]];
    if (way.top < 0 || tier[way.node] > tier[way.top]) way.top = way.node;
    way.done = !way.lost && tier[way.node] === 0;
    if (way.lost || way.done) mine.splice(place, 1);
  }
  return all;
}

/** The events of a run by name: times, and what belongs to them. */
class Events {
  constructor(run) {
    const { column } = run;
    this.rows = new Map(run.events.map((name) => [name, []]));
    const what = column["event.what"];
    for (let i = 0; i < what.length; i++) this.rows.get(run.events[what[i]]).push(i);
    const at = column["event.at"];
    for (const rows of this.rows.values()) rows.sort((a, b) => at[a] - at[b]);
    this.times = new Map([...this.rows].map(([name, rows]) => [name, Float64Array.from(rows, (i) => at[i])]));
  }

  /** Number of events of these names up to a time. */
  count(names, time) {
    return names.reduce((sum, name) => sum + (this.times.has(name) ? above(this.times.get(name), time) : 0), 0);
  }

  /** Rows of a name between two times. */
  between(name, from, to) {
    const times = this.times.get(name);
    return times ? this.rows.get(name).slice(above(times, from), above(times, to)) : [];
  }
}
