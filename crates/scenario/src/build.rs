//! From a scenario to a plan.

use crate::config::{Compat, Scenario, WireConfig};
use crate::error::{Fault, suggestion};
use crate::failure::{self, FailurePlanner};
use crate::footprint::MemoryBudget;
use crate::loss::LossPlanner;
use crate::switch::EffectiveSwitch;
use crate::telemetry;
use crate::values::LATEST;
use crate::workload::draft::{Draft, DraftMessage, Messages, StartOn};
use model::draw::{Key, Purpose};
use model::plan::{Job, Message, PortSettings, Qp};
use model::{Bytes, Fabric, HostId, MessageId, Packet, Plan, QpId, Time, Wire};
use rnic::notification::Cnp;
use rnic::{OnNack, Reaction};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Most by which clocks differ: a packet tells how long it took, by two clocks, in 48 bits of picoseconds (140 s each way).
const MOST_SPREAD: Time = Time::from_ms(60_000);

/// What the user wrote, of the keys whose default depends on others.
pub(crate) struct ExplicitKeys {
    pub(crate) cnp: bool,
    pub(crate) on_nack: bool,
}

/// Fills in what depends on other keys, so that the scenario says everything about itself.
pub(crate) fn resolve(scenario: &mut Scenario, explicit: ExplicitKeys) -> Result<(), Fault> {
    let wire = wire(&scenario.wire, scenario.compat)?;
    scenario.wire = WireConfig { frame: Some(Bytes(u64::from(wire.header + wire.payload))), payload: None };
    let nic = &mut scenario.nic;
    nic.congestion.resolve();
    if !explicit.cnp {
        let compat = (scenario.compat == Some(Compat::Ns3)).then_some(Cnp::Flag);
        nic.cnp = nic.congestion.facts().evidence.cnp().or(compat).unwrap_or(nic.cnp);
    }
    match nic.transport.facts().on_nack {
        OnNack::Unused if explicit.on_nack && nic.on_nack != Reaction::None => {
            let name = nic.transport.name();
            let text = format!("with `transport.{name}` nobody NACKs: a reaction to NACKs has no meaning");
            return Err(Fault::new("nic.on-nack", text).with_help(
                "leave `on-nack` out or set it to \"none\"; `on-timeout` is what a loss does to the rate",
            ));
        }
        OnNack::Unused => nic.on_nack = Reaction::None,
        OnNack::Default(reaction) if !explicit.on_nack => nic.on_nack = reaction,
        OnNack::Default(_) => {}
    }
    let mut taken: BTreeSet<String> = scenario.workload.iter().filter_map(|e| e.name.clone()).collect();
    let mut seen = BTreeSet::new();
    for (i, entry) in scenario.workload.iter_mut().enumerate() {
        let kind = entry.one_kind().map_err(|f| f.within(&format!("workload.{i}")))?;
        let name = entry.name.get_or_insert_with(|| {
            let numbered = (1..).map(|n| if n == 1 { kind.to_owned() } else { format!("{kind}-{n}") });
            let free = numbered.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
            taken.insert(free.clone());
            free
        });
        if name.is_empty() || !seen.insert(name.clone()) {
            let text = format!("two workloads are named `{name}`; a name must be unique and not empty");
            return Err(Fault::new(&format!("workload.{i}.name"), text));
        }
        entry.qp.get_or_insert(entry.usual_qp());
    }
    Ok(())
}

/// Reads the files that workloads name; `folder` is where the scenario stands.
pub(crate) fn read_files(scenario: &mut Scenario, folder: &Path) -> Result<(), Fault> {
    for (i, entry) in scenario.workload.iter_mut().enumerate() {
        entry.read_files(folder).map_err(|fault| fault.within(&format!("workload.{i}")))?;
    }
    Ok(())
}

/// Lays out the plan where there is room for it; the second part is warnings.
pub(crate) fn plan(scenario: &Scenario, memory: &mut MemoryBudget) -> Result<(Plan, Vec<String>), Fault> {
    if scenario.seed > i64::MAX as u64 {
        // TOML could not write it down, and a result must be able to say how to repeat it.
        return Err(Fault::new("seed", format!("a seed is at most {}, found {}", i64::MAX, scenario.seed)));
    }
    let mut warnings = Vec::new();
    let wire = telemetry::on_wire(scenario, wire(&scenario.wire, scenario.compat)?)?;
    let fabric = scenario.topology.lay(scenario.links.loss.probability(), memory)?;
    if telemetry::wanted(scenario).is_some() {
        memory.add_telemetry(fabric.hosts())?;
    }
    let (ports, switches) = switches(scenario, &fabric, &wire, &mut warnings)?;
    let (messages, jobs) = workload(scenario, &fabric, &wire, memory, &mut warnings)?;
    let traffic_classes = traffic_classes(scenario)?.into_iter().map(str::to_owned).collect();
    let (qps, messages, triggers) = sort(messages);
    for qp in &qps {
        if !fabric.reaches(qp.from, qp.to) {
            let job = messages[qp.messages.start as usize].job;
            let name = |h: HostId| fabric.name(h.node());
            let text = format!("no path leads from {} to {}", name(qp.from), name(qp.to));
            return Err(Fault::new(&format!("workload.{job}"), text));
        }
    }
    let losses = LossPlanner { fabric: &fabric, wire: &wire, qps: &qps, messages: &messages, jobs: &jobs };
    let lost = losses.plan(&scenario.links.lose, &mut warnings).map_err(|f| f.within("links.lose"))?;
    let failures = FailurePlanner { fabric: &fabric, seed: scenario.seed, latest: LATEST };
    let failures = failures.plan(&scenario.failure, &scenario.routing, memory)?;
    failure::warn_of_cuts(&failures, &fabric, (&qps, &messages, &jobs), &mut warnings);
    let stop = &scenario.stop;
    let patience = ten_timeouts(&scenario.nic);
    let no_progress = stop.no_progress.unwrap_or(patience.max(Time::from_ms(100)).min(LATEST));
    if stop.no_progress.is_some() && no_progress < patience {
        warnings.push(format!(
            "with `stop.no-progress = \"{no_progress}\"` the run gives up before ten retransmission timeouts, \
             {patience}, have passed"
        ));
    }
    if no_progress == Time::ZERO || no_progress > LATEST {
        let text = format!("`no-progress` must be above 0 and at most {LATEST}");
        return Err(Fault::new("stop.no-progress", text));
    }
    if stop.after.is_some_and(|after| after == Time::ZERO || after > LATEST) {
        return Err(Fault::new("stop.after", format!("`after` must be above 0 and at most {LATEST}")));
    }
    if scenario.nic.clock_spread > MOST_SPREAD {
        return Err(Fault::new("nic.clock-spread", format!("clocks are at most {MOST_SPREAD} apart")));
    }
    let record = scenario.record.plan(&fabric, &qps, &messages)?;
    let plan = Plan {
        seed: scenario.seed,
        fabric,
        wire,
        classes: scenario.switch.classes.into(),
        ports,
        switches,
        lose_replies: scenario.links.lose_replies,
        lost,
        failures,
        qps,
        messages,
        triggers,
        jobs,
        traffic_classes,
        clock_spread: scenario.nic.clock_spread,
        stop_after: stop.after,
        no_progress,
        record,
    };
    telemetry::check(scenario, &plan)?;
    crate::plan_check(&plan).map_err(|broken| Fault::new("", format!("a mistake in ropewalk: {broken}")))?;
    Ok((plan, warnings))
}

/// Ten of the longest retransmission timeouts that the NIC can take; none without a timer.
fn ten_timeouts(nic: &rnic::NicConfig) -> Time {
    let span = nic.timeout.span();
    if span == Time::NEVER {
        return Time::ZERO;
    }
    let longest = nic.backoff.map_or(span, |b| b.cap.max(span));
    Time(longest.ps().saturating_mul(10))
}

fn wire(config: &WireConfig, compat: Option<Compat>) -> Result<Wire, Fault> {
    let (header, default) = match compat {
        Some(Compat::Ns3) => (Wire::ns3(1).header, Wire::ns3(1000).max_frame()),
        None => (Wire::roce(1500).header, 1500),
    };
    let (frame, path) = match (config.frame, config.payload) {
        (Some(_), Some(_)) => {
            return Err(Fault::new("wire.payload", "either `frame` or `payload`, not both"));
        }
        (None, Some(payload)) => (payload.get().saturating_add(u64::from(header)), "wire.payload"),
        (frame, None) => (frame.map_or(u64::from(default), Bytes::get), "wire.frame"),
    };
    // A data frame of 64 B is the least on Ethernet.
    let least = u64::from(header + 2);
    if frame < least || frame > u64::from(Packet::MAX_FRAME) {
        let text =
            format!("a frame of {frame} B; between {least} B and {} B are possible", Packet::MAX_FRAME);
        return Err(Fault::new(path, text).with_help(format!("headers take {header} B of a frame")));
    }
    let frame = frame as u32;
    Ok(match compat {
        Some(Compat::Ns3) => Wire::ns3(frame - header),
        None => Wire::roce(frame),
    })
}

fn switches(
    scenario: &Scenario,
    fabric: &Fabric,
    wire: &Wire,
    warnings: &mut Vec<String>,
) -> Result<(Vec<PortSettings>, Vec<model::plan::SwitchSettings>), Fault> {
    let roles: BTreeSet<&str> = fabric.switches().map(|node| fabric.role(node)).collect();
    let known: Vec<&str> = roles.into_iter().collect();
    for name in scenario.switch_role.keys() {
        if !known.contains(&name.as_str()) {
            let text = format!("no switch has the role `{name}`; {}", suggestion(name, &known));
            let mut fault = Fault::new("switch-role", text);
            fault.path.push(name.clone());
            fault.key = true;
            return Err(fault);
        }
    }
    let mut ports = vec![PortSettings::default(); fabric.links().len()];
    let mut switches = Vec::new();
    for node in fabric.switches() {
        let role = fabric.role(node);
        let own = scenario.switch_role.get_key_value(role).map(|(name, config)| (name.as_str(), config));
        let base = fabric.base(node) as usize;
        let mine = &mut ports[base..base + fabric.ports(node).len()];
        let mut about = Vec::new();
        switches
            .push(EffectiveSwitch::new(&scenario.switch, own).settle(fabric, wire, node, mine, &mut about)?);
        if warnings.is_empty() {
            // One switch speaks for all: a fabric may have hundreds alike.
            warnings.extend(about.into_iter().take(1));
        }
    }
    Ok((ports, switches))
}

/// The names of the traffic classes: those that need no table, then those that have one.
pub(crate) fn traffic_classes(scenario: &Scenario) -> Result<Vec<&str>, Fault> {
    let mut names = vec!["foreground", "background"];
    names.extend(
        scenario.class.keys().map(String::as_str).filter(|name| !["foreground", "background"].contains(name)),
    );
    if names.len() > usize::from(u8::MAX) {
        return Err(Fault::new("class", "more than 255 traffic classes"));
    }
    for (i, entry) in scenario.workload.iter().enumerate() {
        if !names.contains(&entry.class()) {
            let text = format!(
                "there is no traffic class `{}`; {}",
                entry.class(),
                suggestion(entry.class(), &names)
            );
            return Err(Fault::new(&format!("workload.{i}.class"), text));
        }
    }
    Ok(names)
}

fn workload(
    scenario: &Scenario,
    fabric: &Fabric,
    wire: &Wire,
    memory: &mut MemoryBudget,
    warnings: &mut Vec<String>,
) -> Result<(Messages, Vec<Job>), Fault> {
    if scenario.workload.is_empty() {
        return Err(Fault::new("workload", "the scenario has no [[workload]]: there is nothing to send"));
    }
    if scenario.workload.len() > usize::from(u16::MAX) {
        return Err(Fault::new("workload", "more than 65535 workloads"));
    }
    let hosts: BTreeMap<&str, HostId> =
        (0..fabric.hosts()).map(|h| HostId(h as u16)).map(|h| (fabric.name(h.node()), h)).collect();
    let classes = traffic_classes(scenario)?;
    let mut messages = Messages::default();
    let mut jobs = Vec::new();
    for (i, entry) in scenario.workload.iter().enumerate() {
        let path = format!("workload.{i}");
        if entry.start > LATEST {
            return Err(Fault::new(&format!("{path}.start"), format!("the latest start is {LATEST}")));
        }
        let mut draft = Draft {
            fabric,
            hosts: &hosts,
            key: Key::new(scenario.seed, Purpose::Workload, i as u64),
            common: Key::new(scenario.seed, Purpose::Workload, u64::MAX),
            job: i as u16,
            start: entry.start,
            qp: entry.qp.unwrap_or_else(|| entry.usual_qp()),
            messages: &mut messages,
            kind: entry.one_kind()?,
            memory: &mut *memory,
            wire,
            warnings: &mut *warnings,
        };
        let groups = entry.generate(&mut draft).map_err(|fault| fault.within(&path))?;
        if let Some(late) = messages.all.iter().find(|m| m.start > LATEST) {
            return Err(Fault::new(
                &path,
                format!("a start at {} is too late; the latest is {LATEST}", late.start),
            ));
        }
        jobs.push(Job {
            name: entry.name.clone().unwrap_or_default(),
            start: entry.start,
            groups: groups as u16,
            background: entry.background,
            class: classes.iter().position(|class| *class == entry.class()).unwrap_or_default() as u8,
        });
    }
    if jobs.iter().all(|job| job.background) {
        let text = "all workloads are background: the run would end at once";
        return Err(Fault::new("workload.0.background", text));
    }
    Ok((messages, jobs))
}

type Sorted = (Vec<Qp>, Vec<Message>, Vec<MessageId>);

/// Gives messages their queue pairs and final numbers.
fn sort(messages: Messages) -> Sorted {
    let Messages { all, mut causes } = messages;
    let qp_key = |i: u32| {
        let DraftMessage { from, to, job, fresh_qp, .. } = all[i as usize];
        (to, from, job, if fresh_qp { i + 1 } else { 0 })
    };
    let mut order: Vec<u32> = (0..all.len() as u32).collect();
    order.sort_by_key(|&i| (qp_key(i), i));
    let mut place = vec![0u32; all.len()];
    for (position, &i) in order.iter().enumerate() {
        place[i as usize] = position as u32;
    }
    let mut qps: Vec<Qp> = Vec::new();
    let mut sorted: Vec<Message> = Vec::with_capacity(all.len());
    for (position, &i) in order.iter().enumerate() {
        let m = &all[i as usize];
        let at = position as u32;
        if position == 0 || qp_key(order[position - 1]) != qp_key(i) {
            qps.push(Qp { from: m.from, to: m.to, messages: at..at });
        }
        if let Some(qp) = qps.last_mut() {
            qp.messages.end = at + 1;
        }
        sorted.push(Message {
            qp: QpId(qps.len() as u32 - 1),
            bytes: m.bytes,
            start: m.start,
            needs: 0,
            on_received: 0..0,
            on_acked: 0..0,
            job: m.job,
            group: m.group,
        });
    }
    for (cause, effect, _) in &mut causes {
        (*cause, *effect) = (place[*cause as usize], place[*effect as usize]);
        sorted[*effect as usize].needs += 1;
    }
    causes.sort_by_key(|&(cause, effect, on)| (cause, on, effect));
    let mut triggers = Vec::with_capacity(causes.len());
    for (cause, effect, on) in causes {
        let at = triggers.len() as u32;
        triggers.push(MessageId(effect));
        let m = &mut sorted[cause as usize];
        let range = if on == StartOn::Received { &mut m.on_received } else { &mut m.on_acked };
        if range.start == range.end {
            range.start = at;
        }
        range.end = at + 1;
    }
    (qps, sorted, triggers)
}
