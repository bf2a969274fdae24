//! Hierarchical all-reduce: reduce-scatter in each server, all-reduce between the GPUs of one number, all-gather in each server.

use super::{After, Builder, Call, Kind, Schedule, Step, ring};
use std::ops::Range;

pub(super) fn schedule(call: &Call) -> Result<Schedule, String> {
    let Some(each) = call.per_server() else {
        return Err("`hierarchical` needs the same number of ranks in every server".to_owned());
    };
    let servers = call.servers.len() as u32;
    let mut builder = Builder::new(call.ranks());
    // Pieces of the buffer are independent of each other, so their three phases overlap.
    for range in call.pieces(0..call.bytes) {
        piece(&mut builder, call, range, each, servers)?;
    }
    Ok(builder.done())
}

fn piece(
    builder: &mut Builder,
    call: &Call,
    range: Range<u64>,
    each: u32,
    servers: u32,
) -> Result<(), String> {
    let bytes = range.end - range.start;
    let within =
        |kind| Call { kind, bytes, servers: vec![each], channels: 1, chunk: u64::MAX, ..call.clone() };
    let mut arrived: Vec<Vec<After>> = vec![Vec::new(); call.ranks() as usize];
    for server in 0..servers {
        let ring = ring::schedule(&within(Kind::ReduceScatter))?;
        append(builder, &ring, |gpu| server * each + gpu, range.start, &mut arrived, 0);
    }
    for gpu in 0..each {
        let share = call.part(bytes, each.into(), gpu.into());
        let between = Call {
            bytes: share.end - share.start,
            servers: vec![1; servers as usize],
            ..within(Kind::AllReduce)
        };
        let ring = ring::schedule(&between)?;
        append(builder, &ring, |server| server * each + gpu, range.start + share.start, &mut arrived, gpu);
    }
    for server in 0..servers {
        let ring = ring::schedule(&within(Kind::AllGather))?;
        append(builder, &ring, |gpu| server * each + gpu, range.start, &mut arrived, 0);
    }
    Ok(())
}

/// Adds the steps of another schedule. Every step of a member waits for what the member waited for before; afterwards `arrived` holds
/// what it waits for next. A member leaves after the last step of every phase.
fn append(
    builder: &mut Builder,
    other: &Schedule,
    member: impl Fn(u32) -> u32,
    offset: u64,
    arrived: &mut [Vec<After>],
    channel: u32,
) {
    let mut numbers: Vec<u32> = Vec::with_capacity(other.steps.len());
    let moved = |after: &After, numbers: &[u32]| match *after {
        After::Arrived(step) => After::Arrived(numbers[step as usize]),
        After::Sent(step) => After::Sent(numbers[step as usize]),
        After::Entered(m) => After::Entered(member(m)),
    };
    for step in &other.steps {
        let (from, to) = (member(step.from), member(step.to));
        let mut after: Vec<After> = step.after.iter().map(|after| moved(after, &numbers)).collect();
        after.extend(&arrived[from as usize]);
        let data = step.data.start + offset..step.data.end + offset;
        let step = Step { from, to, data, more: Vec::new(), channel, way: step.way, after };
        numbers.push(builder.push(step));
    }
    for (m, leave) in (0..).zip(&other.leave) {
        let leave: Vec<After> = leave.iter().map(|after| moved(after, &numbers)).collect();
        leave.iter().for_each(|&after| builder.leave(member(m), after));
        if !leave.is_empty() {
            arrived[member(m) as usize] = leave;
        }
    }
}
