//! Recursive halving (reduce-scatter) and recursive doubling (all-gather). All bytes of a member go by the channel of its place in its
//! server, so that they leave by a NIC of its own.

use super::{After, Builder, Call, Kind, Schedule, Way};
use std::ops::Range;

/// The bytes of the members `first..first + count`.
fn share(call: &Call, first: u32, count: u32) -> Range<u64> {
    let part = |member: u32| call.part(call.bytes, call.ranks().into(), member.into());
    part(first).start..part(first + count - 1).end
}

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    let n = call.ranks();
    if !n.is_power_of_two() {
        return Err(format!("`halving-doubling` needs a power of two of ranks, found {n}"));
    }
    let mut builder = Builder::new(n);
    let channels = call.places();
    // Arrivals that a member waits for before its next step: all so far, because they come from different members.
    let mut arrived: Vec<Vec<After>> = vec![Vec::new(); n as usize];
    let mut exchange = |half: u32, way: Way, builder: &mut Builder| {
        let steps: Vec<Vec<u32>> = (0..n)
            .map(|i| {
                let peer = i ^ half;
                // Halving sends the peer's half of the block; doubling sends the half that the member has.
                let block = match way {
                    Way::Reduce => peer & !(half - 1),
                    _ => i & !(half - 1),
                };
                let pieces = call.pieces(share(call, block, half));
                let after = &arrived[i as usize];
                pieces
                    .into_iter()
                    .map(|data| builder.step((i, peer), data, way, channels[i as usize], after.clone()))
                    .collect()
            })
            .collect();
        for i in 0..n {
            arrived[i as usize].extend(steps[(i ^ half) as usize].iter().map(|&s| After::Arrived(s)));
        }
    };
    let doublings = || (0..n.trailing_zeros()).map(|j| 1u32 << j);
    if call.kind != Kind::AllGather {
        doublings().rev().for_each(|half| exchange(half, Way::Reduce, &mut builder));
    }
    if call.kind != Kind::ReduceScatter {
        doublings().for_each(|half| exchange(half, Way::Copy, &mut builder));
    }
    for (member, arrived) in (0..n).zip(arrived) {
        arrived.into_iter().for_each(|after| builder.leave(member, after));
    }
    Ok(builder.done())
}
