//! Map of racks in a ToR: the rack of every host, and the senders of queue pairs that end at its own hosts.

use model::{HostId, Kind, Packet, Psn, QpId, Site};

/// Empty in a switch without hosts.
#[derive(Clone, Debug)]
pub(crate) struct Racks {
    rack_of: Vec<u16>,
    count: usize,
    /// Sending host of each queue pair that ends here, from `first` on.
    senders: Vec<HostId>,
    first: u32,
}

impl Racks {
    pub(crate) fn of(site: Site<'_>) -> Self {
        let fabric = site.fabric();
        let (hosts, count) = if site.is_tor() { (fabric.hosts(), fabric.racks().len()) } else { (0, 0) };
        let incoming = site.incoming();
        Racks {
            // Numbers of racks are below `Topology::MOST_RACKS`.
            rack_of: (0..hosts).map(|host| fabric.rack(HostId(host as u32)) as u16).collect(),
            count,
            first: incoming.start,
            senders: incoming.map(|qp| site.qp(QpId(qp)).from).collect(),
        }
    }

    /// Number of racks.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The rack of a host.
    #[inline]
    pub(crate) fn rack(&self, host: HostId) -> Option<u16> {
        self.rack_of.get(host.index()).copied()
    }

    /// Sending host of a queue pair that ends here.
    #[inline]
    pub(crate) fn sender(&self, qp: QpId) -> Option<HostId> {
        self.senders.get(qp.0.checked_sub(self.first)? as usize).copied()
    }

    /// A signal to the ToR of the host that sends on a queue pair.
    pub(crate) fn signal(&self, qp: QpId, frame: u32) -> Option<Packet> {
        self.sender(qp).map(|host| Packet::new(Kind::Signal, qp, host, Psn::new(0), frame))
    }
}
