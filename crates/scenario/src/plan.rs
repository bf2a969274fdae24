//! Making the plan of a resolved scenario.

use crate::config::Scenario;
use crate::failure::{self, FailurePlanner};
use crate::footprint::MemoryBudget;
use crate::ideal::Ideals;
use crate::loss::LossPlanner;
use crate::switch::{EffectiveSwitch, RoleConfig};
use crate::telemetry;
use crate::topology::Ground;
use crate::values::LATEST;
use crate::workload::draft::{Draft, Graph, Sorted};
use crate::workload::ranks::Ranks;
use crate::workload::split::Added;
use crate::workload::{Paths, Split, Workload};
use finding::{Finding, code, suggestion};
use model::draw::{Key, Purpose, scaled};
use model::fabric::Link;
use model::plan::{Group, Job, Message, OwnQueues, PortSettings, Qp, SwitchSettings};
use model::{Fabric, HostId, Kind, NodeId, Plan, Time, Wire};
use rnic::window::Window;
use rnic::{Acks, NicConfig, TransportConfig};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Largest difference of two clocks. A packet carries its one-way delay, measured by two clocks, in 48 bits of picoseconds
/// (140 s in each direction).
const MOST_SPREAD: Time = Time::from_ms(60_000);

/// Makes the plan and its warnings; refuses a plan that does not fit into `memory`.
pub(crate) fn plan(scenario: &Scenario, memory: &mut MemoryBudget) -> Result<(Plan, Vec<Finding>), Finding> {
    if scenario.seed > i64::MAX as u64 {
        // TOML cannot write a larger number, and the results of a run must contain its seed.
        return Err(code::RANGE
            .at("seed", format!("expected a seed of at most {}, found {}", i64::MAX, scenario.seed)));
    }
    let mut warnings = Vec::new();
    let wire = telemetry::on_wire(scenario, scenario.wire.wire(scenario.compat)?)?;
    let server = scenario.server.map(|server| server.server().map_err(|e| e.within("server"))).transpose()?;
    let ground = Ground { loss: scenario.links.loss.probability(), server: server.as_ref() };
    let fabric = scenario.topology.lay(&ground, memory)?;
    let (ports, switches) = switches(scenario, &fabric, &wire, &mut warnings)?;
    let (classes, own_queues) = classes(scenario, &fabric, &wire, &mut warnings)?;
    let ranks = Ranks::new(&fabric, server)?;
    let (graph, jobs) = workload(scenario, (&fabric, &ranks), &wire, memory, &mut warnings)?;
    let traffic_classes = scenario.traffic_classes()?.into_iter().map(str::to_owned).collect();
    let Sorted { qps, messages, tasks, operations, triggers, wholes } = graph.sorted();
    for qp in &qps {
        if !fabric.reaches(qp.from, qp.to) {
            let job = messages[qp.messages.start as usize].job;
            let name = |h: HostId| fabric.host_name(h);
            let text = format!("no path leads from {} to {}", name(qp.from), name(qp.to));
            return Err(code::NO_PATH.at(&format!("workload.{job}"), text));
        }
    }
    let losses = LossPlanner { fabric: &fabric, wire: &wire, qps: &qps, messages: &messages, jobs: &jobs };
    let lost = losses.plan(&scenario.links.lose, &mut warnings).map_err(|f| f.within("links.lose"))?;
    let failures = FailurePlanner { fabric: &fabric, seed: scenario.seed, latest: LATEST };
    let failures = failures.plan(&scenario.failure, &scenario.routing, memory)?;
    let sharing = server.as_ref().and_then(|server| server.sharing(&failures));
    failure::warn_of_cuts(&failures, (&fabric, sharing), (&qps, &messages, &jobs), &mut warnings);
    let stop = &scenario.stop;
    if let Some(time) = stop.no_progress.filter(|time| *time == Time::ZERO || *time > LATEST) {
        let text = format!("expected a time above 0 and at most {LATEST}, found {time}");
        return Err(code::RANGE.at("stop.no-progress", text));
    }
    if let Some(after) = stop.after.filter(|after| *after == Time::ZERO || *after > LATEST) {
        let text = format!("expected a time above 0 and at most {LATEST}, found {after}");
        return Err(code::RANGE.at("stop.after", text));
    }
    if scenario.nic.clock_spread > MOST_SPREAD {
        return Err(code::RANGE.at(
            "nic.clock-spread",
            format!("expected at most {MOST_SPREAD}, found {}", scenario.nic.clock_spread),
        ));
    }
    let record = scenario.record.plan(&fabric, &qps, &messages)?;
    let mut plan = Plan {
        seed: scenario.seed,
        fabric,
        wire,
        classes,
        own_queues,
        digest: None,
        ports,
        switches,
        lose_replies: scenario.links.lose_replies,
        lost,
        failures,
        qps,
        sharing,
        messages,
        wholes,
        tasks,
        operations,
        triggers,
        jobs,
        traffic_classes,
        clock_spread: scenario.nic.clock_spread,
        stop_after: stop.after,
        posted: None,
        no_progress: Time::ZERO,
        record,
    };
    let nics = nics(scenario, &plan);
    spreading(&plan, &nics)?;
    pausing(&plan)?;
    let mut of_nics: Vec<Finding> = Vec::new();
    for (path, nic) in &nics {
        let mut own = Vec::new();
        plan.no_progress = plan.no_progress.max(patience(nic, scenario.stop.no_progress, &plan, &mut own));
        own.extend(unanswered(nic, &plan));
        of_nics.extend(own.into_iter().map(|warning| warning.within(path)));
    }
    of_nics.dedup_by(|one, other| one.text == other.text);
    warnings.append(&mut of_nics);
    warnings.extend(capped(scenario, &plan));
    plan.digest = telemetry::digest(scenario, &plan)?;
    telemetry::check(scenario, &plan)?;
    crate::plan_check(&plan)
        .map_err(|broken| code::BUG.at("", format!("this is a bug of ropewalk: {broken}")))?;
    Ok((plan, warnings))
}

/// Most bits in a mask of pauses.
const MOST_PRIORITIES: usize = u8::BITS as usize;

/// Checks that ports can pause each class by itself.
fn pausing(plan: &Plan) -> Result<(), Finding> {
    let own = &plan.own_queues.groups;
    let lossless = |settings: &SwitchSettings| settings.flow_control.is_lossless();
    if own.is_empty() || !plan.settings_of_groups().flatten().any(lossless) {
        return Ok(());
    }
    let error = |text: String| Err(code::RANGE.at("switch.classes", text));
    let channels = usize::from(plan.fabric.channels());
    if (1 + own.len()) * channels > MOST_PRIORITIES {
        return error(format!(
            "{} classes have `of`; with PFC, links with {channels} virtual channels allow {}",
            own.len(),
            MOST_PRIORITIES / channels - 1
        ));
    }
    for (i, node) in plan.fabric.switches().enumerate() {
        let base = plan.fabric.base(node) as usize;
        let all = std::iter::once((&plan.ports, &plan.switches));
        let groups = all.chain(own.iter().map(|group| (&group.ports, &group.switches)));
        let kept: u64 = groups
            .filter(|(_, switches)| lossless(&switches[i]))
            .flat_map(|(ports, _)| ports[base..].iter().zip(plan.fabric.ports(node)))
            .map(|(port, link)| {
                let came = plan.fabric.reverse(plan.fabric.link(link.from, link.port));
                let channels = plan.fabric.channels_on(&plan.fabric.links()[came.index()]);
                port.headroom.get().saturating_mul(channels.into())
            })
            .fold(0, u64::saturating_add);
        let buffer = plan.switches[i].buffer;
        if kept >= buffer.get() {
            return error(format!(
                "the headrooms of {}'s ports for all classes take {} of its buffer of {buffer}; no shared buffer is left",
                plan.fabric.name(node),
                model::Bytes(kept),
            ));
        }
    }
    if plan.sharing.is_some() {
        let text = "a class with `of` needs `pfc = \"off\"` in all classes where ports share the queue pairs of their NIC \
                    (`server.port-use`): a pause cannot hold back some of them";
        return error(text.to_owned());
    }
    Ok(())
}

/// Checks that queue pairs which spread over ports have a transport that lets them, and planes.
fn spreading(plan: &Plan, nics: &[(String, NicConfig)]) -> Result<(), Finding> {
    let Some(sharing) = plan.sharing.filter(|sharing| sharing.choice == model::PortChoice::Spread) else {
        return Ok(());
    };
    if let Some((_, nic)) = nics.iter().find(|(_, nic)| !nic.transport.facts().sacks) {
        let able = TransportConfig::all().filter(|transport| transport.facts().sacks);
        let names: Vec<String> = able.map(|transport| format!("`{}`", transport.name())).collect();
        let text = format!(
            "to spread, expected a transport that reports every packet ({}), found `{}`",
            names.join(", "),
            nic.transport.name()
        );
        return Err(code::NEEDS.at("server.port-use", text));
    }
    let apart =
        |qp: &&Qp| sharing.open(&plan.fabric, None, qp.from, qp.to).count_ones() < sharing.ports.into();
    if let Some(qp) = plan.qps.iter().find(apart) {
        let [from, to] = [qp.from, qp.to].map(|host| plan.fabric.host_name(sharing.home(host)));
        let text = format!(
            "to spread, expected a path between all ports of equal number, and the NICs of {from} and {to} have fewer"
        );
        return Err(code::NEEDS.at("server.port-use", text));
    }
    Ok(())
}

/// The NICs of all traffic classes with flows: the scenario's, a class's own, or the one that its scheme brings. Each stands beside
/// its path in the scenario.
fn nics(scenario: &Scenario, plan: &Plan) -> Vec<(String, NicConfig)> {
    let mut nics: Vec<(String, NicConfig)> = Vec::new();
    for job in &plan.jobs {
        let class = plan.traffic_classes.get(usize::from(job.class)).map_or("foreground", String::as_str);
        let nic = scenario.nic_of(class);
        if nics.iter().all(|(_, other)| *other != nic) {
            nics.push((scenario.nic_path(class), nic));
        }
    }
    nics
}

/// Least time without progress after which a run gives up. Our choice.
const LEAST_PATIENCE: Time = Time::from_ms(100);

/// Time without progress after which the run gives up: long enough for ten retransmission timeouts, ten round trips and ten
/// pauses of a NIC. Warns of timeouts that are shorter than a round trip; the paths of warnings start at the NIC.
fn patience(nic: &NicConfig, given: Option<Time>, plan: &Plan, warnings: &mut Vec<Finding>) -> Time {
    let span = nic.timeout.span();
    let timeout =
        if span == Time::NEVER { Time::ZERO } else { nic.backoff.map_or(span, |b| b.cap.max(span)) };
    let acks = nic.transport.facts().acks;
    let acks_messages = matches!(acks, Acks::Messages(_));
    let every = if nic.ack_per_message { u64::MAX } else { nic.ack_every.into() };
    let packets = acks.packets(every, plan.wire.max_frame().into());
    let until_ack = |message: &Message| message.bytes.min(packets.saturating_mul(plan.wire.payload.into()));
    // Where ACKs concern whole messages, the timer runs from the last packet on.
    let spent = |message: &Message| {
        let before_last = plan.wire.packets(until_ack(message)) - 1;
        let link = plan.fabric.uplink(plan.qps[message.qp.index()].from);
        let frame = plan.wire.transmission(link.rate, plan.wire.max_frame());
        Time(frame.ps().saturating_mul(if acks_messages { before_last } else { 0 }))
    };
    let shortest = nic.transport.other_timeout().into_iter().chain([("nic.timeout".to_owned(), span)]);
    let (key, shortest) = shortest.min_by_key(|(_, time)| *time).unwrap_or_default();
    let limit = given.unwrap_or(Time(LEAST_PATIENCE.ps() / 10)).min(shortest);
    let farthest = farthest(plan, limit, &until_ack, &spent);
    let rtt = farthest.map_or(Time::ZERO, |(_, rtt)| rtt);
    if let Some((qp, rtt)) = farthest.filter(|(_, rtt)| *rtt > shortest) {
        let name = |host| plan.fabric.host_name(host);
        let what = match acks {
            Acks::Messages(_) => "time from the last packet of a message until its ACK comes back:",
            Acks::Bytes { .. } if packets > 1 => "time until an ACK (`ack-bytes`) comes back:",
            Acks::Packets if nic.ack_per_message => {
                "time until the only ACK of a message (`nic.ack-per-message`) comes back:"
            }
            Acks::Packets if nic.ack_every > 1 => "time until an ACK (`nic.ack-every`) comes back:",
            _ => "round trip of",
        };
        let text = format!(
            "the retransmission timeout of {shortest} (`{key}`) is shorter than the {what} {:.1} us from {} to {}; \
             packets are sent again although none is lost",
            rtt.as_us(),
            name(qp.from),
            name(qp.to)
        );
        warnings.push(code::TIMEOUT.at(key.trim_start_matches("nic."), text));
    }
    let ten = |time: Time| Time(time.ps().saturating_mul(10));
    let Some(given) = given else {
        let pause = longest_pause(nic, plan);
        return LEAST_PATIENCE.max(ten(timeout)).max(ten(rtt)).max(ten(pause)).min(LATEST);
    };
    let patience = ten(timeout).max(rtt);
    if given < patience {
        let (of, have) = match ten(timeout) >= rtt {
            true => ("ten retransmission timeouts", "have"),
            false => ("a round trip", "has"),
        };
        let text = format!(
            "with `stop.no-progress = \"{given}\"` the run gives up before {of} ({:.1} us) {have} passed",
            patience.as_us()
        );
        warnings.push(code::PATIENCE.at("stop.no-progress", text).rooted());
    }
    given
}

/// Longest time that a NIC may put between two packets of a queue pair: at its lowest rate or smallest window, or while it
/// stalls.
fn longest_pause(nic: &NicConfig, plan: &Plan) -> Time {
    let frame = u64::from(plan.wire.max_frame() + plan.wire.gap);
    let gap = |rtt| nic.congestion.longest_gap(frame, rtt);
    let gap = match gap(Time::ZERO) == gap(LEAST_PATIENCE) {
        true => gap(Time::ZERO),
        false => gap(Ideals::on_slowest_paths(plan).longest_rtt()),
    };
    gap.max(nic.on_nack.stall()).max(nic.on_timeout.stall())
}

/// The warning that a sender may have to wait for its retransmission timeout, because its window is full before its receiver
/// owes it an ACK. Its path starts at the NIC.
fn unanswered(nic: &NicConfig, plan: &Plan) -> Option<Finding> {
    if nic.transport.facts().acks != Acks::Packets {
        return None; // senders ask for ACKs when their window is full
    }
    let longest = plan.messages.iter().map(|message| plan.wire.packets(message.bytes)).max().unwrap_or(0);
    let (owed, key, value) = match nic.ack_per_message {
        true => (longest, "ack-per-message", "true".to_owned()),
        false => (longest.min(nic.ack_every.into()), "ack-every", nic.ack_every.to_string()),
    };
    let window = match &nic.window {
        Some(window) if (nic.window_scales_with_rate && owed > 1) || least(window, nic, plan) < owed => {
            Some("`nic.window`".to_owned())
        }
        _ => (nic.build().most_outstanding(plan.wire.payload) < owed)
            .then(|| format!("the window of `{}`", nic.transport.name())),
    };
    let control = || {
        let in_replies = nic.congestion.facts().evidence.is_in_replies();
        in_replies.then(|| format!("the window of `{}`", nic.congestion.name()))
    };
    let window = window.or_else(control).filter(|_| owed > 1)?;
    let text = format!(
        "with `nic.{key} = {value}` an ACK comes after up to {owed} packets; where {window} holds fewer, a sender waits for its \
         retransmission timeout"
    );
    Some(code::FEW_ACKS.at(key, text))
}

/// Least number of packets that `window` lets a queue pair have outstanding at line rate.
fn least(window: &Window, nic: &NicConfig, plan: &Plan) -> u64 {
    if let Window::Bytes(_) = window {
        return nic.build().most_outstanding(plan.wire.payload);
    }
    let (paths, path_of) = crate::parts::paths_of(plan);
    let packets = |(qp, path): (&Qp, &u32)| window.packets(plan.line(qp.from), &paths[*path as usize]);
    plan.qps.iter().zip(&path_of).map(packets).min().unwrap_or(u64::MAX)
}

/// The warning that a cap drops data although PFC pauses senders.
fn capped(scenario: &Scenario, plan: &Plan) -> Option<Finding> {
    let lossless = |settings: &SwitchSettings| settings.flow_control.is_lossless();
    let pauses = |group: u8| match plan.own_queues.groups.get(usize::from(group).wrapping_sub(1)) {
        None => scenario.switch.pfc.get().is_some(),
        Some(group) => group.switches.iter().any(lossless),
    };
    let mut classes = plan.classes.all().iter().filter(|class| class.kinds.has(Kind::Data));
    let capped = classes.any(|class| class.charged && class.cap.is_some() && pauses(class.group));
    let text = "the class of data has a `cap` in `switch.classes`: packets beyond it are dropped, although PFC is on";
    capped.then(|| code::CAP.at("switch.classes", text))
}

/// Most links that a path is expected to have. Our choice.
const LONGEST_PATH: u64 = 64;

/// The queue pair that may wait longest for its first ACK on the idle fabric; `None` if all wait surely less than `limit`. An ACK
/// comes after `until_ack` bytes of a message, and the wait begins after the time `spent`.
fn farthest<'p>(
    plan: &'p Plan,
    limit: Time,
    until_ack: &dyn Fn(&Message) -> u64,
    spent: &dyn Fn(&Message) -> Time,
) -> Option<(&'p Qp, Time)> {
    let bytes = plan.messages.iter().map(until_ack).max().unwrap_or(0);
    let packets = plan.wire.packets(bytes);
    let frame = |link: &Link| plan.wire.transmission(link.rate, plan.wire.max_frame());
    let reach = |link: &Link| link.delay + frame(link);
    let longest = plan.fabric.links().iter().map(reach).max().unwrap_or(Time::ZERO);
    let slowest = plan.fabric.links().iter().map(frame).max().unwrap_or(Time::ZERO);
    let most =
        longest.ps().saturating_mul(2 * LONGEST_PATH).saturating_add(slowest.ps().saturating_mul(packets));
    if most < limit.ps() {
        return None;
    }
    let mut ideals = Ideals::on_slowest_paths(plan);
    let waits = plan.messages.iter().map(|message| {
        let qp = &plan.qps[message.qp.index()];
        let wait = match ideals.fct(qp.from, qp.to, until_ack(message)) {
            Time::NEVER => Time::NEVER,
            wait => Time(wait.ps().saturating_sub(spent(message).ps())),
        };
        (qp, wait)
    });
    waits.filter(|(_, wait)| *wait < Time::NEVER).max_by_key(|(_, wait)| *wait)
}

fn switches(
    scenario: &Scenario,
    fabric: &Fabric,
    wire: &Wire,
    warnings: &mut Vec<Finding>,
) -> Result<(Vec<PortSettings>, Vec<SwitchSettings>), Finding> {
    let roles: BTreeSet<&str> = fabric.switches().map(|node| fabric.role(node)).collect();
    let known: Vec<&str> = roles.into_iter().collect();
    for name in scenario.switch_role.keys() {
        if !known.contains(&name.as_str()) {
            let text = format!("no switch has the role `{name}`; {}", suggestion(name, &known));
            let mut error = code::UNKNOWN_NAME.at("switch-role", text);
            error.key.push(name.clone());
            error.at_key = true;
            return Err(error);
        }
    }
    settled(scenario, fabric, wire, None, warnings)
}

/// The settings of all ports and switches, or those of a class with settings of its own.
fn settled(
    scenario: &Scenario,
    fabric: &Fabric,
    wire: &Wire,
    class: Option<(usize, &RoleConfig)>,
    warnings: &mut Vec<Finding>,
) -> Result<(Vec<PortSettings>, Vec<SwitchSettings>), Finding> {
    let mut ports = vec![PortSettings::default(); fabric.links().len()];
    let mut switches = Vec::new();
    for node in fabric.switches() {
        let role = fabric.role(node);
        let own = scenario.switch_role.get_key_value(role).map(|(name, config)| (name.as_str(), config));
        let base = fabric.base(node) as usize;
        let mine = &mut ports[base..base + fabric.ports(node).len()];
        let mut about = Vec::new();
        switches.push(
            EffectiveSwitch::new(&scenario.switch, own, class)
                .settle(fabric, wire, node, mine, &mut about)?,
        );
        if warnings.is_empty() {
            // One warning is enough: a fabric may have hundreds of equal switches.
            warnings.extend(about.into_iter().take(1));
        }
    }
    Ok((ports, switches))
}

/// The classes of ports, and the queues that belong to some flows alone.
fn classes(
    scenario: &Scenario,
    fabric: &Fabric,
    wire: &Wire,
    warnings: &mut Vec<Finding>,
) -> Result<(model::plan::Classes, OwnQueues), Finding> {
    let flows = scenario.traffic_classes()?;
    let probes = flows.iter().any(|class| scenario.nic_of(class).transport.probes());
    let (classes, rows) = scenario.switch.classes.plan(wire, &flows, probes)?;
    let mut groups = Vec::new();
    for (i, class) in scenario.switch.classes.own() {
        let (ports, switches) = settled(scenario, fabric, wire, Some((i, &class.own())), warnings)?;
        groups.push(Group { ports, switches });
    }
    Ok((classes, OwnQueues { rows, groups }))
}

/// The splitting of a job's messages: that of the workload, or that of a scheme that follows pinned paths.
fn split_of(
    scenario: &Scenario,
    entry: &Workload,
    warnings: &mut Vec<Finding>,
) -> Result<Option<Split>, Finding> {
    let scheme = scenario.scheme_of(entry.class());
    let pinned = scheme.facts().pinned;
    if entry.program.is_some() {
        let text = "a program posts its messages itself, so they cannot be split";
        return entry.split.map_or(Ok(None), |_| Err(code::CONFLICT.at("split", text)));
    }
    let Some(split) = entry.split else { return Ok(pinned.then(Split::default)) };
    if split.paths == Paths::Pinned && !pinned {
        let text = format!(
            "the workload `{}` pins the subflows of its messages to paths, but `{}` chooses paths by itself; \
             `split.paths = \"free\"` says so",
            entry.name.as_deref().unwrap_or_default(),
            scheme.name()
        );
        warnings.push(code::NO_EFFECT.at("split.paths", text));
    }
    Ok(Some(split))
}

fn workload(
    scenario: &Scenario,
    (fabric, ranks): (&Fabric, &Ranks),
    wire: &Wire,
    memory: &mut MemoryBudget,
    warnings: &mut Vec<Finding>,
) -> Result<(Graph, Vec<Job>), Finding> {
    if scenario.workload.is_empty() {
        return Err(
            code::MISSING.at("workload", "the scenario has no [[workload]], so there is nothing to send")
        );
    }
    if scenario.workload.len() > usize::from(u16::MAX) {
        return Err(code::RANGE.at("workload", "expected at most 65535 workloads, found more"));
    }
    let hosts: BTreeMap<Cow<'_, str>, HostId> =
        (0..fabric.hosts()).map(|h| HostId(h as u32)).map(|h| (fabric.host_name(h), h)).collect();
    if hosts.len() < fabric.hosts() {
        let text =
            "a host has the name of another host's port; ports of host `h` are named `hp0`, `hp1`, and so on";
        return Err(code::TWICE.at("topology", text));
    }
    let classes = scenario.traffic_classes()?;
    let mut graph = Graph::default();
    let mut jobs = Vec::new();
    for (i, entry) in scenario.workload.iter().enumerate() {
        let path = format!("workload.{i}");
        if entry.start > LATEST {
            return Err(code::RANGE.at(
                &format!("{path}.start"),
                format!("expected a start before {LATEST}, found {}", entry.start),
            ));
        }
        if let Some(jitter) = entry.jitter.filter(|jitter| *jitter > LATEST) {
            let text = format!("expected at most {LATEST}, found {jitter}");
            return Err(code::RANGE.at(&format!("{path}.jitter"), text));
        }
        let mut draft = Draft {
            fabric,
            hosts: &hosts,
            key: Key::new(scenario.seed, Purpose::Workload, i as u64),
            common: Key::new(scenario.seed, Purpose::Workload, u64::MAX),
            job: i as u16,
            start: entry.start,
            qp: entry.qp.unwrap_or_else(|| entry.usual_qp()),
            graph: &mut graph,
            ranks,
            kind: entry.one_kind()?,
            memory: &mut *memory,
            wire,
            warnings: Vec::new(),
            tokens: 0,
        };
        let added = Added { message: draft.graph.messages.len(), cause: draft.graph.causes.len() };
        let first_task = draft.graph.tasks.len();
        let groups = entry.generate(&mut draft).map_err(|error| error.within(&path))?;
        let mut own = std::mem::take(&mut draft.warnings);
        own = own.into_iter().map(|warning| warning.within(draft.kind)).collect();
        if let Some(jitter) = entry.jitter {
            let key = Key::new(scenario.seed, Purpose::Jitter, i as u64);
            let late = |node: NodeId| Time(scaled(key.draw(node.0.into()), jitter.ps() + 1));
            draft.graph.delay((added.message, first_task), |host| fabric.node_of(host), late);
        }
        if let Some(split) = split_of(scenario, entry, &mut own).map_err(|error| error.within(&path))? {
            split.apply(&mut draft, added, Key::new(scenario.seed, Purpose::Split, i as u64))?;
        }
        let tokens = draft.tokens;
        warnings.extend(own.into_iter().map(|warning| warning.within(&path)));
        if let Some(late) = graph.messages.iter().find(|m| m.start > LATEST) {
            return Err(
                code::RANGE.at(&path, format!("expected a start before {LATEST}, found {}", late.start))
            );
        }
        jobs.push(Job {
            name: entry.name.clone().unwrap_or_default(),
            start: entry.start,
            groups: groups as u16,
            background: entry.background,
            class: classes.iter().position(|class| *class == entry.class()).unwrap_or_default() as u8,
            tokens,
        });
    }
    let programs: Vec<usize> =
        (0..scenario.workload.len()).filter(|&i| scenario.workload[i].program.is_some()).collect();
    if let [_, second, ..] = programs[..] {
        return Err(
            code::CONFLICT.at(&format!("workload.{second}.program"), "a run has one program, found two")
        );
    }
    if let [only] = programs[..]
        && jobs[only].background
    {
        let text = "the workload of a program cannot be background traffic";
        return Err(code::CONFLICT.at(&format!("workload.{only}.background"), text));
    }
    if jobs.iter().all(|job| job.background) {
        let text = "all workloads are background, so the run would end at once";
        return Err(code::CONFLICT.at("workload.0.background", text));
    }
    Ok((graph, jobs))
}
