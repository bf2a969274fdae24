//! Runs that cannot go on: the rule that detects them, and their causes, which are a queue pair without retries, messages that
//! wait, and a possible cycle of pauses.

use crate::outcome::{Ending, Exceeded, Stall, Waiting};
use crate::setup::{Setup, channel};
use model::{Annex, LinkId, MessageId, NodeId, Parcel, PortIndex, QpId, Time};

/// Most waiting messages that a stall names.
const NAMED: usize = 20;

/// Recent progress and planned starts of a host or of a group of hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Liveness {
    /// Time at which a packet was last accepted or a message last posted, ps.
    pub(crate) last_progress: u64,
    /// Messages that wait only for their start time.
    pub(crate) pending_starts: u64,
    /// The first queue pair that has used up its retries, and the time, ps.
    pub(crate) exceeded: Option<(u64, QpId)>,
}

/// True if a queue pair used up its retries before `now`. Else the no-progress rule: it is true if no message waits for its start
/// time, and if the last accepted packet, posted message and repaired link are more than the plan's `no_progress` ago.
pub(crate) fn is_stalled(setup: &Setup<'_>, now: u64, parts: impl Iterator<Item = Liveness>) -> bool {
    let (mut last, mut pending) = (setup.failing.last_repair, 0);
    for part in parts {
        if part.exceeded.is_some_and(|(at, _)| at < now) {
            return true;
        }
        last = last.max(part.last_progress);
        pending += part.pending_starts;
    }
    pending == 0 && now.saturating_sub(last) > setup.plan.no_progress.ps()
}

/// The end of a run in which a queue pair has used up its retries: the first one, and the end of the full window, in which all
/// nodes have been computed.
pub(crate) fn exceeded(
    setup: &Setup<'_>,
    parts: impl Iterator<Item = Liveness>,
) -> Option<(Ending, Option<Time>)> {
    let (at, qp) = parts.filter_map(|part| part.exceeded).min()?;
    let close = Time((at / setup.window + 1) * setup.window);
    let end = setup.plan.stop_after.map_or(close, |stop| stop.min(close));
    Some((Ending::RetryExceeded(Exceeded { at: Time(at), qp, link: None }), Some(end)))
}

/// The paused priorities of a port, and the data that waits there. A priority is a virtual channel of a group of classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocked {
    /// A bit for each paused priority.
    pub(crate) paused_channels: u8,
    /// Number of virtual channels of the link.
    channels: u8,
    pub(crate) waits: Vec<WaitingData>,
}

/// The egress and ingress priorities of data that waits at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitingData {
    /// Lane on which it leaves.
    channel: u8,
    ingress: PortIndex,
    /// Lane on which it came in.
    ingress_channel: u8,
}

impl Blocked {
    /// The state of a port with these paused priorities and no waiting packets.
    pub(crate) fn new(paused_channels: u8, channels: u8) -> Self {
        Blocked { paused_channels, channels, waits: Vec::new() }
    }

    /// Adds waiting packets of a class in the plan's table.
    pub(crate) fn add<'p, A: Annex>(
        &mut self,
        setup: &Setup<'_>,
        class: usize,
        waits: impl IntoIterator<Item = &'p Parcel<A>>,
    ) {
        let first_priority = setup.plan.classes.all()[class].group * setup.fabric().channels();
        let priority = |leg| first_priority + channel(leg, self.channels);
        let of = |pkt: &Parcel<A>| {
            let route = pkt.annex.route_state();
            WaitingData {
                channel: priority(route.leg()),
                ingress: pkt.ingress(),
                ingress_channel: priority(route.came_on()),
            }
        };
        self.waits.extend(waits.into_iter().map(of));
    }

    fn is_paused(&self, channel: u8) -> bool {
        self.paused_channels >> channel & 1 != 0
    }
}

/// Collects the causes of a stall: `waiting` are the messages of all hosts by queue pair and number in it, `since` is the time of the last progress, and `port`
/// returns the state of a port.
pub(crate) fn explain(
    setup: &Setup<'_>,
    waiting: Vec<(QpId, u32, Waiting)>,
    since: Option<u64>,
    port: impl Fn(usize) -> Blocked,
) -> Stall {
    let first = setup.first_messages();
    let named = |(qp, number, why): (QpId, u32, Waiting)| (MessageId(first[qp.index()] + number), why);
    let mut waiting: Vec<(MessageId, Waiting)> = waiting.into_iter().map(named).collect();
    waiting.sort_by_key(|(id, _)| *id);
    let count = waiting.len() as u64;
    waiting.truncate(NAMED);
    let links = setup.fabric().links();
    let state: Vec<Blocked> = (0..links.len()).map(port).collect();
    let paused: Vec<LinkId> =
        (0..links.len()).filter(|gp| state[*gp].paused_channels != 0).map(|gp| LinkId(gp as u32)).collect();
    let channels = usize::from(setup.priorities());
    // Nodes of this graph are pairs of link and channel. A paused one waits for each paused one at its far end that
    // has packets from it in its queue.
    let waits_for = |at: usize| -> Vec<usize> {
        let (gp, channel) = (at / channels, (at % channels) as u8);
        let far = links[gp].to;
        if setup.fabric().is_host(far) {
            return Vec::new();
        }
        let base = setup.fabric().base(far) as usize;
        let came = links[gp].peer_port;
        let holds = |next: usize, on: u8| {
            let over_it = WaitingData { channel: on, ingress: came, ingress_channel: channel };
            state[next].is_paused(on) && state[next].waits.contains(&over_it)
        };
        (base..base + setup.fabric().ports(far).len())
            .flat_map(|next| (0..channels as u8).map(move |on| (next, on)))
            .filter(|&(next, on)| holds(next, on))
            .map(|(next, on)| next * channels + usize::from(on))
            .collect()
    };
    let starts: Vec<usize> = (0..links.len() * channels)
        .filter(|at| state[at / channels].is_paused((at % channels) as u8))
        .collect();
    let ring = cycle(links.len() * channels, &starts, waits_for);
    let pfc_cycle = ring.into_iter().map(|at| LinkId((at / channels) as u32)).collect();
    Stall { since: Time(since.unwrap_or(0)), waiting, count, pfc_cycle, paused }
}

/// A cycle of the relation `next` that contains a node of `paused`, if there is one; `all` is the number of nodes.
fn cycle(all: usize, paused: &[usize], next: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let mut done = vec![false; all];
    for &start in paused {
        let mut path: Vec<(usize, Vec<usize>)> = vec![(start, next(start))];
        let mut on_path = vec![false; all];
        on_path[start] = true;
        while let Some((at, todo)) = path.last_mut() {
            match todo.pop() {
                Some(to) if on_path[to] => {
                    let from = path.iter().position(|(p, _)| *p == to).unwrap_or(0);
                    return path[from..].iter().map(|(p, _)| *p).collect();
                }
                Some(to) if !done[to] => {
                    on_path[to] = true;
                    path.push((to, next(to)));
                }
                Some(_) => {}
                None => {
                    done[*at] = true;
                    on_path[*at] = false;
                    path.pop();
                }
            }
        }
    }
    Vec::new()
}

/// The name of a link in messages, such as `leaf0 -> spine1`.
pub fn link_name(fabric: &model::Fabric, link: LinkId) -> String {
    let l = &fabric.links()[link.index()];
    let name = |n: NodeId| fabric.name(n).to_owned();
    format!("{} -> {}", name(l.from), name(l.to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_pauses_is_found_and_a_chain_is_not() {
        let ring = [1, 2, 0, 0];
        let all: Vec<usize> = (0..4).collect();
        let found = cycle(4, &all, |l| vec![ring[l]]);
        assert_eq!(found.len(), 3);
        assert!(cycle(4, &all, |l| if l < 3 { vec![l + 1] } else { vec![] }).is_empty());
    }
}
