//! The order of packets that reach a node at one instant: by port number, after some of its bits have been inverted. Ten bits of
//! a hash of node and time select the inverted bits.

use model::draw::{Key, Purpose};
use model::{Plan, PortIndex};

/// A key for every node.
pub(super) struct Ties(Vec<u64>);

impl Ties {
    pub(super) fn new(plan: &Plan) -> Self {
        let key = |node| Key::new(plan.seed, Purpose::Tie, node as u64).salt();
        Ties((0..plan.fabric.nodes()).map(key).collect())
    }

    /// Rank of the packet that arrives by `port` of a node at `at`, ps.
    pub(super) fn rank(&self, node: u32, at: u64, port: PortIndex) -> u16 {
        // 2^64 divided by the golden ratio, see Knuth, The Art of Computer Programming 3, 6.4.
        let hash = (self.0[node as usize] ^ at).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        port.0 ^ (hash >> (u64::BITS - 10)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_ranks_of_their_own_and_none_is_always_first() {
        let ties = Ties(vec![7]);
        let ranks = |at| -> Vec<u16> { (0..4).map(|port| ties.rank(0, at, PortIndex(port))).collect() };
        let first = |at| (0..4).min_by_key(|port| ranks(at)[*port]);
        for at in 0..100 {
            let mut all = ranks(at);
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 4);
        }
        for port in 0..4 {
            assert!((0..100).any(|at| first(at) == Some(port)), "port {port} is first at some time");
        }
    }
}
