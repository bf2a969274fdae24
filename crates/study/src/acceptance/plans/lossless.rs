//! Lossless queues, with and without congestion control.

use crate::acceptance::case::{Case, Found, Metric, Part, Seen, Traffic, Values, each, less, more};
use crate::seen::{self, counts, only};
use crate::site::{Queue, Site, time_of};
use crate::traffic::{Flow, class, job, jobs, without_control, without_marks};
use lab::Run;
use model::{HostId, Kind, LinkId, Plan, Time};

/// Message of sonic-mgmt's incasts.
const SMALL: u64 = 128_000;
/// Message of storage.
const LARGE: u64 = 1_000_000;

const LOSS: Metric = less("loss", "packets").plan(0.0);
const UNFINISHED: Metric = less("unfinished", "messages").plan(0.0);

/// Pairs without congestion.
pub(crate) const A1: Case = Case {
    id: "a1",
    plan: "test_rocev2_basic_dp_no_congestion (sonic-mgmt #23240)",
    about: "pairs of ports of a leaf send 10 messages of 1 MB both ways; latency is that of each message's last packet",
    metrics: &[
        UNFINISHED,
        LOSS,
        less("naks", "packets").plan(0.0),
        less("ce", "packets").plan(0.0),
        less("cnps", "packets").plan(0.0),
        less("pauses", "frames").plan(0.0),
        less("mean-latency", "us").plan(5.0),
        less("max-latency", "us").plan(50.0),
        more("acks-in-own-queue", "% of ACKs"),
    ],
    parts: pairs,
    rows: each,
};

fn pairs(site: &Site) -> Result<Vec<Part>, String> {
    let leaf = site.leaf();
    if leaf.len() < 2 {
        return Err("a leaf has one host".to_owned());
    }
    let flows = || leaf.chunks_exact(2).flat_map(|pair| [(pair[0], pair[1]), (pair[1], pair[0])]);
    let of = |label: &str, keys: &str, more: Vec<String>| {
        let flows: Vec<Flow> = flows().map(|(a, b)| Flow::new(a, b, LARGE).times(10)).collect();
        let counted = "record.queues=true".to_owned();
        let sets = [vec![jobs(&[job(site, "pairs", keys, &flows)]), counted], more].concat();
        Part::Run(Traffic { label: label.to_owned(), sets, see: Box::new(with_latency) })
    };
    let lossy = site.lossy_queue();
    Ok(vec![
        of("data", "", Vec::new()),
        match lossy {
            Some(queue) => of("lossy", ", class = \"lossy\"", class(site, "lossy", queue, true)),
            None => Part::not("lossy", NO_MAP),
        },
    ])
}

const NO_MAP: &str = "the scenario has no `switch.dscp-map` with a lossy queue";

fn with_latency(run: &Run) -> Result<Values, String> {
    let records = run.outcome.messages.iter().filter(|record| record.received != Time::NEVER);
    let late: Vec<f64> = records.map(|record| record.received.as_us() - record.last_sent.as_us()).collect();
    let mean = late.iter().sum::<f64>() / late.len().max(1) as f64;
    let mut values = only(counts(run), &["unfinished", "loss", "naks", "ce", "cnps", "pauses"]);
    values.insert("acks-in-own-queue", 100.0 * acks_apart(run));
    values.insert("mean-latency", mean);
    values.insert("max-latency", late.into_iter().fold(0.0, f64::max));
    Ok(values)
}

/// The queue of these packets, as an index into the plan's table: that of the first flow's class.
fn queue_of(plan: &Plan, kind: Kind) -> usize {
    let rows = plan.jobs.iter().filter_map(|job| plan.own_queues.rows.get(usize::from(job.class)));
    let class = rows.map(|row| usize::from(row[kind as usize])).next();
    class.unwrap_or_else(|| plan.classes.of(kind))
}

/// Share of ACKs that left the leaf by a queue without data. Each ACK crosses one switch, and waits in the queue of its flow's class.
fn acks_apart(run: &Run) -> f64 {
    let plan = &run.checked.plan;
    let class = queue_of(plan, Kind::Ack);
    if plan.classes.all()[class].kinds.has(Kind::Data) {
        return 0.0;
    }
    let own = run.outcome.queues.iter().filter(|one| usize::from(one.class) == class);
    let frames: u64 = own.map(|one| one.counts.frames).sum();
    (frames as f64 / run.outcome.control.ack.max(1) as f64).min(1.0)
}

/// N:1 at line rate without marks.
pub(crate) const A2: Case = Case {
    id: "a2",
    plan: "test_rocev2_pfc_congestion_ai (sonic-mgmt #25347)",
    about: "N:1 at line rate without marks and control, until the buffer could be full one and a half times",
    metrics: &[
        LOSS,
        less("naks", "packets").plan(0.0),
        less("ce", "packets").plan(0.0),
        less("cnps", "packets").plan(0.0),
        more("pauses-of-each-priority", "frames").plan(1.0),
        less("pauses-of-lossy", "frames").plan(0.0),
        more("loss-of-lossy", "packets").plan(1.0),
        less("off-weights", "%").plan(5.0),
    ],
    parts: pfc,
    rows: each,
};

/// A share of an incast: its senders' queue and message.
struct Share {
    queue: Option<Queue>,
    bytes: u64,
}

fn pfc(site: &Site) -> Result<Vec<Part>, String> {
    let queues = site.queues();
    let own = site.own_queue();
    let other = |queue: &Queue| own.is_none_or(|own| own.number != queue.number);
    let second = queues.iter().copied().find(|queue| queue.lossless && other(queue));
    let lossy = site.lossy_queue();
    let own = || Share { queue: None, bytes: SMALL };
    let two = "the scenario has no `switch.dscp-map` with a second lossless queue";
    Ok(vec![
        incast(site, "128 kB", vec![own()])?,
        match second {
            Some(queue) => {
                incast(site, "two queues", vec![own(), Share { queue: Some(queue), bytes: SMALL }])?
            }
            None => Part::not("two queues", two),
        },
        match second {
            Some(queue) => {
                incast(site, "128 and 4 kB", vec![own(), Share { queue: Some(queue), bytes: 4_000 }])?
            }
            None => Part::not("128 and 4 kB", two),
        },
        match lossy {
            Some(queue) => {
                incast(site, "lossy too", vec![own(), Share { queue: Some(queue), bytes: SMALL }])?
            }
            None => Part::not("lossy too", NO_MAP),
        },
    ])
}

/// An incast whose senders are divided among shares in turn.
fn incast(site: &Site, label: &str, shares: Vec<Share>) -> Result<Part, String> {
    let (receiver, senders) = site.rack_incast()?;
    // Equally many senders for each share.
    let senders = &senders[..senders.len() / shares.len() * shares.len()];
    if senders.len() < 2 {
        return Ok(Part::not(label, "the fabric has too few hosts"));
    }
    let rate = site.rate(receiver);
    let each = site.flood(senders.len(), rate) / senders.len() as u64;
    let mut sets = without_marks(site);
    sets.push(without_control());
    // Every share is backlogged to the end, so that weights decide.
    let drained = time_of(each * senders.len() as u64, rate);
    sets.push(format!("stop={{ after = \"{drained}\" }}"));
    let mut all = Vec::new();
    for (number, share) in shares.iter().enumerate() {
        let mine: Vec<Flow> = senders
            .iter()
            .skip(number)
            .step_by(shares.len())
            .map(|sender| Flow::new(*sender, receiver, share.bytes).times((each * 2 / share.bytes).max(2)))
            .collect();
        let name = format!("share{number}");
        let keys = match share.queue {
            Some(queue) => {
                sets.extend(class(site, &name, queue, false));
                format!(", class = {name:?}")
            }
            None => String::new(),
        };
        all.push(job(site, &name, &keys, &mine));
    }
    sets.push(jobs(&all));
    let own = site.own_queue();
    let seen: Vec<(bool, Option<u32>)> = shares
        .iter()
        .map(|share| {
            let queue = share.queue.or(own);
            (
                queue.is_none_or(|queue| queue.lossless || share.queue.is_none()),
                queue.and_then(|queue| queue.weight),
            )
        })
        .collect();
    let senders = senders.to_vec();
    let see = move |run: &Run| Ok(of_shares(run, &senders, &seen));
    Ok(Part::Run(Traffic { label: label.to_owned(), sets, see: Box::new(see) }))
}

/// Values of an incast by shares. The site's own data ought to be lossless, whatever its queue is.
fn of_shares(run: &Run, senders: &[HostId], shares: &[(bool, Option<u32>)]) -> Values {
    let all = counts(run);
    let mine = |number: usize| senders.iter().skip(number).step_by(shares.len());
    let links = &run.outcome.links;
    let pauses = |number: usize| mine(number).map(|host| links[host.index()].pauses).sum::<u64>() as f64;
    let again =
        |number: usize| mine(number).map(|host| run.outcome.nics[host.index()].retransmitted).sum::<u64>();
    let numbers = |lossless: bool| (0..shares.len()).filter(move |number| shares[*number].0 == lossless);
    let mut values = only(all, &["ce", "cnps"]);
    let mixed = numbers(false).next().is_some();
    // Drops of a port are not told apart by queue, so beside a lossy queue the senders' repairs tell.
    let lost = match mixed {
        true => numbers(true).map(again).sum::<u64>() as f64,
        false => counts(run)["loss"],
    };
    values.insert("loss", lost);
    let naks =
        |number: usize| mine(number).map(|host| run.outcome.nics[host.index()].nacks_received).sum::<u64>();
    values.insert("naks", numbers(true).map(naks).sum::<u64>() as f64);
    values.insert("pauses-of-each-priority", numbers(true).map(pauses).fold(f64::INFINITY, f64::min));
    if mixed {
        values.insert("pauses-of-lossy", numbers(false).map(pauses).sum());
        let lost = run.outcome.data.dropped_buffer.saturating_sub(lost as u64);
        values.insert("loss-of-lossy", lost as f64);
    } else if let [(_, Some(a)), (_, Some(b))] = shares {
        let bytes = |number: usize| {
            let job = seen::job(run, &format!("share{number}"));
            let records = run.checked.plan.messages.iter().zip(&run.outcome.messages);
            let done = records
                .filter(|(message, record)| Some(message.job) == job && record.received != Time::NEVER);
            done.map(|(message, _)| message.bytes).sum::<u64>() as f64
        };
        let (first, second) = (bytes(0), bytes(1));
        let share = f64::from(*a) / f64::from(a + b);
        values.insert("off-weights", 100.0 * (first / (first + second).max(1.0) - share).abs() / share);
    }
    values
}

/// N:1 under the site's control.
pub(crate) const A3: Case = Case {
    id: "a3",
    plan: "N:1 with DCQCN (sonic-mgmt #27040)",
    about: "N:1 under the site's own marks and control, and once without both; few pauses are 10 % of those without",
    metrics: &[
        UNFINISHED,
        LOSS,
        more("ce", "packets").plan(1.0),
        more("cnps", "packets").plan(1.0),
        less("cnps-lost", "packets").plan(0.0),
        more("cnps-in-own-queue", "% of CNPs").plan(100.0),
        less("pauses", "% of those without").ours(10.0),
    ],
    parts: |site| {
        let mut parts = on_and_off(site, site.rack_incast()?, SMALL)?;
        if only_cnps(&site.plan).is_none() {
            parts.push(Part::not("CNPs' queue", "data or ACKs wait in it, so its count is not that of CNPs"));
        }
        Ok(parts)
    },
    rows: few_pauses,
};

/// The queue of CNPs, as an index into the plan's table, if neither data nor ACKs wait in it.
fn only_cnps(plan: &Plan) -> Option<usize> {
    let class = queue_of(plan, Kind::Cnp);
    let kinds = plan.classes.all()[class].kinds;
    let shared = [Kind::Data, Kind::Ack, Kind::Nack].iter().any(|kind| kinds.has(*kind));
    (!shared).then_some(class)
}

/// Share of the CNPs that the queues of CNPs at their senders' ports have counted, or of these counts that are CNPs.
fn cnps_apart(run: &Run) -> Option<f64> {
    let plan = &run.checked.plan;
    let class = only_cnps(plan)?;
    let last = |link: LinkId| plan.fabric.is_host(plan.fabric.links()[link.index()].to);
    let own = run.outcome.queues.iter().filter(|one| usize::from(one.class) == class && last(one.link));
    let frames: u64 = own.map(|one| one.counts.frames).sum();
    let arrived: u64 = run.outcome.nics.iter().map(|nic| nic.cnps_received).sum();
    // Some may be on their way when the run ends.
    let cnps = frames.clamp(arrived, run.outcome.control.cnp.max(arrived));
    Some(frames.min(cnps) as f64 / frames.max(cnps).max(1) as f64)
}

/// 3:1 of storage, control off and on.
pub(crate) const A4: Case = Case {
    id: "a4",
    plan: "3:1 storage, DCQCN off and on (sonic-mgmt #27207)",
    about: "three hosts send messages of 1 MB to one; few pauses are 10 % of those without control",
    metrics: &[
        UNFINISHED,
        LOSS,
        more("pauses-without", "frames").plan(1.0),
        less("pauses", "% of those without").ours(10.0),
    ],
    parts: |site| on_and_off(site, site.incast(3)?, LARGE),
    rows: few_pauses,
};

fn on_and_off(
    site: &Site,
    (receiver, senders): (HostId, Vec<HostId>),
    bytes: u64,
) -> Result<Vec<Part>, String> {
    if !site.hears_cnps() {
        return Err("the NICs' congestion control does not react to CNPs".to_owned());
    }
    let each = site.flood(senders.len(), site.rate(receiver)) / senders.len() as u64;
    let flows: Vec<Flow> =
        senders.iter().map(|from| Flow::new(*from, receiver, bytes).times((each / bytes).max(2))).collect();
    let traffic = jobs(&[job(site, "incast", "", &flows)]);
    let see = |run: &Run| {
        let mut values = counts(run);
        values.extend(cnps_apart(run).map(|share| ("cnps-in-own-queue", 100.0 * share)));
        Ok(values)
    };
    let part = |label: &str, sets: Vec<String>| {
        Part::Run(Traffic { label: label.to_owned(), sets, see: Box::new(see) })
    };
    let off = [vec![traffic.clone(), without_control()], without_marks(site)].concat();
    Ok(vec![part("control", vec![traffic, "record.queues=true".to_owned()]), part(WITHOUT, off)])
}

const WITHOUT: &str = "no control";

/// Values under control, and pauses beside those without it.
fn few_pauses(all: &[Seen]) -> Vec<Found> {
    let [on, off, ..] = all else { return Vec::new() };
    let mut found = Vec::new();
    for key in ["unfinished", "loss", "ce", "cnps", "cnps-lost", "cnps-in-own-queue"] {
        found.extend(on.get(key).map(|value| Found::of(on, key, value)));
    }
    if let Some((with, without)) = on.get("pauses").zip(off.get("pauses")) {
        found.push(Found::of(off, "pauses-without", without));
        found.push(Found::of(on, "pauses", 100.0 * with / without.max(1.0)));
    }
    found
}

/// Smallest frame without loss.
pub(crate) const A5: Case = Case {
    id: "a5",
    plan: "smallest frame without loss (sonic-mgmt #24247)",
    about: "N:1 at line rate without marks and control, in packets of 64 to 1024 B of payload",
    metrics: &[less("smallest-payload", "B"), less("loss", "packets")],
    parts: small_frames,
    rows: smallest,
};

const PAYLOADS: [u32; 4] = [64, 128, 256, 1024];

fn small_frames(site: &Site) -> Result<Vec<Part>, String> {
    if !site.lossless() {
        return Err("data is in a lossy queue".to_owned());
    }
    let (receiver, senders) = site.rack_incast()?;
    let each = site.flood(senders.len(), site.rate(receiver)) / senders.len() as u64;
    let flows: Vec<Flow> = senders.iter().map(|from| Flow::new(*from, receiver, each)).collect();
    let of = |payload: &u32| {
        let mut sets = without_marks(site);
        sets.push(without_control());
        sets.push(format!("wire.payload={payload}B"));
        sets.push("stop={ after = \"2ms\" }".to_owned());
        sets.push(jobs(&[job(site, "incast", "", &flows)]));
        let see = Box::new(|run: &Run| Ok(only(counts(run), &["loss"])));
        Part::Run(Traffic { label: format!("{payload} B"), sets, see })
    };
    Ok(PAYLOADS.iter().map(of).collect())
}

/// The losses by payload, and the smallest payload from which on there are none.
fn smallest(all: &[Seen]) -> Vec<Found> {
    let whole = all.iter().zip(PAYLOADS).rev().take_while(|(seen, _)| seen.get("loss") == Some(0.0)).last();
    let mut found = each(all);
    found.extend(whole.map(|(seen, payload)| Found::of(seen, "smallest-payload", f64::from(payload))));
    found
}
