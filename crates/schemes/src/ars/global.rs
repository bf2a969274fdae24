//! Global load balancing: spines tell leaves the bands of their downlinks.
//!
//! A leaf knows the next hop and the hop after it (draft-ietf-idr-next-next-hop-nodes-01). The format of the vendors' reports is
//! not public. Ours: a spine samples its downlinks, and sends each leaf a frame for every eight racks of which a band has
//! changed, so a report takes at most `interval` and a link's delay. Only switches that border on a ToR report, and only to it.

use super::quality::{BEST, Load};
use model::{Cx, HostId, Kind, Packet, PortIndex, Psn, QpId, Site};

/// Frame of a report, bytes. Our choice: Ethernet's smallest frame.
pub(super) const SIGNAL: u32 = 64;
/// Racks of one report, and bits of a band: a tag holds the number of eight racks, and their bands.
const RACKS: usize = 8;
const BITS: u32 = 3;

/// Reports that a leaf has heard.
#[derive(Clone, Debug)]
pub(super) struct Reports {
    racks: usize,
    /// Bands by port, then by rack.
    bands: Vec<u8>,
}

impl Reports {
    /// No reports yet; `None` in a switch without hosts.
    pub(super) fn of(site: Site<'_>) -> Option<Self> {
        let (racks, ports) = (site.fabric().racks().len(), site.fabric().ports(site.node).len());
        site.is_tor().then(|| Reports { racks, bands: vec![BEST; racks * ports] })
    }

    #[inline]
    pub(super) fn band(&self, port: PortIndex, rack: usize) -> u8 {
        self.bands.get(port.index() * self.racks + rack).copied().unwrap_or(BEST)
    }

    /// A report comes in by `port`.
    pub(super) fn hear(&mut self, port: PortIndex, tag: u64) {
        let first = (tag >> (RACKS as u32 * BITS)) as usize * RACKS;
        let racks = first.min(self.racks)..(first + RACKS).min(self.racks);
        for (i, rack) in racks.enumerate() {
            let band = (tag >> (i as u32 * BITS)) as u8 & BEST;
            if let Some(known) = self.bands.get_mut(port.index() * self.racks + rack) {
                *known = band;
            }
        }
    }
}

/// What a spine reports.
#[derive(Clone, Debug)]
pub(super) struct Reporter {
    /// Ports to every rack.
    toward: Vec<Box<[PortIndex]>>,
    /// Leaves that send: a port, and the queue pair and the host with which a frame reaches the leaf.
    leaves: Vec<(PortIndex, QpId, HostId)>,
    /// Bands that the leaves know, eight racks in each number.
    known: Vec<u64>,
    sent: u64,
}

impl Reporter {
    /// `None` in a ToR, and in a switch without a ToR below whose hosts send.
    pub(super) fn of(site: Site<'_>) -> Option<Self> {
        let (fabric, racks) = (site.fabric(), site.fabric().racks());
        if site.is_tor() {
            return None;
        }
        let mut below = vec![None; racks.len()];
        for link in fabric.ports(site.node) {
            if let Some(rack) = racks.iter().position(|rack| *rack == link.to) {
                below[rack].get_or_insert(link.port);
            }
        }
        let mut leaves = Vec::new();
        for (qp, ends) in (0..).map(QpId).zip(&site.plan.qps) {
            if let Some(port) =
                below[fabric.rack(ends.from)].take_if(|_| !fabric.same_rack(ends.from, ends.to))
            {
                leaves.push((port, qp, ends.from));
            }
        }
        let toward = (0..racks.len()).map(|rack| fabric.route_to_rack(site.node, rack).into()).collect();
        let known = (0..racks.len().div_ceil(RACKS)).map(|_| ALL_BEST).collect();
        (!leaves.is_empty()).then_some(Reporter { toward, leaves, known, sent: 0 })
    }

    /// True if the reports depend on this port.
    pub(super) fn watches(&self, port: PortIndex) -> bool {
        self.toward.iter().any(|ports| ports.contains(&port))
    }

    /// Frames sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends the bands that have changed.
    pub(super) fn report(&mut self, cx: &mut Cx<'_>, loads: &[Load]) {
        let band =
            |ports: &[PortIndex]| ports.iter().map(|port| loads[port.index()].band()).max().unwrap_or(BEST);
        for (number, (racks, known)) in self.toward.chunks(RACKS).zip(&mut self.known).enumerate() {
            let bands = racks.iter().enumerate().fold(ALL_BEST, |bands, (i, ports)| {
                let shift = i as u32 * BITS;
                bands & !(u64::from(BEST) << shift) | u64::from(band(ports)) << shift
            });
            if bands == *known {
                continue;
            }
            *known = bands;
            let tag = (number as u64) << (RACKS as u32 * BITS) | bands;
            for &(port, qp, host) in &self.leaves {
                cx.signal(Packet::new(Kind::Signal, qp, host, Psn::new(0), SIGNAL), tag, Some(port));
                self.sent += 1;
            }
        }
    }
}

/// Eight times the best band.
const ALL_BEST: u64 = (1 << (RACKS as u32 * BITS)) - 1;
