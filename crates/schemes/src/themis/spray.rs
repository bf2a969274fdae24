//! Choice of the port for a data packet.

use super::config::{Config, OnFailure};
use super::detour::Detours;
use super::paths::{Step, choices, chooses_up};
use ::themis::{Slots, path};
use model::scheme::Arrived;
use model::{HostId, Packet, PortIndex, Reroute, Site};

/// Spraying state of a switch.
#[derive(Clone, Debug)]
pub(super) struct Spray {
    /// Number of slots, if it differs from the number of uplinks.
    slots: Option<Slots>,
    steered: Option<Steered>,
    on_failure: OnFailure,
    /// Set while routing knows of dead links.
    failure: Option<Box<Failure>>,
    /// Packets that kept to their flow's path during a failure, and packets whose slot had to take another path.
    pub(super) unsprayed: u64,
    pub(super) remapped: u64,
}

/// Reaction to dead links.
#[derive(Clone, Debug)]
enum Failure {
    /// Spraying is off.
    Off,
    /// Packets are sprayed over the remaining paths.
    Around(Detours),
}

/// Steering on paths with several choices: the source port that the ToR gives to a slot steers this switch's hash.
#[derive(Clone, Debug)]
struct Steered {
    slots: Slots,
    /// Bits of this switch's hash that a slot's source port flips, by slot. Packets do not carry the port; it is a function
    /// of the PSN, and so are these bits.
    flips: Vec<u16>,
    /// Hosts to which the path is not steered. At a ToR, no switch further up chooses there; another switch does not
    /// choose itself, or not on the way up. Of the ToR's own hosts and of hosts without a path, the set may hold any.
    near: HostSet,
}

impl Spray {
    /// Spraying state of the switch of `site`.
    pub(super) fn of(config: &Config, site: Site<'_>) -> Self {
        let slots = config.slots.and_then(Slots::new);
        let steered = if config.path_map { Steered::of(config, site, slots) } else { None };
        Spray { slots, steered, on_failure: config.on_failure, failure: None, unsprayed: 0, remapped: 0 }
    }

    /// Adapts to new routes; returns true if spraying is off from now on.
    pub(super) fn reroute(&mut self, news: &Reroute<'_>) -> bool {
        self.failure = match self.on_failure {
            _ if news.whole() => None,
            OnFailure::Ecmp => Some(Box::new(Failure::Off)),
            OnFailure::Remap => Detours::new(news).map(|detours| Box::new(Failure::Around(detours))),
        };
        self.failure.as_deref().is_some_and(|failure| matches!(failure, Failure::Off))
    }

    /// The port of a data packet to another rack.
    #[inline]
    pub(super) fn port(&mut self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        if self.failure.is_some() {
            return self.port_during_failure(arrived, pkt, ports);
        }
        match ports {
            [port] => *port,
            _ => ports[self.choose(arrived, pkt, ports.len()).0],
        }
    }

    /// [`Spray::port`] while routing knows of dead links.
    #[cold]
    #[inline(never)]
    fn port_during_failure(&mut self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        match self.failure.as_deref() {
            Some(Failure::Around(detours)) => {
                let Some(whole) = detours.of(pkt.to()) else {
                    return ports[self.choose(arrived, pkt, ports.len()).0];
                };
                let (choice, slot) = self.choose(arrived, pkt, whole.len());
                let Some(slot) = slot else { return arrived.base_path(ports) };
                let own = whole[choice];
                if ports.contains(&own) {
                    return own;
                }
                // The slot number decides, so that the slots of one dead path spread over all other paths.
                self.remapped += 1;
                ports[usize::from(slot) % ports.len()]
            }
            _ => {
                self.unsprayed += u64::from(arrived.from_host);
                arrived.base_path(ports)
            }
        }
    }

    /// [`Spray::port`] while routing knows of no dead link.
    #[inline(always)]
    pub(super) fn undisturbed(&self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        ports[self.choose(arrived, pkt, ports.len()).0]
    }

    /// Index of the port, of `count`, that a data packet takes; also its slot, if the slot decides.
    #[inline(always)]
    fn choose(&self, arrived: Arrived, pkt: &Packet, count: usize) -> (usize, Option<u16>) {
        if count == 1 {
            return (0, None);
        }
        let base = arrived.hash(count);
        match &self.steered {
            Some(steered) if steered.leads_to(pkt.to()) => {
                let slot = steered.slots.of(pkt.psn());
                let flips = steered.flips[usize::from(slot)];
                // `count` is a power of two, or `check` refuses the plan; the mask keeps the port in range in any case.
                ((base ^ usize::from(flips)) & (count - 1), Some(slot))
            }
            _ if !arrived.from_host => (base, None),
            _ => match self.slots {
                Some(slots) => {
                    let slot = slots.of(pkt.psn());
                    ((usize::from(slot) + base) % count, Some(slot))
                }
                None => Slots::new(count as u16).map_or((base, None), |slots| {
                    let choice = path(pkt.psn(), slots, base as u16);
                    (usize::from(choice), Some(slots.of(pkt.psn())))
                }),
            },
        }
    }
}

impl Steered {
    fn of(config: &Config, site: Site<'_>, slots: Option<Slots>) -> Option<Self> {
        let (fabric, node) = (site.fabric(), site.node);
        let racks =
            || fabric.racks().iter().copied().enumerate().filter(|&(_, r)| r != node && !fabric.is_host(r));
        let steered = |tor, rack| choices(fabric, tor, rack).any(|(at, _)| at != tor);
        let is_tor = site.is_tor();
        let here = |rack| if is_tor { steered(node, rack) } else { chooses_up(fabric, node, rack) };
        let mut leads = vec![false; fabric.racks().len()];
        racks().for_each(|(rack, _)| leads[rack] = here(rack));
        let rack = leads.iter().position(|&leads| leads)?;
        let mut tors = racks().map(|(_, tor)| tor).filter(|&tor| tor != fabric.racks()[rack]);
        let tor = if is_tor { node } else { tors.find(|&tor| steered(tor, rack))? };
        let steps: Vec<Step> = choices(fabric, tor, rack).map(|(_, step)| step).collect();
        let tier = fabric.tier(node);
        let ports = steps.iter().find(|step| step.tier == tier)?.ports;
        if !steps.iter().all(|step| step.ports.is_power_of_two()) {
            return None;
        }
        let map = config.path_map_of(&steps).ok()?;
        let slots = slots.or_else(|| Slots::new(u16::try_from(map.paths()).ok()?))?;
        let hash = config.hash(tier);
        let near =
            fabric.racks().iter().zip(&leads).filter(|&(&root, leads)| !leads && !fabric.is_host(root));
        let near = near.flat_map(|(&root, _)| fabric.ports(root)).filter(|link| fabric.is_host(link.to));
        let near = HostSet::of(near.map(|link| fabric.endpoint(link.to, link.peer_port).0).collect());
        // The flips of a slot are the sum of the flips of its bits.
        let mut flips = vec![0; usize::from(slots.count())];
        for slot in 1..slots.count() {
            let lowest = hash.flips(map.delta(slot & slot.wrapping_neg())) & (ports - 1) as u16;
            flips[usize::from(slot)] = flips[usize::from(slot & (slot - 1))] ^ lowest;
        }
        Some(Steered { slots, flips, near })
    }

    #[inline]
    fn leads_to(&self, host: HostId) -> bool {
        !self.near.has(host)
    }
}

/// A set of hosts. The hosts of a rack or of a pod usually have consecutive numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum HostSet {
    /// `count` hosts with consecutive numbers.
    Consecutive { first: u32, count: u32 },
    /// A bit for every host up to the last one of the set.
    Scattered(Vec<u64>),
}

impl HostSet {
    fn of(mut hosts: Vec<u32>) -> Self {
        hosts.sort_unstable();
        let (first, end) = (hosts.first().map_or(0, |h| *h), hosts.last().map_or(0, |h| h + 1));
        if (end - first) as usize == hosts.len() {
            return HostSet::Consecutive { first, count: end - first };
        }
        let mut bits = vec![0; end.div_ceil(64) as usize];
        hosts.iter().for_each(|h| bits[*h as usize / 64] |= 1 << (h % 64));
        HostSet::Scattered(bits)
    }

    #[inline]
    fn has(&self, host: HostId) -> bool {
        match self {
            HostSet::Consecutive { first, count } => (host.index() as u32).wrapping_sub(*first) < *count,
            HostSet::Scattered(bits) => {
                bits.get(host.index() / 64).is_some_and(|word| word >> (host.index() % 64) & 1 == 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_hosts_has_the_hosts_it_was_made_of() {
        let sets: [&[u32]; 6] = [&[], &[0], &[63, 65], &[130, 128, 129], &[0, 64, 200], &[5, 6, 7, 9]];
        for hosts in sets {
            let set = HostSet::of(hosts.to_vec());
            assert!((0..300).all(|h| set.has(HostId(h)) == hosts.contains(&h)), "{hosts:?}");
        }
        assert_eq!(HostSet::of(vec![130, 128, 129]), HostSet::Consecutive { first: 128, count: 3 });
    }
}
