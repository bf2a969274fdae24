//! NVLink SHARP (NVLS): the NVSwitch of a server reduces and copies.
//!
//! In one server, an all-reduce of S bytes among n GPUs moves (1 + 1/n) S over each GPU's port in each direction: the switch reads S
//! from it and gives it S/n of the sum, then takes S/n from it and gives it all S. Both parts are pipelined, so that the port
//! is busy for (1 + 1/n) S. Between servers, GPU i of each server reduces its share with the GPUs i of the other servers over
//! a double binary tree, as NCCL's NVLS-tree does.

use super::{After, Builder, Call, Kind, Schedule, Step, Way, tree};
use std::ops::Range;

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
    let share = |gpu: u32| call.part(call.bytes, each.into(), gpu.into());
    if servers == 1 {
        // Bytes through a port in each direction; all-gather and reduce-scatter have S one way and S/n the other way.
        let ranges = |gpu: u32| match call.kind {
            Kind::AllReduce => (0..call.bytes, vec![share(gpu)]),
            _ => (0..call.bytes, Vec::new()),
        };
        for gpu in 0..each {
            let (data, more) = ranges(gpu);
            let after = (0..each).map(After::Entered).collect();
            let step =
                builder.push(Step { from: gpu, to: gpu, data, more, channel: gpu, way: Way::Switch, after });
            builder.leave(gpu, After::Arrived(step));
        }
        return Ok(builder.done());
    }
    // Reduce-scatter in every server.
    let mut reduced = vec![0; call.ranks() as usize];
    for member in 0..call.ranks() {
        let first = member / each * each;
        let after = (first..first + each).map(After::Entered).collect();
        reduced[member as usize] = switch(&mut builder, member, 0..call.bytes, after);
    }
    // All-reduce of each share between servers.
    let mut summed: Vec<Vec<After>> = vec![Vec::new(); call.ranks() as usize];
    for gpu in 0..each {
        let own = Call { servers: vec![1; servers as usize], channels: 1, nvlink: false, ..call.clone() };
        let (own, share) = (Call { bytes: share(gpu).end - share(gpu).start, ..own }, share(gpu));
        let trees = tree::schedule(&own)?;
        graft(&mut builder, &trees, |server| server * each + gpu, share.start, gpu, &reduced, &mut summed);
    }
    // All-gather in every server: all shares of the server must be complete.
    for member in 0..call.ranks() {
        let first = member / each * each;
        let after = (first..first + each).flat_map(|m| summed[m as usize].clone()).collect();
        let step = switch(&mut builder, member, 0..call.bytes, after);
        builder.leave(member, After::Arrived(step));
    }
    Ok(builder.done())
}

fn switch(builder: &mut Builder, member: u32, data: Range<u64>, after: Vec<After>) -> u32 {
    builder.push(Step {
        from: member,
        to: member,
        data,
        more: Vec::new(),
        channel: 0,
        way: Way::Switch,
        after,
    })
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
    for step in &other.steps {
        let (from, to) = (member(step.from), member(step.to));
        let mut after: Vec<After> = step.after.iter().map(|after| moved(after, &numbers)).collect();
        // A member adds its own share only when it has the share.
        after.push(After::Arrived(begin[from as usize]));
        let data = step.data.start + offset..step.data.end + offset;
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
