//! The time after which a run repeats.
//!
//! Frames of all links show what is under way. If all frames of some time are those of one period before, each later by the period and
//! with PSNs higher by what the period sends, and if that time covers everything that is under way, then the state is that of one
//! period before. What a packet meets is then the same, too, unless something is drawn by time: the order of arrivals at one instant,
//! and marks of a queue that is longer than `kmin`. Such a period is refused.

use super::kmin;
use engine::outcome::{Frame, Passed};
use model::plan::FlowControl;
use model::{Kind, LinkId, NodeId, Plan, QpId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Most packets of the slowest sender in a period. Our choice: a window of 4 MB in packets of 1 KB, as senders that wait for ACKs repeat
/// after a round trip.
const MOST: usize = 4096;

/// Values of a PSN.
const PSNS: u32 = 1 << 24;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) at: u64,
    pub(super) link: u32,
    qp: QpId,
    psn: u32,
    frame: u32,
    /// `None` for what no steady flow sends.
    kind: Option<Kind>,
    marked: bool,
}

impl Seen {
    pub(super) fn of(frame: &Frame) -> Self {
        let (at, link, qp) = (frame.at.ps(), frame.link.0, QpId(0));
        let odd = Seen { at, link, qp, psn: 0, frame: 0, kind: None, marked: false };
        let Passed::Packet(pkt, lost) = frame.what else { return odd };
        let plain = !lost && !pkt.marked() && !pkt.echo() && !pkt.last() && !pkt.retransmission();
        let kind = Some(pkt.kind()).filter(|kind| plain && matches!(kind, Kind::Data | Kind::Ack));
        let marked = pkt.marked() || pkt.echo();
        Seen { qp: pkt.qp(), psn: pkt.psn().value(), frame: pkt.frame(), kind, marked, ..odd }
    }

    /// By how much its PSN is higher, if it is otherwise the same frame on the same link.
    fn after(&self, earlier: &Seen) -> Option<u32> {
        let same = (self.link, self.qp, self.frame, self.kind)
            == (earlier.link, earlier.qp, earlier.frame, earlier.kind);
        (same && self.kind.is_some()).then(|| self.psn.wrapping_sub(earlier.psn) % PSNS)
    }

    fn is_data(&self) -> bool {
        self.kind == Some(Kind::Data)
    }
}

/// Why no period was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Nothing repeats for as long as packets are under way.
    Changes,
    /// Packets arrive at a port at one instant.
    Ties,
    /// A queue is longer than `kmin`.
    Marks,
}

impl Why {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Why::Changes => "what is under way does not repeat",
            Why::Ties => "packets reach a queue at one instant, and a draw by time orders them",
            Why::Marks => "a queue is longer than kmin, and each mark is a draw by time",
        }
    }
}

/// The shortest period of the newest frames, ps, and the packets of each queue pair in it. Frames are in order of time and link.
pub(super) fn find(plan: &Plan, seen: &[Seen]) -> Result<(u64, BTreeMap<QpId, u64>), Why> {
    let hosts = plan.fabric.hosts() as u32;
    let newest = &seen[seen.len() / 2..];
    let mut sent: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for frame in newest.iter().filter(|frame| frame.link < hosts && frame.is_data()) {
        sent.entry(frame.link).or_default().push(frame.at);
    }
    let Some(slowest) = sent.values().min_by_key(|times| times.len()) else { return Err(Why::Changes) };
    let last = slowest[slowest.len() - 1];
    let candidates = slowest.iter().rev().skip(1).take(MOST).map(|at| last - at);
    for period in candidates {
        let Some((first, packets)) = repeats(seen, period) else { continue };
        if covers(plan, &seen[first..], &packets) {
            draws(plan, seen, period)?;
            return Ok((period, packets));
        }
    }
    Err(if newest.iter().any(|frame| frame.marked) { Why::Marks } else { Why::Changes })
}

/// The first of the newest frames which all repeat those of a period before, if they last for a period at least, and the packets in it.
fn repeats(seen: &[Seen], period: u64) -> Option<(usize, BTreeMap<QpId, u64>)> {
    let last = seen.last()?.at;
    let earlier = seen.partition_point(|frame| frame.at + period <= last);
    let mut packets: BTreeMap<QpId, u32> = BTreeMap::new();
    let mut first = seen.len();
    for (now, then) in seen.iter().rev().zip(seen[..earlier].iter().rev()) {
        let Some(more) = now.after(then).filter(|more| *more > 0 && now.at == then.at + period) else {
            break;
        };
        if *packets.entry(now.qp).or_insert(more) != more {
            break;
        }
        first -= 1;
    }
    (first < earlier && earlier < seen.len())
        .then(|| (first, packets.into_iter().map(|(qp, n)| (qp, n.into())).collect()))
}

/// True if everything under way has been sent within these frames: of each queue pair, the oldest packet without an ACK at its sender.
fn covers(plan: &Plan, seen: &[Seen], packets: &BTreeMap<QpId, u64>) -> bool {
    let Some(last) = seen.last().map(|frame| frame.at) else { return false };
    let mut oldest: BTreeMap<QpId, u32> = BTreeMap::new();
    let mut sent: BTreeSet<(QpId, u32)> = BTreeSet::new();
    for frame in seen {
        let from = plan.fabric.node_of(plan.qps[frame.qp.index()].from);
        let (_, to) = ends(plan, frame);
        if frame.kind == Some(Kind::Ack) && to == from && arrival(plan, frame) <= last {
            oldest.insert(frame.qp, (frame.psn + 1) % PSNS);
        } else if frame.is_data() && ends(plan, frame).0 == from {
            sent.insert((frame.qp, frame.psn));
        }
    }
    packets.keys().all(|qp| oldest.get(qp).is_some_and(|psn| sent.contains(&(*qp, *psn))))
}

/// Refuses a period in which something is drawn by time.
fn draws(plan: &Plan, seen: &[Seen], period: u64) -> Result<(), Why> {
    let last = seen.last().map_or(0, |frame| frame.at);
    let mut before: BTreeMap<(QpId, bool, u32), Vec<&Seen>> = BTreeMap::new();
    let mut arrivals: Vec<Came> = Vec::new();
    let mut queues: BTreeMap<NodeId, BTreeMap<u32, u64>> = BTreeMap::new();
    for frame in seen {
        let same = before.entry((frame.qp, frame.is_data(), frame.psn)).or_default();
        let (node, _) = ends(plan, frame);
        if !plan.fabric.is_host(node) && frame.at + 2 * period > last {
            let earlier = same.iter().rev().find(|earlier| ends(plan, earlier).1 == node);
            let came = arrival(plan, earlier.ok_or(Why::Changes)?);
            let wait = frame.at.saturating_sub(came);
            let (rate, data) = (rate(plan, frame), frame.is_data());
            let ahead = (u128::from(wait) * u128::from(rate.bps())).div_ceil(8_000_000_000_000) as u64;
            let queue = ahead + u64::from(frame.frame) + u64::from(plan.wire.max_frame());
            if data && queue > kmin(&plan.ports[frame.link as usize]) {
                return Err(Why::Marks);
            }
            let longest = queues.entry(node).or_default().entry(frame.link).or_default();
            *longest = queue.max(*longest);
            arrivals.push(Came { node, at: came, to: frame.link, data, waits: wait > 0 });
        }
        same.push(frame);
    }
    arrivals.sort_unstable();
    let classes = plan.classes.of(Kind::Data) != plan.classes.of(Kind::Ack);
    for at_once in arrivals.chunk_by(|one, two| (one.node, one.at) == (two.node, two.at)) {
        // Packets of two classes that wait for a third one start by class.
        let harmless = |one: &Came, two: &Came| classes && one.data != two.data && one.waits && two.waits;
        let tied = |pair: &[Came]| pair[0].to == pair[1].to && !harmless(&pair[0], &pair[1]);
        let queued = || queues.get(&at_once[0].node).map_or(0, |queues| queues.values().sum());
        // Those for several ports meet in the buffer.
        if at_once.windows(2).any(tied) || at_once.len() > 1 && !has_room(plan, at_once[0].node, queued()) {
            return Err(Why::Ties);
        }
    }
    Ok(())
}

/// An arrival at a switch, and how it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Came {
    node: NodeId,
    at: u64,
    to: u32,
    data: bool,
    waits: bool,
}

/// True if a switch neither pauses nor drops while its queues have so many bytes together, in whatever order they came. Cells may take four
/// times as much.
fn has_room(plan: &Plan, node: NodeId, queued: u64) -> bool {
    let first = plan.fabric.base(node) as usize;
    let ports = &plan.ports[first..first + plan.fabric.ports(node).len()];
    let settings = &plan.switches[plan.fabric.switch_number(node)];
    let headroom: u64 = ports.iter().map(|port| port.headroom.get()).sum();
    let shared = settings.buffer.get().saturating_sub(headroom) / u64::from(settings.memory.slices.max(1));
    let used = 4 * queued;
    let within = |(share, of): (u32, u32)| {
        u128::from(used) * u128::from(of) <= u128::from(share) * u128::from(shared.saturating_sub(used))
    };
    match settings.flow_control {
        FlowControl::Lossless(pfc) => within(pfc.alpha),
        FlowControl::Lossy { alpha } => within(alpha),
        FlowControl::Capped { least } => used <= least.get(),
        // Refused before, with all runs whose queues are not plain.
        FlowControl::Credits(_) => false,
    }
}

fn ends(plan: &Plan, frame: &Seen) -> (NodeId, NodeId) {
    let link = &plan.fabric.links()[frame.link as usize];
    (link.from, link.to)
}

fn rate(plan: &Plan, frame: &Seen) -> model::Rate {
    plan.failures.rate(&plan.fabric, LinkId(frame.link), Time(frame.at))
}

/// Time for which a frame keeps its wire busy, ps.
pub(super) fn on_wire(plan: &Plan, frame: &Seen) -> u64 {
    plan.wire.transmission(rate(plan, frame), frame.frame).ps()
}

/// Time at which a frame has arrived, ps.
fn arrival(plan: &Plan, frame: &Seen) -> u64 {
    let delay = plan.fabric.links()[frame.link as usize].delay;
    frame.at + on_wire(plan, frame) + delay.ps()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::{Source, check};

    /// Two hosts at a switch, and a flow between them.
    fn plan() -> Plan {
        let text = "[wire]\npayload = \"4KiB\"\n[scheme.ecmp]\n[topology.links]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\n\
                    rate = \"400Gbps\"\nlinks = [[\"a\", \"s\"], [\"s\", \"b\"]]\n[[workload]]\n\
                    flows = { list = [{ from = \"a\", to = \"b\", bytes = \"1GB\" }] }\n";
        check(&Source::new("two.toml", text), &[]).unwrap_or_else(|e| panic!("{e}")).plan
    }

    /// The frames of `packets` packets that start at the times of `start` and wait at the switch for the times of `wait`, ps.
    fn frames(plan: &Plan, packets: u32, start: impl Fn(u64) -> u64, wait: impl Fn(u64) -> u64) -> Vec<Seen> {
        let [from, to] = [plan.qps[0].from, plan.qps[0].to].map(|host| plan.fabric.node_of(host));
        let switch = plan.fabric.uplink(plan.qps[0].from).to;
        let link = |from, to| {
            let of = plan.fabric.links().iter().position(|link| (link.from, link.to) == (from, to));
            of.unwrap_or_default() as u32
        };
        let mut all = Vec::new();
        for n in 0..packets {
            let way = [
                (link(from, switch), Kind::Data, plan.wire.max_frame()),
                (link(switch, to), Kind::Data, plan.wire.max_frame()),
                (link(to, switch), Kind::Ack, plan.wire.ack),
                (link(switch, from), Kind::Ack, plan.wire.ack),
            ];
            let mut at = start(n.into());
            for (hop, (link, kind, frame)) in way.into_iter().enumerate() {
                at += if hop == 1 { wait(n.into()) } else { 0 };
                let kind = Some(kind);
                all.push(Seen {
                    at,
                    link,
                    qp: QpId(0),
                    psn: (PSNS - 100 + n) % PSNS,
                    frame,
                    kind,
                    marked: false,
                });
                at = arrival(plan, &all[all.len() - 1]);
            }
        }
        let end = start(u64::from(packets) - 1);
        all.retain(|frame| frame.at <= end);
        all.sort_unstable_by_key(|frame| (frame.at, frame.link));
        all
    }

    #[test]
    fn a_flow_at_line_rate_repeats_after_each_packet_and_one_in_pairs_after_two() {
        let plan = plan();
        let one = BTreeMap::from([(QpId(0), 1)]);
        assert_eq!(find(&plan, &frames(&plan, 300, |n| 83_560 * n, |_| 0)), Ok((83_560, one)));
        let two = BTreeMap::from([(QpId(0), 2)]);
        let pairs = |n: u64| 200_000 * (n / 2) + 83_560 * (n % 2);
        assert_eq!(find(&plan, &frames(&plan, 300, pairs, |_| 0)), Ok((200_000, two)));
    }

    #[test]
    fn what_has_not_lasted_for_a_round_trip_proves_nothing() {
        let plan = plan();
        // A round trip has about 50 packets.
        assert_eq!(find(&plan, &frames(&plan, 40, |n| 83_560 * n, |_| 0)), Err(Why::Changes));
        let later = |n: u64| 83_560 * n + if n < 260 { 0 } else { 1_000 };
        assert_eq!(find(&plan, &frames(&plan, 300, later, |_| 0)), Err(Why::Changes));
    }

    #[test]
    fn a_queue_that_grows_by_a_picosecond_per_packet_does_not_repeat() {
        let plan = plan();
        assert_eq!(find(&plan, &frames(&plan, 300, |n| 83_560 * n, |n| n)), Err(Why::Changes));
        assert!(find(&plan, &frames(&plan, 300, |n| 83_560 * n, |_| 1_000)).is_ok());
    }

    #[test]
    fn a_queue_that_stands_above_kmin_is_refused() {
        let plan = plan();
        let kmin = kmin(&plan.ports[frames(&plan, 1, |_| 0, |_| 0)[0].link as usize]);
        assert_eq!(kmin, u64::MAX, "a NIC marks nothing");
        // 400 kB at 400 Gb/s are 8 us.
        assert_eq!(find(&plan, &frames(&plan, 500, |n| 83_560 * n, |_| 8_000_000)), Err(Why::Marks));
        assert!(find(&plan, &frames(&plan, 500, |n| 83_560 * n, |_| 7_000_000)).is_ok());
    }
}
