//! Classes of a NIC: the queue pairs of one class send in their own order, and classes take turns by priority, weight and rate.

use super::nic::Host;
use super::ready::{Ready, Turn};
use crate::service::Turns;
use crate::setup::Setup;
use model::plan::{Classes, NicClass, Service};
use model::{Pace, Parcel, Parts, QpId};

/// The classes of a NIC.
#[derive(Debug)]
pub(super) struct SendClasses {
    /// By slot: the class of a queue pair.
    of: Vec<u8>,
    lines: Vec<Line>,
    turns: Turns,
}

/// The queue pairs of a class.
#[derive(Debug)]
struct Line {
    service: Service,
    /// Pace of the class, if its rate is limited.
    pace: Option<Pace>,
    ready: Ready,
    /// Time from which its rate allows the next packet, ps.
    free: u64,
}

impl Line {
    /// Time from which it may send; [`u64::MAX`] if no queue pair has anything to send.
    fn eligible_at(&self) -> u64 {
        self.ready.first().at.max(self.free)
    }
}

/// A class that may send, and the state of the turns once it has sent.
#[derive(Clone, Copy)]
struct Choice {
    class: usize,
    /// Time since which it may send, ps.
    since: u64,
    turns: Turns,
}

impl SendClasses {
    /// The classes of a NIC whose full frames take `full_time`; `None` if the plan has none.
    pub(super) fn new(setup: &Setup<'_>, full_time: u64) -> Option<Box<Self>> {
        let line = |class: &NicClass| Line {
            service: class.service,
            pace: class.rate.map(|rate| Pace::from_bps(rate.bps() as f64)),
            ready: Ready::new(full_time),
            free: 0,
        };
        let table = &setup.plan.nic_classes.table;
        let lines = table.iter().map(line).collect();
        (!table.is_empty()).then(|| Box::new(SendClasses { of: Vec::new(), lines, turns: Turns::default() }))
    }

    /// Adds the next queue pair of the sender.
    pub(super) fn add(&mut self, setup: &Setup<'_>, qp: QpId) {
        self.of.push(setup.plan.nic_classes.of[usize::from(setup.plan.class_of(qp))]);
    }

    /// [`Ready::insert`] in the class of the queue pair.
    pub(super) fn insert(&mut self, at: u64, slot: u32, now: u64) {
        self.lines[usize::from(self.of[slot as usize])].ready.insert(at, slot, now);
    }

    /// Takes all turns out, in any order.
    pub(super) fn take_all(&mut self) -> Vec<Turn> {
        self.lines.iter_mut().flat_map(|line| line.ready.take_all()).collect()
    }

    /// Number of queue pairs with a turn.
    pub(super) fn waiting(&self) -> usize {
        self.lines.iter().map(|line| &line.ready).filter(|ready| !ready.is_empty()).map(Ready::len).sum()
    }

    /// True if no class waits for its rate.
    pub(super) fn are_free(&self, now: u64) -> bool {
        self.lines.iter().all(|line| line.free <= now)
    }

    /// Time from which the first class may send; [`u64::MAX`] if no queue pair has anything to send.
    pub(super) fn eligible_at(&self) -> u64 {
        self.lines.iter().map(Line::eligible_at).min().unwrap_or(u64::MAX)
    }

    /// The class that may send next at `now`, if its packet has at most `frame` bytes.
    fn choose(&self, now: u64, frame: u32) -> Option<Choice> {
        let mut turns = self.turns;
        let services = self.lines.iter().map(|line| line.service);
        let first = |class: usize| (self.lines[class].eligible_at() <= now).then_some(frame.into());
        let class = turns.next(services, first)?;
        Some(Choice { class, since: self.lines[class].eligible_at(), turns })
    }

    /// Notes that the class of a choice sends a packet.
    fn send(&mut self, choice: Choice, frame: u32, on_wire: u32) {
        let line = &mut self.lines[choice.class];
        if let Some(pace) = line.pace {
            line.free = choice.since + pace.gap(on_wire.into()).ps();
        }
        self.turns = choice.turns;
        self.turns.spend(choice.class, frame.into(), line.ready.is_empty());
    }
}

/// Frames that a class with a rate makes up for after it had to wait for other classes. Our choice: one of each class.
const MADE_UP: u64 = Classes::MOST as u64;

impl<P: Parts> Host<P> {
    /// [`Host::pull`] for a NIC with classes.
    #[cold]
    #[inline(never)]
    pub(super) fn pull_by_class(&mut self, setup: &Setup<'_>, now: u64) -> Option<Parcel<P::Annex>> {
        loop {
            let mut choice = self.classes.as_ref()?.choose(now, self.full_frame)?;
            self.turn_to_class(choice.class);
            let pulled = self.pull_first(setup, now);
            self.turn_to_class(choice.class);
            assert!(self.ready.is_empty(), "a queue pair has got a turn outside its class");
            let Some(classes) = &mut self.classes else { return pulled };
            if let Some(pkt) = pulled {
                choice.since = choice.since.max(now.saturating_sub(MADE_UP * self.full_time));
                classes.send(choice, pkt.frame(), pkt.frame() + self.gap);
                return Some(pkt);
            }
            // No queue pair of the class may send at `now` after all.
        }
    }

    /// Exchanges the host's queue pairs in line for those of a class; a second call undoes it.
    fn turn_to_class(&mut self, class: usize) {
        if let Some(classes) = &mut self.classes {
            std::mem::swap(&mut self.ready, &mut classes.lines[class].ready);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FRAME, Start, at_rates, lay, packets_of, sent};
    use model::plan::{Job, NicClass, NicClasses, Service};
    use model::{Pace, Rate, Time};

    const STRICT: NicClass = NicClass { service: Service::Strict, rate: None };

    fn weighted(weight: u32) -> NicClass {
        NicClass { service: Service::Weighted(weight), ..STRICT }
    }

    fn at(gbps: u64, class: NicClass) -> NicClass {
        NicClass { rate: Some(Rate::from_gbps(gbps)), ..class }
    }

    /// Starts of the packets of a host before `until`: each class has this number of queue pairs, which send 3000 full frames each.
    /// Each queue pair has a rate in Gb/s and a first time to send. The test also asks too early.
    fn starts(
        classes: &[(NicClass, usize)],
        until: u64,
        rate_and_start: impl Fn(u32) -> (f64, Time) + Copy,
    ) -> Vec<Start> {
        let mut checked = lay(classes.iter().map(|(_, queue_pairs)| queue_pairs).sum(), 3000);
        let plan = &mut checked.plan;
        // Each class has a job.
        let numbers = || 0..classes.len() as u8;
        plan.nic_classes =
            NicClasses { of: numbers().collect(), table: classes.iter().map(|(class, _)| *class).collect() };
        plan.jobs = numbers().map(|class| Job { class, ..plan.jobs[0].clone() }).collect();
        let jobs = (0..).zip(classes).flat_map(|(job, (_, count))| std::iter::repeat_n(job, *count));
        plan.messages.iter_mut().zip(jobs).for_each(|(message, job)| message.job = job);
        let parts = at_rates(&checked, rate_and_start);
        let starts = sent(&checked, &parts, until, None);
        assert_eq!(sent(&checked, &parts, until, Some(7777)), starts);
        starts
    }

    const LINE: f64 = 400.0;
    const LONG: u64 = 2000 * FRAME;

    /// All queue pairs may send at line rate from the start on.
    fn at_once(_: u32) -> (f64, Time) {
        (LINE, Time::ZERO)
    }

    /// True if the frames follow one another without a gap.
    fn busy(sent: &[Start]) -> bool {
        sent.iter().enumerate().all(|(i, start)| start.at == i as u64 * FRAME)
    }

    #[test]
    fn a_strict_class_waits_for_one_frame_at_most() {
        for at in [0, 1, 17 * FRAME - 1, 17 * FRAME, 17 * FRAME + 9] {
            let start = |qp| (LINE, if qp == 0 { Time(at) } else { Time::ZERO });
            let sent = starts(&[(STRICT, 1), (STRICT, 3)], LONG, start);
            assert!(busy(&sent));
            let first = at.next_multiple_of(FRAME);
            assert!(packets_of(&sent, 0).into_iter().eq((first..LONG).step_by(FRAME as usize)), "{at}");
        }
    }

    #[test]
    fn weights_share_a_link_in_bytes_whatever_the_number_of_queue_pairs() {
        for (three, one) in [(1, 1), (1, 9), (4, 2)] {
            let sent = starts(&[(weighted(3), three), (weighted(1), one)], LONG, at_once);
            assert!(busy(&sent));
            let mut first = 0_u64;
            for (i, start) in (1..).zip(&sent) {
                first += u64::from((start.qp as usize) < three);
                assert!((4 * first).abs_diff(3 * i) <= 4, "{first} of {i} frames");
            }
        }
    }

    #[test]
    fn a_rate_is_kept_to_the_picosecond() {
        // 1520 bytes at 70 Gb/s: 173,714.28 ps, rounded down at every packet.
        let gap = Pace::from_bps(70e9).gap(1520).ps();
        assert_eq!(gap, 173_714);
        let alone = starts(&[(at(70, STRICT), 3)], LONG, at_once);
        assert!(alone.iter().map(|start| start.at).eq((0..LONG).step_by(gap as usize)));
        // Beside others it waits for a frame or two, which it makes up for, and the others get the rest.
        for classes in [[(at(70, STRICT), 2), (STRICT, 1)], [(at(70, weighted(9)), 2), (weighted(1), 1)]] {
            let sent = starts(&classes, LONG, at_once);
            assert!(busy(&sent));
            let limited: Vec<u64> = sent.iter().filter(|start| start.qp < 2).map(|start| start.at).collect();
            for (i, at) in (0..).zip(&limited) {
                assert!((i * gap..=i * gap + 2 * FRAME).contains(at), "packet {i} at {at}");
            }
            assert!((limited.len() as u64).abs_diff(LONG / gap) <= 1);
        }
    }

    #[test]
    fn a_class_with_a_rate_makes_up_for_few_frames() {
        // The other class sends its 3000 frames first.
        let start = |qp: u32| (LINE, Time(qp.into()));
        let sent = starts(&[(STRICT, 1), (at(100, STRICT), 1)], 4000 * FRAME, start);
        let limited = packets_of(&sent, 1);
        let gap = Pace::from_bps(100e9).gap(1520).ps();
        assert_eq!(gap, 4 * FRAME);
        // The four frames for which it makes up are the time of one of its own.
        let times = [0, 1, 5, 9].map(|i| 3000 * FRAME + i * FRAME);
        assert_eq!(limited[..4], times);
    }

    #[test]
    fn a_class_that_waits_for_its_pace_leaves_the_link_to_others() {
        let rate = |qp| if qp == 0 { (10.0, Time(5)) } else { (LINE, Time::ZERO) };
        let sent = starts(&[(STRICT, 1), (STRICT, 1)], LONG, rate);
        assert!(busy(&sent));
        let gap = Pace::from_bps(10e9).gap(1520).ps();
        assert!(
            packets_of(&sent, 0).windows(2).all(|pair| (gap..gap + FRAME).contains(&(pair[1] - pair[0])))
        );
    }
}
