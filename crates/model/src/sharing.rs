//! NICs with several ports whose queue pairs may change ports.

use crate::fabric::Routing;
use crate::{Fabric, HostId, Time};

/// The ports of a NIC serve all its queue pairs. A queue pair belongs to the endpoints that the plan names, its *own* ports;
/// its packets may leave and arrive by the other ports of these two NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSharing {
    /// Ports of every NIC, at most [`PortSharing::MOST`]. NIC `n` has the endpoints from `n * ports` on, all of one host.
    pub ports: u16,
    /// Choice of the port.
    pub choice: PortChoice,
}

/// Choice among the ports of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// A bond: a queue pair uses its own ports while routes join them, else the first pair of ports that routes join.
    Failover,
    /// Planes: every packet takes any port, as its steering chooses, and arrives at the port of the same number.
    Spread,
    /// Devices: a queue pair uses its own ports, whatever routes say, until its retries are used up. Then it moves to the next
    /// ports, and may return.
    Devices(Resilience),
}

/// How a queue pair leaves a port by which its retries are used up, and how it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resilience {
    /// Time from the last timeout to the first packet by the next port.
    pub probe: Time,
    /// Time from the last timeout to the first message that asks whether the own port works again.
    pub recovery: Time,
    /// Time between two such messages.
    pub interval: Time,
    /// Most of these messages. After two in a row have arrived, the queue pair returns.
    pub attempts: u8,
}

impl PortSharing {
    /// Most ports of a NIC.
    pub const MOST: usize = 8;

    /// The first port of the NIC, which has the queue pairs of all its ports.
    #[inline]
    pub fn home(&self, host: HostId) -> HostId {
        HostId(host.0 - host.0 % u32::from(self.ports))
    }

    /// The number of a port in its NIC.
    #[inline]
    pub fn place(&self, host: HostId) -> usize {
        (host.0 % u32::from(self.ports)) as usize
    }

    /// The port that lies so many places behind another one of its NIC, in a ring.
    #[inline]
    pub fn turned(&self, host: HostId, places: usize) -> HostId {
        let place = (self.place(host) + places) % usize::from(self.ports);
        HostId(self.home(host).0 + place as u32)
    }

    /// The ports at both ends by which packets from `from` to `to` travel in a bond under a routing: these two if it joins
    /// them, else two of one number, else any two. If it joins none, `from` and `to` remain.
    pub fn joined(
        &self,
        fabric: &Fabric,
        routing: Option<&Routing>,
        from: HostId,
        to: HostId,
    ) -> (HostId, HostId) {
        let all =
            || (0..u32::from(self.ports)).map(|k| (self.place(from) as u32 + k) % u32::from(self.ports));
        let pair = |(i, k): (u32, u32)| (HostId(self.home(from).0 + i), HostId(self.home(to).0 + k));
        let equal = all().map(|k| (k, k));
        let others = all().flat_map(|i| all().map(move |k| (i, k)));
        std::iter::once((from, to))
            .chain(equal.chain(others).map(pair))
            .find(|&(from, to)| fabric.reaches_by(routing, from, to))
            .unwrap_or((from, to))
    }

    /// A bit for each port of the NIC of `from` that a routing joins with the port of the same number at the NIC of `to`.
    pub fn open(&self, fabric: &Fabric, routing: Option<&Routing>, from: HostId, to: HostId) -> u32 {
        let (from, to) = (self.home(from).0, self.home(to).0);
        let joined = |k: &u32| fabric.reaches_by(routing, HostId(from + k), HostId(to + k));
        (0..u32::from(self.ports)).filter(joined).fold(0, |open, k| open | 1 << k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Effect, Fault};
    use crate::{FabricBuilder, Failures, NodeId, Probability, Rate, Time};

    /// Two servers with two dual-port NICs: port 0 of each NIC is attached to `tor0`, port 1 to `tor1`. `spine` joins the
    /// ToRs if there is one.
    fn fabric(spine: bool) -> Fabric {
        let mut builder = FabricBuilder::new();
        let servers = ["s0", "s1"].map(|name| builder.host(name));
        let tors = ["tor0", "tor1"].map(|name| builder.switch(name, "tor"));
        let link = |builder: &mut FabricBuilder, a: NodeId, b: NodeId| {
            builder.connect(a, b, Rate::from_gbps(100), Time::from_ns(500), Probability::ZERO);
        };
        for server in servers {
            for port in 0..4 {
                link(&mut builder, server, tors[port % 2]);
            }
        }
        if spine {
            let spine = builder.switch("spine", "spine");
            tors.iter().for_each(|&tor| link(&mut builder, tor, spine));
        }
        builder.build().unwrap()
    }

    /// The failures of the links at these endpoints, from the start on.
    fn dead(fabric: &Fabric, endpoints: &[u32]) -> Failures {
        let both =
            endpoints.iter().flat_map(|&host| [crate::LinkId(host), fabric.reverse(crate::LinkId(host))]);
        let fault = |link| Fault { link, at: Time::ZERO, until: Time::NEVER, effect: Effect::Down };
        Failures::new(fabric, &both.map(fault).collect::<Vec<_>>(), Time::ZERO).unwrap()
    }

    fn joined(fabric: &Fabric, endpoints: &[u32], from: u32, to: u32) -> (u32, u32) {
        let failures = dead(fabric, endpoints);
        let routing = failures.route_changes().last().and_then(|change| failures.routing(change));
        let sharing = PortSharing { ports: 2, choice: PortChoice::Failover };
        let (from, to) = sharing.joined(fabric, routing, HostId(from), HostId(to));
        (from.0, to.0)
    }

    // Server s0 has endpoints 0 to 3, server s1 has 4 to 7; NICs are (0, 1), (2, 3), (4, 5), (6, 7).
    #[test]
    fn a_bond_keeps_its_ports_while_routes_join_them() {
        for spine in [false, true] {
            assert_eq!(joined(&fabric(spine), &[], 0, 4), (0, 4));
            assert_eq!(joined(&fabric(spine), &[3, 6], 1, 5), (1, 5));
        }
        assert_eq!(joined(&fabric(true), &[], 0, 5), (0, 5));
    }

    #[test]
    fn a_dead_port_at_either_end_moves_both_ends_to_the_other_plane() {
        assert_eq!(joined(&fabric(false), &[2], 2, 6), (3, 7));
        assert_eq!(joined(&fabric(false), &[6], 2, 6), (3, 7));
    }

    #[test]
    fn two_dead_ports_in_different_planes_need_a_spine_between_the_tors() {
        assert_eq!(joined(&fabric(true), &[0, 5], 0, 4), (1, 4));
        assert_eq!(joined(&fabric(false), &[0, 5], 0, 4), (0, 4), "nothing joins the NICs");
    }

    #[test]
    fn queue_pairs_spread_over_the_planes_that_join_their_nics() {
        let fabric = fabric(false);
        let open = |endpoints: &[u32]| {
            let failures = dead(&fabric, endpoints);
            let routing = failures.route_changes().last().and_then(|change| failures.routing(change));
            PortSharing { ports: 2, choice: PortChoice::Spread }.open(&fabric, routing, HostId(0), HostId(6))
        };
        assert_eq!([open(&[]), open(&[1]), open(&[6]), open(&[0, 7])], [0b11, 0b01, 0b10, 0]);
    }
}
