//! A host on its own: the order and the times in which its queue pairs send.

use super::nic::Host;
use super::queue_pair::{Incoming, Outgoing};
use super::timers::ReplyTimer;
use crate::outcome::MessageRecord;
use crate::setup::Setup;
use model::annex::SackStamp;
use model::congestion::Allowance;
use model::congestion::Congestion;
use model::{HostId, Kind, Pace, Packet, Parcel, Parts, Plan, Psn, QpId, Site, Time};
use scenario::{Checked, Source, check};
use sim::RealParts;
use std::fmt::Write;

/// A full frame at the 400 Gb/s of every host here.
pub(super) const FRAME: u64 = 30_400;

/// Two hosts, and `qps` queue pairs from the first to the second with a message of `packets` full frames each.
pub(super) fn lay(qps: usize, packets: u64) -> Checked {
    let mut text = String::from(
        "[topology.leaf-spine]\nleaves = 1\nspines = 1\nhosts-per-leaf = 2\n\
         [[workload]]\nqp = \"per-message\"\nflows = { list = [\n",
    );
    for _ in 0..qps {
        writeln!(text, "{{ from = \"host0\", to = \"host1\", bytes = \"{}B\" }},", packets * 1438).unwrap();
    }
    text.push_str("] }\n");
    check(&Source::new("story.toml", text), &[]).unwrap_or_else(|e| panic!("{e}"))
}

/// A congestion control with a constant allowance.
pub(super) struct Fixed(Allowance);

impl Congestion for Fixed {
    fn allowance(&mut self, _: Time) -> Allowance {
        self.0
    }
}

/// The parts of a scenario, with a rate in Gb/s and a first time to send for each queue pair.
pub(super) struct Given<'a, F> {
    parts: RealParts<'a, ()>,
    rate_and_start: F,
}

impl<F: Fn(u32) -> (f64, Time)> Parts for Given<'_, F> {
    type Scheme = schemes::AnyScheme;
    type Sender = rnic::AnySender;
    type Receiver = rnic::AnyReceiver;
    type Congestion = Fixed;

    type Annex = ();
    type Steering = ();
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

    fn congestion(&self, _: &Plan, qp: QpId) -> Self::Congestion {
        let (gbps, not_before) = (self.rate_and_start)(qp.0);
        Fixed(Allowance { window: u64::MAX, pace: Pace::from_bps(gbps * 1e9), not_before })
    }
    fn steering(&self, _: model::QpSite<'_>) {}

    fn granter(&self, _: &Plan, _: model::HostId) {}
}

/// The start of a packet, ps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Start {
    pub(super) at: u64,
    pub(super) qp: u32,
    psn: u32,
}

/// Packets that the first host sends before `until`; each occupies the port for its transmission time. Every `ask_every`
/// ps between two packets, the test also asks the host too early.
pub(super) fn sent<P: Parts>(checked: &Checked, parts: &P, until: u64, ask_every: Option<u64>) -> Vec<Start> {
    let setup = Setup::new(&checked.plan);
    let mut host = Host::new(&setup, parts, HostId(0));
    for (i, qp) in checked.plan.qps.iter().enumerate() {
        assert_eq!(qp.from, HostId(0));
        host.add_outgoing(&setup, parts, QpId(i as u32));
    }
    host.on_timer(&setup, 0);
    let (mut starts, mut free) = (Vec::new(), 0);
    loop {
        let mut now = free.max(host.eligible_at());
        if let Some(step) = ask_every {
            let idle_until = if now == u64::MAX { 0 } else { now };
            for early in (free..idle_until).step_by(step as usize) {
                if let Some(packet) = host.pull(&setup, early) {
                    panic!("{packet:?} at {early} ps, before {now}");
                }
            }
            now = free.max(host.eligible_at());
        }
        if now >= until {
            return starts;
        }
        if let Some(packet) = host.pull(&setup, now) {
            starts.push(Start { at: now, qp: packet.qp().0, psn: packet.psn().value() });
            free = now + setup.time_on_wire(host.row, packet.frame());
        }
    }
}

fn real(checked: &Checked) -> RealParts<'_, ()> {
    RealParts::new(&checked.schemes, &checked.nics)
}

pub(super) fn at_rates<F: Fn(u32) -> (f64, Time)>(checked: &Checked, rate_and_start: F) -> Given<'_, F> {
    Given { parts: real(checked), rate_and_start }
}

pub(super) fn packets_of(starts: &[Start], qp: u32) -> Vec<u64> {
    starts.iter().filter(|start| start.qp == qp).map(|start| start.at).collect()
}

#[test]
fn three_hundred_queue_pairs_of_equal_rate_take_turns() {
    let checked = lay(300, 10);
    let starts = sent(&checked, &real(&checked), u64::MAX, None);
    let turns = (0..3000).map(|i| Start { at: u64::from(i) * FRAME, qp: i % 300, psn: i / 300 });
    assert!(starts.iter().copied().eq(turns), "{starts:?}");
}

#[test]
fn a_paced_queue_pair_keeps_its_gap_to_the_picosecond() {
    let checked = lay(1, 1000);
    // 1520 bytes at 70 Gb/s: 173,714.28 ps, rounded down at every packet.
    let parts = at_rates(&checked, |_| (70.0, Time::ZERO));
    let starts = sent(&checked, &parts, u64::MAX, None);
    assert!(starts.iter().copied().eq((0..1000).map(|i| Start {
        at: u64::from(i) * 173_714,
        qp: 0,
        psn: i
    })));
}

#[test]
fn queue_pairs_of_all_rates_share_a_port_that_has_room_for_them() {
    let checked = lay(20, 2000);
    let gbps = |qp: u32| f64::from(qp + 1); // 210 Gb/s in all
    let parts = at_rates(&checked, |qp| (gbps(qp), Time::ZERO));
    let until = 100_000_000;
    let starts = sent(&checked, &parts, until, None);
    for qp in 0..20 {
        let gap = Pace::from_bps(gbps(qp) * 1e9).gap(1520).ps();
        let times = packets_of(&starts, qp);
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= gap), "queue pair {qp} is too early");
        // Each queue pair waits for others at times, and pacing does not make up for the wait.
        let share = times.len() as f64 * gap as f64 / until as f64;
        assert!((0.8..=1.1).contains(&share), "queue pair {qp} sends {share} of its rate");
    }
}

#[test]
fn slow_queue_pairs_leave_the_rest_to_a_fast_one() {
    let checked = lay(100, 5000);
    let parts = at_rates(&checked, |qp| (if qp == 50 { 400.0 } else { 1.0 }, Time::ZERO));
    let starts = sent(&checked, &parts, 100_000_000, None);
    // The port is always busy, and each slow queue pair sends one packet per 12.16 us.
    assert_eq!(starts.len() as u64, 100_000_000_u64.div_ceil(FRAME));
    assert!((0..100).filter(|qp| *qp != 50).all(|qp| (8..=9).contains(&packets_of(&starts, qp).len())));
}

#[test]
fn a_stalled_queue_pair_does_not_hold_up_the_others() {
    let checked = lay(10, 100);
    let stall = Time::from_us(20);
    let parts = at_rates(&checked, |qp| (400.0, if qp == 0 { stall } else { Time::ZERO }));
    let starts = sent(&checked, &parts, u64::MAX, None);
    assert!(starts.iter().enumerate().all(|(i, start)| start.at == i as u64 * FRAME));
    // After the stall its turn comes within ten frames, because the nine others have been allowed for longer.
    let first = packets_of(&starts, 0)[0];
    assert!((stall.ps()..stall.ps() + 10 * FRAME).contains(&first), "{first}");
}

#[test]
fn asking_too_early_changes_nothing() {
    let checked = lay(12, 40);
    let rate = |qp: u32| if qp.is_multiple_of(3) { 400.0 } else { 0.7 * f64::from(qp) };
    let parts = at_rates(&checked, |qp| (rate(qp), Time::from_us(u64::from(qp % 5))));
    let calm = sent(&checked, &parts, u64::MAX, None);
    assert_eq!(calm.len(), 480);
    for step in [1000, 7777, 250_000] {
        assert_eq!(sent(&checked, &parts, u64::MAX, Some(step)), calm);
    }
}

#[test]
fn ack_after_ack_moves_no_timer() {
    let checked = lay(1, 499);
    let setup = Setup::new(&checked.plan);
    let mut host = Host::new(&setup, &real(&checked), HostId(0));
    host.add_outgoing(&setup, &real(&checked), QpId(0));
    host.on_timer(&setup, 0);
    let ack = |psn| Parcel::bare(Packet::new(Kind::Ack, QpId(0), HostId(0), Psn::new(psn), 66));
    for psn in 0..499 {
        let now = u64::from(psn) * FRAME;
        assert_eq!(host.pull(&setup, now).map(|p| p.psn().value()), Some(psn));
        if psn >= 8 {
            host.on_arrival(&setup, now, &ack(psn - 8));
        }
        assert_eq!((host.timers.len(), host.timer_at()), (1, Time::from_ms(1).ps()));
    }
    // At this time no timeout occurs: the timeout is a millisecond after the last ACK.
    let last = 498 * FRAME;
    host.on_timer(&setup, host.timer_at());
    assert_eq!((host.control.timeout, host.timer_at()), (0, last + Time::from_ms(1).ps()));
    host.on_timer(&setup, host.timer_at());
    assert_eq!((host.control.timeout, host.eligible_at()), (1, last + Time::from_ms(1).ps()));
}

#[test]
fn a_record_counts_all_frames_sent_whenever_it_is_read() {
    let checked = lay(1, 5);
    let setup = Setup::new(&checked.plan);
    let mut host = Host::new(&setup, &real(&checked), HostId(0));
    host.add_outgoing(&setup, &real(&checked), QpId(0));
    host.on_timer(&setup, 0);
    for sent in 1..=5 {
        host.pull(&setup, (sent - 1) * FRAME);
        let mut records = [MessageRecord::default()];
        host.collect(&setup, &mut records);
        assert_eq!((records[0].wire_bytes, records[0].last_sent), (sent * 1520, Time(sent * FRAME)));
    }
    // A NACK of the third packet, while all five are in flight, causes one more frame.
    let nack = Parcel::bare(Packet::new(Kind::Nack, QpId(0), HostId(0), Psn::new(2), 66));
    host.on_arrival(&setup, 9 * FRAME, &nack);
    assert_eq!(host.pull(&setup, 10 * FRAME).map(|p| p.retransmission()), Some(true));
    let mut records = [MessageRecord::default()];
    host.collect(&setup, &mut records);
    assert_eq!((records[0].wire_bytes, records[0].last_sent), (6 * 1520, Time(11 * FRAME)));
    assert_eq!(records[0].retransmitted, 1);
}

/// With these sizes, the 65,000 queue pairs of 256 hosts take 12.5 MB and fit a third-level cache.
#[test]
fn a_queue_pair_takes_two_cache_lines_to_send_and_one_to_receive() {
    assert_eq!(size_of::<Outgoing<RealParts<'static, ()>>>(), 128);
    assert_eq!(size_of::<Incoming<RealParts<'static, ()>>>(), 64);
    assert_eq!(size_of::<Outgoing<RealParts<'static, SackStamp>>>(), 128);
    assert_eq!(size_of::<Incoming<RealParts<'static, SackStamp>>>(), 64);
    assert_eq!(size_of::<ReplyTimer<SackStamp>>(), 64);
}
