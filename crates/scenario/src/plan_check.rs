//! The invariants of a plan on which the engine relies.

use model::plan::Plan;
use std::ops::Range;

/// Checks the invariants of a plan:
///
/// * tables have matching sizes;
/// * queue pairs are sorted by destination, and the messages of a queue pair are consecutive;
/// * a trigger fires at the host that sends the message which it starts;
/// * no messages wait for each other in a cycle.
///
/// # Errors
/// The first broken invariant. A plan from [`crate::check()`] breaks none.
pub fn plan_check(plan: &Plan) -> Result<(), String> {
    let fabric = &plan.fabric;
    if plan.ports.len() != fabric.links().len() {
        return Err(format!(
            "there are {} port settings for {} ports",
            plan.ports.len(),
            fabric.links().len()
        ));
    }
    if plan.switches.len() != fabric.switch_count() {
        let switches = fabric.switch_count();
        return Err(format!("there are {} switch settings for {switches} switches", plan.switches.len()));
    }
    if plan.qps.len() > 1 << 24 {
        return Err(format!("there are {} queue pairs, more than 2^24", plan.qps.len()));
    }
    let mut next = 0;
    for (i, qp) in plan.qps.iter().enumerate() {
        if qp.from == qp.to || qp.from.index() >= fabric.hosts() || qp.to.index() >= fabric.hosts() {
            return Err(format!("queue pair {i} goes from host {} to host {}", qp.from, qp.to));
        }
        if i > 0 && plan.qps[i - 1].to > qp.to {
            return Err(format!("queue pair {i} breaks the order by destination"));
        }
        if qp.messages.start != next || qp.messages.end <= next {
            return Err(format!(
                "queue pair {i} has the messages {:?}, expected from {next} on",
                qp.messages
            ));
        }
        next = qp.messages.end;
        for m in &plan.messages[range(&qp.messages)?] {
            if m.qp.index() != i {
                return Err(format!("a message of queue pair {i} names queue pair {}", m.qp));
            }
        }
    }
    if next as usize != plan.messages.len() {
        return Err(format!("{} messages belong to no queue pair", plan.messages.len() - next as usize));
    }
    triggers(plan)
}

fn range(r: &Range<u32>) -> Result<Range<usize>, String> {
    if r.start > r.end {
        Err(format!("the range {r:?} runs backwards"))
    } else {
        Ok(r.start as usize..r.end as usize)
    }
}

fn triggers(plan: &Plan) -> Result<(), String> {
    let fabric = &plan.fabric;
    let mut needs = vec![0u32; plan.messages.len()];
    for (i, m) in plan.messages.iter().enumerate() {
        let Some(job) = plan.jobs.get(usize::from(m.job)) else {
            return Err(format!("message {i} belongs to job {}, which does not exist", m.job));
        };
        if m.group >= job.groups {
            return Err(format!(
                "message {i} belongs to group {} of {}, which has {}",
                m.group, job.name, job.groups
            ));
        }
        let qp = &plan.qps[m.qp.index()];
        for (fired, at, word) in [(&m.on_received, qp.to, "receiver"), (&m.on_acked, qp.from, "sender")] {
            let list = plan.triggers.get(range(fired)?);
            for t in list.ok_or_else(|| format!("message {i} has triggers beyond the table"))? {
                let Some(freed) = plan.messages.get(t.index()) else {
                    return Err(format!("message {i} starts message {t}, which does not exist"));
                };
                if fabric.node_of(plan.qps[freed.qp.index()].from) != fabric.node_of(at) {
                    return Err(format!("message {i} starts message {t}, whose sender is not its {word}"));
                }
                needs[t.index()] += 1;
            }
        }
    }
    if let Some(i) = (0..needs.len()).find(|&i| needs[i] != plan.messages[i].needs) {
        return Err(format!("message {i} needs {} triggers and has {}", plan.messages[i].needs, needs[i]));
    }
    cycle(plan, needs)
}

/// Refuses messages that wait for each other in a cycle: finishes messages one by one as far as triggers and the order on
/// queue pairs allow.
fn cycle(plan: &Plan, mut needs: Vec<u32>) -> Result<(), String> {
    let follows = |i: usize| i > 0 && plan.messages[i].qp == plan.messages[i - 1].qp;
    for (i, n) in needs.iter_mut().enumerate() {
        *n += u32::from(follows(i));
    }
    let mut free: Vec<usize> = (0..needs.len()).filter(|&i| needs[i] == 0).collect();
    let mut done = 0;
    while let Some(i) = free.pop() {
        done += 1;
        let m = &plan.messages[i];
        let triggered = [&m.on_received, &m.on_acked];
        let freed = triggered.into_iter().flat_map(|r| &plan.triggers[r.start as usize..r.end as usize]);
        let next = Some(i + 1).filter(|&j| j < needs.len() && follows(j));
        for j in freed.map(|t| t.index()).chain(next) {
            needs[j] -= 1;
            if needs[j] == 0 {
                free.push(j);
            }
        }
    }
    if done == needs.len() {
        Ok(())
    } else {
        Err(format!("{} messages wait for each other", needs.len() - done))
    }
}
