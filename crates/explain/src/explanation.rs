//! The explanation of one flow.

use crate::account::Account;
use crate::cuts;
use crate::flow::Flow;
use crate::history::History;
use crate::packets::Packets;
use crate::timeline::{self, Line};
use crate::trace::{self, Step};
use crate::words;
use model::QpId;
use results::Results;
use scenario::Checked;
use serde::Serialize;

/// The life of one flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Scenario.
    pub scenario: String,
    /// Scheme.
    pub scheme: String,
    /// Digest of the run.
    pub digest: String,
    /// Summary in one sentence.
    pub answer: String,
    /// The flow.
    pub flow: Flow,
    /// Where the flow's time went, the largest piece first.
    pub account: Account,
    /// What happened to the flow's packets.
    pub packets: Packets,
    /// What happened when.
    pub timeline: Vec<Line>,
}

/// The reason why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexplained {
    /// Events of the flow's queue pair are missing, so the run must record them first.
    #[error("the events of this flow were not recorded")]
    NotFollowed,
    /// The flow was never posted.
    #[error(
        "the flow had not begun when the run ended: its start was later, or it waited for flows that had not finished"
    )]
    NeverPosted,
}

impl Explanation {
    /// Explains `flow` from the results of a run of `checked`.
    ///
    /// # Errors
    /// If the flow's events were not recorded, or it never began.
    pub fn of(checked: &Checked, results: &Results, flow: &Flow) -> Result<Self, Unexplained> {
        if flow.start_us.is_none() {
            return Err(Unexplained::NeverPosted);
        }
        let steps = steps(results, flow.qp).ok_or(Unexplained::NotFollowed)?;
        let end = results.summary.sim_time_us;
        let plan = &checked.plan;
        let qp = QpId(u32::try_from(flow.qp).map_err(|_| Unexplained::NotFollowed)?);
        // A congestion control that reads every ACK does not react to single CNPs or NACKs.
        let evidence = checked.nics.of(qp).evidence();
        let cuts = if evidence.is_in_replies() { Vec::new() } else { cuts::cuts(&steps) };
        let history = History::new(plan, flow, &steps, cuts, end).ok_or(Unexplained::NotFollowed)?;
        let account = Account::of(&history);
        let packets = Packets::of(&history, results);
        let timeline = timeline::of(&history, &account);
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

    /// The explanation as text of several lines.
    pub fn text(&self) -> String {
        words::page(self)
    }
}

/// The events of a queue pair; `None` if some were left out.
fn steps(results: &Results, qp: u64) -> Option<Vec<Step>> {
    if results.manifest["recorded"]["events_left_out"].as_u64() != Some(0) {
        return None;
    }
    trace::read(results.table("events")?, qp)
}
