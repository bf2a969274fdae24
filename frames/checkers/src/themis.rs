//! Checker 7: Themis. The crate `themis` is replayed over the departures and replies of the capture, and the switch must have
//! done what the rule says.
//!
//! * `nack-left`: a NACK left that the rule blocks, or left once more without proof.
//! * `nack-kept`: a NACK did not leave although the rule forwards it or owes it, and the decision log does not tell that a path
//!   lost it. Without a log, such NACKs are counted only.
//! * `verdict-differs`: the decision log has another verdict or reason than the replay.
//!
//! The switch may let a NACK pass unjudged while it does not know the connection. Its decision log says so; without the log,
//! such a NACK is a breach if the rule blocks it.

use crate::connections::{Act, Connection, Reply};
use crate::log::{Decision, Log};
use crate::report::Verdict;
use ::themis::{Flow, Rule, Verdict as Judgement};
use std::collections::BTreeMap;
use wire::Psn;

/// An empty place of the ring: no packet has this PSN.
const NO_PSN: u32 = u32::MAX;

/// Runs the checker on a connection.
pub fn check(connection: &Connection, rule: &Rule, log: Option<&Log>, verdict: &mut Verdict) {
    let Some(requester_qp) = connection.requester_qp else {
        return verdict.fact("replies", "none that can be told apart");
    };
    let mut passed = log.map(|log| log.passed.clone()).unwrap_or_default();
    let mut passed = |psn: Psn| match passed.get_mut(&(requester_qp.value(), psn.value())) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    // The blocked NACK that the switch keeps. A later NACK or ACK shows that the receiver has the packet, and replaces it.
    let mut held = None;
    let (mut flow, mut ring) = (Flow::new(), vec![NO_PSN; rule.ring_len()]);
    // NACKs that may leave, by PSN.
    let mut may_leave: BTreeMap<u32, u64> = BTreeMap::new();
    let mut made: Vec<Decision> = Vec::new();
    let (mut departed, mut unjudged) = (0, 0);
    let decide = |what: &str, psn, why: &str| Decision { what: what.to_owned(), psn, why: why.to_owned() };
    for step in &connection.steps {
        match step.act {
            Act::Delivered { psn, .. } => {
                departed += 1;
                if let Some(owed) =
                    rule.on_depart(&mut flow, &mut ring, psn).filter(|owed| held == Some(*owed))
                {
                    held = None;
                    *may_leave.entry(owed.value()).or_default() += 1;
                    made.push(decide("sent", owed, ""));
                }
            }
            Act::Replied(Reply::Ack(psn)) => {
                rule.on_ack(&mut flow, psn);
                held = held.filter(|_| flow.pending().is_some());
            }
            Act::Replied(Reply::Nack(psn)) if passed(psn) => {
                unjudged += 1;
                *may_leave.entry(psn.value()).or_default() += 1;
            }
            Act::Replied(Reply::Nack(psn)) => match rule.on_nack(&mut flow, &ring, psn) {
                Judgement::Forward(why) => {
                    *may_leave.entry(psn.value()).or_default() += 1;
                    made.push(decide("forwarded", psn, why.name()));
                    held = None;
                }
                Judgement::Block(why) => {
                    made.push(decide("blocked", psn, why.name()));
                    held = Some(psn);
                }
            },
            Act::Heard(Reply::Nack(psn)) => match may_leave.get_mut(&psn.value()) {
                Some(count) if *count > 0 => *count -= 1,
                _ => {
                    let last = made.iter().rev().find(|decision| decision.psn == psn);
                    let why = last.map_or("the rule has seen no such NACK".to_owned(), |decision| {
                        format!("the rule has {} it: {}", decision.what, decision.why)
                    });
                    verdict.breach("nack-left", step.frame, format!("NACK {psn} left, and {why}"));
                }
            },
            _ => {}
        }
    }
    verdict.fact("departed", departed);
    let count = |what: &str| made.iter().filter(|decision| decision.what == what).count() as u64;
    verdict.count("blocked", count("blocked"));
    verdict.count("forwarded", count("forwarded"));
    verdict.count("sent by the switch", count("sent"));
    verdict.count("unjudged", unjudged);
    may_leave.retain(|_, count| *count > 0);
    let kept: u64 = may_leave.values().sum();
    let Some(log) = log else { return verdict.count("kept or lost", kept) };
    for (psn, count) in may_leave {
        // Opcode 0x11: ACKs and NACKs.
        let lost = log.lost.get(&(requester_qp.value(), 0x11, psn)).copied().unwrap_or(0);
        if count > lost {
            verdict.breach_at_end("nack-kept", format!("NACK {psn} should have left"));
        }
    }
    let none = Vec::new();
    let logged = log.decisions.get(&connection.qp.value()).unwrap_or(&none);
    let first = made.iter().zip(logged).find(|(a, b)| a != b);
    if let Some((ours, theirs)) = first {
        let text = format!(
            "NACK {} {} ({}) in the replay, NACK {} {} ({}) in the log",
            ours.psn, ours.what, ours.why, theirs.psn, theirs.what, theirs.why
        );
        verdict.breach_at_end("verdict-differs", text);
    } else if made.len() != logged.len() {
        let text = format!("{} decisions in the replay, {} in the log", made.len(), logged.len());
        verdict.breach_at_end("verdict-differs", text);
    } else {
        verdict.fact("verdicts equal to the log's", made.len());
    }
}
