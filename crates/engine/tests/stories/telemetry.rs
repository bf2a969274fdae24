//! Claim: every data packet reports, as exactly as its layout allows, when each switch sent it, how much its port
//! had sent before, and how much was queued behind it. HPCC and Swift make of these reports what their papers
//! promise.

use crate::lab::{lay, leaf_spine, run, run_on};
use engine::Kind;
use engine::outcome::Outcome;
use model::congestion::Feedback;
use model::telemetry::Record;
use model::{Allowance, Congestion, LinkId, Parts, Plan, QpId, QpSite, Site, TelemetryStamp, Time};
use scenario::Checked;
use sim::RealParts;
use std::sync::{Arc, Mutex};

/// The records of all replies, by queue pair and in order of arrival.
type Notes = Arc<Mutex<Vec<Vec<Vec<Record>>>>>;

/// A scenario's parts, with congestion controls that log all records.
struct Spied<'a> {
    parts: RealParts<'a, TelemetryStamp>,
    notes: Notes,
}

struct Spy {
    control: rnic::Reacting,
    qp: QpId,
    notes: Notes,
}

impl Congestion for Spy {
    fn allowance(&mut self, now: Time) -> Allowance {
        self.control.allowance(now)
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback) {
        self.notes.lock().unwrap()[self.qp.index()].push(feedback.trail.records().collect());
        self.control.on_feedback(now, feedback);
    }

    fn on_nack(&mut self, now: Time) {
        self.control.on_nack(now);
    }

    fn on_timeout(&mut self, now: Time) {
        self.control.on_timeout(now);
    }
}

impl Parts for Spied<'_> {
    type Scheme = <RealParts<'static, TelemetryStamp> as Parts>::Scheme;
    type Sender = <RealParts<'static, TelemetryStamp> as Parts>::Sender;
    type Receiver = <RealParts<'static, TelemetryStamp> as Parts>::Receiver;
    type Congestion = Spy;
    type Annex = <RealParts<'static, TelemetryStamp> as Parts>::Annex;
    type Steering = <RealParts<'static, TelemetryStamp> as Parts>::Steering;
    type Granter = ();

    fn scheme(&self, site: Site<'_>) -> Self::Scheme {
        self.parts.scheme(site)
    }

    fn sender(&self, plan: &Plan, qp: QpId) -> Self::Sender {
        self.parts.sender(plan, qp)
    }

    fn receiver(&self, plan: &Plan, qp: QpId) -> Self::Receiver {
        self.parts.receiver(plan, qp)
    }

    fn congestion(&self, plan: &Plan, qp: QpId) -> Self::Congestion {
        Spy { control: self.parts.congestion(plan, qp), qp, notes: Arc::clone(&self.notes) }
    }

    fn steering(&self, site: QpSite<'_>) -> Self::Steering {
        self.parts.steering(site)
    }

    fn granter(&self, _: &Plan, _: model::HostId) {}
}

/// Runs a scenario; returns its outcome and the records that reached each sender.
fn records_of(checked: &Checked, kind: Kind) -> (Outcome, Vec<Vec<Vec<Record>>>) {
    let notes: Notes = Arc::new(Mutex::new(vec![Vec::new(); checked.plan.qps.len()]));
    let parts = Spied { parts: RealParts::new(&checked.schemes, &checked.nics), notes: Arc::clone(&notes) };
    let outcome = engine::run(&checked.plan, &parts, kind, &mut ());
    let told = std::mem::take(&mut *notes.lock().unwrap());
    (outcome, told)
}

/// Three hosts at one switch, 100 Gb/s and 1 us each, under HPCC with `keys`; flows from `a` and `b` to `c`.
fn star(keys: &str, bytes: &[u64]) -> String {
    let flows: String = bytes
        .iter()
        .zip(["a", "b"])
        .map(|(bytes, from)| format!("{{ from = \"{from}\", to = \"c\", bytes = \"{bytes}B\" }}, "))
        .collect();
    format!(
        "{keys}\n[topology.links]\nhosts = [\"a\", \"b\", \"c\"]\nswitches = [\"s\"]\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
         links = [[\"a\", \"s\"], [\"b\", \"s\"], [\"c\", \"s\"]]\n\
         [[workload]]\nqp = \"per-message\"\n[workload.flows]\nlist = [{flows}]\n"
    )
}

const HPCC: &str = "[nic.congestion.hpcc]";

/// A full frame on the wire at 100 Gb/s: 1500 B, 42 B of telemetry, 20 B of preamble and gap; ps.
const FRAME: u64 = 1562 * 80;

#[test]
fn an_idle_switch_reports_start_and_bytes_and_no_queue() {
    for kind in [Kind::Reference, Kind::Window] {
        let (_, told) = records_of(&lay(&star(HPCC, &[20 * 1438])), kind);
        assert_eq!(told[0].len(), 20);
        for (i, records) in (0..).zip(&told[0]) {
            // The packet has fully arrived after the time of its own frame, all frames before it, and 1 us; it
            // leaves at once.
            let start = Time((i + 1) * FRAME + 1_000_000);
            assert_eq!(records[..], [Record::new(0, start, i * 1542, 0)], "packet {i}");
        }
    }
}

#[test]
fn with_two_senders_in_step_every_packet_reports_a_queue_longer_by_one() {
    for kind in [Kind::Reference, Kind::Window, Kind::HalfWindow] {
        let (_, told) = records_of(&lay(&star(HPCC, &[20 * 1438, 20 * 1438])), kind);
        let mut records: Vec<Record> = told.iter().flatten().map(|records| records[0]).collect();
        assert_eq!(records.len(), 40);
        let first = Record::new(0, Time(FRAME + 1_000_000), 0, 0);
        records.sort_by_key(|record| record.since(&first));
        for (i, record) in (0..).zip(records) {
            // When the i-th packet starts, 2 i packets (at most 40) have arrived; arrivals of that instant come
            // later.
            let behind = (2 * i).min(40_u64).saturating_sub(i + 1);
            let start = Time((i + 1) * FRAME + 1_000_000);
            assert_eq!(record, Record::new(0, start, i * 1542, behind * 1542), "packet {i}");
        }
    }
}

#[test]
fn all_engines_write_the_same_records() {
    let fabric = leaf_spine(4, 2, 3, "rate = \"100Gbps\"\ndelay = \"500ns\"\nuplink-rate = \"73Gbps\"");
    let worlds = [
        "",
        "[switch]\nbuffer = \"150kB\"",
        "[switch]\nbuffer = \"200kB\"\nclasses = \"one\"",
        "[switch]\npfc = \"off\"\nbuffer = \"60kB\"\n[links]\nloss = 0.003",
        "[[failure]]\nlinks = [[\"leaf*\", \"spine1\"]]\nrate = 0.3\nat = \"20us\"\nuntil = \"60us\"",
    ];
    for world in worlds {
        for workload in ["incast = { senders = 9, bytes = \"60kB\" }", "permutation = { bytes = \"150kB\" }"]
        {
            for scheme in ["ecmp", "drill", "themis", "flowlet-nic"] {
                let text = format!(
                    "{fabric}{world}\n[scheme.{scheme}]\n[nic.congestion.hpcc]\nadditive-increase = \"1Gbps\"\n\
                     [[workload]]\n{workload}\n"
                );
                let checked = lay(&text);
                let (reference, wanted) = records_of(&checked, Kind::Reference);
                assert!(wanted.iter().flatten().any(|trail| trail.iter().any(|record| record.queue() > 0)));
                for kind in [Kind::Window, Kind::HalfWindow, Kind::Threads(2.try_into().unwrap())] {
                    let (outcome, told) = records_of(&checked, kind);
                    assert!(told == wanted, "{kind:?} wrote other records than the reference in: {text}");
                    assert_eq!(outcome.end, reference.end);
                }
            }
        }
    }
}

/// The longest queue from `after` on at the switch's port to `c`, bytes.
fn queue_after(checked: &Checked, run: &Outcome, after: Time) -> u64 {
    let fabric = &checked.plan.fabric;
    let to_c = fabric.reverse(LinkId(2));
    let (_, bins) = run.recording.links.iter().find(|(link, _)| *link == to_c).unwrap();
    let skipped = (after.ps() / run.recording.width.ps()) as usize;
    bins.iter().skip(skipped).map(|bin| bin.max_queue).max().unwrap()
}

/// The share of the line rate at which a message was sent, headers included.
fn share(plan: &Plan, run: &Outcome, message: usize) -> f64 {
    let m = &run.messages[message];
    m.wire_bytes as f64 * 8e12
        / (m.received.ps() - m.start.ps()) as f64
        / plan.fabric.links()[0].rate.bps() as f64
}

#[test]
fn a_lone_hpcc_flow_takes_95_percent_of_the_rate_and_a_mebibyte_takes_accordingly_longer() {
    let (checked, run) = run(&star(HPCC, &[100_000_000]));
    let share = share(&checked.plan, &run, 0);
    // The expected share, of frames without preamble and gap, is 0.95 x 1562 / 1542, and HPCC moves around it in
    // steps.
    assert!((0.94..0.975).contains(&share), "{share}");
}

#[test]
fn hpcc_empties_the_queue_of_two_senders_where_dcqcn_keeps_one() {
    let series = "[record]\nwidth = \"1us\"\nbins = 4096\n";
    let flows = [10_000_000, 10_000_000];
    let (hpcc, seen) = run(&star(&format!("{series}{HPCC}"), &flows));
    let queue = queue_after(&hpcc, &seen, Time::from_us(200));
    assert!(queue < 4 * 1542, "{queue} B after fifty round trips");
    // No control can prevent the initial queue, from a round trip at twice the link's rate.
    assert!(queue_after(&hpcc, &seen, Time::ZERO) > 20_000);
    let (dcqcn, seen) =
        run(&star(&format!("{series}[switch.ecn]\nkmin = \"20kB\"\nkmax = \"80kB\""), &flows));
    let other = queue_after(&dcqcn, &seen, Time::from_us(200));
    assert!(other > 4 * queue && other > 20_000, "{other} B under DCQCN");
}

#[test]
fn pint_settles_where_hpcc_does_with_a_byte_per_packet() {
    let series = "[switch]\necn = \"off\"\n[record]\nwidth = \"1us\"\nbins = 4096\n\
                  [nic]\nwindow = \"bdp\"\nwindow-scales-with-rate = true\n";
    for (keys, stamp, most) in [("", 1, 8), ("log-base = 1.01", 2, 8), ("probability = 0.0625", 1, 12)] {
        let pint = |flows: &[u64]| run(&star(&format!("{series}[nic.congestion.pint]\n{keys}"), flows));
        let (checked, alone) = pint(&[100_000_000]);
        assert_eq!(checked.plan.wire.max_frame(), 1_500 + stamp);
        let lone = share(&checked.plan, &alone, 0);
        assert!((0.93..0.975).contains(&lone), "{keys}: {lone}");
        let (checked, two) = pint(&[10_000_000, 10_000_000]);
        let queue = queue_after(&checked, &two, Time::from_us(200));
        assert!(queue < most * 1_520, "{keys}: {queue} B after fifty round trips");
        let shares = [0, 1].map(|message| share(&checked.plan, &two, message));
        assert!(shares.iter().all(|share| (0.44..0.5).contains(share)), "{keys}: {shares:?}");
    }
}

#[test]
fn swift_keeps_the_delay_near_its_target() {
    let series = "[record]\nwidth = \"1us\"\nbins = 4096\n";
    for (scale, keys) in [(1, ""), (4, "hop-scale = \"4us\"")] {
        // Without flow scaling, the target is the delay of the idle path plus `hop-scale` for the one switch.
        let text = star(
            &format!("{series}[nic.congestion.swift]\nflow-scale-range = \"0us\"\n{keys}"),
            &[20_000_000, 20_000_000],
        );
        let (checked, run) = run(&text);
        let queue = queue_after(&checked, &run, Time::from_us(500));
        let wanted = scale * 12_500;
        assert!((wanted..wanted + 6 * 1520).contains(&queue), "{queue} B where {wanted} B take the target");
        // The link is never idle for long.
        let last = run.messages.iter().map(|m| m.received).max().unwrap();
        let both = run.messages.iter().map(|m| m.wire_bytes).sum::<u64>() as f64 * 8e12 / last.ps() as f64;
        assert!(both > 0.95 * 100e9, "{both}");
        // Swift needs no telemetry in the packets: the NIC knows when it sent each of them.
        assert_eq!((checked.plan.wire.hops, checked.plan.wire.max_frame()), (0, 1500));
    }
}

#[test]
fn a_lone_timely_flow_stays_at_line_rate_and_the_queue_of_two_peaks_between_its_bounds() {
    let series =
        "[switch]\necn = \"off\"\n[record]\nwidth = \"10us\"\nbins = 4096\n[nic.congestion.timely]\n";
    let (checked, run) = run(&star(series, &[20_000_000]));
    assert_eq!(checked.plan.wire.max_frame(), 1_508, "packets carry a time stamp");
    let share = share(&checked.plan, &run, 0);
    assert!(share > 0.985, "preamble and gap take the rest of {share}");

    let (checked, run) = self::run(&star(series, &[50_000_000, 50_000_000]));
    let to_c = checked.plan.fabric.reverse(LinkId(2));
    let (_, bins) = run.recording.links.iter().find(|(link, _)| *link == to_c).unwrap();
    // Behind the first peak, until one of the flows ends.
    let last = run.messages.iter().map(|m| m.received).min().unwrap();
    let bins = &bins[200..(last.ps() / run.recording.width.ps()) as usize];
    assert!(bins.len() > 500, "{}", bins.len());
    for bins in bins.chunks_exact(200) {
        let peak = bins.iter().map(|bin| bin.max_queue).max().unwrap();
        // At 100 Gb/s, 50 us and 500 us are 625 kB and 6.25 MB; the idle round trip takes about 4 us of either.
        assert!((560_000..6_250_000).contains(&peak), "{peak} B");
        assert!(bins.iter().any(|bin| bin.max_queue < 100_000), "a steep gradient empties the queue");
    }
}

#[test]
fn a_rate_without_a_code_makes_a_long_link_look_full() {
    let fabric = leaf_spine(2, 1, 2, "rate = \"100Gbps\"\nuplink-rate = \"800Gbps\"");
    let flow =
        "[[workload]]\n[workload.flows]\nlist = [{ from = \"host0\", to = \"host2\", bytes = \"20MB\" }]\n";
    let fct = |keys: &str| {
        let (_, run) = run(&format!("{fabric}[nic.congestion.hpcc]\n{keys}\n{flow}"));
        run.messages[0].acked.as_us()
    };
    let (known, unknown) = (fct(""), fct("unknown-rate = \"25Gbps\""));
    assert!((3.5..4.5).contains(&(unknown / known)), "{unknown} us, and {known} us with true rates");
}

#[test]
fn one_ack_per_message_is_enough_for_a_message() {
    let (checked, run) = run(&star("[nic]\nack-per-message = true", &[1_000_000, 1_000_000]));
    assert_eq!((run.control.ack, run.messages.len()), (2, 2));
    assert!(run.messages.iter().all(|m| m.acked != Time::NEVER && m.retransmitted == 0));
    assert_eq!(checked.plan.wire.packets(1_000_000), 696);
    let again = run_on(&checked);
    assert_eq!(again.end, run.end);
}
