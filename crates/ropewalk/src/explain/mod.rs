//! The life of one flow: where its completion time went, and what happened to it when.
//!
//! [`Explanation::of`] makes it from results alone, whether a run has just ended or was written long ago, and from the plan of
//! the scenario, which says where a message begins on its queue pair and how long a frame takes. A flow's time is
//! cut into pieces that add up to its FCT, to the picosecond ([`account`]); docs/explain.md says what each is and what of it is
//! inferred.
//!
//! | file | what |
//! |---|---|
//! | [`trace`] | the events of its queue pair |
//! | [`account`] | where the time went |
//! | [`packets`] | what became of its packets: retransmissions, arrivals, NACKs, queues |
//! | [`timeline`] | what happened when, with runs of like events in one line |
//! | [`words`] | all of it for people |

mod account;
mod packets;
#[cfg(test)]
mod stories;
mod timeline;
mod trace;
mod words;

pub use account::{Account, Cause, Kept};
pub use packets::{Link, Packets, Rate, Resends, Transit};
pub use timeline::Line;

use crate::results::Results;
use crate::results::table::Table;
use account::Cut;
use arrow_array::Array;
use model::plan::Plan;
use model::{QpId, Time, Wire};
use serde::Serialize;
use std::ops::Range;
use trace::Step;

/// One flow, as the tables and the plan have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// Its number.
    pub flow: u64,
    /// Queue pair.
    pub qp: u64,
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Job: the entry of the workload.
    pub job: String,
    /// Payload, bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// When it was posted; null if it never was, and likewise below.
    pub start_us: Option<f64>,
    /// When all of it had arrived.
    pub received_us: Option<f64>,
    /// When the ACK of its last byte came back.
    pub acked_us: Option<f64>,
    /// Flow completion time.
    pub fct_us: Option<f64>,
    /// Its FCT alone on the fabric.
    pub ideal_fct_us: Option<f64>,
    /// FCT over ideal FCT.
    pub slowdown: Option<f64>,
}

/// The life of one flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Scenario.
    pub scenario: String,
    /// Scheme.
    pub scheme: String,
    /// Names the run.
    pub digest: String,
    /// The answer in one sentence.
    pub answer: String,
    /// The flow.
    pub flow: Flow,
    /// Where its time went, the largest piece first.
    pub account: Account,
    /// What became of its packets.
    pub packets: Packets,
    /// What happened when.
    pub timeline: Vec<Line>,
}

/// Why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexplained {
    /// The events of its queue pair are not all there: they have to be recorded.
    #[error("its events were not recorded")]
    NotFollowed,
    /// It was never posted.
    #[error(
        "it had not begun when the run ended: its time had not come, or flows that it waits for were not done"
    )]
    NeverPosted,
}

impl Explanation {
    /// Of the flow in this row of `flows.parquet`, whose run obeyed `plan`.
    ///
    /// # Errors
    /// If the flow's events are not there, or it never began.
    pub fn of(plan: &Plan, results: &Results, flow: &Flow) -> Result<Self, Unexplained> {
        let Some(start) = flow.start_us else { return Err(Unexplained::NeverPosted) };
        let steps = steps(results, flow.qp).ok_or(Unexplained::NotFollowed)?;
        let end = results.summary["sim_time_us"].as_f64().unwrap_or(start);
        // What goes by ACKs no CNP or NACK is to blame for.
        let cuts = if by_acks(results) { Vec::new() } else { account::cuts(&steps) };
        let life = Life::new(plan, flow, &steps, cuts, end).ok_or(Unexplained::NotFollowed)?;
        let account = Account::of(&life);
        let packets = Packets::of(&life, results);
        let timeline = timeline::of(&life, &account);
        let text = |key: &str| results.manifest[key].as_str().unwrap_or_default().to_owned();
        let answer = words::answer(flow, &account, &packets);
        Ok(Explanation {
            scenario: text("scenario"),
            scheme: text("scheme"),
            digest: text("digest"),
            answer,
            flow: flow.clone(),
            account,
            packets,
            timeline,
        })
    }

    /// For people, several lines.
    pub fn text(&self) -> String {
        words::page(self)
    }
}

/// The events of a queue pair, if all of them were kept.
fn steps(results: &Results, qp: u64) -> Option<Vec<Step>> {
    if results.manifest["recorded"]["events_left_out"].as_u64() != Some(0) {
        return None;
    }
    trace::read(results.table("events")?, qp)
}

/// The run's congestion control goes by what ACKs say, and not by CNPs.
fn by_acks(results: &Results) -> bool {
    let config = results.manifest["config"].as_str().unwrap_or_default();
    let config: toml::Table = config.parse().unwrap_or_default();
    let chosen = config.get("nic").and_then(|nic| nic.get("congestion")?.as_table()?.keys().next());
    matches!(chosen.map(String::as_str), Some("hpcc" | "swift" | "mp-rdma"))
}

/// What the parts of an explanation look at.
struct Life<'a> {
    plan: &'a Plan,
    flow: &'a Flow,
    /// Everything that happened to its queue pair.
    steps: &'a [Step],
    qp: QpId,
    /// Its packets among those of the queue pair.
    own: Range<u64>,
    /// Numbers of the messages of the queue pair.
    messages: Range<u32>,
    start: Time,
    received: Option<Time>,
    acked: Option<Time>,
    /// When it ended: with its last ACK, or with the run.
    end: Time,
    /// What cut its rate; nothing where that goes with what ACKs say (HPCC, Swift, MP-RDMA).
    cuts: Vec<Cut>,
}

impl<'a> Life<'a> {
    /// `None` if the plan does not have the flow, or the events are not those of its queue pair.
    fn new(
        plan: &'a Plan,
        flow: &'a Flow,
        steps: &'a [Step],
        cuts: Vec<Cut>,
        run_end_us: f64,
    ) -> Option<Self> {
        let qp = QpId(u32::try_from(flow.qp).ok()?);
        let messages = plan.qps.get(qp.index())?.messages.clone();
        let number = u32::try_from(flow.flow).ok().filter(|number| messages.contains(number))?;
        let packets = |m: u32| plan.wire.packets(plan.messages[m as usize].bytes);
        let first: u64 = (messages.start..number).map(packets).sum();
        let start = ps(flow.start_us?);
        let (received, acked) = (flow.received_us.map(ps), flow.acked_us.map(ps));
        let end = acked.unwrap_or_else(|| ps(run_end_us)).max(start);
        let own = first..first + packets(number);
        Some(Life { plan, flow, steps, qp, own, messages, start, received, acked, end, cuts })
    }

    fn wire(&self) -> &Wire {
        &self.plan.wire
    }

    /// The frame of a packet of the queue pair, without preamble and gap, bytes.
    fn frame(&self, seq: u64) -> u32 {
        let wire = self.wire();
        let mut end = 0;
        for m in self.messages.clone() {
            let bytes = self.plan.messages[m as usize].bytes;
            end += wire.packets(bytes);
            if seq + 1 == end {
                return wire.data_frame(wire.payload_of(bytes, wire.packets(bytes) - 1));
            }
            if seq < end {
                break;
            }
        }
        wire.max_frame()
    }

    /// The message that a packet of the queue pair belongs to.
    fn message_of(&self, seq: u64) -> Option<u32> {
        let mut end = 0;
        self.messages.clone().find(|&m| {
            end += self.wire().packets(self.plan.messages[m as usize].bytes);
            seq < end
        })
    }

    /// Least time from the start of a frame to its arrival at the far end.
    fn crossing(&self, frame: u32) -> Time {
        let qp = &self.plan.qps[self.qp.index()];
        scenario::ideal::crossing(self.plan, qp.from, qp.to, frame)
    }

    /// The same from the receiver back.
    fn crossing_back(&self, frame: u32) -> Time {
        let qp = &self.plan.qps[self.qp.index()];
        scenario::ideal::crossing(self.plan, qp.to, qp.from, frame)
    }

    /// Bits per second of the sender's port.
    fn line_rate(&self) -> model::Rate {
        self.plan.fabric.ports(self.plan.qps[self.qp.index()].from.node())[0].rate
    }

    /// Events from its start to its end.
    fn during(&self) -> impl Iterator<Item = &'a Step> {
        let (start, end) = (self.start, self.end);
        self.steps.iter().filter(move |step| (start..=end).contains(&step.at))
    }
}

/// Microseconds of a table as picoseconds: exact, as they were picoseconds before.
fn ps(us: f64) -> Time {
    Time((us * 1e6).round() as u64)
}

/// Finds a flow by what a user calls it: its number, `slowest`, or `FROM->TO` (the slowest of these).
///
/// # Errors
/// In words, if there is none.
pub fn find(results: &Results, plan: &Plan, name: &str) -> Result<Flow, String> {
    let table = results.table("flows").ok_or("the results have no flows")?;
    let row = row(table, plan, name.trim())?;
    let reals = |column: &str| table.reals(column).filter(|c| c.is_valid(row)).map(|c| c.value(row));
    let counts = |column: &str| table.counts(column).map_or(0, |c| c.value(row));
    let texts = |column: &str| table.texts(column).map_or_else(String::new, |c| c.value(row).to_owned());
    Ok(Flow {
        flow: counts("flow"),
        qp: counts("qp"),
        from: texts("from"),
        to: texts("to"),
        job: texts("job"),
        bytes: counts("bytes"),
        packets: plan.wire.packets(counts("bytes")),
        start_us: reals("start_us"),
        received_us: reals("received_us"),
        acked_us: reals("acked_us"),
        fct_us: reals("fct_us"),
        ideal_fct_us: reals("ideal_fct_us"),
        slowdown: reals("slowdown"),
    })
}

fn row(table: &Table, plan: &Plan, name: &str) -> Result<usize, String> {
    let slowdowns = table.reals("slowdown").ok_or("flows.parquet has no column slowdown")?;
    let starts = table.reals("start_us").ok_or("flows.parquet has no column start_us")?;
    // One that never finished is slower than all that did, the sooner it began the more; of one that never began there
    // is nothing to tell.
    let slowness = |row: usize| match (starts.is_null(row), slowdowns.is_null(row)) {
        (true, _) => (0, 0.0),
        (false, false) => (1, slowdowns.value(row)),
        (false, true) => (2, -starts.value(row)),
    };
    let slowest = |rows: &mut dyn Iterator<Item = usize>| {
        // Of equal ones the first.
        rows.fold(None, |best: Option<usize>, row| match best {
            Some(best) if slowness(best) >= slowness(row) => Some(best),
            _ => Some(row),
        })
    };
    let flows = plan.messages.len();
    if name == "slowest" {
        return slowest(&mut (0..table.rows())).ok_or_else(|| "there are no flows".to_owned());
    }
    if let Some((from, to)) = name.split_once("->") {
        let (from, to) = (from.trim(), to.trim());
        let (froms, tos) =
            table.texts("from").zip(table.texts("to")).ok_or("flows.parquet names no hosts")?;
        let mut rows = (0..table.rows()).filter(|&row| froms.value(row) == from && tos.value(row) == to);
        return slowest(&mut rows).ok_or_else(|| {
            let hosts: Vec<&str> =
                (0..plan.fabric.hosts()).map(|h| plan.fabric.name(model::NodeId(h as u32))).collect();
            match [from, to].into_iter().find(|host| !hosts.contains(host)) {
                Some(wrong) => {
                    format!("there is no host {wrong}; {}", scenario::suggestion(wrong, &hosts))
                }
                None => format!("there is no flow from {from} to {to}"),
            }
        });
    }
    let Ok(number) = name.parse::<u64>() else {
        return Err(format!(
            "expected a flow, found `{name}`: a number as in flows.parquet (there are {flows} flows, from 0), `slowest`, or \
             FROM->TO"
        ));
    };
    let numbers = table.counts("flow").ok_or("flows.parquet has no column flow")?;
    numbers.iter().position(|n| n == Some(number)).ok_or_else(|| match number < flows as u64 {
        true => format!("flows.parquet keeps every {}th flow only, and not flow {number}", table.every),
        false => format!("there is no flow {number}; there are {flows} flows, from 0"),
    })
}
