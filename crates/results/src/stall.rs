//! The explanation of a stall: which flows wait and for what, and the PFC cycle if there is one.

use engine::outcome::{Stall, Waiting};
use model::{LinkId, MessageId, Plan};
use std::fmt::Write;

/// Flows that are listed one by one.
const LISTED: usize = 8;

/// The explanation, several lines.
pub fn explain(plan: &Plan, stall: &Stall) -> String {
    let mut text = format!(
        "nothing has moved since {:.3} us: {} flows wait and no data packet is accepted\n",
        stall.since.as_us(),
        stall.count
    );
    if !plan.wholes.is_empty() {
        text.push_str("(subflows, and requests and data of READs, count as flows here)\n");
    }
    for &(message, waiting) in stall.waiting.iter().take(LISTED) {
        let _ = writeln!(text, "  {} waits {}", flow(plan, message), reason(waiting));
    }
    let shown = stall.waiting.len().min(LISTED) as u64;
    if stall.count > shown {
        let _ = writeln!(text, "  ... and {} more", stall.count - shown);
    }
    let cut = cut_off(plan, stall);
    if !cut.is_empty() {
        text.push_str("cut off: no path is left from sender to receiver since a failure\n");
        for &message in cut.iter().take(LISTED) {
            let _ = writeln!(text, "  {}", flow(plan, message));
        }
        if cut.len() > LISTED {
            let _ = writeln!(text, "  ... and {} more", cut.len() - LISTED);
        }
    }
    if !stall.pfc_cycle.is_empty() {
        text.push_str("PFC deadlock: each of these ports is paused until the next one drains\n");
        for &link in &stall.pfc_cycle {
            let _ = writeln!(text, "  {}", ends(plan, link));
        }
        let _ = writeln!(text, "  and again {}", ends(plan, stall.pfc_cycle[0]));
    } else if !stall.paused.is_empty() {
        let names: Vec<_> = stall.paused.iter().take(LISTED).map(|&link| ends(plan, link)).collect();
        let more = stall.paused.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "paused ports (no cycle): {}{more}", names.join(", "));
    }
    text
}

/// Waiting flows that the stall names and whose path failures have cut for good.
fn cut_off(plan: &Plan, stall: &Stall) -> Vec<MessageId> {
    if plan.failures.is_empty() {
        return Vec::new();
    }
    let parted = |&message: &MessageId| {
        let qp = &plan.qps[plan.messages[message.index()].qp.index()];
        !plan.failures.reach_in_the_end(&plan.fabric, plan.sharing, qp.from, qp.to)
    };
    stall.waiting.iter().map(|&(message, _)| message).filter(parted).collect()
}

pub(crate) fn flow(plan: &Plan, message: MessageId) -> String {
    let m = &plan.messages[message.index()];
    let qp = &plan.qps[m.qp.index()];
    let name = |host: model::HostId| plan.fabric.host_name(host);
    format!("flow {message} ({} -> {}, job {})", name(qp.from), name(qp.to), plan.job(message).name)
}

fn reason(waiting: Waiting) -> String {
    match waiting {
        Waiting::Triggers => "for other flows to finish first".into(),
        Waiting::Predecessor => "for the flow before it on its queue pair".into(),
        Waiting::Packets { acked, total } => format!("with {acked} of {total} packets acknowledged"),
    }
}

pub(crate) fn ends(plan: &Plan, link: LinkId) -> String {
    let link = &plan.fabric.links()[link.index()];
    format!("{} -> {}", plan.fabric.name(link.from), plan.fabric.name(link.to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use model::Time;

    #[test]
    fn a_cycle_is_named_by_its_nodes() {
        let stall = Stall {
            since: Time::from_us(7),
            waiting: vec![
                (MessageId(0), Waiting::Packets { acked: 3, total: 9 }),
                (MessageId(1), Waiting::Predecessor),
            ],
            count: 5,
            pfc_cycle: vec![LinkId(0), LinkId(3)],
            paused: vec![],
        };
        let text = explain(&testing::plan(3), &stall);
        for part in [
            "since 7.000 us: 5 flows wait",
            "flow 0 (a -> b, job job) waits with 3 of 9 packets acknowledged",
            "... and 3 more",
            "PFC deadlock",
            "  a -> s\n",
            "and again a -> s",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }
}
