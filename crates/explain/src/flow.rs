//! A flow, and how to find it by the name that a user gives.

use arrow_array::Array;
use model::{Plan, Time};
use results::Results;
use results::table::Table;
use serde::Serialize;

/// A flow, with the values of the tables and the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// Number of the flow, as in `flows.parquet`, or of the subflow, as in `subflows.parquet`.
    pub flow: u64,
    /// Number of the whole flow if this is a subflow. A flow that was split is explained by the subflow that ends last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflow_of: Option<u64>,
    /// Queue pair.
    pub qp: u64,
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Name of the job, an entry of the workload.
    pub job: String,
    /// Payload, bytes.
    pub bytes: u64,
    /// Number of packets, without retransmissions.
    pub packets: u64,
    /// Time at which the flow was posted. This time and all below are null if they were never reached.
    pub start_us: Option<f64>,
    /// Time at which the whole flow had arrived.
    pub received_us: Option<f64>,
    /// Time at which the ACK of the last byte reached the sender.
    pub acked_us: Option<f64>,
    /// Flow completion time.
    pub fct_us: Option<f64>,
    /// FCT of the flow alone on the idle fabric.
    pub ideal_fct_us: Option<f64>,
    /// FCT over ideal FCT.
    pub slowdown: Option<f64>,
}

/// Converts microseconds of a table to picoseconds. This is exact, because the table was written from picoseconds.
pub(crate) fn ps(us: f64) -> Time {
    Time((us * 1e6).round() as u64)
}

/// Finds a flow by its number, by `slowest`, or by `FROM->TO` (the slowest flow between these hosts).
///
/// # Errors
/// A message for the user, if there is no such flow.
pub fn find(results: &Results, plan: &Plan, name: &str) -> Result<Flow, String> {
    let table = results.table("flows").ok_or("the results have no flows")?;
    let subflow = name.trim().parse().ok().and_then(|number| Subflow::numbered(results, number));
    let row = match &subflow {
        Some(subflow) => row(table, plan, &subflow.flow.to_string())?,
        None => row(table, plan, name.trim())?,
    };
    let mut flow = of_row(table, plan, row);
    let subflow = subflow.or_else(|| Subflow::last(results, flow.flow));
    if let Some(subflow) = subflow {
        subflow.replace(&mut flow, plan);
    }
    Ok(flow)
}

/// The flow in a row of the table.
fn of_row(table: &Table, plan: &Plan, row: usize) -> Flow {
    let reals = |column: &str| table.reals(column).filter(|c| c.is_valid(row)).map(|c| c.value(row));
    let counts = |column: &str| table.counts(column).map_or(0, |c| c.value(row));
    let texts = |column: &str| table.texts(column).map_or_else(String::new, |c| c.value(row).to_owned());
    Flow {
        subflow_of: None,
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
    }
}

/// A subflow of a flow that was split.
struct Subflow<'r> {
    table: &'r Table,
    row: usize,
    /// Number of the flow.
    flow: u64,
}

impl<'r> Subflow<'r> {
    /// The subflow with this number, unless it is the first of its flow: that number stands for the flow.
    fn numbered(results: &'r Results, number: u64) -> Option<Self> {
        let table = results.table("subflows")?;
        let row = table.counts("subflow")?.iter().position(|n| n == Some(number))?;
        let flow = table.counts("flow")?.value(row);
        (flow != number).then_some(Subflow { table, row, flow })
    }

    /// The subflow for which a flow waits longest: the one that ends last.
    fn last(results: &'r Results, flow: u64) -> Option<Self> {
        let table = results.table("subflows")?;
        let acked = table.reals("acked_us")?;
        let flows = table.counts("flow")?;
        let mine = (0..table.rows()).filter(|&row| flows.value(row) == flow);
        let end = |row: usize| if acked.is_null(row) { f64::INFINITY } else { acked.value(row) };
        // The first of several that end at the same time.
        let last = mine.fold(None, |best: Option<usize>, row| match best {
            Some(best) if end(best) >= end(row) => Some(best),
            _ => Some(row),
        });
        last.map(|row| Subflow { table, row, flow })
    }

    /// Puts the values of the subflow into the place of those of its flow.
    fn replace(&self, flow: &mut Flow, plan: &Plan) {
        let reals = |column: &str| {
            self.table.reals(column).filter(|c| c.is_valid(self.row)).map(|c| c.value(self.row))
        };
        let counts = |column: &str| self.table.counts(column).map_or(0, |c| c.value(self.row));
        flow.subflow_of = Some(self.flow);
        (flow.flow, flow.qp, flow.bytes) = (counts("subflow"), counts("qp"), counts("bytes"));
        flow.packets = plan.wire.packets(flow.bytes);
        (flow.start_us, flow.received_us) = (reals("start_us"), reals("received_us"));
        (flow.acked_us, flow.fct_us) = (reals("acked_us"), reals("fct_us"));
        flow.ideal_fct_us = reals("ideal_fct_us");
        flow.slowdown = flow.fct_us.zip(flow.ideal_fct_us).map(|(fct, ideal)| fct / ideal);
    }
}

fn row(table: &Table, plan: &Plan, name: &str) -> Result<usize, String> {
    let slowdowns = table.reals("slowdown").ok_or("flows.parquet has no column slowdown")?;
    let starts = table.reals("start_us").ok_or("flows.parquet has no column start_us")?;
    // An unfinished flow counts as slower than every finished one, and the earliest unfinished flow as the slowest. A
    // flow that never began comes last, because there is nothing to explain.
    let slowness = |row: usize| match (starts.is_null(row), slowdowns.is_null(row)) {
        (true, _) => (0, 0.0),
        (false, false) => (1, slowdowns.value(row)),
        (false, true) => (2, -starts.value(row)),
    };
    let slowest = |rows: &mut dyn Iterator<Item = usize>| {
        // The first of equally slow flows wins.
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
            let hosts = (0..plan.fabric.hosts()).map(|h| plan.fabric.host_name(model::HostId(h as u32)));
            let hosts: Vec<_> = hosts.collect();
            let hosts: Vec<&str> = hosts.iter().map(AsRef::as_ref).collect();
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
