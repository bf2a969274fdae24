//! Which port a data packet takes where a switch has a choice.

use super::config::Config;
use super::paths::{Step, choices, chooses_up};
use ::themis::{Slots, path};
use model::{Cx, HostId, Packet, PortIndex, Site};

/// What a switch knows of spraying.
#[derive(Clone, Debug)]
pub(super) struct Spray {
    /// Slots, where they are not the number of uplinks.
    slots: Option<Slots>,
    steered: Option<Steered>,
}

/// A switch on ways with several choices: the source port that the ToR gives to a slot steers its hash.
#[derive(Clone, Debug)]
struct Steered {
    slots: Slots,
    /// By slot: the bits of this switch's hash that the slot's source port flips. Packets do not carry the port; it
    /// is a function of the PSN, and so are these bits.
    flips: Vec<u16>,
    /// One bit per host, set if the way there is steered: at a ToR, if switches further up choose; at another switch, if
    /// it chooses on the way up.
    leads_to: Vec<u64>,
}

impl Spray {
    /// For one switch.
    pub(super) fn of(config: &Config, site: Site<'_>) -> Self {
        let slots = config.slots.and_then(Slots::new);
        let steered = if config.path_map { Steered::of(config, site, slots) } else { None };
        Spray { slots, steered }
    }

    /// The port of a data packet to another rack.
    #[inline]
    pub(super) fn port(&self, cx: &Cx<'_>, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        let count = ports.len();
        if count == 1 {
            return ports[0];
        }
        let base = cx.hash(pkt, count);
        let port = match &self.steered {
            Some(steered) if steered.leads_to(pkt.to()) => {
                let flips = steered.flips[usize::from(steered.slots.of(pkt.psn()))];
                // A power of two, or `check` would have refused; the mask holds the port in range in any case.
                (base ^ usize::from(flips)) & (count - 1)
            }
            _ if !cx.from_host => base,
            _ => match self.slots {
                Some(slots) => (usize::from(slots.of(pkt.psn())) + base) % count,
                None => Slots::new(count as u16)
                    .map_or(base, |slots| usize::from(path(pkt.psn(), slots, base as u16))),
            },
        };
        ports[port]
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
