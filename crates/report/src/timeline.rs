//! The timeline of a run as a trace that [Perfetto](https://ui.perfetto.dev) opens: Chrome's trace event format, JSON.
//!
//! | in Perfetto | from |
//! |---|---|
//! | a process per host: flows that it sent, side by side if they overlap | `flows.parquet` |
//! | in it, marks for NACKs, CNPs, timeouts, losses and packets ahead, and slices for pauses | `events.parquet` |
//! | counters: rates, queues, buffers and pauses of the chosen queue pairs, links and switches | `series.parquet` |
//! | a process per job: what each GPU computed, and the collectives and transfers that it took part in | `tasks.parquet` |
//! | in it, whole operations from the first rank to the last | `operations.parquet` |

use crate::frame::Frame;
use crate::payload::series;
use results::Results;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// First bytes of every timeline, by which ropewalk recognises its files.
pub(crate) const MARK: &str = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":\"ropewalk ";
/// Most numbers of all counters. Our choice: a few megabytes.
const MOST_COUNTS: usize = 100_000;
/// Events of `events.parquet` that are left out: one for every packet.
const EVERY_PACKET: [&str; 2] = ["sent", "arrived"];

/// An event of the trace. Times are in microseconds, as the format asks for.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    ph: &'static str,
    pid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    /// Scope of a mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

/// A slice of time.
struct Slice {
    name: String,
    start: f64,
    end: f64,
    args: Value,
}

/// Events as they are written. Numbers of processes and threads are unique in the whole trace, and none is 0, which stands
/// for an idle processor.
struct Trace {
    text: String,
    processes: BTreeMap<String, usize>,
    threads: BTreeMap<(usize, String), usize>,
    used: usize,
}

impl Trace {
    fn push(&mut self, event: &Event<'_>) {
        if !self.text.ends_with('[') {
            self.text.push_str(",\n");
        }
        self.text.push_str(&serde_json::to_string(event).unwrap_or_default());
    }

    fn describe(&mut self, what: &'static str, (pid, tid): (usize, Option<usize>), args: Value) {
        self.push(&Event { name: what, ph: "M", pid, tid, ts: None, dur: None, s: None, args });
    }

    fn process(&mut self, name: &str) -> usize {
        if let Some(&pid) = self.processes.get(name) {
            return pid;
        }
        self.used += 1;
        let pid = self.used;
        self.processes.insert(name.to_owned(), pid);
        self.describe("process_name", (pid, None), json!({ "name": name }));
        self.describe("process_sort_index", (pid, None), json!({ "sort_index": pid }));
        pid
    }

    fn thread(&mut self, pid: usize, name: &str) -> usize {
        if let Some(&tid) = self.threads.get(&(pid, name.to_owned())) {
            return tid;
        }
        self.used += 1;
        let tid = self.used;
        self.threads.insert((pid, name.to_owned()), tid);
        self.describe("thread_name", (pid, Some(tid)), json!({ "name": name }));
        self.describe("thread_sort_index", (pid, Some(tid)), json!({ "sort_index": tid }));
        tid
    }

    /// Slices of one thread. Slices that overlap go to further threads of that name, because those of a thread may only nest.
    fn slices(&mut self, pid: usize, name: &str, mut slices: Vec<Slice>) {
        slices.retain(|slice| slice.start.is_finite() && slice.end >= slice.start);
        slices.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
        let mut free: Vec<f64> = Vec::new();
        for slice in slices {
            let lane = free.iter().position(|end| *end <= slice.start).unwrap_or(free.len());
            if lane == free.len() {
                free.push(0.0);
            }
            free[lane] = slice.end;
            let tid = match lane {
                0 => self.thread(pid, name),
                _ => self.thread(pid, &format!("{name} ({})", lane + 1)),
            };
            self.push(&Event {
                name: &slice.name,
                ph: "X",
                pid,
                tid: Some(tid),
                ts: Some(slice.start),
                dur: Some(slice.end - slice.start),
                s: None,
                args: slice.args,
            });
        }
    }
}

/// The timeline of a run as JSON.
pub fn timeline(run: &Results) -> String {
    let summary = &run.summary;
    let about = format!(
        "{MARK}{}\",\"scenario\":{},\"scheme\":{},\"seed\":{},\"digest\":{}}},\"traceEvents\":[",
        env!("CARGO_PKG_VERSION"),
        json!(summary.scenario),
        json!(summary.scheme),
        summary.seed,
        json!(summary.digest)
    );
    let mut trace = Trace { text: about, processes: BTreeMap::new(), threads: BTreeMap::new(), used: 0 };
    operations(run, &mut trace);
    tasks(run, &mut trace);
    flows(run, &mut trace);
    events(run, &mut trace);
    counters(run, &mut trace);
    trace.text.push_str("]}\n");
    trace.text
}

/// Slices by process and thread, in the order of their first rows.
#[derive(Default)]
struct Sorted {
    order: Vec<(String, String)>,
    slices: BTreeMap<(String, String), Vec<Slice>>,
}

impl Sorted {
    fn add(&mut self, process: &str, thread: &str, slice: Slice) {
        let key = (process.to_owned(), thread.to_owned());
        let order = &mut self.order;
        self.slices
            .entry(key)
            .or_insert_with_key(|key| {
                order.push(key.clone());
                Vec::new()
            })
            .push(slice);
    }

    fn write(mut self, trace: &mut Trace) {
        for key in self.order {
            let pid = trace.process(&key.0);
            trace.slices(pid, &key.1, self.slices.remove(&key).unwrap_or_default());
        }
    }
}

fn of_job(job: &str) -> String {
    format!("job {job}")
}

fn operations(run: &Results, trace: &mut Trace) {
    let Some(table) = run.table("operations").map(Frame::new) else { return };
    let (jobs, names, kinds) = (table.texts("job"), table.texts("name"), table.texts("dimension"));
    let (starts, ends) = (table.reals("start_us"), table.reals("end_us"));
    let (steps, layers, bytes) = (table.counts("step"), table.counts("layer"), table.counts("bytes"));
    let mut sorted = Sorted::default();
    for row in 0..table.rows() {
        let args = json!({ "step": steps[row], "layer": layers[row], "bytes": bytes[row] });
        let slice = Slice { name: names[row].to_owned(), start: starts[row], end: ends[row], args };
        sorted.add(&of_job(jobs[row]), &format!("operations: {}", kinds[row]), slice);
    }
    sorted.write(trace);
}

fn tasks(run: &Results, trace: &mut Trace) {
    let Some(table) = run.table("tasks").map(Frame::new) else { return };
    let (jobs, names, roles) = (table.texts("job"), table.texts("name"), table.texts("role"));
    let (kinds, ranks, operations) =
        (table.texts("dimension"), table.counts("rank"), table.counts("operation"));
    let (starts, ends) = (table.reals("start_us"), table.reals("end_us"));
    let (steps, layers) = (table.counts("step"), table.counts("layer"));
    let mut sorted = Sorted::default();
    let mut entered: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    let mut rows: Vec<usize> = (0..table.rows()).collect();
    rows.sort_by_key(|&row| (jobs[row], ranks[row], row));
    for row in rows {
        let key = (ranks[row], operations[row]);
        let args = json!({ "step": steps[row], "layer": layers[row] });
        let slice = |start| Slice { name: names[row].to_owned(), start, end: ends[row], args };
        match roles[row] {
            "compute" => {
                let thread = format!("GPU {}: computes", ranks[row]);
                sorted.add(&of_job(jobs[row]), &thread, slice(starts[row]));
            }
            "enter" => drop(entered.insert(key, ends[row])),
            _ => {
                let thread = format!("GPU {}: {}", ranks[row], kinds[row]);
                if let Some(start) = entered.remove(&key) {
                    sorted.add(&of_job(jobs[row]), &thread, slice(start));
                }
            }
        }
    }
    sorted.write(trace);
}

fn flows(run: &Results, trace: &mut Trace) {
    let Some(table) = run.table("flows").map(Frame::new) else { return };
    let (from, to, jobs) = (table.texts("from"), table.texts("to"), table.texts("job"));
    let (flows, qps, bytes) = (table.counts("flow"), table.counts("qp"), table.counts("bytes"));
    let (starts, times, slowdown) = (table.reals("start_us"), table.reals("fct_us"), table.reals("slowdown"));
    let resent = table.counts("retransmitted");
    let end_of_run = run.summary.sim_time_us;
    let mut sorted = Sorted::default();
    let mut rows: Vec<usize> = (0..table.rows()).collect();
    rows.sort_by_key(|&row| (qps[row], row)); // queue pairs are numbered by host
    for row in rows {
        let finished = times[row].is_finite();
        let end = if finished { starts[row] + times[row] } else { end_of_run };
        let mut args = json!({
            "flow": flows[row], "queue pair": qps[row], "job": jobs[row], "bytes": bytes[row],
            "retransmitted": resent[row],
        });
        if finished {
            args["slowdown"] = json!(slowdown[row]);
        } else {
            args["finished"] = json!(false);
        }
        let name = format!("to {}", to[row]);
        sorted.add(from[row], "flows sent", Slice { name, start: starts[row], end, args });
    }
    sorted.write(trace);
}

fn events(run: &Results, trace: &mut Trace) {
    let Some(table) = run.table("events").map(Frame::new) else { return };
    let (names, at, qps) = (table.texts("event"), table.texts("at"), table.counts("qp"));
    let (times, psns) = (table.reals("time_us"), table.counts("psn"));
    let mut paused: BTreeMap<u64, (f64, &str)> = BTreeMap::new();
    let mut pauses = Sorted::default();
    let mut pause = |qp: u64, (start, host): (f64, &str), end: f64| {
        let slice = Slice { name: "paused".into(), start, end, args: Value::Null };
        pauses.add(host, &format!("pauses of queue pair {qp}"), slice);
    };
    for row in 0..table.rows() {
        match names[row] {
            "paused" => {
                paused.entry(qps[row]).or_insert((times[row], at[row]));
            }
            "resumed" => {
                if let Some(begun) = paused.remove(&qps[row]) {
                    pause(qps[row], begun, times[row]);
                }
            }
            name if EVERY_PACKET.contains(&name) || !times[row].is_finite() => {}
            name => {
                let pid = trace.process(at[row]);
                let tid = trace.thread(pid, &format!("events of queue pair {}", qps[row]));
                trace.push(&Event {
                    name,
                    ph: "i",
                    pid,
                    tid: Some(tid),
                    ts: Some(times[row]),
                    dur: None,
                    s: Some("t"),
                    args: json!({ "psn": psns[row] }),
                });
            }
        }
    }
    for (qp, begun) in paused {
        pause(qp, begun, run.summary.sim_time_us);
    }
    pauses.write(trace);
}

/// Counters: name of the column, what it is called, and the unit.
const COUNTERS: [(&str, &str, &str); 4] = [
    ("rate_gbps", "rate", "Gb/s"),
    ("max_queue_bytes", "queue", "B"),
    ("max_buffer_bytes", "buffer", "B"),
    ("pauses", "pauses", "per bin"),
];

fn counters(run: &Results, trace: &mut Trace) {
    let Some(series) = series::of(run, MOST_COUNTS) else { return };
    for track in series.tracks.iter().filter(|track| track.kind != "qps") {
        let pid = trace.process(&track.from);
        for (column, what, unit) in COUNTERS {
            let Some(values) = track.columns.get(column) else { continue };
            let name = match track.kind.as_str() {
                "qp" => format!("{what} of queue pair {} to {}, {unit}", track.id, track.to),
                "link" => format!("{what} of the link to {}, {unit}", track.to),
                _ => format!("{what}, {unit}"),
            };
            let mut before = None;
            for (bin, value) in values.iter().enumerate() {
                let value = value.unwrap_or(0.0);
                // A counter keeps its value until the next event.
                if before != Some(value) {
                    trace.push(&Event {
                        name: &name,
                        ph: "C",
                        pid,
                        tid: None,
                        ts: Some(bin as f64 * series.width_us),
                        dur: None,
                        s: None,
                        args: json!({ what: value }),
                    });
                }
                before = Some(value);
            }
        }
    }
}
