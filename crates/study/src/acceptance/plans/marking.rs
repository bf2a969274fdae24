//! Accuracy of marks.

use crate::acceptance::case::{Case, Part, Traffic, Values, each, less, more};
use crate::seen::counts;
use crate::site::{MOST, Site, time_of};
use crate::traffic::{Flow, job, jobs, quoted, without_control};
use engine::outcome::Passed;
use lab::Run;
use model::plan::{MarkAt, Marking};
use model::{HostId, LinkId, Time};

/// Bursts, as in the plan.
const BURSTS: u64 = 200;
/// Payload of a packet, as in the plan.
const PAYLOAD: u64 = 1024;
/// Bins of the line between Kmin and Kmax. Our choice.
const BINS: usize = 8;
/// Deviations within which all bins lie together with 95 %: two-sided, 0.05 / 8 each.
const DEVIATIONS: f64 = 2.734;

/// Share of marks by depth of the queue.
pub(crate) const A6: Case = Case {
    id: "a6",
    plan: "ECN_ACCURACY_README (sonic-mgmt)",
    about: "200 times, bursts of N:1 fill a queue 10 packets beyond Kmax; marks of the packets that drain it, by depth, \
            in 8 bins; no port is blocked, which the engine lacks",
    metrics: &[
        less("marks-below-kmin", "packets").plan(0.0),
        less("bins-off-the-line", "bins of 8").plan(0.0),
        less("unmarked-above-kmax", "packets").plan(0.0),
        more("share-below-kmax", "%"),
    ],
    parts: bursts,
    rows: each,
};

fn bursts(site: &Site) -> Result<Vec<Part>, String> {
    if !site.reads_marks() {
        return Err("the NICs' congestion control reads no marks".to_owned());
    }
    if site.leaf().len() < 3 {
        return Err(
            "a leaf has fewer than three hosts, and packets of others arrive at different times".to_owned()
        );
    }
    let (receiver, senders) = site.rack_incast()?;
    let Some(marking) = site.marking(receiver) else {
        // The case asks for marks, so a port without them fails it.
        return Ok(vec![unmarked(site, receiver, &senders)]);
    };
    if marking.kmax.get() > site.buffer().min(MOST) {
        return Err("Kmax is larger than the switch's buffer".to_owned());
    }
    let n = senders.len() as u64;
    let wire = &site.plan.wire;
    let frame = PAYLOAD + u64::from(wire.header);
    let deep = marking.kmax.get().div_ceil(frame) + 10;
    // A queue that n senders fill at line rate holds (n - 1) / n of what they sent.
    let each = (deep * n).div_ceil(n - 1).div_ceil(n);
    let rate = site.rate(receiver);
    let time = |packets: u64| time_of(packets * (frame + u64::from(wire.gap)), rate);
    // Bursts are apart by half of their time, and by that of the fabric's round trips.
    let every = Time(time(each * n).ps() * 3 / 2 + Time::from_us(20).ps());
    let flows: Vec<Flow> = senders
        .iter()
        .map(|from| Flow { times: BURSTS, every, ..Flow::new(*from, receiver, each * PAYLOAD) })
        .collect();
    let sets = vec![
        jobs(&[job(site, "bursts", "", &flows)]),
        without_control(),
        format!("wire.payload={PAYLOAD}B"),
        format!("record={{ flows = 0, links = 0, taps = [{}] }}", quoted(&site.host(receiver))),
    ];
    let see = move |run: &Run| depths(run, receiver, marking, each * n, n, frame);
    Ok(vec![Part::Run(Traffic { label: "bursts".to_owned(), sets, see: Box::new(see) })])
}

/// The case on a port that never marks.
fn unmarked(site: &Site, receiver: HostId, senders: &[HostId]) -> Part {
    let flows: Vec<Flow> = senders.iter().map(|from| Flow::new(*from, receiver, 1_000 * PAYLOAD)).collect();
    let sets = vec![jobs(&[job(site, "bursts", "", &flows)]), without_control()];
    let see = |run: &Run| {
        Ok(Values::from([("unmarked-above-kmax", run.outcome.data.sent as f64 - counts(run)["ce"])]))
    };
    Part::Run(Traffic { label: "a port without marks".to_owned(), sets, see: Box::new(see) })
}

/// Marks by depth. In a burst of `total` packets, the i-th one that leaves has `total - i` behind it once senders are silent.
fn depths(
    run: &Run,
    receiver: HostId,
    marking: Marking,
    total: u64,
    senders: u64,
    frame: u64,
) -> Result<Values, String> {
    if run.outcome.control.pause > 0 {
        return Err("PFC pauses senders before the queue reaches Kmax".to_owned());
    }
    if counts(run)["loss"] > 0.0 {
        return Err("the queue drops packets before it reaches Kmax".to_owned());
    }
    let down = run.checked.plan.fabric.reverse(LinkId(receiver.0));
    let marked = run.outcome.notes.frames.iter().filter_map(|passed| match passed.what {
        Passed::Packet(packet, _) if passed.link == down && packet.is_data() => Some(packet.marked()),
        _ => None,
    });
    let (kmin, kmax) = (marking.kmin.get(), marking.kmax.get());
    let mut bins = [(0.0, 0.0, 0.0); BINS];
    if run.outcome.links[down.index()].max_queue + 2 * frame < kmax {
        return Err("senders do not fill the queue to Kmax".to_owned());
    }
    let (mut below, mut above) = (0u32, 0u32);
    for (number, marked) in marked.enumerate() {
        let i = number as u64 % total;
        let depth = match marking.at {
            // Packets that leave while others arrive are left out.
            MarkAt::Dequeue if i < total / senders + senders => continue,
            MarkAt::Dequeue => (total - i) * frame,
            MarkAt::Enqueue => i * (senders - 1) / senders * frame,
        };
        // A packet more or less, as the order of arrivals has it.
        if depth + frame < kmin {
            below += u32::from(marked);
        } else if depth > kmax + 2 * frame {
            above += u32::from(!marked);
        } else if depth > kmin + frame && depth + frame < kmax {
            let place = (depth - kmin) as f64 / (kmax - kmin) as f64;
            let p = marking.pmax.share() * place;
            let bin = &mut bins[((place * BINS as f64) as usize).min(BINS - 1)];
            *bin = (bin.0 + f64::from(u8::from(marked)), bin.1 + p, bin.2 + p * (1.0 - p));
        }
    }
    let off =
        bins.iter().filter(|(seen, expected, spread)| (seen - expected).abs() > DEVIATIONS * spread.sqrt());
    let last = bins[BINS - 1];
    // The share in the last bin: packets there follow from the mean of p.
    let packets = last.1 / (marking.pmax.share() * (1.0 - 0.5 / BINS as f64)).max(f64::MIN_POSITIVE);
    Ok(Values::from([
        ("marks-below-kmin", f64::from(below)),
        ("bins-off-the-line", off.count() as f64),
        ("unmarked-above-kmax", f64::from(above)),
        ("share-below-kmax", 100.0 * last.0 / packets.max(1.0)),
    ]))
}
