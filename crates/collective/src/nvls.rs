//! NVLink SHARP (NVLS): the NVSwitch of a server reduces and copies.
//!
//! In one server, an all-reduce of S bytes among n GPUs moves (1 + 1/n) S over each GPU's port in each direction: the switch reads S
//! from it and gives it S/n of the sum, then takes S/n from it and gives it all S. Both parts are pipelined, so that the port
//! is busy for (1 + 1/n) S. Between servers, GPU i of each server reduces its share with the GPUs i of the other servers over
//! a double binary tree, as NCCL's NVLS-tree does, and all three parts are pipelined.

use super::{After, Builder, Call, Kind, Schedule, Step, Way, tree};
use std::ops::Range;

/// Pieces of a GPU's that the switch reduces at the same time: enough to fill its port, and few enough for the sums of earlier pieces
/// to pass between them. Our choice.
const AHEAD: usize = 2;

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    if !call.nvlink {
        return Err("`nvls` needs servers with NVLink".to_owned());
    }
    let Some(each) = call.per_server().filter(|&each| each > 1) else {
        return Err("`nvls` needs the same number of ranks, at least 2, in every server".to_owned());
    };
    let servers = call.servers.len() as u32;
    if servers > 1 && call.kind != Kind::AllReduce {
        return Err(format!("over several servers, `nvls` can do all-reduce, not {}", call.kind.name()));
    }
    let mut builder = Builder::new(call.ranks());
    let shares: Vec<Range<u64>> =
        (0..each).map(|gpu| call.part(call.bytes, each.into(), gpu.into())).collect();
    if servers == 1 {
        for gpu in 0..each {
            let (ranges, way) = match call.kind {
                Kind::AllReduce => (vec![0..call.bytes, shares[gpu as usize].clone()], Way::Switch),
                Kind::ReduceScatter => (own_first(&shares, gpu), Way::SwitchReduce),
                _ => (own_first(&shares, gpu), Way::SwitchCopy),
            };
            let step = switch(&mut builder, gpu, ranges, way, (0..each).map(After::Entered).collect());
            builder.leave(gpu, After::Arrived(step));
        }
        return Ok(builder.done());
    }
    let pieces: Vec<Vec<Range<u64>>> = shares.into_iter().map(|share| call.pieces(share)).collect();
    let mut reduced: Vec<Vec<u32>> = Vec::new();
    for piece in 0..pieces.iter().map(Vec::len).max().unwrap_or(0) {
        // The last piece of shares that have fewer is empty.
        let of = |all: &Vec<Range<u64>>| all.get(piece).cloned().unwrap_or(call.bytes..call.bytes);
        let ranges: Vec<Range<u64>> = pieces.iter().map(of).collect();
        let earlier = piece.checked_sub(AHEAD).map(|piece| reduced[piece].clone());
        let sums = one_piece(&mut builder, call, &ranges, earlier.as_deref())?;
        reduced.push(sums);
    }
    Ok(builder.done())
}

/// A GPU's own range, then those of the other GPUs.
fn own_first(ranges: &[Range<u64>], gpu: u32) -> Vec<Range<u64>> {
    let mut all = ranges.to_vec();
    all.swap(0, gpu as usize);
    all
}

/// A piece of every GPU's share: reduce-scatter in every server, all-reduce between the GPUs of one number, all-gather in every
/// server. Returns the steps that reduce, by member.
fn one_piece(
    builder: &mut Builder,
    call: &Call,
    ranges: &[Range<u64>],
    earlier: Option<&[u32]>,
) -> Result<Vec<u32>, String> {
    let (each, servers) = (ranges.len() as u32, call.servers.len() as u32);
    let server = |member: u32| (member / each * each)..(member / each + 1) * each;
    let reduced: Vec<u32> = (0..call.ranks())
        .map(|member| {
            let mut after: Vec<After> = server(member).map(After::Entered).collect();
            after.extend(earlier.map(|steps| After::Arrived(steps[member as usize])));
            switch(builder, member, own_first(ranges, member % each), Way::SwitchReduce, after)
        })
        .collect();
    let mut summed: Vec<Vec<After>> = vec![Vec::new(); call.ranks() as usize];
    for (gpu, range) in (0..).zip(ranges) {
        let own = Call {
            servers: vec![1; servers as usize],
            channels: 1,
            nvlink: false,
            bytes: range.end - range.start,
            chunk: u64::MAX,
            ..call.clone()
        };
        let trees = tree::schedule(&own)?;
        graft(builder, &trees, |server| server * each + gpu, range.start, gpu, &reduced, &mut summed);
    }
    for member in 0..call.ranks() {
        let after = server(member).flat_map(|m| summed[m as usize].clone()).collect();
        let step = switch(builder, member, own_first(ranges, member % each), Way::SwitchCopy, after);
        builder.leave(member, After::Arrived(step));
    }
    Ok(reduced)
}

fn switch(builder: &mut Builder, member: u32, ranges: Vec<Range<u64>>, way: Way, after: Vec<After>) -> u32 {
    let mut ranges = ranges.into_iter();
    let data = ranges.next().unwrap_or(0..0);
    builder.push(Step { from: member, to: member, data, more: ranges.collect(), channel: 0, way, after })
}

/// Adds the steps of another schedule among some members. A member's first step waits for the number in `begin`; `end`
/// collects what each member waits for at the end.
fn graft(
    builder: &mut Builder,
    other: &Schedule,
    member: impl Fn(u32) -> u32,
    offset: u64,
    channel: u32,
    begin: &[u32],
    end: &mut [Vec<After>],
) {
    let mut numbers = Vec::with_capacity(other.steps.len());
    let moved = |after: &After, numbers: &[u32]| match *after {
        After::Arrived(step) => After::Arrived(numbers[step as usize]),
        After::Sent(step) => After::Sent(numbers[step as usize]),
        After::Entered(m) => After::Arrived(begin[member(m) as usize]),
    };
    let apart = begin.len() as u32 / other.leave.len() as u32;
    for step in &other.steps {
        let (from, to) = (member(step.from), member(step.to));
        let mut after: Vec<After> = step.after.iter().map(|after| moved(after, &numbers)).collect();
        // A member adds its own share only when it has the share.
        after.push(After::Arrived(begin[from as usize]));
        let data = step.data.start + offset..step.data.end + offset;
        // Both trees of a GPU have connections of their own.
        let channel = channel + step.channel * apart;
        let step = Step { from, to, data, more: Vec::new(), channel, way: step.way, after };
        numbers.push(builder.push(step));
    }
    for (m, leave) in (0..).zip(&other.leave) {
        let to = member(m) as usize;
        end[to].push(After::Arrived(begin[to]));
        end[to].extend(leave.iter().map(|after| moved(after, &numbers)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::call;

    #[test]
    fn servers_of_one_gpu_have_no_switch_that_reduces() {
        let of = |servers| schedule(&Call { nvlink: true, ..call(Kind::AllReduce, servers, 1 << 20) });
        assert!(of(vec![1; 4]).is_err() && of(vec![2, 3]).is_err() && of(vec![2; 4]).is_ok());
    }
}
