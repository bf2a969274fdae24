//! Recursive doubling: members exchange their whole buffers, each by the channel of its place in its server.

use super::{After, Builder, Call, Schedule, Way};

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    let n = call.ranks();
    if !n.is_power_of_two() {
        return Err(format!("`recursive-doubling` needs a power of two of ranks, found {n}"));
    }
    let mut builder = Builder::new(n);
    let channels = call.places();
    let mut arrived: Vec<Vec<After>> = vec![Vec::new(); n as usize];
    for distance in (0..n.trailing_zeros()).map(|j| 1u32 << j) {
        let mut next = arrived.clone();
        for i in 0..n {
            for data in call.pieces(0..call.bytes) {
                let step = builder.step(
                    (i, i ^ distance),
                    data,
                    Way::Reduce,
                    channels[i as usize],
                    arrived[i as usize].clone(),
                );
                next[(i ^ distance) as usize].push(After::Arrived(step));
            }
        }
        arrived = next;
    }
    for (member, arrived) in (0..n).zip(arrived) {
        arrived.into_iter().for_each(|after| builder.leave(member, after));
    }
    Ok(builder.done())
}
