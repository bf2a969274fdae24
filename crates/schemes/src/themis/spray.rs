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
    /// One bit per host, set if the path there is steered: at a ToR, if switches further up choose; at another switch, if
    /// it chooses on the way up.
    leads_to: Vec<u64>,
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
                let Some(slot) = slot else { return arrived.base_path(pkt, ports) };
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
                arrived.base_path(pkt, ports)
            }
        }
    }

    /// [`Spray::port`] while routing knows of no dead link.
    #[inline(always)]
    pub(super) fn undisturbed(&self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        ports[self.choose(arrived, pkt, ports.len()).0]
    }

    /// Index of the port, of `count`, that a data packet takes; also its slot, if the slot decides.
    #[inline]
    fn choose(&self, arrived: Arrived, pkt: &Packet, count: usize) -> (usize, Option<u16>) {
        if count == 1 {
            return (0, None);
        }
        let base = arrived.hash(pkt, count);
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
        let mut leads_to = vec![0; fabric.hosts().div_ceil(64)];
        for host in (0..fabric.hosts()).filter(|&h| leads[fabric.rack(HostId(h as u16))]) {
            leads_to[host / 64] |= 1 << (host % 64);
        }
        let flips = (0..slots.count()).map(|slot| hash.flips(map.delta(slot)) & (ports - 1) as u16).collect();
        Some(Steered { slots, flips, leads_to })
    }

    #[inline]
    fn leads_to(&self, host: HostId) -> bool {
        self.leads_to[host.index() / 64] >> (host.index() % 64) & 1 == 1
    }
}
