//! The long links of a switch, and what bounds times on them.

use model::{NodeId, Plan, PortIndex, Rate, Time};

/// Shortest time between two changes of T_block if the interval is shorter. Our choice.
pub(super) const LEAST_STEP: Time = Time::from_us(1);
/// Longest time that any timer runs, so that sums of times stay in range: ten days. Our choice.
pub(crate) const MOST: Time = Time::from_ms(864_000_000);

/// Ports of a switch that lead to another switch of its role.
pub(crate) fn long_ports(plan: &Plan, node: NodeId) -> Vec<PortIndex> {
    let fabric = &plan.fabric;
    let alike = |to: NodeId| !fabric.is_host(to) && fabric.role(to) == fabric.role(node);
    fabric.ports(node).iter().filter(|link| alike(link.to)).map(|link| link.port).collect()
}

/// For every port of a switch, whether it is one of its [`long_ports`].
pub(crate) fn long_by_port(plan: &Plan, node: NodeId) -> Vec<bool> {
    let mut long = vec![false; plan.fabric.ports(node).len()];
    for port in long_ports(plan, node) {
        long[usize::from(port.0)] = true;
    }
    long
}

/// Round trip over the longest of a switch's long links.
pub(super) fn long_round_trip(plan: &Plan, node: NodeId) -> Time {
    let ports = plan.fabric.ports(node);
    let delays = long_ports(plan, node).into_iter().map(|port| ports[usize::from(port.0)].delay);
    Time(delays.max().unwrap_or_default().ps().saturating_mul(2))
}

/// Time to send `bytes` at `rate`, ps.
pub(super) fn time_to_send(bytes: u64, rate: Rate) -> u64 {
    let time = u128::from(bytes) * 8_000_000_000_000 / u128::from(rate.bps().max(1));
    u64::try_from(time).unwrap_or(u64::MAX)
}
