//! Checker 5: selective repeat with NACKs.
//!
//! A sender:
//! * `resent-other`: the sender heard NACK(e), and sent another packet again.
//! * `nack-ignored`: the sender heard NACK(e), and sent more packets than can be under way without repeating e.
//! * `psn-skipped`: the sender left out a PSN.
//!
//! An ACK may overtake the retransmission that an earlier NACK has caused, because the NIC has queued it already.
//!
//! A packet that is sent again while no NACK waits is a timeout's, as are those that follow it in order.
//!
//! The rules of the receiver are those of [`crate::go_back_n`], but for packets that it keeps: `nack-names-other`,
//! `nack-repeated`, `ack-backwards`, `ack-passes-hole`.

use crate::connections::{Act, Connection, Reply};
use crate::go_back_n::{ignored, receiver};
use crate::report::Verdict;
use std::collections::VecDeque;
use wire::Psn;

/// Runs the checker on a connection.
pub fn check(connection: &Connection, under_way: u32, verdict: &mut Verdict) {
    sender(connection, under_way, verdict);
    receiver(connection, true, verdict);
}

fn sender(connection: &Connection, under_way: u32, verdict: &mut Verdict) {
    let mut next: Option<Psn> = None;
    let mut heard: VecDeque<(Psn, u32)> = VecDeque::new();
    // NACKs that an ACK has overtaken, with the packets sent since.
    let mut overtaken: Vec<(Psn, u32)> = Vec::new();
    // The packet that would continue what a timeout has begun.
    let mut run: Option<Psn> = None;
    let (mut sent, mut resent, mut by_timeout, mut timeouts) = (0, 0, 0, 0);
    for step in &connection.steps {
        match step.act {
            Act::Sent { psn, span, .. } => {
                sent += 1;
                let ahead = next.map_or(0, |next| psn.distance_from(next));
                if ahead >= 0 {
                    if ahead > 0 {
                        verdict.breach(
                            "psn-skipped",
                            step.frame,
                            format!("{ahead} PSNs in front of {psn} left out"),
                        );
                    }
                    next = Some(psn.add(span));
                } else if let Some(at) = heard.iter().position(|(nack, _)| *nack == psn) {
                    heard.remove(at);
                    resent += 1;
                } else if let Some(at) = overtaken.iter().position(|(nack, _)| *nack == psn) {
                    overtaken.remove(at);
                    resent += 1;
                } else if run == Some(psn) || heard.is_empty() {
                    timeouts += u64::from(run != Some(psn));
                    by_timeout += 1;
                    run = Some(psn.add(span));
                } else if let Some((nack, _)) = heard.front() {
                    let text = format!("NACK {nack} was heard, and {psn} was sent again");
                    verdict.breach("resent-other", step.frame, text);
                }
                overtaken.iter_mut().for_each(|(_, since)| *since += 1);
                overtaken.retain(|(_, since)| *since <= under_way);
                ignored(&mut heard, under_way, step, verdict);
            }
            Act::Heard(Reply::Nack(psn)) => {
                let sent_already = next.is_some_and(|next| next.is_after(psn));
                if sent_already && !heard.iter().any(|(nack, _)| *nack == psn) {
                    heard.push_back((psn, 0));
                }
            }
            Act::Heard(Reply::Ack(psn)) => {
                let (later, reached) = heard.into_iter().partition(|(nack, _)| nack.is_after(psn));
                heard = later;
                overtaken.extend::<VecDeque<_>>(reached);
            }
            _ => {}
        }
    }
    verdict.fact("requests", sent);
    verdict.count("sent again after NACKs", resent);
    verdict.count("sent again after timeouts", by_timeout);
    verdict.count("timeouts", timeouts);
}
