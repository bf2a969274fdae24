//! What an imported scenario runs.

use crate::Checked;
use crate::traffic::bytes_in;
use crate::workload::ranks::Ranks;
use model::Time;
use model::plan::{Role, Work};

/// What an imported scenario runs, as its plan has it: collectives count as the messages of which they consist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Ranks of the workload.
    pub ranks: u64,
    /// Collectives.
    pub collectives: u64,
    /// Messages over NICs.
    pub sends: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Copies over NVLink.
    pub copies: u64,
    /// Bytes of these copies.
    pub copied: u64,
    /// Computation of all ranks together.
    pub compute: Time,
    /// Messages that no rank receives.
    pub unmatched: u64,
}

impl Report {
    /// The report on a scenario; without `ranks`, all GPUs of the fabric count.
    pub(super) fn of(checked: &Checked, ranks: Option<u32>, unmatched: u64) -> Self {
        let plan = &checked.plan;
        let gpus = || {
            let server = checked.scenario.server.and_then(|server| server.server().ok());
            Ranks::new(&plan.fabric, server).map_or(plan.fabric.hosts(), |ranks| ranks.count())
        };
        let rate = checked.scenario.nvlink().map_or(0, |nvlink| nvlink.rate.bps());
        let mut report = Report {
            ranks: ranks.map_or_else(|| gpus() as u64, u64::from),
            collectives: plan.operations.iter().filter(|o| o.ranks > 0 && o.name != "send").count() as u64,
            sends: plan.messages.len() as u64,
            bytes: plan.messages.iter().map(|message| message.bytes).fold(0, u64::saturating_add),
            copies: 0,
            copied: 0,
            compute: Time::ZERO,
            unmatched,
        };
        for task in &plan.tasks {
            match task.work {
                Work::Copy { time, .. } => {
                    report.copies += 1;
                    report.copied = report.copied.saturating_add(bytes_in(time, rate));
                }
                Work::Slice { from, times, .. } if from != Work::NONE => {
                    report.copies += 1;
                    report.copied = report.copied.saturating_add(plan.slices[times as usize].bytes);
                }
                Work::On { time, .. } | Work::Free { time } if task.role == Role::Compute => {
                    report.compute = Time(report.compute.ps().saturating_add(time.ps()));
                }
                Work::On { .. } | Work::Free { .. } | Work::Slice { .. } => {}
            }
        }
        report
    }
}
