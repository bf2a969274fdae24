//! Checker 3: NICs that go back.
//!
//! A sender:
//! * `back-elsewhere`: the sender heard NACK(e), and went back to another PSN.
//! * `nack-ignored`: the sender heard NACK(e), sent more packets than can be under way, and never went back.
//! * `psn-skipped`: the sender left out a PSN.
//!
//! A receiver:
//! * `nack-names-other`: a NACK names a PSN for which the receiver was not waiting with a later packet at hand.
//! * `nack-repeated`: a second NACK for the same PSN.
//! * `ack-backwards`: an ACK below an earlier one.
//! * `ack-passes-hole`: an ACK for a packet that has not arrived in order. A receiver that keeps packets does this, too.

use crate::connections::{Act, Connection, Reply, Step};
use crate::report::Verdict;
use std::collections::{BTreeSet, VecDeque};
use wire::Psn;

/// Runs the checker on a connection. `under_way` packets may be on their way through the sender when it hears a NACK.
pub fn check(connection: &Connection, under_way: u32, verdict: &mut Verdict) {
    sender(connection, under_way, verdict);
    receiver(connection, false, verdict);
}

fn sender(connection: &Connection, under_way: u32, verdict: &mut Verdict) {
    let mut next: Option<Psn> = None;
    // NACKs that wait for the sender to go back, with the packets sent since.
    let mut heard: VecDeque<(Psn, u32)> = VecDeque::new();
    let (mut sent, mut back, mut timeouts) = (0, 0, 0);
    for step in &connection.steps {
        match step.act {
            Act::Sent { psn, span, .. } => {
                sent += 1;
                let ahead = next.map_or(0, |next| psn.distance_from(next));
                if ahead > 0 {
                    verdict.breach(
                        "psn-skipped",
                        step.frame,
                        format!("{psn} follows {}", minus(psn, ahead + 1)),
                    );
                } else if ahead < 0 && heard.iter().any(|(nack, _)| *nack == psn) {
                    back += 1;
                    heard.clear();
                } else if ahead < 0
                    && let Some((nack, _)) = heard.front()
                {
                    let text = format!("NACK {nack} was heard, and the sender went back to {psn}");
                    verdict.breach("back-elsewhere", step.frame, text);
                    heard.clear();
                } else if ahead < 0 {
                    timeouts += 1;
                }
                next = Some(psn.add(span));
                ignored(&mut heard, under_way, step, verdict);
            }
            Act::Heard(Reply::Nack(psn)) => {
                let sent_already = next.is_some_and(|next| next.is_after(psn));
                if sent_already && !heard.iter().any(|(nack, _)| *nack == psn) {
                    heard.push_back((psn, 0));
                }
            }
            Act::Heard(Reply::Ack(psn)) => heard.retain(|(nack, _)| nack.is_after(psn)),
            _ => {}
        }
    }
    verdict.fact("requests", sent);
    verdict.count("went back", back);
    verdict.count("timeouts", timeouts);
}

/// Counts packets that are sent while NACKs wait, and reports NACKs that wait for too long.
pub(crate) fn ignored(heard: &mut VecDeque<(Psn, u32)>, under_way: u32, step: &Step, verdict: &mut Verdict) {
    heard.iter_mut().for_each(|(_, since)| *since += 1);
    while let Some((nack, _)) = heard.front().filter(|(_, since)| *since > under_way) {
        let text = format!("NACK {nack} was heard {under_way} packets ago, and {nack} was not sent again");
        verdict.breach("nack-ignored", step.frame, text);
        heard.pop_front();
    }
}

/// A receiver; with `keeps`, one that keeps packets out of order.
pub(crate) fn receiver(connection: &Connection, keeps: bool, verdict: &mut Verdict) {
    let mut expected = connection.first;
    let mut ahead: BTreeSet<u32> = BTreeSet::new();
    // PSNs that were missing while a later packet had arrived.
    let mut gaps: BTreeSet<u32> = BTreeSet::new();
    let mut nacked: BTreeSet<u32> = BTreeSet::new();
    let mut acked: Option<Psn> = None;
    let (mut arrived, mut late, mut nacks) = (0, 0, 0);
    for step in &connection.steps {
        match step.act {
            Act::Delivered { psn, span, intact: true, .. } => {
                arrived += 1;
                // Where the capture does not show the start, the first packet may be a late one.
                if !connection.from_start && arrived == 1 {
                    expected = psn;
                }
                match psn.distance_from(expected) {
                    0 => {
                        expected = psn.add(span);
                        while ahead.remove(&expected.value()) {
                            expected = expected.next();
                        }
                    }
                    1.. => {
                        late += 1;
                        gaps.insert(expected.value());
                        if keeps {
                            ahead.extend((0..span).map(|n| psn.add(n).value()));
                        }
                    }
                    _ => {}
                }
                // With packets at hand behind another hole, that hole is a gap, too.
                if !ahead.is_empty() {
                    gaps.insert(expected.value());
                }
            }
            Act::Replied(Reply::Nack(psn)) => {
                nacks += 1;
                if !gaps.contains(&psn.value()) {
                    let text = format!("NACK {psn}, but the receiver waited for {expected}");
                    verdict.breach("nack-names-other", step.frame, text);
                } else if !nacked.insert(psn.value()) {
                    verdict.breach("nack-repeated", step.frame, format!("NACK {psn} once more"));
                }
            }
            Act::Replied(Reply::Ack(psn)) => {
                if !expected.is_after(psn) {
                    let text = format!("ACK {psn}, but {expected} has not arrived in order");
                    verdict.breach("ack-passes-hole", step.frame, text);
                }
                match acked {
                    Some(before) if before.is_after(psn) => {
                        verdict.breach("ack-backwards", step.frame, format!("ACK {psn} after ACK {before}"));
                    }
                    _ => acked = Some(psn),
                }
            }
            _ => {}
        }
    }
    verdict.fact("arrived", arrived);
    verdict.count("out of order", late);
    verdict.count("NACKs", nacks);
}

/// A PSN that is so much lower.
fn minus(psn: Psn, by: i32) -> Psn {
    psn.add(::themis::PSN_SPACE - by.unsigned_abs() % ::themis::PSN_SPACE)
}
