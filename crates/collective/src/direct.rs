//! Direct exchange: every member sends to every other member, in the order of NCCL's sends and receives.
//!
//! NCCL pairs groups of up to eight GPUs of a server with the groups at distance 0, 1, 3, 6, 10, ..., and inside a pair of groups
//! the GPUs at distance 0, 1, 2, .... Every round of this order is a permutation, and nobody waits for the end of a round.

use super::{After, Algorithm, Builder, Call, Kind, Schedule, Way};

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The members to which a member sends, itself first (NCCL, `init.cc`).
#[cfg(test)]
fn peers(call: &Call, member: u32) -> Vec<u32> {
    rounds(call).into_iter().map(|round| ahead(round, member)).collect()
}

/// One round: groups of `size` members, of which there are `groups`, and the distances.
#[derive(Clone, Copy)]
struct Round {
    size: u32,
    groups: u32,
    delta: u32,
    x: u32,
}

fn rounds(call: &Call) -> Vec<Round> {
    let n = call.ranks();
    // Servers of different sizes have groups of one. Our choice: NCCL has no rule for them here.
    let size = match (call.servers.len(), call.per_server()) {
        (1, _) => n,
        (_, Some(each)) => gcd(8, each),
        (_, None) => 1,
    };
    let groups = n / size.max(1);
    let period = groups.next_power_of_two();
    let mut delta = 0;
    let mut rounds = Vec::with_capacity(n as usize);
    for step in 1..=period {
        if delta < groups {
            rounds.extend((0..size).map(|x| Round { size, groups, delta, x }));
        }
        delta = (delta + step) % period;
    }
    rounds
}

/// The member to which `member` sends in a round.
fn ahead(Round { size, groups, delta, x }: Round, member: u32) -> u32 {
    (member / size + delta) % groups * size + (member % size + x) % size
}

impl Algorithm {
    /// The number of steps of a resolved call, if [`Algorithm::schedule_of`] can make those of some members alone.
    pub fn steps(self, call: &Call) -> Option<u64> {
        (self == Algorithm::Direct && self.kinds().contains(&call.kind)).then(|| steps(call))
    }

    /// The steps of those members that send, in the order of [`Algorithm::schedule`], if [`Algorithm::steps`] has a number.
    pub fn schedule_of(self, call: &Call, sends: impl Fn(u32) -> bool) -> Option<Schedule> {
        self.steps(call).map(|_| schedule_of(call, sends))
    }
}

/// Number of steps.
fn steps(call: &Call) -> u64 {
    let n = u64::from(call.ranks());
    let pieces = |member: u64| call.pieces(call.part(call.bytes, n, member)).len() as u64;
    (0..n).map(pieces).sum::<u64>() * n.saturating_sub(1)
}

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    Ok(schedule_of(call, |_| true))
}

/// The steps of the members that send.
fn schedule_of(call: &Call, sends: impl Fn(u32) -> bool) -> Schedule {
    let n = call.ranks();
    let mut builder = Builder::new(n);
    let way = if call.kind == Kind::ReduceScatter { Way::Reduce } else { Way::Copy };
    let part = |member: u32| call.part(call.bytes, n.into(), member.into());
    // The steps of each member, in the order of its sends.
    let mut steps: Vec<Vec<u32>> = vec![Vec::new(); n as usize];
    for round in rounds(call) {
        for from in 0..n {
            let to = ahead(round, from);
            if from == to || !sends(from) {
                continue;
            }
            let mine = &mut steps[from as usize];
            for data in call.pieces(part(if call.kind == Kind::AllGather { from } else { to })) {
                let earlier =
                    (call.window as usize).checked_sub(1).and_then(|w| mine.len().checked_sub(w + 1));
                let after = earlier.map(|i| After::Sent(mine[i])).into_iter().collect();
                let step = builder.step((from, to), data, way, mine.len() as u32 % call.channels, after);
                mine.push(step);
                builder.leave(to, After::Arrived(step));
            }
        }
    }
    builder.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::call;

    #[test]
    fn peers_come_in_nccls_order() {
        let of = |servers: u32, each: u32, member: u32| {
            peers(&call(Kind::AllToAll, vec![each; servers as usize], 1 << 20), member)
        };
        assert_eq!(of(4, 2, 0), [0, 1, 2, 3, 6, 7, 4, 5]);
        assert_eq!(of(2, 4, 3), [3, 0, 1, 2, 7, 4, 5, 6]);
        assert_eq!(of(6, 1, 0), [0, 1, 3, 2, 5, 4]);
        // Member 0 of 4 x 2 receives from these members.
        let all = call(Kind::AllToAll, vec![2; 4], 1 << 20);
        let from = |round: usize| (0..8).find(|&member| peers(&all, member)[round] == 0).unwrap();
        assert_eq!((0..8).map(from).collect::<Vec<_>>(), [0, 1, 6, 7, 2, 3, 4, 5]);
    }

    #[test]
    fn every_round_is_a_permutation() {
        for (servers, each) in [(1, 7), (3, 8), (5, 6), (16, 4), (9, 1)] {
            let call = call(Kind::AllToAll, vec![each; servers], 1000);
            let orders: Vec<_> = (0..call.ranks()).map(|member| peers(&call, member)).collect();
            for round in 0..call.ranks() as usize {
                let mut to: Vec<u32> = orders.iter().map(|order| order[round]).collect();
                to.sort_unstable();
                assert!(to.into_iter().eq(0..call.ranks()), "{servers} x {each}, round {round}");
            }
        }
    }
}
