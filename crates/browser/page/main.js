// The page: settings, the address, runs, and the playing of a run.
"use strict";

const $ = (id) => document.getElementById(id);
const LOSSES = ["0", "0.00001", "0.0001", "0.0003", "0.001", "0.003", "0.01", "0.03"];
const RATES = ["10", "25", "50", "100", "200", "400", "800"];
const SIZES = ["256kB", "1MB", "4MB", "8MB", "16MB", "32MB"];
const QUICKSTART = { scenario: "quickstart", text: null, scheme: null, loss: "0", rate: "100", size: "4MB", detection: "100us", kills: [], flow: 0 };

const moves = !matchMedia("(prefers-reduced-motion: reduce)").matches;
const state = { ...QUICKSTART, time: 0, playing: moves, speed: 10, run: null, ways: [], events: null, wanted: 0 };
const fabric = new Fabric($("fabric"));
// Enter in a field sends no form.
$("controls").addEventListener("submit", (event) => event.preventDefault());
const engine = new Engine(({ now, finished, messages }) => {
  say(`Running: ${now.toFixed(0)} µs simulated, ${finished} of ${messages} messages finished.`, false);
});

// --- the scenario, as changes and as an address ----------------------------------------------------------------------

/** True for the scenario whose fabric and size have sliders. */
const hasSliders = () => state.scenario === "quickstart" && state.text === null;

/** The changes that `ropewalk run` takes as `--set`. */
function sets() {
  const list = [];
  if (state.scheme) list.push(`scheme.${state.scheme}={}`);
  if (state.loss !== "0") list.push(`links.loss=${state.loss}`);
  if (hasSliders()) {
    if (state.rate !== QUICKSTART.rate) list.push(`topology.leaf-spine.rate=${state.rate}Gbps`);
    if (state.size !== QUICKSTART.size) list.push(`workload.0.all-reduce.bytes=${state.size}`);
  }
  if (state.kills.length) {
    const of = ({ name, at, until }) => `{switch="${name}",at="${at}us"${until === undefined ? "" : `,until="${until}us"`}}`;
    list.push(`failure=[${state.kills.map(of).join(",")}]`, `routing.detection=${state.detection}`);
  }
  return list;
}

const shellWord = (text) => (/^[\w=./:,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The same run for the native program. */
function command() {
  const file = state.text === null ? state.scenario : `${state.scenario}.toml`;
  return ["ropewalk run", shellWord(file), ...sets().map((set) => `--set ${shellWord(set)}`)].join(" ");
}

const base64url = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

/** The scenario that the address holds as compressed text; `null` if it is damaged. */
async function unpacked(text) {
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
    return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes));
  } catch {
    return null;
  }
}

/** The address's fragment: all that differs from quickstart. */
async function fragment() {
  const words = document.body.classList.contains("embed") ? ["embed"] : [];
  if (state.scenario !== "quickstart") words.push(`scenario=${encodeURIComponent(state.scenario)}`);
  if (state.text !== null) {
    const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(state.text));
    words.push(`text=${base64url(packed)}`);
  }
  for (const key of ["scheme", "loss", "rate", "size", "detection", "flow"]) {
    if (state[key] !== QUICKSTART[key]) words.push(`${key}=${encodeURIComponent(state[key])}`);
  }
  for (const { name, at, until } of state.kills) {
    words.push(`kill=${encodeURIComponent(name)}@${at}${until === undefined ? "" : `-${until}`}`);
  }
  return words.join("&");
}

/** Reads the address's fragment. */
async function readFragment() {
  const words = new URLSearchParams(location.hash.slice(1));
  document.body.classList.toggle("embed", words.has("embed"));
  Object.assign(state, { ...QUICKSTART, kills: [], damaged: false });
  for (const key of ["scenario", "scheme", "loss", "rate", "size", "detection"]) if (words.has(key)) state[key] = words.get(key);
  state.flow = Number(words.get("flow") ?? 0) || 0;
  for (const kill of words.getAll("kill")) {
    const [, name, at, , until] = kill.match(/^(.+)@([\d.]+)(-([\d.]+))?$/) ?? [];
    if (name) state.kills.push({ name, at: Number(at), ...(until ? { until: Number(until) } : {}) });
  }
  if (words.has("text")) {
    state.text = await unpacked(words.get("text"));
    state.damaged = state.text === null;
  }
  if (words.has("t")) state.time = Number(words.get("t")) || 0;
  if (words.has("speed")) state.speed = Number(words.get("speed")) || 10;
  if (words.has("pause")) state.playing = false;
}

async function writeFragment() {
  try {
    history.replaceState(null, "", `#${await fragment()}`);
  } catch {
    // A page inside another one may not change its address.
  }
}

// --- runs ------------------------------------------------------------------------------------------------------------

function say(text, bad = true) {
  $("message").textContent = text;
  $("message").hidden = !text;
  $("message").style.borderColor = bad ? "" : "var(--line)";
}

/** How many packets and events of a long run are not drawn; empty if all are. */
function leftOut({ more_packets: packets, more_events: events }) {
  const first = "Results count everything; the picture has the first packets of each link and the first events.";
  return packets || events ? [`${number(packets)} packets on links and ${number(events)} events are not drawn. ${first}`] : [];
}

/** Runs the scenario of the settings. The run that plays goes on from the present time, or from the start. */
async function rerun(goOn) {
  const wanted = ++state.wanted;
  showSettings();
  writeFragment();
  if (engine.open.size) engine.stop();
  document.body.classList.add("busy");
  try {
    const asked = JSON.stringify({ scenario: state.scenario, text: state.text, set: sets() });
    const run = await engine.ask("run", asked);
    if (wanted !== state.wanted) return;
    if (run.error) {
      const { message, help, place } = run.error;
      say(`${place ? `${place.file}:${place.line}:${place.column}: ` : ""}${message}${help ? `\n${help}` : ""}`);
      return;
    }
    const damaged = state.damaged ? [`The address holds a damaged scenario: ${state.scenario} runs in its place.`] : [];
    say([...damaged, ...run.faults, ...run.warnings, ...leftOut(run)].join("\n"));
    state.run = run;
    if (state.scheme === null) state.ownScheme = run.scheme;
    state.events = new Events(run);
    state.flow = Math.min(state.flow, Math.max(0, run.column["flow.from"].length - 1));
    if (!goOn) state.time = 0;
    state.time = Math.min(state.time, run.end_us);
    fabric.show(run);
    showRun();
    await follow(state.flow);
    document.documentElement.dataset.digest = run.digest;
    learn();
  } catch (error) {
    if (error && wanted === state.wanted) say(`ropewalk has failed, and this is a bug: ${error.message}`);
  } finally {
    if (wanted === state.wanted) document.body.classList.remove("busy");
  }
}

/** Fetches the packets of a flow from the run. */
async function follow(flow) {
  state.flow = flow;
  const run = state.run;
  const packets = await engine.ask("packets", "", flow).catch(() => null);
  // A run that has started since then ends this question.
  if (!packets || run !== state.run) return;
  state.ways = journeys(run, packets);
  $("flow").value = flow;
  writeFragment();
}

/** Kills a switch now, or revives it. Up to now the run stays the same, so it plays on. */
function toggle(name) {
  const now = Math.max(0.1, Math.round(state.time * 10) / 10);
  const open = state.kills.find((kill) => kill.name === name && kill.at <= now && (kill.until === undefined || kill.until > now));
  if (!open) {
    state.kills = state.kills.filter((kill) => !(kill.name === name && kill.at > now));
    state.kills.push({ name, at: now });
  } else if (now > open.at) {
    open.until = now;
  } else {
    state.kills = state.kills.filter((kill) => kill !== open);
  }
  rerun(true);
}

// --- what stands on the page -----------------------------------------------------------------------------------------

function showSettings() {
  const at = (list, value) => (list.includes(value) ? list.indexOf(value) : 0);
  $("loss").value = at(LOSSES, state.loss);
  $("rate").value = at(RATES, state.rate);
  $("size").value = at(SIZES, state.size);
  $("detection").value = state.detection;
  $("loss-is").textContent = state.loss === "0" ? "none" : `${+(state.loss * 100).toPrecision(3)} %`;
  $("rate-is").textContent = `${state.rate} Gb/s`;
  $("size-is").textContent = state.size.replace(/(\d)([kM])/, "$1 $2");
  $("rate").disabled = $("size").disabled = !hasSliders();
  $("speed").value = state.speed;
  $("text").value = state.text ?? $("text").value;
  if ($("text").value === "") $("own").open = false;
}

function element(name, text, more = {}) {
  return Object.assign(document.createElement(name), { textContent: text, ...more });
}

/** Everything that follows from a new run. */
function showRun() {
  const { run } = state;
  const { column } = run;
  const [from, to] = [column["flow.from"], column["flow.to"]];
  const flows = [...column["track.qp"]];
  $("flow").replaceChildren(...flows.map((qp) => {
    return element("option", `${run.nodes[from[qp]]} → ${run.nodes[to[qp]]}`, { value: qp });
  }));
  if (![...$("scheme").options].some((option) => option.value === run.scheme)) {
    $("scheme").append(element("option", run.scheme, { value: run.scheme }));
  }
  $("scheme").value = run.scheme;
  aboutScheme();
  const tops = [...fabric.top.keys()];
  $("spines").replaceChildren(...(tops.length <= 16 && fabric.rows.length > 1 ? tops : []).map((node) => {
    return element("button", "", { type: "button", value: run.nodes[node], onclick: () => toggle(run.nodes[node]) });
  }));
  $("command").textContent = command();
  $("digest").textContent = run.digest;
  $("toml").textContent = run.toml;
  prepareSeries();
  showTiles();
  remember();
}

/** Series of the charts: NACKs by time, rates of flows, the longest queues. */
function prepareSeries() {
  const { run } = state;
  const { column, bins, width_us: width } = run;
  const sum = (names, count = bins) => Array.from({ length: count }, (_, i) => state.events.count(names, (i + 1) * width));
  state.nacks = { sent: sum(["nack-sent"]), blocked: sum(["nack-blocked"]), reached: sum(["nack-received"]) };
  const rate = (track) => Array.from({ length: bins }, (_, i) => (column["qp.bytes"][track * bins + i] * 8) / (width * 1e3));
  state.rates = [...column["track.qp"]].slice(0, 64).map((qp, track) => ({ qp, values: rate(track) }));
  const peak = (track) => column["link.queue"].subarray(track * bins, (track + 1) * bins).reduce((a, b) => Math.max(a, b), 0);
  const peaks = [...column["track.link"]].map((link, track) => ({ link, track, peak: peak(track) }));
  peaks.sort((a, b) => b.peak - a.peak);
  state.queues = peaks.slice(0, 3).filter(({ peak }) => peak > 0).map(({ link, track }) => ({
    name: `${run.nodes[column["link.from"][link]]} → ${run.nodes[column["link.to"][link]]}`,
    values: Array.from(column["link.queue"].subarray(track * bins, (track + 1) * bins), (bytes) => bytes / 1e3),
  }));
  const look = colours();
  $("queue-key").replaceChildren(...state.queues.flatMap(({ name }, at) => {
    const mark = element("b", "");
    mark.style.background = look.paths[at];
    return [mark, name];
  }));
}

const number = (value) => (value ?? 0).toLocaleString("en");

function showTiles() {
  const { summary, end_us: end, took } = state.run;
  const { packets, control } = summary;
  const tiles = [
    [`${number(+end.toFixed(1))} µs`, summary.complete ? "until the last packet has arrived" : `simulated: ${summary.ending}`],
    [`${number(summary.goodput_gbps?.mean && +summary.goodput_gbps.mean.toFixed(1))} Gb/s`, "mean goodput"],
    [number(packets.retransmitted), `of ${number(packets.sent)} packets sent again`],
    [number(packets.out_of_order), "packets out of order"],
    [number(control.blocked), `of ${number(control.nack)} NACKs blocked`],
    [number(control.timeout), "timeouts"],
    [`${took.toFixed(0)} ms`, `for ${number((summary.packet_hops?.data ?? 0) + (summary.packet_hops?.control ?? 0))} hops in this browser`],
  ];
  $("tiles").replaceChildren(...tiles.map(([value, what]) => {
    const tile = element("div", "");
    tile.append(element("b", value), element("span", what));
    return tile;
  }));
}

const history_ = [];

/** Adds the run to the table of runs. */
function remember() {
  const { run } = state;
  const kept = JSON.parse(JSON.stringify(Object.fromEntries(Object.keys(QUICKSTART).map((key) => [key, state[key]]))));
  const same = history_.findIndex((row) => row.run.digest === run.digest && row.scheme === run.scheme);
  if (same >= 0) history_.splice(same, 1);
  history_.unshift({ kept, scheme: run.scheme, run: { digest: run.digest, end: run.end_us, summary: run.summary } });
  history_.length = Math.min(history_.length, 8);
  const head = element("thead", "");
  head.append(row("th", ["Run", "Ends at", "Sent again", "NACKs blocked", "Timeouts", "Digest"]));
  const body = element("tbody", "");
  const best = Math.min(...history_.filter((each) => each.run.summary.complete).map((each) => each.run.end));
  for (const each of history_) {
    const { kept, run } = each;
    const words = [each.scheme, kept.scenario === "quickstart" ? `${kept.rate} Gb/s, ${kept.size}` : kept.scenario];
    if (kept.loss !== "0") words.push(`loss ${+(kept.loss * 100).toPrecision(3)} %`);
    for (const { name, at, until } of kept.kills) words.push(`${name} down from ${at} µs ${until === undefined ? "on" : `until ${until} µs`}`);
    const { packets, control, complete, ending } = run.summary;
    const end = complete ? `${number(+run.end.toFixed(1))} µs` : ending;
    const line = row("td", [words.join(", "), end, number(packets.retransmitted), number(control.blocked), number(control.timeout), run.digest.slice(0, 8)]);
    line.classList.toggle("best", run.end === best && history_.length > 1);
    line.onclick = () => {
      Object.assign(state, JSON.parse(JSON.stringify(kept)));
      rerun(false);
    };
    body.append(line);
  }
  $("history").replaceChildren(head, body);
}

function row(kind, cells) {
  const line = element("tr", "");
  line.append(...cells.map((cell) => element(kind, cell)));
  return line;
}

// --- playing ---------------------------------------------------------------------------------------------------------

let before = null;
// False while a frame of another page is scrolled out of sight: it draws nothing, and goes on later.
let inSight = true;

function frame(time) {
  const { run } = state;
  if (run && state.playing && inSight && before !== null && !document.body.classList.contains("busy")) {
    // A page in the background gets no frames, and goes on where it was.
    state.time = Math.min(run.end_us, state.time + (Math.min(100, time - before) / 1000) * state.speed);
    if (state.time >= run.end_us) setPlaying(false);
  }
  before = time;
  if (inSight) draw();
  // Milliseconds from the page's opening to its first picture; tests wait for them.
  if (run) document.documentElement.dataset.ready ??= Math.round(performance.now());
  requestAnimationFrame(frame);
}

function setPlaying(on) {
  state.playing = on;
  $("play").textContent = on ? "Pause" : state.run && state.time >= state.run.end_us ? "Again" : "Play";
}

function draw() {
  const { run, time, flow, events } = state;
  if (!run) return;
  const { column, width_us: step, end_us: end } = run;
  $("clock").textContent = `${time.toFixed(1)} µs`;
  $("scrub").max = end;
  if (document.activeElement !== $("scrub") || state.playing) $("scrub").value = time;
  fabric.draw(time, flow, state.ways, events);
  for (const button of $("spines").children) {
    const dead = fabric.dead(run.nodes.indexOf(button.value), time);
    button.textContent = `${dead ? "Revive" : "Kill"} ${button.value}`;
    button.classList.toggle("dead", dead);
  }
  const look = colours();
  const span = 30;
  const marks = ["nack-sent", "nack-blocked"].flatMap((name) => {
    const rows = events.between(name, time - span, time).filter((i) => column["event.qp"][i] === flow);
    return rows.map((i) => ({ at: column["event.at"][i], psn: column["event.psn"][i], kind: name === "nack-blocked" ? "blocked" : "sent" }));
  });
  arrivals($("arrivals"), { now: time, span, fabric, ways: state.ways, marks });
  const shown = (canvas) => canvas.clientHeight > 0;
  // Values as high as what the time axis shows, so that the small queues of a young run are seen.
  const bins = Math.ceil(horizon(time, end) / step);
  const highest = (least, rows) => rows.reduce((most, { values }) => values.slice(0, bins).reduce((a, b) => Math.max(a, b), most), least);
  if (shown($("nacks"))) {
    const { sent, blocked, reached } = state.nacks;
    const rows = [
      { values: sent, colour: look.soft, thick: 4, alpha: 0.5 },
      { values: blocked, colour: look.accent, thick: 2 },
      { values: reached, colour: look.bad, thick: 2 },
    ];
    lines($("nacks"), { end, now: time, step, rows, most: highest(10, rows) });
  }
  if (shown($("rates"))) {
    const most = highest(1, state.rates);
    const rows = state.rates.map(({ qp, values }) => ({ qp, values, colour: look.line, alpha: 0.8, thick: 1 }));
    rows.sort((a, b) => (a.qp === flow) - (b.qp === flow));
    if (rows.length && rows.at(-1).qp === flow) Object.assign(rows.at(-1), { colour: look.accent, thick: 2, alpha: 1 });
    lines($("rates"), { end, now: time, step, rows, most });
  }
  if (shown($("queues"))) {
    lines($("queues"), { end, now: time, step, most: highest(1, state.queues), rows: state.queues.map(({ values }, at) => ({ values, colour: look.paths[at] })) });
  }
}

// --- what the user does ----------------------------------------------------------------------------------------------

function aboutScheme() {
  const chosen = state.schemes?.find(({ name }) => name === $("scheme").value);
  $("about-scheme").textContent = chosen?.about ?? "";
}

/** Learns the built-in scenarios, and the schemes that fit the present one, unless it knows them. A run that begins meanwhile ends the
    question, and asks again when it is done. */
async function learn() {
  const asked = JSON.stringify({ scenario: state.scenario, text: state.text, set: [] });
  if (state.learnt === asked) return;
  const { schemes, scenarios } = await engine.ask("describe", asked).catch(() => ({}));
  if (!schemes) return;
  state.learnt = asked;
  state.schemes = schemes;
  const now = $("scheme").value;
  $("scheme").replaceChildren(...schemes.map(({ name, why_not: why }) => element("option", name, { value: name, disabled: !!why, title: why ?? "" })));
  $("scheme").value = now;
  aboutScheme();
  if (!$("builtin").length) {
    $("builtin").append(element("option", "choose ...", { value: "" }));
    $("builtin").append(...scenarios.map(({ name, about }) => element("option", name, { value: name, title: about })));
    state.scenarios = scenarios;
  }
}

function listen() {
  $("scheme").onchange = () => {
    // The scenario's own scheme keeps its settings.
    state.scheme = $("scheme").value === state.ownScheme ? null : $("scheme").value;
    rerun(true);
  };
  const slider = (id, key, list) => {
    $(id).oninput = () => {
      state[key] = list[$(id).value];
      showSettings();
    };
    $(id).onchange = () => {
      state[key] = list[$(id).value];
      rerun(true);
    };
  };
  slider("loss", "loss", LOSSES);
  slider("rate", "rate", RATES);
  slider("size", "size", SIZES);
  $("detection").onchange = () => {
    state.detection = $("detection").value;
    rerun(true);
  };
  $("play").onclick = () => {
    if (state.run && state.time >= state.run.end_us) state.time = 0;
    setPlaying(!state.playing);
  };
  $("scrub").oninput = () => {
    state.time = Number($("scrub").value);
    setPlaying(state.playing && state.time < state.run.end_us);
  };
  $("speed").onchange = () => (state.speed = Number($("speed").value));
  $("flow").onchange = () => follow(Number($("flow").value));
  const hit = (event) => fabric.hit(event.offsetX, event.offsetY);
  $("fabric").onmousemove = (event) => {
    const node = hit(event);
    const can = node >= 0 && (fabric.top.has(node) || state.run.column["node.tier"][node] === 0);
    $("fabric").style.cursor = can ? "pointer" : "";
    $("fabric").title = !can ? "" : fabric.top.has(node) && fabric.rows.length > 1 ? `kill or revive ${state.run.nodes[node]}` : `follow the flow of ${state.run.nodes[node]}`;
  };
  $("fabric").onclick = (event) => {
    const node = hit(event);
    if (node < 0) return;
    if (fabric.top.has(node) && fabric.rows.length > 1) toggle(state.run.nodes[node]);
    const flow = state.run.column["flow.from"].indexOf(node);
    if (flow >= 0) follow(flow);
  };
  $("share").onclick = async () => {
    await writeFragment();
    try {
      await navigator.clipboard.writeText(location.href);
      $("share").textContent = "Copied";
    } catch {
      $("share").textContent = "Copy it from the address bar";
    }
    setTimeout(() => ($("share").textContent = "Copy the address"), 2000);
  };
  $("builtin").onchange = () => ($("text").value = state.scenarios.find(({ name }) => name === $("builtin").value)?.text ?? "");
  $("run-text").onclick = async () => {
    const found = state.scenarios?.find(({ text }) => text === $("text").value);
    Object.assign(state, { ...QUICKSTART, kills: [], scenario: found?.name ?? "mine", text: found ? null : $("text").value });
    await rerun(false);
  };
  $("back").onclick = async () => {
    Object.assign(state, { ...QUICKSTART, kills: [] });
    await rerun(false);
  };
  window.addEventListener("hashchange", async () => {
    await readFragment();
    rerun(false);
  });
}

// A page around this one makes room for it.
new ResizeObserver(() => {
  if (parent !== window) parent.postMessage({ fabric: document.body.scrollHeight }, "*");
}).observe(document.body);
if (parent !== window) new IntersectionObserver(([stage]) => (inSight = stage.isIntersecting)).observe($("stage"));

(async () => {
  listen();
  await readFragment();
  const at = state.time;
  showSettings();
  await rerun(true);
  if (state.run) state.time = Math.min(at, state.run.end_us);
  setPlaying(state.playing);
  requestAnimationFrame(frame);
})();
