//! Chains: a broadcast or a reduction from member to member, in pieces.

use super::{After, Builder, Call, Kind, Schedule, Way, ring};

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    let mut builder = Builder::new(call.ranks());
    for (channel, range) in call.by_channel() {
        // Member 0 is the root on every channel.
        let mut order = ring::order(call, channel);
        let root = order.iter().position(|&member| member == 0).unwrap_or(0);
        order.rotate_left(root);
        let reduce = call.kind == Kind::Reduce;
        if reduce {
            order.reverse();
        }
        let way = if reduce { Way::Reduce } else { Way::Copy };
        for piece in call.pieces(range) {
            let mut before: Option<u32> = None;
            for ends in order.windows(2) {
                let after = before.map(After::Arrived).into_iter().collect();
                let step = builder.step((ends[0], ends[1]), piece.clone(), way, channel, after);
                before = Some(step);
                // The last member of a reduction has the sum; the members of a broadcast have their copies.
                builder.leave(ends[1], After::Arrived(step));
                let first = ends[0] == order[0];
                if first || reduce {
                    builder.leave(ends[0], After::Sent(step));
                }
            }
        }
    }
    Ok(builder.done())
}
