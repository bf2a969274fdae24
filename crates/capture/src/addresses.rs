//! Addresses and numbers of hosts and queue pairs on the wire, derived from the numbers of the plan.

use model::{HostId, QpId};
use std::net::Ipv4Addr;
use wire::bth::Qpn;
use wire::ethernet::Address;
use wire::udp;

/// MAC address of a port of a host, or of a switch: 02:00, which is locally administered, and the number of the endpoint.
/// Switches are counted from the number of endpoints on.
pub const fn mac(number: u32) -> Address {
    Address::local(number)
}

/// IPv4 address of a host: host 0 has 10.0.0.1, the next hosts follow.
pub fn ip(host: HostId) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from_be_bytes([10, 0, 0, 1]) + host.0)
}

/// One end of a queue pair. A plan has one number for both ends; on the wire each end has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end that sends data, and receives ACKs, NACKs and CNPs.
    Requester,
    /// The end that receives data.
    Responder,
}

/// Queue pair number of one end of queue pair q: 2q + 2 at the sender of data, and 2q + 3 at its receiver. Numbers 0 and 1
/// are reserved for management (InfiniBand Architecture Specification, 3.5.10). Numbers have 24 bits, so they repeat from
/// queue pair 2^23 - 1 on.
pub const fn qpn(qp: QpId, end: End) -> Qpn {
    let own = match end {
        End::Requester => 2,
        End::Responder => 3,
    };
    Qpn::new((qp.0 << 1).wrapping_add(own))
}

/// UDP source port of the packets that one end sends: one of the upper 2^14 ports, chosen by a hash of the end's own
/// number, as in NICs (Linux's rdma_rxe: 0xC000 and 14 bits of a hash). Fibonacci hashing (Knuth, The Art of Computer
/// Programming 3, 6.4) is our choice.
pub const fn source_port(own: Qpn) -> u16 {
    udp::FIRST_DYNAMIC | (own.value().wrapping_mul(0x9E37_79B9) >> 18) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn hosts_have_distinct_addresses_in_ten_slash_eight() {
        assert_eq!(ip(HostId(0)).to_string(), "10.0.0.1");
        assert_eq!(ip(HostId(255)).to_string(), "10.0.1.0");
        assert_eq!(ip(HostId(65_535)).to_string(), "10.1.0.0");
        assert_eq!(ip(HostId(HostId::MOST as u32 - 1)).to_string(), "10.16.0.0");
        assert_eq!(mac(70_000).to_string(), "02:00:00:01:11:70");
    }

    #[test]
    fn all_ends_of_queue_pairs_have_distinct_numbers() {
        let ends = |q| [qpn(QpId(q), End::Requester), qpn(QpId(q), End::Responder)];
        let numbers: BTreeSet<_> = (0..1000).flat_map(ends).map(Qpn::value).collect();
        assert_eq!((numbers.len(), numbers.first()), (2000, Some(&2)));
    }

    #[test]
    fn neighbouring_queue_pairs_have_distinct_ports() {
        let ports: BTreeSet<_> = (0..1000).map(|q| source_port(qpn(QpId(q), End::Requester))).collect();
        assert!(ports.len() > 990 && ports.iter().all(|&port| port >= 0xC000), "{}", ports.len());
    }
}
