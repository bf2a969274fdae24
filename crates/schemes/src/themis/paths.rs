//! Paths between racks: the choices of switches along a path, and the PathMap that steers them.

use super::config::Config;
use ::themis::path_map::{Choice, PathMap, PathMapError, PortHash};
use finding::{Finding, code};
use model::{Fabric, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// Choice of a switch along a path: it has more than one port to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    /// Tier of the switch: 1 for a ToR.
    pub(super) tier: usize,
    /// Number of ports to choose from.
    pub(super) ports: usize,
}

/// True if a switch chooses among several ports on the way up to a rack. On the way down, among parallel links, the
/// flow's hash decides: that spreads flows and keeps every slot on one path.
pub(super) fn chooses_up(fabric: &Fabric, node: NodeId, rack: usize) -> bool {
    let ports = fabric.route_to_rack(node, rack);
    ports.len() > 1 && fabric.tier(fabric.ports(node)[ports[0].index()].to) > fabric.tier(node)
}

/// Choosing switches on one path from the ToR `tor` to a rack: the ToR, and others on the way up. In a fabric that `shape`
/// accepts, all paths are alike.
pub(super) fn choices(
    fabric: &Fabric,
    tor: NodeId,
    rack: usize,
) -> impl Iterator<Item = (NodeId, Step)> + '_ {
    let root = fabric.racks()[rack];
    let mut at = tor;
    std::iter::from_fn(move || {
        while at != root {
            let (node, ports) = (at, fabric.route_to_rack(at, rack));
            at = fabric.ports(node)[ports.first()?.index()].to;
            if chooses_up(fabric, node, rack) || node == tor && ports.len() > 1 {
                return Some((node, Step { tier: fabric.tier(node), ports: ports.len() }));
            }
        }
        None
    })
}

impl Config {
    /// Hash of the switches of a tier; the last hash of the list holds for all tiers beyond it.
    pub(super) fn hash(&self, tier: usize) -> PortHash {
        let hash = self.hashes.get(tier.max(1) - 1).or(self.hashes.last());
        hash.map_or(PortHash::new([0; 16]), |hash| hash.of_port())
    }

    /// Number of paths from the ToR `tor` to another rack over which packets are sprayed: N, unless `slots` is set.
    pub(super) fn paths(&self, fabric: &Fabric, tor: NodeId, rack: usize) -> usize {
        let all = |(paths, beyond): (usize, bool), (node, step): (NodeId, Step)| {
            (paths.saturating_mul(step.ports), beyond || node != tor)
        };
        match choices(fabric, tor, rack).fold((1, false), all) {
            (paths, true) if self.path_map => paths,
            _ => fabric.route_to_rack(tor, rack).len(),
        }
    }

    /// Entries of the spraying table of the ToR `tor`: its uplinks, or a PathMap of all paths.
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

    /// Refuses a fabric in which the hashes cannot reach all paths.
    pub(super) fn check_paths(&self, fabric: &Fabric) -> Result<(), Finding> {
        if self.hashes.is_empty() {
            return Err(code::RANGE.at("hashes", "at least one hash is needed, that of the ToRs"));
        }
        if let Some(hash) = self.hashes.iter().find(|hash| hash.offset > 15) {
            let text = format!("an offset of {} bits; 0 to 15 are possible", hash.offset);
            return Err(code::RANGE.at("hashes", text));
        }
        if !self.path_map {
            return Ok(());
        }
        let error = |field, text: String| {
            let help = "path-map = false sprays over the uplinks of the ToR alone";
            Err(code::UNSUITED.at(field, format!("{text}; alternatively, {help}")))
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
                let text =
                    format!("{ends} there are {} paths; at most 65535 slots are possible", map.paths());
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

    /// Tiers to which the bits of a slot number belong.
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

/// Interned sequences of steps, as (first step, number of the rest); number 0 is the empty sequence.
#[derive(Default)]
struct Sequences {
    list: Vec<(Step, u32)>,
    known: BTreeMap<(Step, u32), u32>,
}

impl Sequences {
    fn number(&mut self, step: Step, rest: u32) -> u32 {
        let list = &mut self.list;
        *self.known.entry((step, rest)).or_insert_with(|| {
            list.push((step, rest));
            list.len() as u32
        })
    }

    fn steps(&self, mut number: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        while number > 0 {
            let (step, rest) = self.list[number as usize - 1];
            steps.push(step);
            number = rest;
        }
        steps
    }
}

/// Sequence of a switch that has not been surveyed.
const UNKNOWN: u32 = u32::MAX;
/// Sequence of a switch from which no path leads to the rack.
const UNREACHABLE: u32 = u32::MAX - 1;

/// The common choices on the paths between two racks, with one pair of racks for which they hold. `None` if no switch
/// other than source ToRs chooses.
///
/// # Errors
/// A text, if the choices differ between pairs of racks: one PathMap could not serve them.
fn shape(fabric: &Fabric) -> Result<Option<(Vec<Step>, NodeId, usize)>, String> {
    let switches = fabric.switch_count();
    let mut survey =
        Survey { fabric, sequences: Sequences::default(), known: vec![UNKNOWN; switches], stack: Vec::new() };
    let mut found: Option<(u32, NodeId, usize)> = None;
    let tors = || fabric.racks().iter().copied().enumerate().filter(|&(_, node)| !fabric.is_host(node));
    // ToRs with the same neighbours are interchangeable: one of them stands for all.
    let mut twins = BTreeSet::new();
    for (rack, root) in tors() {
        let links = fabric.ports(root).iter().map(|link| link.to);
        let mut neighbours: Vec<NodeId> = links.filter(|&node| !fabric.is_host(node)).collect();
        neighbours.sort();
        if !twins.insert(neighbours) {
            continue;
        }
        survey.known.fill(UNKNOWN);
        survey.known[fabric.switch_number(root)] = 0;
        for (_, tor) in tors().filter(|&(_, tor)| tor != root) {
            let Some(number) = survey.of_tor(tor, rack)? else { continue };
            match found {
                None => found = Some((number, tor, rack)),
                Some((other, a, b)) if other != number => {
                    let ways =
                        |n| survey.sequences.steps(n).iter().map(|s| s.ports).fold(1, usize::saturating_mul);
                    return Err(format!(
                        "{} there are {} paths and {} {}, with different choices along the paths, \
                         so no PathMap can serve both",
                        ends(fabric, a, b),
                        ways(other),
                        ends(fabric, tor, rack),
                        ways(number)
                    ));
                }
                Some(_) => {}
            }
        }
    }
    Ok(found.map(|(number, tor, rack)| (survey.sequences.steps(number), tor, rack)))
}

/// Survey of all paths, one destination rack after the other.
struct Survey<'a> {
    fabric: &'a Fabric,
    sequences: Sequences,
    /// Sequence of choices from a switch up and on to the rack, by switch.
    known: Vec<u32>,
    /// Switches to survey; the last one first, since the others wait for it.
    stack: Vec<NodeId>,
}

impl Survey<'_> {
    /// Sequence from a source ToR, if other switches choose as well.
    fn of_tor(&mut self, tor: NodeId, rack: usize) -> Result<Option<u32>, String> {
        self.follow(tor, rack)?;
        let ports = self.fabric.route_to_rack(tor, rack);
        let Some(first) = ports.first() else { return Ok(None) };
        let rest = self.known[self.switch(self.fabric.ports(tor)[first.index()].to)];
        if rest == 0 || rest == UNREACHABLE {
            return Ok(None);
        }
        let step = Step { tier: self.fabric.tier(tor), ports: ports.len() };
        Ok(Some(if ports.len() > 1 { self.sequences.number(step, rest) } else { rest }))
    }

    fn follow(&mut self, from: NodeId, rack: usize) -> Result<(), String> {
        let fabric = self.fabric;
        self.stack.push(from);
        while let Some(&at) = self.stack.last() {
            if self.known[self.switch(at)] != UNKNOWN {
                self.stack.pop();
                continue;
            }
            let ports = fabric.route_to_rack(at, rack);
            let next = |i: usize| fabric.ports(at)[ports[i].index()].to;
            let before = self.stack.len();
            for node in (0..ports.len()).map(next) {
                if self.known[self.switch(node)] == UNKNOWN {
                    self.stack.push(node);
                }
            }
            if self.stack.len() > before {
                continue;
            }
            let of = |i: usize| self.known[self.switch(next(i))];
            let rest = ports.first().map_or(UNREACHABLE, |_| of(0));
            if let Some(i) = (0..ports.len()).find(|&i| of(i) != rest) {
                return Err(format!(
                    "{} the choices over {} and over {} differ, so no PathMap can serve both",
                    ends(fabric, at, rack),
                    fabric.name(next(0)),
                    fabric.name(next(i))
                ));
            }
            let step = Step { tier: fabric.tier(at), ports: ports.len() };
            let counts = rest != UNREACHABLE && chooses_up(fabric, at, rack);
            let switch = self.switch(at);
            self.known[switch] = if counts { self.sequences.number(step, rest) } else { rest };
        }
        Ok(())
    }

    fn switch(&self, node: NodeId) -> usize {
        self.fabric.switch_number(node)
    }
}
