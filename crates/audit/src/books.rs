//! The books of a run, checked a second time from the outcome alone.

use engine::link_name;
use engine::outcome::{
    Ending, LinkRecord, Losses, MessageRecord, NicRecord, Outcome, QueueCounts, TaskRecord,
};
use model::plan::Classes;
use model::{LinkId, MessageId, Plan, Time};

/// Mistakes in the books of a run, found independently of the engine's own check.
pub fn mistakes(plan: &Plan, run: &Outcome) -> Vec<String> {
    let mut wrong = run.violations.clone();
    let mut equal = |what: &str, a: u64, b: u64| {
        if a != b {
            wrong.push(format!("{what}: {a} != {b}"));
        }
    };
    let (d, c) = (&run.data, &run.control);
    let ends = [
        d.accepted,
        d.duplicate,
        d.discarded,
        d.noticed,
        d.dropped_buffer,
        d.dropped_link,
        d.dropped_loop,
        d.dropped_watchdog,
        d.dropped_scheme,
        d.cut,
        d.held,
        d.in_flight,
    ];
    equal("data packets sent and ended", d.sent, ends.iter().sum());
    equal("packets cut, and their headers", d.cut, d.headers_arrived + d.headers_lost + d.headers_in_flight);
    equal(
        "control packets made, by kind",
        c.created,
        c.ack + c.nack + c.cnp + c.grants + c.probes + c.port_status + c.returned + c.forged + c.signals,
    );
    equal(
        "control packets made and ended",
        c.created,
        c.arrived + c.heard + c.blocked + c.dropped + c.in_flight,
    );
    let by = |f: fn(&Losses) -> u64| run.losses.iter().map(f).sum::<u64>();
    let in_loops = |losses: &Losses| if losses.link.is_none() { losses.packets } else { 0 };
    equal("packets lost in loops, by outage", d.dropped_loop, by(in_loops));
    equal("packets lost into dead links, by outage", d.black_hole, by(|losses| losses.black_hole));
    equal("packets out of order, by class", d.out_of_order, run.out_of_order.iter().sum());
    let over_links = |f: fn(&LinkRecord) -> u64| run.links.iter().map(f).sum::<u64>();
    equal("hops and frames on links", run.data_hops + run.control_hops, over_links(|l| l.frames));
    let mut pauses = vec![0; run.links.len()];
    run.priorities.iter().for_each(|one| pauses[one.link.index()] += one.pauses);
    let (mut longest, mut all) = (vec![0; run.links.len()], vec![0; run.links.len()]);
    for one in &run.priorities {
        longest[one.link.index()] = one.paused.ps().max(longest[one.link.index()]);
        all[one.link.index()] += one.paused.ps();
    }
    for (link, record) in run.links.iter().enumerate() {
        equal(&format!("pauses of link {link}, by priority"), record.pauses, pauses[link]);
        // Priorities may stand paused at the same time.
        let paused = record.paused.ps();
        equal(
            &format!("time paused of link {link}, by priority"),
            paused,
            paused.clamp(longest[link], all[link]),
        );
        let name = format!("packets lost on link {link}, by cause");
        equal(&name, record.lost, record.lost_by.iter().sum());
    }
    let mut queues = vec![QueueCounts::default(); run.links.len()];
    for one in &run.queues {
        let sum = &mut queues[one.link.index()];
        sum.frames += one.counts.frames;
        sum.bytes += one.counts.bytes;
        sum.drops += one.counts.drops;
        sum.marks += one.counts.marks;
        sum.longest += one.counts.longest;
    }
    for link in run.queues.iter().map(|one| one.link.index()) {
        let (record, sum) = (&run.links[link], &queues[link]);
        let of = |what: &str| format!("{what} of link {link}, by queue");
        equal(&of("frames"), record.frames, sum.frames);
        equal(&of("bytes"), record.bytes, sum.bytes);
        equal(&of("drops"), record.drops, sum.drops);
        equal(&of("marks"), record.marks, sum.marks);
        equal(&of("longest queue"), record.max_queue, record.max_queue.min(sum.longest));
    }
    let of_nics = |count: fn(&NicRecord) -> u64| run.nics.iter().map(count).sum::<u64>();
    equal("arrivals discarded, by NIC and in all", d.discarded, of_nics(|nic| nic.discarded));
    let counted = |name: &str| run.counters.iter().find(|(own, _)| *own == name).map_or(0, |(_, n)| *n);
    let no_room = counted("receive_discards") + counted("ingress_losses");
    equal("arrivals without room in NICs, by NIC and in all", no_room, of_nics(|nic| nic.no_room));
    let retransmitted = run.messages.iter().map(|m| m.retransmitted).sum();
    equal("retransmissions in all and by message", d.retransmitted, retransmitted);
    // Without deliberate copies, every duplicate is a spurious retransmission.
    if d.duplicated == 0 {
        equal("spurious retransmissions and duplicates", d.spurious, d.duplicate);
    }
    let notices = run.counters.iter().find(|(name, _)| *name == "notifications_sent").map_or(0, |c| c.1);
    let finished = run.messages.iter().all(|m| m.acked != Time::NEVER);
    if finished {
        // Every packet of every message once, then retransmissions, copies and notices.
        let packets: u64 = plan.messages.iter().map(|m| plan.wire.packets(m.bytes)).sum();
        equal("packets accepted and packets of all messages", d.accepted, packets);
        equal("packets sent", d.sent, packets + d.retransmitted + d.duplicated + notices);
    }
    let drained = d.in_flight + d.headers_in_flight + d.held + c.in_flight == 0;
    if drained {
        let lost =
            d.dropped_buffer + d.dropped_link + d.dropped_watchdog + d.headers_lost + c.dropped - c.looped;
        let of_links = over_links(|l| l.drops + l.lost + l.storm_drops + l.storm_drops_in);
        // A packet without room to be held is dropped before it has a link.
        let held = run.counters.iter().any(|(name, _)| *name == "holds");
        equal(
            "packets dropped or lost on links and in all",
            of_links,
            if held { of_links.min(lost) } else { lost },
        );
        // A storm resumes nobody. A link that comes back forgets its pauses, and a switch then sends new ones. A scheme may also have
        // paused a port for a background job that waits for its timers when the run ends, and a NIC counts the links that it
        // still pauses then.
        let all_resumed = plan.failures.is_empty() && plan.failures.storms().is_empty() && finished;
        let of_nics =
            run.counters.iter().find(|(name, _)| *name == "links_still_paused").map_or(0, |(_, n)| *n);
        let forgotten = if all_resumed { of_nics } else { c.pause.saturating_sub(c.resume) };
        equal("pauses, and resumes plus forgotten pauses", c.pause, c.resume + forgotten);
        // Bytes that hosts put on their wires are those of messages, replies and notices.
        let gap = u64::from(plan.wire.gap);
        let sent: u64 = run.links[..plan.fabric.hosts()].iter().map(|l| l.bytes + l.frames * gap).sum();
        let data: u64 = run.messages.iter().map(|m| m.wire_bytes).sum();
        let replies = (c.ack + c.nack + c.grants + c.probes + c.port_status)
            * (u64::from(plan.wire.ack) + gap)
            + c.cnp * (u64::from(plan.wire.cnp) + gap)
            + c.returned_bytes
            + c.returned * gap;
        let notices = notices * (u64::from(plan.wire.ack) + gap);
        equal(
            "bytes sent by NICs, and bytes of messages, replies and notices",
            sent,
            data + replies + notices,
        );
    }
    check_each(plan, run, &mut wrong);
    let message_waits =
        |(i, m): (usize, &MessageRecord)| m.acked == Time::NEVER && !plan.job(MessageId(i as u32)).background;
    // A task that an embedder posted during the run has no entry in the plan.
    let task_waits = |(i, t): (usize, &TaskRecord)| {
        let planned = plan.tasks.get(i);
        t.end == Time::NEVER && !planned.is_some_and(|task| plan.jobs[usize::from(task.job)].background)
    };
    let waits =
        run.messages.iter().enumerate().any(message_waits) || run.tasks.iter().enumerate().any(task_waits);
    if waits == (run.ending == Ending::Finished) {
        wrong.push(format!("it ended as {:?}", run.ending));
    }
    wrong
}

/// Adds mistakes of single messages, links and switches to `wrong`.
fn check_each(plan: &Plan, run: &Outcome, wrong: &mut Vec<String>) {
    for (i, m) in run.messages.iter().enumerate() {
        let in_order = m.start <= m.received && m.received <= m.acked;
        if !in_order || m.acked != Time::NEVER && (m.acked > run.end) {
            wrong.push(format!("message {i} in the wrong order: {m:?}, end {}", run.end));
        }
        let least = plan.messages[i].bytes;
        if m.acked != Time::NEVER && m.wire_bytes < least {
            wrong.push(format!("message {i}: {least} bytes acknowledged, {} sent", m.wire_bytes));
        }
    }
    for (i, l) in run.links.iter().enumerate() {
        // A frame on the wire counts in full when a run is cut.
        let changes = plan.failures.of(LinkId(i as u32)).iter().filter_map(|change| change.rate);
        let rate = changes.fold(plan.fabric.links()[i].rate, model::Rate::min);
        let frame = plan.wire.transmission(rate, plan.wire.max_frame().max(plan.wire.ack).max(plan.wire.cnp));
        if l.busy > run.end + frame || l.paused > run.end {
            let name = link_name(&plan.fabric, LinkId(i as u32));
            wrong.push(format!("{name}: busy {}, paused {} of {}", l.busy, l.paused, run.end));
        }
    }
    for (i, most) in run.max_buffer.iter().enumerate() {
        if most.get() > room_of(plan, i) {
            wrong.push(format!("switch {i} used {most} of a buffer of {}", plan.switches[i].buffer));
        }
    }
}

/// Most bytes that the packets in a switch may take: its buffer, and the headroom and the guarantees that lie beside it.
fn room_of(plan: &Plan, switch: usize) -> u64 {
    let node = plan.fabric.switch(switch);
    let base = plan.fabric.base(node) as usize;
    let own = base..base + plan.fabric.ports(node).len();
    let channels = u64::from(plan.fabric.channels());
    let memory = plan.switches[switch].memory;
    let groups = plan.own_queues.groups.iter().map(|group| (&group.switches, &group.ports));
    let beside = std::iter::once((&plan.switches, &plan.ports))
        .chain(groups)
        .filter(|(switches, _)| switches[switch].memory.headroom_beside)
        .flat_map(|(_, ports)| &ports[own.clone()])
        .map(|port| port.headroom.get().saturating_mul(channels))
        .fold(0, u64::saturating_add);
    // Each port and class with PFC has a guarantee, or each queue without.
    let holders =
        own.len() as u64 * (Classes::MOST as u64).max(channels * (1 + plan.own_queues.groups.len() as u64));
    let buffer = plan.switches[switch].buffer.get();
    buffer.saturating_add(beside).saturating_add(memory.guarantee.get().saturating_mul(2 * holders))
}

/// Series whose sums differ from the totals of the run.
pub(crate) fn unlike_totals(run: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    let qps = || run.recording.qps.iter().flat_map(|(_, bins)| bins);
    let mut check = |what: &str, series: u64, total: u64| {
        if series != total {
            wrong.push(format!("{what}: {series} in the series, {total} in the run"));
        }
    };
    check("retransmitted", qps().map(|b| b.retransmitted).sum(), run.data.retransmitted);
    check("packets", qps().map(|b| b.packets).sum(), run.data.sent);
    check("out of order", qps().map(|b| b.out_of_order).sum(), run.data.out_of_order);
    check("timeouts", qps().map(|b| b.timeouts).sum(), run.control.timeout);
    let arrived = run.data.accepted + run.data.duplicate + run.data.discarded;
    check("arrived", qps().map(|b| b.arrived).sum(), arrived);
    for ((link, bins), record) in run.recording.links.iter().zip(&run.links) {
        check(&format!("frames of link {link}"), bins.iter().map(|b| b.frames).sum(), record.frames);
        check(&format!("marks of link {link}"), bins.iter().map(|b| b.marks).sum(), record.marks);
        let longest = bins.iter().map(|b| b.max_queue).max().unwrap_or(0);
        check(&format!("longest queue of link {link}"), longest, record.max_queue);
    }
    for ((node, bins), most) in run.recording.switches.iter().zip(&run.max_buffer) {
        check(&format!("buffer of node {node}"), bins.iter().copied().max().unwrap_or(0), most.get());
    }
    for ((name, bins), (_, total)) in run.recording.counters.iter().zip(&run.counters) {
        check(name, bins.last().copied().unwrap_or(0), *total);
    }
    if let Some(end) = run.end.ps().checked_div(run.recording.width.ps()) {
        check("bins up to the end", run.recording.bins as u64, end + 1);
    }
    wrong
}
