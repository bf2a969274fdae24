//! Parallel aggregated trees (PAT): all-gather and reduce-scatter in a logarithmic number of steps.
//!
//! In the step of distance 2^j, from the largest distance to the smallest, each member sends to the member 2^j further on. It sends
//! the blocks whose owners are m * 2^(j + 1) before it. A reduce-scatter is the same, backwards in time.

use super::{After, Builder, Call, Kind, Schedule, Step, Way};

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    if call.servers.iter().any(|&members| members > 1) {
        return Err("`pat` needs groups with one rank per server".to_owned());
    }
    let n = call.ranks();
    let mut builder = Builder::new(n);
    let block = |owner: u32| call.part(call.bytes, n.into(), owner.into());
    let reduce = call.kind == Kind::ReduceScatter;
    let distances: Vec<u32> = (0..32).map(|j| 1u32 << j).take_while(|&d| d < n).collect();
    let distances: Vec<u32> = if reduce { distances } else { distances.into_iter().rev().collect() };
    let mut arrived: Vec<Vec<After>> = vec![Vec::new(); n as usize];
    for distance in distances {
        let count = (n - distance).div_ceil(2 * distance);
        let mut next = arrived.clone();
        for member in 0..n {
            let back = |by: u32| (member + n - by % n) % n;
            // Blocks of the owners 0, 2d, 4d, ... before the sender; backwards in time, the receiver of the all-gather sends.
            let (to, owners): (u32, Vec<u32>) = match reduce {
                false => ((member + distance) % n, (0..count).map(|m| back(2 * distance * m)).collect()),
                true => (back(distance), (0..count).map(|m| back(distance + 2 * distance * m)).collect()),
            };
            let mut ranges = owners.into_iter().map(block);
            let data = ranges.next().unwrap_or(0..0);
            let way = if reduce { Way::Reduce } else { Way::Copy };
            let (more, after) = (ranges.collect(), arrived[member as usize].clone());
            let step = builder.push(Step { from: member, to, data, more, channel: 0, way, after });
            next[to as usize].push(After::Arrived(step));
        }
        arrived = next;
    }
    for (member, arrived) in (0..n).zip(arrived) {
        arrived.into_iter().for_each(|after| builder.leave(member, after));
    }
    Ok(builder.done())
}
