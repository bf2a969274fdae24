//! The nodes of all ranks in one graph: collectives join the nodes of their ranks, and messages join two nodes.

use super::{Chakra, Deps, Replicate, Trace};
use crate::values::LATEST;
use crate::workload::draft::Draft;
use finding::{Finding, code};
use formats::chakra::{Node, Peer, Program, Work};
use formats::order::order;
use model::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Number of a node among those of all ranks.
pub(super) type Number = usize;

/// Nodes that start together: one node, or the nodes of a collective.
#[derive(Debug)]
pub(super) enum Unit {
    /// A node.
    Single(Number),
    /// A collective.
    Joint(Joint),
}

/// A collective.
#[derive(Debug)]
pub(super) struct Joint {
    /// Index of the group.
    pub(super) group: usize,
    /// Nodes in the order of the group's ranks.
    pub(super) members: Vec<Number>,
    /// Largest size among the ranks, as the trace counts it.
    pub(super) bytes: u64,
}

/// The graph.
pub(super) struct Graph<'t> {
    file: &'t str,
    trace: &'t Trace,
    spmd: bool,
    /// Number of the first node of each rank, and of all nodes at the end.
    firsts: Vec<Number>,
    /// Ranks of each group.
    pub(super) groups: Vec<Vec<u32>>,
    pub(super) units: Vec<Unit>,
    /// Unit of every node.
    unit_of: Vec<u32>,
    /// The send of every receive, and the receive of every send that has one.
    partner: BTreeMap<Number, Number>,
    deps: Deps,
}

/// A group while its collectives are collected.
struct Collected<'t> {
    name: &'t str,
    ranks: Vec<u32>,
    /// Nodes of each rank of the group.
    nodes: Vec<Vec<Number>>,
}

impl<'t> Graph<'t> {
    pub(super) fn new(
        settings: &'t Chakra,
        trace: &'t Trace,
        draft: &mut Draft<'_>,
    ) -> Result<Self, Finding> {
        let spmd = settings.replicate == Replicate::Spmd;
        let gpus = draft.ranks.count();
        let world = if spmd { gpus } else { trace.programs.len() };
        if world > gpus {
            let text = format!("{} has {world} ranks; the fabric has {gpus} GPUs", settings.file);
            return Err(code::FIT.at("file", text));
        }
        if spmd && trace.first as usize >= world {
            let text = format!(
                "{} is the trace of rank {}; the fabric has {world} GPUs",
                settings.file, trace.first
            );
            return Err(code::FIT.at("file", text));
        }
        let mut graph = Graph {
            file: &settings.file,
            trace,
            spmd,
            firsts: vec![0],
            groups: Vec::new(),
            units: Vec::new(),
            unit_of: Vec::new(),
            partner: BTreeMap::new(),
            deps: settings.deps,
        };
        let mut count = 0;
        for rank in 0..world as u32 {
            count += graph.program(rank).nodes.len();
            graph.firsts.push(count);
        }
        if count == 0 {
            return Err(code::CONTENT.at("file", format!("{} has no nodes", settings.file)));
        }
        draft.reserve_tasks(count as u64, "file")?;
        graph.join_collectives(&mut draft.warnings)?;
        graph.join_messages(&mut draft.warnings)?;
        Ok(graph)
    }

    /// Number of nodes.
    pub(super) fn count(&self) -> usize {
        self.unit_of.len()
    }

    fn world(&self) -> u32 {
        self.firsts.len() as u32 - 1
    }

    fn program(&self, rank: u32) -> &'t Program {
        &self.trace.programs[if self.spmd { 0 } else { rank as usize }]
    }

    /// The rank and the node of a number.
    pub(super) fn node(&self, number: Number) -> (u32, &'t Node) {
        let rank = self.firsts.partition_point(|&first| first <= number) as u32 - 1;
        (rank, &self.program(rank).nodes[number - self.firsts[rank as usize]])
    }

    /// The nodes for which a node waits.
    pub(super) fn causes(&self, number: Number) -> impl Iterator<Item = Number> + '_ {
        let (rank, node) = self.node(number);
        let all = self.deps == Deps::All;
        let counted = node.dependencies.iter().filter(move |dependency| dependency.data || all);
        counted.map(move |dependency| self.firsts[rank as usize] + dependency.on as usize)
    }

    /// The send of a receive.
    pub(super) fn partner(&self, number: Number) -> Option<Number> {
        self.partner.get(&number).copied()
    }

    /// An error about a node.
    pub(super) fn wrong(&self, number: Number, text: &str) -> Finding {
        code::CONTENT.at("file", format!("{}: {}: {text}", self.file, self.name(number)))
    }

    fn name(&self, number: Number) -> String {
        let (rank, node) = self.node(number);
        format!("rank {rank} {node}")
    }

    fn numbers(&self) -> impl Iterator<Item = (u32, Number, &'t Node)> + '_ {
        (0..self.world()).flat_map(move |rank| {
            let first = self.firsts[rank as usize];
            self.program(rank).nodes.iter().enumerate().map(move |(i, node)| (rank, first + i, node))
        })
    }

    /// Makes a unit of the n-th collectives of all ranks of a group, and one of every other node.
    fn join_collectives(&mut self, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
        let mut collected: Vec<Collected<'t>> = Vec::new();
        let mut by_key: BTreeMap<(&str, Vec<u32>), usize> = BTreeMap::new();
        let mut known: BTreeMap<(u32, &str), usize> = BTreeMap::new();
        for (rank, number, node) in self.numbers() {
            let Work::Collective { group: name, .. } = &node.work else { continue };
            let group = match known.get(&(rank, name.as_str())) {
                Some(&group) => group,
                None => {
                    let ranks = self.group(rank, name).map_err(|text| self.wrong(number, &text))?;
                    let group = *by_key.entry((name, ranks.clone())).or_insert(collected.len());
                    if group == collected.len() {
                        collected.push(Collected { name, nodes: vec![Vec::new(); ranks.len()], ranks });
                    }
                    known.insert((rank, name), group);
                    group
                }
            };
            let place = collected[group].ranks.partition_point(|&member| member < rank);
            collected[group].nodes[place].push(number);
        }
        if collected.len() > usize::from(u16::MAX) {
            let text = format!("{} has {} groups; at most 65535 can run", self.file, collected.len());
            return Err(code::CONTENT.at("file", text));
        }
        let mut first_of: BTreeMap<Number, Joint> = BTreeMap::new();
        let (mut uneven, mut first_uneven) = (0, None);
        for (group, Collected { name, ranks, nodes }) in collected.iter().enumerate() {
            self.check_counts(name, ranks, nodes)?;
            for i in 0..nodes[0].len() {
                let joint = self.joint(group, nodes.iter().map(|nodes| nodes[i]).collect())?;
                if joint.members.iter().any(|&number| self.bytes(number) != joint.bytes) {
                    uneven += 1;
                    first_uneven.get_or_insert(joint.members[0]);
                }
                first_of.insert(joint.members.iter().copied().min().unwrap_or_default(), joint);
            }
        }
        if let Some(first) = first_uneven {
            let text = format!(
                "collectives of {} whose ranks differ in `comm_size`: {uneven}; the largest size counts for all ranks; the first: {}",
                self.file,
                self.name(first)
            );
            warnings.push(code::READ_AS.at("file", text));
        }
        self.groups = collected.into_iter().map(|group| group.ranks).collect();
        self.unit_of = vec![u32::MAX; *self.firsts.last().unwrap_or(&0)];
        for number in 0..self.unit_of.len() {
            let unit = self.units.len() as u32;
            if let Some(joint) = first_of.remove(&number) {
                joint.members.iter().for_each(|&member| self.unit_of[member] = unit);
                self.units.push(Unit::Joint(joint));
            } else if self.unit_of[number] == u32::MAX {
                self.unit_of[number] = unit;
                self.units.push(Unit::Single(number));
            }
        }
        Ok(())
    }

    fn bytes(&self, number: Number) -> u64 {
        match self.node(number).1.work {
            Work::Collective { bytes, .. } => bytes,
            _ => 0,
        }
    }

    /// A collective, whose nodes must all do the same.
    fn joint(&self, group: usize, members: Vec<Number>) -> Result<Joint, Finding> {
        let kind = |number: Number| match &self.node(number).1.work {
            Work::Collective { kind, .. } => kind.map_or("barrier", |kind| kind.name()),
            _ => "",
        };
        let first = members[0];
        if let Some(&other) = members.iter().find(|&&member| kind(member) != kind(first)) {
            let text = format!(
                "the ranks of a group do collectives in the same order, but this is a {} and {} is a {}",
                kind(first),
                self.name(other),
                kind(other)
            );
            return Err(self.wrong(first, &text));
        }
        let bytes = members.iter().map(|&number| self.bytes(number)).max().unwrap_or(0);
        Ok(Joint { group, members, bytes })
    }

    fn check_counts(&self, name: &str, ranks: &[u32], nodes: &[Vec<Number>]) -> Result<(), Finding> {
        let Some(other) = nodes.iter().position(|all| all.len() != nodes[0].len()) else { return Ok(()) };
        let text = format!(
            "{}: the ranks of the group \"{name}\" do different numbers of collectives: rank {} does {}, rank {} does {}",
            self.file,
            ranks[0],
            nodes[0].len(),
            ranks[other],
            nodes[other].len()
        );
        Err(code::CONTENT.at("file", text))
    }

    /// The ranks of a rank's group, in ascending order.
    fn group(&self, rank: u32, name: &str) -> Result<Vec<u32>, String> {
        let world = self.world();
        let program = self.program(rank);
        let defined = self.trace.groups.get(name).or_else(|| program.groups.get(name));
        if world == 1 && defined.is_none_or(|ranks| *ranks != [0]) {
            return Err("the trace has one rank, and this needs several; `replicate = \"spmd\"` runs the file on all GPUs".into());
        }
        let mut ranks = match defined {
            Some(ranks) if !ranks.is_empty() => ranks.clone(),
            Some(_) => (0..world).collect(),
            None if name.is_empty() || name == "0" => (0..world).collect(),
            None => {
                return Err(format!(
                    "its group \"{name}\" is not defined; `groups` names a JSON file with the groups of the trace"
                ));
            }
        };
        ranks.sort_unstable();
        if ranks.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!("its group \"{name}\" has a rank twice"));
        }
        if let Some(&last) = ranks.last().filter(|&&last| last >= world) {
            return Err(format!(
                "its group \"{name}\" has the rank {last}; there are ranks 0 to {}",
                world - 1
            ));
        }
        let own = if self.spmd { self.trace.first } else { rank };
        if ranks.binary_search(&own).is_err() {
            return Err(format!("its group \"{name}\" does not have the rank {own}"));
        }
        match self.spmd {
            true => self.translated(&ranks, rank).map_err(|text| format!("its group \"{name}\" {text}")),
            false => Ok(ranks),
        }
    }

    /// The group of another rank that has the shape of this one: equal steps between its ranks.
    fn translated(&self, ranks: &[u32], rank: u32) -> Result<Vec<u32>, String> {
        if ranks.binary_search(&rank).is_ok() {
            return Ok(ranks.to_vec());
        }
        let (count, world) = (ranks.len() as u32, self.world());
        let step = if count > 1 { ranks[1] - ranks[0] } else { 1 };
        if ranks.windows(2).any(|pair| pair[1] - pair[0] != step) {
            return Err("has ranks with unequal steps, so the groups of the other ranks are not known".into());
        }
        let (block, start) = (step * count, rank - rank / step % count * step);
        if !world.is_multiple_of(block) || !(ranks[0] / step).is_multiple_of(count) {
            return Err(format!(
                "of {count} ranks with step {step} does not divide {world} ranks into equal groups"
            ));
        }
        Ok((0..count).map(|i| start + i * step).collect())
    }

    /// Pairs every receive with a send: the n-th receive of a source and tag gets the n-th send, both by rising id.
    fn join_messages(&mut self, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
        let mut sends: BTreeMap<(u32, u32, u32), VecDeque<Number>> = BTreeMap::new();
        for (rank, number, node) in self.numbers() {
            let (Work::Send(Peer { rank: peer, tag, .. }) | Work::Receive(Peer { rank: peer, tag, .. })) =
                node.work
            else {
                continue;
            };
            if self.world() == 1 || self.spmd {
                let text = match self.spmd {
                    true => {
                        "a message in the trace of one rank: `replicate = \"spmd\"` does not tell the peers of the other ranks"
                    }
                    false => "the trace has one rank, and this needs several",
                };
                return Err(self.wrong(number, text));
            }
            if peer >= self.world() {
                let last = self.world() - 1;
                return Err(self.wrong(number, &format!("there is no rank {peer}; the last one is {last}")));
            }
            if let Work::Send(_) = node.work {
                sends.entry((rank, peer, tag)).or_default().push_back(number);
            }
        }
        let (mut unequal, mut first_unequal) = (0, None);
        let mut pairs = Vec::new();
        for (rank, number, node) in self.numbers() {
            let Work::Receive(Peer { rank: peer, tag, bytes }) = node.work else { continue };
            let Some(send) = sends.get_mut(&(peer, rank, tag)).and_then(VecDeque::pop_front) else {
                let text = format!("rank {peer} sends no message with tag {tag} for it");
                return Err(self.wrong(number, &text));
            };
            if !matches!(self.node(send).1.work, Work::Send(Peer { bytes: sent, .. }) if sent == bytes) {
                unequal += 1;
                first_unequal.get_or_insert(number);
            }
            pairs.extend([(number, send), (send, number)]);
        }
        self.partner = pairs.into_iter().collect();
        let unread: Vec<Number> = sends.into_values().flatten().collect();
        if let Some(&first) = unread.first() {
            let text = format!(
                "messages of {} that are never received: {}; the first is {}",
                self.file,
                unread.len(),
                self.name(first)
            );
            warnings.push(code::UNMATCHED.at("file", text));
        }
        if let Some(first) = first_unequal {
            let text = format!(
                "receives of {} that get a message of another size: {unequal}; the size of the send counts; the first is {}",
                self.file,
                self.name(first)
            );
            warnings.push(code::UNMATCHED.at("file", text));
        }
        Ok(())
    }

    /// The order in which units start, if communication takes its estimated time: a stream of a rank does one thing after another,
    /// in the order in which they are ready. `cost` gives the time of a unit; `streams` those that it occupies.
    pub(super) fn order(
        &self,
        cost: &dyn Fn(&Unit) -> Time,
        stream: &dyn Fn(Number) -> Option<usize>,
        streams: usize,
    ) -> Result<Vec<u32>, Finding> {
        let edges = self.edges();
        let mut waits = vec![0u32; self.units.len()];
        let mut followers: Vec<Vec<u32>> = vec![Vec::new(); self.units.len()];
        for &(first, then) in &edges {
            waits[then as usize] += 1;
            followers[first as usize].push(then);
        }
        let mut free = vec![0u64; streams];
        let mut ready = vec![0u64; self.units.len()];
        let mut queue: BinaryHeap<Reverse<(u64, u32)>> = (0..self.units.len() as u32)
            .filter(|&u| waits[u as usize] == 0)
            .map(|u| Reverse((0, u)))
            .collect();
        let mut order = Vec::with_capacity(self.units.len());
        while let Some(Reverse((at, u))) = queue.pop() {
            order.push(u);
            let unit = &self.units[u as usize];
            let occupied: Vec<usize> =
                self.members(unit).iter().filter_map(|&number| stream(number)).collect();
            let start = occupied.iter().map(|&s| free[s]).fold(at, u64::max);
            let end = start.saturating_add(cost(unit).ps());
            occupied.iter().for_each(|&s| free[s] = end);
            for &then in &followers[u as usize] {
                let (left, ready) = (&mut waits[then as usize], &mut ready[then as usize]);
                (*left, *ready) = (*left - 1, (*ready).max(end));
                if *left == 0 {
                    queue.push(Reverse((*ready, then)));
                }
            }
        }
        match order.len() == self.units.len() {
            true => Ok(order),
            false => Err(self.cycle(&edges)),
        }
    }

    /// The nodes of a unit.
    pub(super) fn members<'u>(&self, unit: &'u Unit) -> &'u [Number] {
        match unit {
            Unit::Single(number) => std::slice::from_ref(number),
            Unit::Joint(joint) => &joint.members,
        }
    }

    /// Pairs of units of which the second waits for the first.
    fn edges(&self) -> Vec<(u32, u32)> {
        let mut edges = Vec::new();
        for number in 0..self.unit_of.len() {
            let unit = self.unit_of[number];
            edges.extend(self.causes(number).map(|cause| (self.unit_of[cause], unit)));
            if let (Work::Receive(_), Some(send)) = (&self.node(number).1.work, self.partner(number)) {
                edges.push((self.unit_of[send], unit));
            }
        }
        edges
    }

    /// Leaves out the dependencies of control if they contradict those of data. Older converters name the caller of a node there, and
    /// a caller may end after the node.
    pub(super) fn leave_out_callers(&mut self, warnings: &mut Vec<Finding>) {
        let has_callers = |node: &Node| node.dependencies.iter().any(|dependency| !dependency.data);
        if self.deps == Deps::Data || !self.numbers().any(|(.., node)| has_callers(node)) {
            return;
        }
        let edges = self.edges();
        if order(self.units.len(), &edges).is_ok() {
            return;
        }
        let why = self.cycle(&edges).text;
        self.deps = Deps::Data;
        match order(self.units.len(), &self.edges()) {
            Ok(_) => {
                let text = format!("{why}; so dependencies of control are left out, as by `deps = \"data\"`");
                warnings.push(code::LEFT_OUT.at("file", text));
            }
            // The dependencies of data contradict each other, too.
            Err(_) => self.deps = Deps::All,
        }
    }

    fn cycle(&self, edges: &[(u32, u32)]) -> Finding {
        let cycle = order(self.units.len(), edges).err().unwrap_or_default();
        let name = |unit: u32| match &self.units[unit as usize] {
            Unit::Single(number) => self.name(*number),
            Unit::Joint(joint) => {
                format!("{} (with {} ranks)", self.name(joint.members[0]), joint.members.len())
            }
        };
        let first = cycle.first().map(|&e| edges[e].0);
        let names = cycle.iter().map(|&e| edges[e].0).chain(first).map(name).collect();
        let text = format!("nodes of {} wait for each other: {}", self.file, formats::goal::chain(names));
        code::CYCLE.at("file", text)
    }
}

/// A recorded duration; messages call it by its node.
pub(super) fn duration(micros: u64) -> Option<Time> {
    let ps = micros.checked_mul(1_000_000).filter(|&ps| ps <= LATEST.ps())?;
    Some(Time(ps.max(1000)))
}
