//! Checker 8: how fast NACKs and retransmissions come.
//!
//! The *generation* of a NACK is the time from the first packet behind a gap to the NACK; the *reaction* that from the NACK to the
//! packet's retransmission. Both include the way between capture and NIC. A retransmission without a NACK is a timeout's. The
//! timer of the InfiniBand specification (11.2.4.2, C9-141) has T = 4.096 us x 2^n, and goes off after T to 4 T.
//!
//! * `timeout-early`: a timeout came before 4.096 us x 2^N, with `--ack-timeout N`.
//! * `timeout-late`: a timeout came after four times that.

use crate::connections::{Act, Connection, Reply};
use crate::report::{Verdict, span};
use std::collections::{BTreeMap, BTreeSet};
use wire::Psn;

/// Unit of the timeout, ns.
const UNIT: u64 = 4_096;
/// Largest exponent: the field has 5 bits.
const MOST: u8 = 31;

/// Runs the checker on a connection.
pub fn check(connection: &Connection, exponent: Option<u8>, verdict: &mut Verdict) {
    let (mut expected, mut ahead) = (connection.first, BTreeSet::new());
    let mut gap: BTreeMap<u32, u64> = BTreeMap::new();
    let mut heard: BTreeMap<u32, u64> = BTreeMap::new();
    let mut sent: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut generation, mut reaction, mut timeouts) = (Vec::new(), Vec::new(), Vec::new());
    let mut next: Option<Psn> = None;
    // A timeout's retransmissions continue in order.
    let (mut run, mut progress) = (None, 0);
    for step in &connection.steps {
        match step.act {
            Act::Delivered { psn, span, intact: true, .. } => {
                if psn == expected {
                    expected = psn.add(span);
                    while ahead.remove(&expected.value()) {
                        expected = expected.next();
                    }
                } else if psn.is_after(expected) {
                    ahead.insert(psn.value());
                }
                if !ahead.is_empty() {
                    gap.entry(expected.value()).or_insert(step.at);
                }
            }
            Act::Replied(Reply::Nack(psn)) => {
                generation.extend(gap.get(&psn.value()).map(|since| step.at - since));
            }
            Act::Heard(Reply::Nack(psn)) => {
                heard.insert(psn.value(), step.at);
                progress = step.at;
            }
            Act::Heard(_) | Act::AnswerHeard { .. } => progress = step.at,
            Act::Sent { psn, span, .. } => {
                if next.is_some_and(|next| next.is_after(psn)) {
                    if let Some(since) = heard.remove(&psn.value()) {
                        reaction.push(step.at - since);
                        // What follows in order is part of going back.
                        run = Some(psn.add(span));
                    } else if run == Some(psn) {
                        run = Some(psn.add(span));
                    } else {
                        let since = sent.get(&psn.value()).copied().unwrap_or(0).max(progress);
                        timeouts.push((step.at - since, step.frame, psn));
                        run = Some(psn.add(span));
                    }
                } else {
                    next = Some(psn.add(span));
                }
                sent.insert(psn.value(), step.at);
            }
            _ => {}
        }
    }
    percentiles("NACK after gap", generation, verdict);
    percentiles("resent after NACK", reaction, verdict);
    let times: Vec<u64> = timeouts.iter().map(|(time, ..)| *time).collect();
    if let Some(median) = percentiles("timeout after", times, verdict) {
        let fits = (1..=MOST).filter(|n| (timer(*n)..=4 * timer(*n)).contains(&median));
        let fits: Vec<String> = fits.map(|n| n.to_string()).collect();
        verdict.fact(
            "timeout exponents that fit",
            if fits.is_empty() { "none".into() } else { fits.join(" or ") },
        );
    }
    let Some(exponent) = exponent else { return };
    let least = timer(exponent);
    for (time, frame, psn) in timeouts {
        let (rule, bound) = match time {
            time if time < least => ("timeout-early", least),
            time if time > 4 * least => ("timeout-late", 4 * least),
            _ => continue,
        };
        verdict.breach(
            rule,
            frame,
            format!("{psn} came again after {}, the bound is {}", span(time), span(bound)),
        );
    }
}

const fn timer(exponent: u8) -> u64 {
    UNIT << exponent
}

/// Adds number, median and 99th percentile. Returns the median.
fn percentiles(name: &'static str, mut times: Vec<u64>, verdict: &mut Verdict) -> Option<u64> {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    let (median, high) = (at(50)?, at(99)?);
    verdict.fact(name, format!("{} (median, P99 {}, {} times)", span(median), span(high), times.len()));
    Some(median)
}
