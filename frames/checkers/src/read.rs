//! Checker 4: reads go back, too. Responses carry no request for retransmission, so the requester must ask again.
//!
//! * `read-gap-unanswered`: a response was missing, later ones came, and the requester did not ask for the missing one.
//! * `read-elsewhere`: after a gap, the requester asked again from another PSN.

use crate::connections::{Act, Connection};
use crate::report::Verdict;
use wire::Psn;

/// Runs the checker on a connection.
pub fn check(connection: &Connection, verdict: &mut Verdict) {
    // First PSN and end of the reads in the order of their responses.
    let mut reads: Vec<(Psn, Psn)> = Vec::new();
    let mut expected: Option<Psn> = None;
    let mut gap: Option<(Psn, usize)> = None;
    let (mut requests, mut responses, mut again) = (0, 0, 0);
    for step in &connection.steps {
        match step.act {
            Act::Sent { psn, span, read: true } => {
                requests += 1;
                let end = psn.add(span);
                let repeats = reads.last().is_some_and(|(_, last)| last.is_after(psn));
                if let Some((missing, _)) = gap.filter(|_| repeats) {
                    again += 1;
                    if psn != missing {
                        let text =
                            format!("response {missing} was missing, and the requester asked from {psn}");
                        verdict.breach("read-elsewhere", step.frame, text);
                    }
                    gap = None;
                }
                if repeats {
                    reads.retain(|(first, _)| psn.is_after(*first));
                    expected = Some(psn);
                }
                reads.push((psn, end));
            }
            Act::AnswerHeard { psn, intact: true } => {
                responses += 1;
                // The next response continues the read, or begins the next one.
                let next = expected.or(reads.first().map(|(first, _)| *first));
                let of_read =
                    |psn: Psn| reads.iter().any(|(first, end)| !first.is_after(psn) && end.is_after(psn));
                let Some(next) = next.filter(|_| of_read(psn)) else { continue };
                let begins_read = || {
                    let before = reads.iter().rfind(|(first, _)| psn.is_after(*first));
                    reads.iter().any(|(first, _)| *first == psn) && before.is_none_or(|(_, end)| *end == next)
                };
                if psn == next || begins_read() {
                    expected = Some(psn.next());
                } else if psn.is_after(next) && gap.is_none() {
                    gap = Some((next, step.frame));
                }
            }
            _ => {}
        }
    }
    if let Some((missing, frame)) = gap {
        verdict.breach("read-gap-unanswered", frame, format!("nobody asked again for response {missing}"));
    }
    if requests > 0 {
        verdict.fact("reads", requests);
        verdict.fact("responses", responses);
        verdict.count("reads repeated after a gap", again);
    }
}
