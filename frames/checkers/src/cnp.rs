//! Checker 6: CNPs follow marks, at their pace.
//!
//! * `cnp-without-mark`: a receiver sent a CNP before it had got a marked packet of that connection.
//! * `cnp-missing`: a marked packet arrived, and neither the interval before it nor the 100 ms ([`PATIENCE`]) after it has a CNP.
//! * `cnp-too-soon`: two CNPs of a connection came closer than the least interval.
//!
//! NICs pace their CNPs per port, per pair of hosts or per queue pair. The facts name the widest of them to which the least
//! interval applies.

use crate::connections::{Act, Connections};
use crate::report::Report;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Longest time until a CNP follows its mark, ns. Our choice: emulated NICs need milliseconds.
pub const PATIENCE: u64 = 100_000_000;
/// A NACK and a CNP of one connection this close together are told, ns. Our choice: they come from one packet.
const TOGETHER: u64 = 10_000;

/// Runs the checker.
pub fn check(connections: &Connections, interval: u64, report: &mut Report) {
    let mut by_port: BTreeMap<IpAddr, Vec<u64>> = BTreeMap::new();
    let mut by_pair: BTreeMap<(IpAddr, IpAddr), Vec<u64>> = BTreeMap::new();
    let mut soon_anywhere = false;
    for connection in &connections.all {
        let cnps = connection.steps.iter().filter(|step| step.act == Act::Cnp);
        for step in cnps {
            by_port.entry(connection.responder).or_default().push(step.at);
            by_pair.entry((connection.responder, connection.requester)).or_default().push(step.at);
        }
    }
    let end = connections.packets.last().map_or(0, |packet| packet.at);
    for (connection, verdict) in connections.all.iter().zip(&mut report.verdicts) {
        let (mut marks, mut cnps, mut nacks): (Vec<(u64, usize)>, Vec<u64>, Vec<u64>) = Default::default();
        for step in &connection.steps {
            match step.act {
                Act::Delivered { marked: true, .. } => marks.push((step.at, step.frame)),
                Act::Replied(crate::connections::Reply::Nack(_)) => nacks.push(step.at),
                Act::Cnp => {
                    if marks.is_empty() {
                        verdict.breach(
                            "cnp-without-mark",
                            step.frame,
                            "no packet had been marked".to_owned(),
                        );
                    }
                    if let Some(last) = cnps.last()
                        && step.at - last < interval
                    {
                        soon_anywhere = true;
                        let text = format!(
                            "{} ns after the last one, at least {interval} ns are due",
                            step.at - last
                        );
                        verdict.breach("cnp-too-soon", step.frame, text);
                    }
                    cnps.push(step.at);
                }
                _ => {}
            }
        }
        // A CNP to the same host may stand for several connections, where the NIC paces by port or by pair.
        let nearby = by_port.get(&connection.responder).map_or(&[][..], Vec::as_slice);
        for (at, frame) in &marks {
            let (from, to) = (at.saturating_sub(interval), at + PATIENCE);
            if to <= end && !nearby.iter().any(|cnp| (from..=to).contains(cnp)) {
                verdict.breach("cnp-missing", *frame, "a marked packet that no CNP answers".to_owned());
            }
        }
        verdict.count("marked", marks.len() as u64);
        verdict.count("CNPs", cnps.len() as u64);
        let close = |nack: &&u64| cnps.iter().any(|cnp| nack.abs_diff(*cnp) <= TOGETHER);
        verdict.count("NACKs beside a CNP", nacks.iter().filter(close).count() as u64);
    }
    if by_port.is_empty() {
        return;
    }
    let paced = |times: &mut Vec<u64>| {
        times.sort_unstable();
        times.windows(2).all(|pair| pair[1] - pair[0] >= interval)
    };
    let scope = if by_port.values_mut().all(paced) {
        "port"
    } else if by_pair.values_mut().all(paced) {
        "pair of hosts"
    } else if !soon_anywhere {
        "queue pair"
    } else {
        "nothing"
    };
    report.whole.fact("CNPs paced by", scope);
}
