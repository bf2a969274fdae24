//! Paths between racks: where on the way switches choose, and the PathMap that steers them.

use super::config::Config;
use crate::ConfigError;
use ::themis::path_map::{Choice, PathMap, PathMapError, PortHash};
use model::{Fabric, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// A switch on the way that has more than one port to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    /// Its tier: 1 for a ToR.
    pub(super) tier: usize,
    /// Ports to choose from.
    pub(super) ports: usize,
}

/// A way between two racks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// The choices on it, from the source ToR on.
    pub(super) steps: Vec<Step>,
    /// Switches other than the source ToR choose.
    pub(super) beyond: bool,
}

impl Way {
    /// One of the ways from the switch `tor` to a rack. In a fabric that `shape` accepts all ways are alike.
    pub(super) fn of(fabric: &Fabric, tor: NodeId, rack: usize) -> Way {
        let mut way = Way::default();
        let mut at = tor;
        while at != fabric.racks()[rack] {
            let ports = fabric.route_to_rack(at, rack);
            let Some(first) = ports.first() else { break };
            if ports.len() > 1 {
                way.steps.push(Step { tier: fabric.tier(at), ports: ports.len() });
                way.beyond |= at != tor;
            }
            at = fabric.ports(at)[first.index()].to;
        }
        way
    }

    /// The number of different paths.
    pub(super) fn paths(&self) -> usize {
        self.steps.iter().fold(1, |paths, step| paths.saturating_mul(step.ports))
    }
}

impl Config {
    /// The hash of the switches of a tier; the last one of the list stands for all tiers beyond it.
    pub(super) fn hash(&self, tier: usize) -> PortHash {
        let hash = self.hashes.get(tier.max(1) - 1).or(self.hashes.last());
        hash.map_or(PortHash::new([0; 16]), |hash| hash.of_port())
    }

    /// Paths from the ToR `tor` to another rack that packets are dealt over: N, unless `slots` is set.
    pub(super) fn paths(&self, fabric: &Fabric, tor: NodeId, rack: usize) -> usize {
        if self.path_map {
            let way = Way::of(fabric, tor, rack);
            if way.beyond {
                return way.paths();
            }
        }
        fabric.route_to_rack(tor, rack).len()
    }

    /// Entries of the table by which the ToR `tor` deals packets: its uplinks, or a PathMap of all paths.
    pub fn path_entries(&self, fabric: &Fabric, tor: NodeId) -> usize {
        let racks = fabric.racks().iter().enumerate();
        let others = racks.filter(|&(_, &root)| root != tor && !fabric.is_host(root));
        others.map(|(rack, _)| self.paths(fabric, tor, rack)).max().unwrap_or(0)
    }

    /// The PathMap for these choices.
    pub(super) fn path_map_of(&self, steps: &[Step]) -> Result<PathMap, PathMapError> {
        let bits = |ports: usize| ports.trailing_zeros() as u8;
        let choices: Vec<_> =
            steps.iter().map(|s| Choice { hash: self.hash(s.tier), bits: bits(s.ports) }).collect();
        PathMap::new(&choices)
    }

    /// Refuses a fabric whose paths the hashes cannot all reach.
    pub(super) fn check_paths(&self, fabric: &Fabric) -> Result<(), ConfigError> {
        if self.hashes.is_empty() {
            return Err(ConfigError::new("hashes", "at least one hash is needed, that of the ToRs"));
        }
        if let Some(hash) = self.hashes.iter().find(|hash| hash.offset > 15) {
            let text = format!("an offset of {} bits; 0 to 15 are possible", hash.offset);
            return Err(ConfigError::new("hashes", text));
        }
        if !self.path_map {
            return Ok(());
        }
        let error = |field, text: String| {
            let help = "path-map = false sprays over the uplinks of the ToR alone";
            Err(ConfigError::new(field, format!("{text}; or else {help}")))
        };
        let (steps, ends) = match shape(fabric) {
            Ok(None) => return Ok(()),
            Ok(Some((steps, tor, rack))) => (steps, ends(fabric, tor, rack)),
            Err(text) => return error("path-map", text),
        };
        if let Some(step) = steps.iter().find(|step| !step.ports.is_power_of_two()) {
            let text = format!(
                "{ends} a switch of tier {} chooses among {} ports; a change of the source port steers a hash only \
                 where that number is a power of two",
                step.tier, step.ports
            );
            return error("path-map", text);
        }
        let (choice, bit, reached, paths, follows) = match self.path_map_of(&steps) {
            Ok(map) if map.paths() > u32::from(u16::MAX) && self.slots.is_none() => {
                let text = format!("{ends} there are {} paths; at most 65535 slots are possible", map.paths());
                return error("slots", text);
            }
            Ok(_) => return Ok(()),
            Err(PathMapError::Dependent { choice, bit, reached, paths, follows }) => {
                (choice, bit, reached, paths, follows)
            }
            Err(e @ PathMapError::TooManyPaths { .. }) => return error("path-map", format!("{ends} {e}")),
        };
        let name = |tier: usize| {
            let hash = self.hashes.get(tier.max(1) - 1).or(self.hashes.last());
            hash.map_or(String::new(), |hash| format!("{hash} at tier {tier}"))
        };
        let step = steps[choice];
        let why = match self.sources(&steps, follows) {
            tiers if tiers.is_empty() => "no bit of the source port changes it".to_owned(),
            tiers => {
                let names: Vec<String> = tiers.into_iter().map(name).collect();
                format!("it always changes together with bits of {} (polarisation)", names.join(" and "))
            }
        };
        let text = format!(
            "{ends} the hashes reach {reached} of {paths} paths: of {}, bit {bit} cannot be steered, as {why}; give each \
             tier an algorithm or offset of its own",
            name(step.tier)
        );
        error("hashes", text)
    }

    /// The tiers that the bits of a slot number belong to.
    fn sources(&self, steps: &[Step], bits: u16) -> Vec<usize> {
        let mut first = 0;
        let mut tiers = Vec::new();
        for step in steps {
            let own = step.ports.trailing_zeros();
            if u32::from(bits) >> first & ((1 << own) - 1) != 0 {
                tiers.push(step.tier);
            }
            first += own;
        }
        tiers
    }
}

fn ends(fabric: &Fabric, tor: NodeId, rack: usize) -> String {
    format!("from {} to {}", fabric.name(tor), fabric.name(fabric.racks()[rack]))
}

/// Sequences of steps as (first step, number of the rest, length); number 0 is the empty sequence.
#[derive(Default)]
struct Sequences {
    list: Vec<(Step, u32, usize)>,
    known: BTreeMap<(Step, u32), u32>,
}

impl Sequences {
    fn number(&mut self, step: Step, rest: u32) -> u32 {
        let length = self.len(rest) + 1;
        let list = &mut self.list;
        *self.known.entry((step, rest)).or_insert_with(|| {
            list.push((step, rest, length));
            list.len() as u32
        })
    }

    fn len(&self, number: u32) -> usize {
        if number == 0 { 0 } else { self.list[number as usize - 1].2 }
    }

    fn steps(&self, mut number: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        while number > 0 {
            let (step, rest, _) = self.list[number as usize - 1];
            steps.push(step);
            number = rest;
        }
        steps
    }
}

/// Not known yet.
const UNKNOWN: u32 = u32::MAX;
/// No way leads there.
const NO_WAY: u32 = u32::MAX - 1;

/// The choices on the way between two racks, the same for all pairs of racks between which other switches than the
/// source ToR choose, with one such pair; `None` if there is none.
///
/// # Errors
/// In words, if they are not the same: one PathMap could not serve them.
fn shape(fabric: &Fabric) -> Result<Option<(Vec<Step>, NodeId, usize)>, String> {
    let mut sequences = Sequences::default();
    let mut found: Option<(u32, NodeId, usize)> = None;
    let switch = |node: NodeId| node.index() - fabric.hosts();
    let tors = || fabric.racks().iter().copied().filter(|&node| !fabric.is_host(node));
    let mut known = vec![UNKNOWN; fabric.nodes() - fabric.hosts()];
    let mut stack = Vec::new();
    // ToRs with the same neighbours could change places and nobody would see: one speaks for all.
    let mut twins = BTreeSet::new();
    for (rack, &root) in fabric.racks().iter().enumerate().filter(|&(_, &root)| !fabric.is_host(root)) {
        let mut neighbours: Vec<NodeId> = fabric.ports(root).iter().map(|link| link.to).collect();
        neighbours.retain(|&node| !fabric.is_host(node));
        neighbours.sort();
        if !twins.insert(neighbours) {
            continue;
        }
        known.fill(UNKNOWN);
        known[switch(root)] = 0;
        for tor in tors() {
            stack.push(tor);
            while let Some(&at) = stack.last() {
                if known[switch(at)] != UNKNOWN {
                    stack.pop();
                    continue;
                }
                let ports = fabric.route_to_rack(at, rack);
                let next = |i: usize| fabric.ports(at)[ports[i].index()].to;
                let before = stack.len();
                stack.extend((0..ports.len()).map(next).filter(|&n| known[switch(n)] == UNKNOWN));
                if stack.len() > before {
                    continue;
                }
                let rest = ports.first().map_or(NO_WAY, |_| known[switch(next(0))]);
                if let Some(i) = (0..ports.len()).find(|&i| known[switch(next(i))] != rest) {
                    return Err(format!(
                        "{} other choices follow over {} than over {}, so no PathMap can serve both",
                        ends(fabric, at, rack),
                        fabric.name(next(0)),
                        fabric.name(next(i))
                    ));
                }
                let several = ports.len() > 1;
                let step = Step { tier: fabric.tier(at), ports: ports.len() };
                known[switch(at)] = if several { sequences.number(step, rest) } else { rest };
            }
            let number = known[switch(tor)];
            let own = usize::from(tor != root && fabric.route_to_rack(tor, rack).len() > 1);
            if number == NO_WAY || sequences.len(number) <= own {
                continue;
            }
            match found {
                None => found = Some((number, tor, rack)),
                Some((other, a, b)) if other != number => {
                    let paths = |n: u32| sequences.steps(n).iter().map(|s| s.ports).product::<usize>();
                    return Err(format!(
                        "{} there are {} paths and {} {}, with other choices on the way, so no PathMap can serve both",
                        ends(fabric, a, b),
                        paths(other),
                        ends(fabric, tor, rack),
                        paths(number)
                    ));
                }
                Some(_) => {}
            }
        }
    }
    Ok(found.map(|(number, tor, rack)| (sequences.steps(number), tor, rack)))
}
