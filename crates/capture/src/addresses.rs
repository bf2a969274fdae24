//! What real packets call the hosts and queue pairs that a plan numbers.

use model::{HostId, NodeId, QpId};
use std::net::Ipv4Addr;
use wire::bth::Qpn;
use wire::ethernet::Address;
use wire::udp;

/// A node's MAC address: 02:00, locally administered, and the node's number.
pub const fn mac(node: NodeId) -> Address {
    Address::local(node.0)
}

/// A host's IPv4 address: the first one of 10.0.0.0/8 is host 0's.
pub fn ip(host: HostId) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from_be_bytes([10, 0, 0, 1]) + u32::from(host.0))
}

/// One end of a queue pair. A plan has one number for both; on the wire each end has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It sends data, and hears ACKs, NACKs and CNPs.
    Requester,
    /// It hears data.
    Responder,
}

/// The number of one end of queue pair q: 2q + 2 where data comes from, and 2q + 3 where it goes; the first two are the
/// management's (InfiniBand Architecture Specification, 3.5.10). From queue pair 2^23 - 1 on the numbers, of 24 bits, come
/// round again.
pub const fn qpn(qp: QpId, end: End) -> Qpn {
    let own = match end {
        End::Requester => 2,
        End::Responder => 3,
    };
    Qpn::new((qp.0 << 1).wrapping_add(own))
}

/// The UDP source port of what one end sends: among the upper 2^14, spread by the end's own number, as NICs do it (Linux's
/// rdma_rxe: 0xC000 and 14 bits of a hash); Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4) is our choice.
pub const fn source_port(own: Qpn) -> u16 {
    udp::FIRST_DYNAMIC | (own.value().wrapping_mul(0x9E37_79B9) >> 18) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn all_hosts_have_addresses_of_their_own_in_ten() {
        assert_eq!(ip(HostId(0)).to_string(), "10.0.0.1");
        assert_eq!(ip(HostId(255)).to_string(), "10.0.1.0");
        assert_eq!(ip(HostId(u16::MAX)).to_string(), "10.1.0.0");
        assert_eq!(mac(NodeId(70_000)).to_string(), "02:00:00:01:11:70");
    }

    #[test]
    fn both_ends_of_all_queue_pairs_differ() {
        let ends = |q| [qpn(QpId(q), End::Requester), qpn(QpId(q), End::Responder)];
        let numbers: BTreeSet<_> = (0..1000).flat_map(ends).map(Qpn::value).collect();
        assert_eq!((numbers.len(), numbers.first()), (2000, Some(&2)));
    }

    #[test]
    fn neighbouring_queue_pairs_have_ports_far_apart() {
        let ports: BTreeSet<_> = (0..1000).map(|q| source_port(qpn(QpId(q), End::Requester))).collect();
        assert!(ports.len() > 990 && ports.iter().all(|&port| port >= 0xC000), "{}", ports.len());
    }
}
