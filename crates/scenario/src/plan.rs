//! Making the plan of a resolved scenario.

use crate::config::Scenario;
use crate::failure::FailurePlanner;
use crate::footprint::MemoryBudget;
use crate::loss::LossPlanner;
use crate::nccl::Nccl;
use crate::placement;
use crate::receive;
use crate::switch::{EffectiveSwitch, RoleConfig};
use crate::telemetry;
use crate::topology::Ground;
use crate::traffic::{Counter, Load, Traffic};
use crate::values::LATEST;
use crate::wait::{self, Waits};
use crate::workload::draft::Draft;
use crate::workload::laid::{Connection, Graph, Sorted};
use crate::workload::outline::Outline;
use crate::workload::ranks::Ranks;
use crate::workload::reads;
use crate::workload::scene::Scene;
use crate::workload::serving;
use crate::workload::split::Added;
use crate::workload::{QpUse, Split, Workload};
use finding::{Finding, code, suggestion};
use model::draw::{Key, Purpose, scaled};
use model::plan::{Group, Job, NicClass, NicClasses, OwnQueues, PortSettings, SwitchSettings};
use model::{Fabric, HostId, NodeId, Plan, Time, Wire};
use rnic::Verb;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// How much of what workloads send a plan has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All messages and tasks.
    Whole,
    /// The longest message of every queue pair, by which the rules judge. Everything else is counted, unless messages of a job have
    /// to be split, delayed or named one by one.
    Counted,
    /// What [`Detail::Counted`] has, and the outline of the job, if there is a single one that need not be laid out.
    Outlined,
}

/// A job whose exchanges are still whole.
pub(crate) struct Kept {
    pub(crate) outline: Outline,
    /// Key of the job's random draws, and of those that all jobs share.
    pub(crate) keys: (Key, Key),
    /// Name of the job's kind of workload.
    pub(crate) kind: &'static str,
    /// The ranks of the job.
    pub(crate) ranks: Ranks,
    /// The connections of the plan's queue pairs.
    pub(crate) connections: Vec<Connection>,
}

/// A plan, before the rules have judged it.
pub(crate) struct Laid {
    pub(crate) plan: Plan,
    /// What workloads send, if it was counted.
    pub(crate) traffic: Option<Traffic>,
    pub(crate) load: Load,
    /// The NICs of all traffic classes with flows.
    pub(crate) nics: Vec<Waits>,
    /// The outline of the job, if it was asked for.
    pub(crate) kept: Option<Kept>,
    /// What was doubtful on the way.
    pub(crate) warnings: Vec<Finding>,
}

/// Makes the plan; refuses one that does not fit into `memory`.
pub(crate) fn plan(scenario: &Scenario, detail: Detail, memory: &mut MemoryBudget) -> Result<Laid, Finding> {
    let scenario = &*crate::dscp_classes::apply(scenario)?;
    let mut warnings = Vec::new();
    let wire = telemetry::on_wire(scenario, scenario.wire.wire(scenario.compat)?)?;
    let server = scenario.server.map(|server| server.server().map_err(|e| e.within("server"))).transpose()?;
    let ground = Ground { loss: scenario.links.loss.probability(), server: server.as_ref() };
    let mut fabric = scenario.topology.lay(&ground, memory)?;
    receive::limit_uplinks(scenario, &mut fabric, &wire)?;
    let (ports, switches) = switches(scenario, &fabric, &wire, &mut warnings)?;
    let (classes, own_queues) = classes(scenario, &fabric, &wire, &mut warnings)?;
    let ranks = Ranks::new(&fabric, server)?;
    let ground = (&fabric, &ranks, &wire);
    let nvlink = scenario.nvlink().map_or(0, |nvlink| nvlink.rate.bps());
    let driven = scenario.workload.iter().position(Workload::is_driven).map(|job| job as u16);
    let mut counter = Counter::new(&fabric, &wire, nvlink, driven);
    // Losses and recordings may name single messages.
    let names_messages = !scenario.links.lose.is_empty() || !scenario.record.follow.is_empty();
    let counts = detail != Detail::Whole;
    let mut kept = None;
    let (mut graph, jobs) = {
        let counter = (counts && !names_messages).then_some(&mut counter);
        let keeps = (detail == Detail::Outlined && scenario.workload.len() == 1).then_some(&mut kept);
        workload(scenario, ground, (counter, keeps), memory, &mut warnings)?
    };
    let counted = counts.then(|| {
        counter.graph(&graph);
        let (traffic, load, longest) = counter.done(&jobs);
        if !names_messages {
            graph = longest;
        }
        (traffic, load)
    });
    if let Some(kept) = &mut kept {
        kept.connections = graph.messages.iter().map(|message| message.connection(0)).collect();
    }
    let traffic_classes: Vec<String> = scenario.traffic_classes()?.into_iter().map(str::to_owned).collect();
    let Sorted { qps, messages, tasks, operations, slices, triggers, wholes } = graph.sorted();
    let losses = LossPlanner { fabric: &fabric, wire: &wire, qps: &qps, messages: &messages, jobs: &jobs };
    let lost = losses.plan(&scenario.links.lose, &mut warnings).map_err(|f| f.within("links.lose"))?;
    let failures = FailurePlanner { fabric: &fabric, seed: scenario.seed, latest: LATEST };
    let noise = crate::noise::plan(&scenario.links, &failures)?;
    let failures = failures.plan(&scenario.failure, &scenario.routing, memory)?;
    let fails_over = traffic_classes.iter().any(|class| scenario.nic_of(class).fails_over());
    let sharing = server.as_ref().and_then(|server| server.sharing(&failures, fails_over));
    let receive = receive::queues(scenario, &fabric, &switches, !own_queues.is_empty())?;
    let record = scenario.record.plan(&fabric, &qps, &messages, &failures)?;
    let nic_classes = nic_classes(scenario, &fabric, &wire)?;
    let mut plan = Plan {
        seed: scenario.seed,
        fabric,
        wire,
        classes,
        own_queues,
        nic_classes,
        digest: None,
        ports,
        switches,
        lose_replies: scenario.links.lose_replies,
        receive,
        lost,
        noise,
        failures,
        qps,
        sharing,
        messages,
        wholes,
        tasks,
        slices,
        operations,
        triggers,
        jobs,
        traffic_classes,
        clock_spread: scenario.nic.clock_spread,
        stop_after: scenario.stop.after,
        posted: None,
        no_progress: Time::ZERO,
        retries: Vec::new(),
        record,
    };
    let retries = plan.traffic_classes.iter().map(|class| scenario.nic_of(class).retry_limit());
    plan.retries = retries.collect();
    if plan.retries.iter().all(Option::is_none) {
        plan.retries.clear();
    }
    let nics = wait::of_nics(scenario, &plan);
    let patience = || {
        let of_nics = nics.iter().map(|waits| waits.patience(&plan)).max().unwrap_or(Time::ZERO);
        Time(of_nics.ps().saturating_add(wait::for_watchdogs(&plan).ps())).min(LATEST)
    };
    plan.no_progress = scenario.stop.no_progress.unwrap_or_else(patience);
    plan.digest = telemetry::digest(scenario, &plan)?;
    let (traffic, load) = match counted {
        Some((traffic, load)) => (Some(traffic), load),
        None => (None, Load::of(&plan)),
    };
    Ok(Laid { plan, traffic, load, nics, kept, warnings })
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

/// The classes of NICs.
fn nic_classes(scenario: &Scenario, fabric: &Fabric, wire: &Wire) -> Result<NicClasses, Finding> {
    let (config, flows) = (serving::limited(scenario, fabric, wire)?, scenario.traffic_classes()?);
    for (i, class) in config.iter().enumerate() {
        if let Some((n, name)) = class.of.iter().enumerate().find(|(_, name)| !flows.contains(&name.as_str()))
        {
            let text = format!("there is no traffic class `{name}`; {}", suggestion(name, &flows));
            return Err(code::UNKNOWN_NAME.at(&format!("nic.classes.{i}.of.{n}"), text));
        }
    }
    let table = config.iter().map(|class| NicClass { service: class.service(), rate: class.rate }).collect();
    let others = config.iter().position(|class| class.of.is_empty()).unwrap_or_default();
    let named = |flow: &&str| config.iter().position(|class| class.of.iter().any(|name| name == flow));
    let of = flows.iter().map(|flow| named(flow).unwrap_or(others) as u8).collect();
    Ok(NicClasses { of, table })
}

/// The splitting of a job's messages: that of the workload, or that of a scheme that follows pinned paths.
fn split_of(scenario: &Scenario, entry: &Workload) -> Result<Option<Split>, Finding> {
    if entry.is_driven() {
        let text = "a program posts its messages itself, so they cannot be split";
        return entry.split.map_or(Ok(None), |_| Err(code::CONFLICT.at("split", text)));
    }
    let pinned = scenario.scheme_of(entry.class()).facts().pinned;
    let split = entry.split.or_else(|| pinned.then(Split::default));
    if split.is_some() && entry.verb == Verb::Read {
        return Err(code::UNSUITED.at("verb", "cannot be \"read\" where messages are split into subflows"));
    }
    Ok(split)
}

/// Whether messages of a workload can take queue pairs in turn.
fn in_turn_fits(entry: &Workload) -> Result<(), Finding> {
    let text = match (entry.is_driven(), entry.split.is_some()) {
        (true, _) => "a program chooses the queue pairs of its messages itself",
        (_, true) => "cannot be `in-turn` with `split`, which gives each subflow a queue pair",
        _ => return Ok(()),
    };
    Err(code::CONFLICT.at("qp", text))
}

/// The ranks of a job that names its servers, or their GPUs.
fn placed(entry: &Workload, ranks: &Ranks, fabric: &Fabric) -> Result<Option<Ranks>, Finding> {
    let key = match (&entry.servers, &entry.gpus) {
        (Some(_), _) => "servers",
        (None, Some(_)) => "gpus",
        (None, None) => return Ok(None),
    };
    let kinds = entry.kinds();
    if let Some(kind) = kinds.iter().find(|kind| !Workload::OF_GPUS.contains(kind)) {
        let text =
            format!("`{kind}` names hosts itself; jobs with servers are {}", Workload::OF_GPUS.join(", "));
        return Err(code::UNSUITED.at(key, text));
    }
    let servers = entry.servers.as_ref().map(|servers| servers.of(fabric.servers())).transpose()?;
    let gpus = entry.gpus.as_ref().map(|gpus| gpus.of_gpus(ranks.per_server())).transpose()?;
    let on = servers.map_or_else(|| ranks.clone(), |servers| ranks.on(&servers));
    Ok(Some(match gpus {
        Some(gpus) => on.at_places(gpus),
        None => on,
    }))
}

fn workload(
    scenario: &Scenario,
    (fabric, ranks, wire): (&Fabric, &Ranks, &Wire),
    (mut counter, mut keeps): (Option<&mut Counter<'_>>, Option<&mut Option<Kept>>),
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
    let nccl = Nccl::of(scenario.nccl.as_ref()).map_err(|error| error.within("nccl"))?;
    let mut graph = Graph::default();
    let (mut earlier, mut streams) = (0, 0);
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
        let qp = entry.qp.unwrap_or_else(|| entry.usual_qp());
        let own_ranks = placed(entry, ranks, fabric).map_err(|error| error.within(&path))?;
        let scene = Scene {
            fabric,
            hosts: &hosts,
            key: Key::new(scenario.seed, Purpose::Workload, i as u64),
            common: Key::new(scenario.seed, Purpose::Workload, u64::MAX),
            job: i as u16,
            start: entry.start,
            fresh_qps: qp == QpUse::PerMessage,
            ranks: own_ranks.as_ref().unwrap_or(ranks),
            nccl: &nccl,
            kind: entry.one_kind()?,
            wire,
        };
        let mut draft = Draft {
            scene,
            qp,
            outline: Outline::default(),
            earlier,
            streams,
            memory: &mut *memory,
            warnings: Vec::new(),
            tokens: 0,
        };
        let groups = entry.generate(&mut draft).map_err(|error| error.within(&path))?;
        let mut outline = std::mem::take(&mut draft.outline);
        (earlier, streams) = (earlier + outline.items(), streams.max(outline.streams()));
        let split = split_of(scenario, entry).map_err(|error| error.within(&path))?;
        let own = std::mem::take(&mut draft.warnings);
        let own = own.into_iter().map(|warning| warning.within(scene.kind)).collect::<Vec<_>>();
        let as_outlined = entry.jitter.is_none()
            && entry.slow.is_none()
            && entry.compute_jitter.is_none()
            && !matches!(draft.qp, QpUse::InTurn(_))
            && split.is_none()
            && entry.verb != Verb::Read
            && (draft.qp != QpUse::PerMessage || outline.exchanges.is_empty());
        if let Some(counter) = counter.as_mut().filter(|_| as_outlined) {
            // A rule about failures names queue pairs, and an outline that is kept needs all.
            let few = keeps.is_none() && scenario.failure.is_empty();
            outline.count(&scene, counter, few).map_err(|error| error.within(&path))?;
            if let Some(kept) = keeps.as_deref_mut().filter(|_| outline.messages.is_empty()) {
                *kept = Some(Kept {
                    outline: outline.clone(),
                    keys: (scene.key, scene.common),
                    kind: scene.kind,
                    ranks: scene.ranks.clone(),
                    connections: Vec::new(),
                });
            }
            graph.messages.append(&mut outline.messages);
        } else {
            let added = Added { message: graph.messages.len(), cause: graph.causes.len() };
            let first_task = graph.tasks.len();
            draft.memory.lays_out()?;
            outline.lay(&scene, &mut graph).map_err(|error| error.within(&path))?;
            if let Some(slow) = &entry.slow {
                let tasks = &mut graph.tasks[first_task..];
                slow.apply(tasks, fabric.servers()).map_err(|error| error.within(&path))?;
            }
            if let Some(share) = entry.compute_jitter {
                // The entity is that of no job's start.
                let key = Key::new(scenario.seed, Purpose::Jitter, 1 << 32 | i as u64);
                let tasks = &mut graph.tasks[first_task..];
                placement::jitter(tasks, share, key).map_err(|error| error.within(&path))?;
            }
            if let Some(jitter) = entry.jitter {
                let key = Key::new(scenario.seed, Purpose::Jitter, i as u64);
                let late = |node: NodeId| Time(scaled(key.draw(node.0.into()), jitter.ps() + 1));
                let reads = entry.verb == Verb::Read;
                graph.delay((added.message, first_task), |host| fabric.node_of(host), late, reads);
            }
            if let QpUse::InTurn(count) = draft.qp {
                in_turn_fits(entry).map_err(|error| error.within(&path))?;
                graph.take_turns(added.message, count);
            }
            if let Some(split) = split {
                split.apply(
                    &mut draft,
                    &mut graph,
                    added,
                    Key::new(scenario.seed, Purpose::Split, i as u64),
                )?;
            }
            if entry.verb == Verb::Read {
                let limit = scenario.nic_of(entry.class()).reads;
                reads::apply(&mut graph, added, limit, fabric, draft.memory, &format!("{path}.verb"))
                    .map_err(|error| error.within(&path))?;
            }
            if let Some(counter) = &mut counter {
                counter.graph(&graph);
            }
        }
        let tokens = draft.tokens;
        warnings.extend(own.into_iter().map(|warning| warning.within(&path)));
        if let Some(late) = graph.messages.iter().find(|m| m.start > LATEST) {
            return Err(
                code::RANGE.at(&path, format!("expected a start before {LATEST}, found {}", late.start))
            );
        }
        if counter.is_some() {
            graph = Graph::default();
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
    Ok((graph, jobs))
}
