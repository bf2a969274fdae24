//! A flow, and how a user names it.

use arrow_array::Array;
use model::{Plan, Time};
use results::Results;
use results::table::Table;
use serde::Serialize;

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

/// Microseconds of a table as picoseconds: exact, as they were picoseconds before.
pub(crate) fn ps(us: f64) -> Time {
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
