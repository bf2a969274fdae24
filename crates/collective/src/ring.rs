//! Rings: every member sends to the next one.
//!
//! In an all-reduce of n members, chunk c of the buffer goes once around to be summed, and once more to be copied: 2 (n - 1)
//! steps. Each channel has a ring of its own. In every server, the ring of channel c begins at member c of the server, so that
//! channels enter and leave servers by different NICs, as NCCL's rings do.

use super::{After, Builder, Call, Kind, Schedule, Way};

/// The members in the order of a channel's ring.
pub(super) fn order(call: &Call, channel: u32) -> Vec<u32> {
    let mut order = Vec::with_capacity(call.ranks() as usize);
    let mut first = 0;
    for &members in &call.servers {
        order.extend((0..members).map(|i| first + (channel + i) % members));
        first += members;
    }
    order
}

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    let mut builder = Builder::new(call.ranks());
    let phases = match call.kind {
        Kind::AllReduce => 2,
        _ => 1,
    };
    for (channel, range) in call.by_channel() {
        let order = order(call, channel);
        around(&mut builder, call, channel, &order, range, phases);
    }
    Ok(builder.done())
}

/// One channel's ring.
fn around(
    builder: &mut Builder,
    call: &Call,
    channel: u32,
    order: &[u32],
    range: std::ops::Range<u64>,
    phases: usize,
) {
    let n = order.len();
    if n < 2 {
        return;
    }
    let steps = phases * (n - 1);
    // After a reduce-scatter member i has chunk i, so its chunks start one place further back.
    let shift = usize::from(call.kind == Kind::ReduceScatter);
    let chunk = |c: usize| {
        // Chunk c belongs to the member with that number, wherever it stands in the ring.
        let number = if call.kind == Kind::AllReduce { c } else { order[c] as usize };
        let part = call.part(range.end - range.start, n as u64, number as u64);
        call.pieces(range.start + part.start..range.start + part.end)
    };
    let mut before: Vec<Vec<u32>> = Vec::new();
    for step in 0..steps {
        let reduces = call.kind == Kind::ReduceScatter || (call.kind == Kind::AllReduce && step < n - 1);
        let way = if reduces { Way::Reduce } else { Way::Copy };
        let now: Vec<Vec<u32>> = (0..n)
            .map(|i| {
                let pieces = chunk((i + 2 * n - step - shift) % n).into_iter().enumerate();
                let ends = (order[i], order[(i + 1) % n]);
                let after = |p: usize| match before.get((i + n - 1) % n) {
                    Some(arrived) => vec![After::Arrived(arrived[p])],
                    None => Vec::new(),
                };
                pieces.map(|(p, data)| builder.step(ends, data, way, channel, after(p))).collect()
            })
            .collect();
        before = now;
    }
    for i in 0..n {
        for &last in &before[(i + n - 1) % n] {
            builder.leave(order[i], After::Arrived(last));
        }
    }
}
