//! The invariants of a plan on which the engine relies.

use super::case::Case;
use finding::{Finding, code};
use model::NodeId;
use model::plan::{Group, Plan, Trigger};
use std::ops::Range;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let broken = plan_check(case.plan).err();
    broken
        .map(|broken| code::BUG.at("", format!("this is a bug of ropewalk: {broken}")))
        .into_iter()
        .collect()
}

/// Checks the invariants of a plan:
///
/// * tables have matching sizes;
/// * queue pairs are sorted by destination, and the messages of a queue pair are consecutive;
/// * tasks are sorted by host;
/// * a trigger fires at the host that sends the message, or has the task, which it starts;
/// * no messages and tasks wait for each other in a cycle.
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
    let own = &plan.own_queues;
    if !own.is_empty() && own.rows.len() != plan.traffic_classes.len() {
        let classes = plan.traffic_classes.len();
        return Err(format!("there are queues for {} traffic classes of {classes}", own.rows.len()));
    }
    let fits =
        |group: &Group| group.ports.len() == plan.ports.len() && group.switches.len() == plan.switches.len();
    if !own.groups.iter().all(fits) {
        return Err("a group of queues has no settings for some ports or switches".to_owned());
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

/// A message or a task, as one number: messages first.
struct Numbers<'p>(&'p Plan);

impl Numbers<'_> {
    fn all(&self) -> usize {
        self.0.messages.len() + self.0.tasks.len()
    }

    /// The number of what a trigger starts, if it exists.
    fn of(&self, trigger: Trigger) -> Option<usize> {
        let (number, limit) = match trigger {
            Trigger::Message(m) => (m.index(), self.0.messages.len()),
            Trigger::Task(t) => (self.0.messages.len() + t.index(), self.all()),
        };
        (number < limit).then_some(number)
    }

    fn name(&self, number: usize) -> String {
        match number.checked_sub(self.0.messages.len()) {
            None => format!("message {number}"),
            Some(task) => format!("task {task}"),
        }
    }

    /// The host at which it starts.
    fn host(&self, number: usize) -> NodeId {
        match number.checked_sub(self.0.messages.len()) {
            None => self.0.fabric.node_of(self.0.qps[self.0.messages[number].qp.index()].from),
            Some(task) => self.0.tasks[task].node,
        }
    }

    fn needs(&self, number: usize) -> u32 {
        match number.checked_sub(self.0.messages.len()) {
            None => self.0.messages[number].needs,
            Some(task) => self.0.tasks[task].needs,
        }
    }

    /// Its triggers, each list with the host at which it fires.
    fn fired(&self, number: usize) -> impl Iterator<Item = (&Range<u32>, NodeId)> {
        let plan = self.0;
        let (message, task) = match number.checked_sub(plan.messages.len()) {
            None => (plan.messages.get(number), None),
            Some(task) => (None, plan.tasks.get(task)),
        };
        let of_message = message.into_iter().flat_map(|m| {
            let qp = &plan.qps[m.qp.index()];
            [(&m.on_received, plan.fabric.node_of(qp.to)), (&m.on_acked, plan.fabric.node_of(qp.from))]
        });
        of_message.chain(task.map(|task| (&task.on_done, task.node)))
    }
}

fn triggers(plan: &Plan) -> Result<(), String> {
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
    }
    for (i, task) in plan.tasks.iter().enumerate() {
        if usize::from(task.job) >= plan.jobs.len() {
            return Err(format!("task {i} belongs to job {}, which does not exist", task.job));
        }
        if task.node.index() >= plan.fabric.servers() {
            return Err(format!("task {i} belongs to node {}, which is no host", task.node));
        }
        if i > 0 && plan.tasks[i - 1].node > task.node {
            return Err(format!("task {i} breaks the order by host"));
        }
    }
    let numbers = Numbers(plan);
    let mut needs = vec![0u32; numbers.all()];
    for i in 0..numbers.all() {
        for (fired, host) in numbers.fired(i) {
            let name = || numbers.name(i);
            let list = plan.triggers.get(range(fired)?);
            for trigger in list.ok_or_else(|| format!("{} has triggers beyond the table", name()))? {
                let Some(freed) = numbers.of(*trigger) else {
                    return Err(format!("{} starts {trigger:?}, which does not exist", name()));
                };
                if numbers.host(freed) != host {
                    return Err(format!(
                        "{} starts {}, which does not start at its host",
                        name(),
                        numbers.name(freed)
                    ));
                }
                needs[freed] += 1;
            }
        }
    }
    if let Some(i) = (0..needs.len()).find(|&i| needs[i] != numbers.needs(i)) {
        return Err(format!("{} needs {} triggers and has {}", numbers.name(i), numbers.needs(i), needs[i]));
    }
    cycle(&numbers, needs)
}

/// Refuses messages and tasks that wait for each other in a cycle: finishes one after another as far as triggers and the
/// order on queue pairs allow.
fn cycle(numbers: &Numbers<'_>, mut needs: Vec<u32>) -> Result<(), String> {
    let plan = numbers.0;
    let follows =
        |i: usize| i > 0 && i < plan.messages.len() && plan.messages[i].qp == plan.messages[i - 1].qp;
    for (i, n) in needs.iter_mut().enumerate() {
        *n += u32::from(follows(i));
    }
    let mut free: Vec<usize> = (0..needs.len()).filter(|&i| needs[i] == 0).collect();
    let mut done = 0;
    while let Some(i) = free.pop() {
        done += 1;
        let lists =
            numbers.fired(i).map(|(fired, _)| &plan.triggers[fired.start as usize..fired.end as usize]);
        let freed = lists.flatten().filter_map(|trigger| numbers.of(*trigger));
        let next = Some(i + 1).filter(|&j| follows(j));
        for j in freed.chain(next) {
            needs[j] -= 1;
            if needs[j] == 0 {
                free.push(j);
            }
        }
    }
    if done == needs.len() {
        Ok(())
    } else {
        Err(format!("{} messages and tasks wait for each other", needs.len() - done))
    }
}
