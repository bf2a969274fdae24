//! NDP's pulls (Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance", SIGCOMM
//! 2017), on the credit of [`super::rccc`].
//!
//! A message begins with a window of packets that go out at line rate. From then on, each pull of the receiver lets a packet
//! out. The receiver owes its sender one pull for each packet that arrives, whole or cut, and paces the pulls of all its
//! senders together at the rate of its link. So a queue pair never has more packets in flight than its first window, and cut
//! packets cost nothing but their headers.
//!
//! * A pull grants the bytes of the packet that it answers. Pulls are running sums, as NDP's pull numbers are, so a lost one
//!   does no harm.
//! * NDP stops the pulls to a sender when the last packet of its message has arrived. Here a packet asks for a pull if more
//!   waits behind it than the credit and the pulls under way cover. The place in flight of a packet that does not ask becomes
//!   free when the packet has arrived and no pull is under way. So the next message of the queue pair finds a whole window (our
//!   choice: a new connection of NDP has one).
//! * A packet that is lost without its headers waits for the timer, which lets it out without a pull. Pulls may be lost,
//!   too, so the sender then waits for none of those under way.
//! * Left out: headers that a full queue of headers sends back to their sender (the timer covers them), and pulls by priority.

use crate::facts::{Control, ControlFacts, Due, Grants};
use crate::path::Path;
use finding::{Finding, code};
use model::{Allowance, Congestion, Demand, Feedback, Pace, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// `[nic.congestion.ndp]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[schemars(rename = "CongestionNdp")]
pub struct Config {
    /// Full packets with which a message begins. It also bounds the packets in flight, so it should be at least a
    /// bandwidth-delay product. Default 30 (the largest of the paper, which has 12 to 30).
    pub first_window: u32,
    /// Share of the link's rate that the receiver pulls; a pull takes the time of a packet on the wire. Default 1 (the paper
    /// pulls at line rate).
    pub share: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config { first_window: 30, share: 1.0 }
    }
}

/// Largest `first-window`. Our choice.
const MOST: u32 = 1 << 16;

impl Control for Config {
    type State = Ndp;
    const TRIALS: &'static [&'static str] = &[
        "first-window = 9\n[nic]\ntimeout = { fixed = \"80us\" }\n[nic.transport.uec]\nack-bytes = \"1B\"",
        "share = 0.7\n[nic]\ntimeout = { fixed = \"90us\" }\n[nic.transport.dcp]",
    ];

    fn facts(&self) -> ControlFacts {
        let grants = Grants { quantum: None, share: self.share, throttles: false, due: Due::Arrival };
        ControlFacts { grants: Some(grants), ..super::rccc::Config::default().facts() }
    }

    fn validate(&self) -> Result<(), Finding> {
        if !(1..=MOST).contains(&self.first_window) {
            return Err(code::RANGE.at("first-window", format!("must be between 1 and {MOST}")));
        }
        super::rccc::Config { share: self.share, ..Default::default() }.validate()
    }

    fn control(&self, line_rate: Rate, path: Option<&Path>) -> Ndp {
        let mtu = Path::or_guess(path, line_rate).mtu;
        let window = i64::from(mtu) * i64::from(self.first_window);
        Ndp {
            credit: window,
            window,
            asked: 0,
            extra: 0,
            granted: 0,
            given_up: 0,
            freed: 0,
            sent: VecDeque::new(),
            pace: Pace::from_bps(line_rate.bps() as f64),
        }
    }
}

/// State of one queue pair; amounts in bytes.
#[derive(Clone, Debug)]
pub struct Ndp {
    /// Bytes that may be sent; the last packet may take it below 0.
    credit: i64,
    /// The first window.
    window: i64,
    /// Running sum of packets that have asked for pulls.
    asked: u64,
    /// Running sum of packets that have not asked, but were cut.
    extra: u64,
    /// Running sum of pulls.
    granted: u64,
    /// Running sum of pulls that may have been lost, by the last timeout.
    given_up: u64,
    /// Places in flight that have become free, and that wait for pulls under way.
    freed: u64,
    /// Packets in flight in the order of their transmission, in runs: bytes, and whether they have asked for pulls. Order of
    /// arrival may differ, which matters at the ends of runs only.
    sent: VecDeque<(u64, bool)>,
    pace: Pace,
}

impl Ndp {
    /// No effect: it has no rate to lower.
    pub(crate) fn lower_to(&mut self, _now: Time, _share: f64) {}

    /// Zero: every packet spends credit.
    pub(crate) const fn steady_until(&self) -> Time {
        Time::ZERO
    }

    /// Bytes of pulls under way.
    fn pending(&self) -> u64 {
        (self.asked + self.extra).saturating_sub(self.granted.max(self.given_up))
    }

    /// Adds credit, and the places that have become free once no pull is under way.
    fn add(&mut self, bytes: u64) {
        let freed = if self.pending() == 0 { std::mem::take(&mut self.freed) } else { 0 };
        self.credit = self.credit.saturating_add_unsigned(bytes + freed).min(self.window);
    }

    /// Takes so many bytes out of flight; returns those of packets that have asked for no pull.
    fn land(&mut self, mut bytes: u64) -> u64 {
        let mut free = 0;
        while bytes > 0
            && let Some((left, asked)) = self.sent.front_mut()
        {
            let landed = bytes.min(*left);
            (*left, bytes) = (*left - landed, bytes - landed);
            free += if *asked { 0 } else { landed };
            if *left == 0 {
                self.sent.pop_front();
            }
        }
        free
    }
}

impl Congestion for Ndp {
    fn allowance(&mut self, _now: Time) -> Allowance {
        let window = if self.credit > 0 { u64::MAX } else { 0 };
        Allowance { window, pace: self.pace, not_before: Time::ZERO }
    }

    fn on_feedback(&mut self, _now: Time, feedback: &Feedback) {
        // The receiver pulls once for each cut packet.
        self.extra += self.land(feedback.delivery.cut);
        // Packets that were lost have left their bytes behind.
        let all = feedback.una == feedback.high;
        self.freed += self.land(if all { u64::MAX } else { feedback.delivery.arrived });
        self.add(0);
    }

    fn on_send(&mut self, _now: Time, frame: u32, backlog: u64, _active: u64) -> Demand {
        self.credit -= i64::from(frame);
        let covered = self.credit.max(0).unsigned_abs() + self.pending() + self.freed;
        let asks = backlog > covered;
        self.asked += if asks { u64::from(frame) } else { 0 };
        match self.sent.back_mut() {
            Some((bytes, asked)) if *asked == asks => *bytes += u64::from(frame),
            _ => self.sent.push_back((frame.into(), asks)),
        }
        Demand { total: self.asked, exhausted: self.credit <= 0 }
    }

    fn on_grant(&mut self, _now: Time, total: u64) {
        let more = total.saturating_sub(self.granted);
        self.granted += more;
        self.add(more);
    }

    fn on_timeout(&mut self, _now: Time) {
        self.given_up = self.asked + self.extra;
        self.add(0);
        self.credit = self.credit.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacer::Pacer;
    use model::Delivery;
    use model::granter::{Arrival, Grant};
    use model::{Granter as _, QpId};
    use std::collections::BTreeMap;

    const NOW: Time = Time::ZERO;

    /// A queue pair with a window of three packets of 1,500 B.
    fn control() -> Ndp {
        Config { first_window: 3, ..Config::default() }.control(Rate::from_gbps(100), None)
    }

    /// Sends full packets while the control lets them out; `backlog` packets wait before the first. Returns what each says to
    /// the receiver.
    fn send(control: &mut Ndp, mut backlog: u64) -> Vec<u64> {
        let mut said = Vec::new();
        while backlog > 0 && control.allowance(NOW).window > 0 {
            backlog -= 1;
            said.push(control.on_send(NOW, 1_500, 1_500 * backlog, 1).total);
        }
        said
    }

    /// A reply that reports one more packet.
    fn reply(una: u64, high: u64) -> Feedback {
        let delivery = Delivery { arrived: 1_500, ..Delivery::default() };
        Feedback { una, high, delivery, ..Feedback::default() }
    }

    #[test]
    fn the_whole_first_window_goes_out_even_if_a_reply_comes_before_its_end() {
        let mut control = control();
        control.on_send(NOW, 1_500, 90_000, 1);
        control.on_feedback(NOW, &reply(1, 1));
        assert_eq!(send(&mut control, 60).len(), 2);
    }

    #[test]
    fn each_pull_lets_one_packet_out() {
        let mut control = control();
        assert_eq!(send(&mut control, 60).len(), 3);
        for pull in 1..9 {
            control.on_grant(NOW, 1_500 * pull);
            assert_eq!(send(&mut control, 50).len(), 1);
        }
        control.on_grant(NOW, 1_500 * 11);
        assert_eq!(send(&mut control, 50).len(), 3, "the sum makes up for two lost pulls");
    }

    #[test]
    fn as_many_packets_ask_for_pulls_as_wait_beyond_the_window() {
        // Five packets: the window holds three, so two pulls are needed.
        assert_eq!(send(&mut control(), 5), [1_500, 3_000, 3_000]);
        assert_eq!(send(&mut control(), 2), [0; 2]);
    }

    #[test]
    fn the_next_message_finds_the_window_that_its_forerunner_has_left() {
        let mut control = control();
        assert_eq!(send(&mut control, 3), [0; 3]);
        // Two packets of three have arrived, and no pull will come for them.
        (1..3).for_each(|una| control.on_feedback(NOW, &reply(una, 3)));
        assert_eq!(send(&mut control, 9), [1_500, 3_000]);
        // The third arrives, but the second message has asked for two pulls.
        control.on_feedback(NOW, &reply(3, 5));
        assert_eq!(send(&mut control, 7).len(), 0);
        control.on_grant(NOW, 3_000);
        assert_eq!(send(&mut control, 7), [4_500, 6_000, 7_500], "three packets are in flight again");
    }

    #[test]
    fn a_cut_packet_is_pulled_whether_it_has_asked_or_not() {
        let mut control = control();
        assert_eq!(send(&mut control, 3), [0; 3]);
        let delivery = Delivery { cut: 1_500, ..Delivery::default() };
        control.on_feedback(NOW, &Feedback { una: 0, high: 3, delivery, ..Feedback::default() });
        assert_eq!(send(&mut control, 1).len(), 0);
        control.on_grant(NOW, 1_500);
        assert_eq!(send(&mut control, 1).len(), 1);
    }

    /// Senders of 100 packets each and their receiver: a packet takes a slot on each link, four slots to the switch, and four from
    /// there. The queue before the receiver holds eight. Returns the packets that were cut, and the slots until all have arrived.
    fn incast(senders: usize, window: u32) -> (u64, u64) {
        const PACKETS: u64 = 100;
        let rate = Rate::from_gbps(400);
        let path = Path { mtu: 4_000, frame: 4_020, ..Path::unknown(rate) };
        let config = Config { first_window: window, ..Config::default() };
        let mut pacer = Pacer::new(rate, 4_000.0 / 4_020.0, 4_000, None);
        let mut controls: Vec<_> = (0..senders).map(|_| config.control(rate, Some(&path))).collect();
        let (mut unsent, mut again, mut arrived) =
            (vec![PACKETS; senders], vec![0; senders], vec![0; senders]);
        let (mut queue, mut cut) = (VecDeque::new(), 0);
        let mut events: BTreeMap<u64, Vec<Event>> = BTreeMap::new();
        for slot in 0.. {
            let now = Time(slot * 80_400);
            for event in events.remove(&slot).unwrap_or_default() {
                match event {
                    Event::AtSwitch(sender, amount) if queue.len() < 8 => queue.push_back((sender, amount)),
                    Event::AtSwitch(sender, amount) => {
                        cut += 1;
                        events.entry(slot + 4).or_default().push(Event::Arrives(sender, amount, true));
                    }
                    Event::Arrives(sender, amount, cut) => {
                        let (qp, frame) = (QpId(sender as u32), if cut { 64 } else { 4_000 });
                        pacer.demand(now, qp, amount);
                        pacer.arrived(now, Arrival { qp, frame, marked: false, cut, last_hop: cut });
                        arrived[sender] += u64::from(!cut);
                        events.entry(slot + 8).or_default().push(Event::Reply(sender, cut));
                    }
                    Event::Reply(sender, cut) => {
                        again[sender] += u64::from(cut);
                        let delivery = Delivery {
                            arrived: if cut { 0 } else { 4_000 },
                            cut: if cut { 4_000 } else { 0 },
                            ..Delivery::default()
                        };
                        let feedback = Feedback { una: 0, high: 1, delivery, ..Feedback::default() };
                        controls[sender].on_feedback(now, &feedback);
                    }
                    Event::Pull(sender, total) => controls[sender].on_grant(now, total),
                }
            }
            if let Some((sender, amount)) = queue.pop_front() {
                events.entry(slot + 4).or_default().push(Event::Arrives(sender, amount, false));
            }
            if pacer.deadline() <= now
                && let Some(Grant { qp, total, .. }) = pacer.grant(now)
            {
                events.entry(slot + 8).or_default().push(Event::Pull(qp.index(), total));
            }
            for (sender, control) in controls.iter_mut().enumerate() {
                let waits = if again[sender] > 0 { &mut again[sender] } else { &mut unsent[sender] };
                if *waits > 0 && control.allowance(now).window > 0 {
                    *waits -= 1;
                    let amount =
                        control.on_send(now, 4_000, 4_000 * (unsent[sender] + again[sender]), 1).total;
                    events.entry(slot + 4).or_default().push(Event::AtSwitch(sender, amount));
                }
            }
            if arrived.iter().all(|arrived| *arrived == PACKETS) {
                return (cut, slot);
            }
            assert!(slot < 100_000, "{arrived:?} of {PACKETS} packets have arrived");
        }
        unreachable!()
    }

    enum Event {
        AtSwitch(usize, u64),
        Arrives(usize, u64, bool),
        Reply(usize, bool),
        Pull(usize, u64),
    }

    #[test]
    fn an_incast_costs_the_first_windows_and_then_nothing() {
        for (senders, window) in [(20, 12), (20, 38), (3, 30)] {
            let (cut, slots) = incast(senders, window);
            let first = senders as u64 * u64::from(window);
            assert!(cut > 0 && cut <= first, "{cut} packets cut, {first} in the first windows");
            let least = 100 * senders as u64;
            assert!(slots < least + 60, "{slots} slots for {least} packets");
        }
    }

    #[test]
    fn a_timeout_lets_its_packet_out_without_a_pull() {
        let mut control = control();
        assert_eq!(send(&mut control, 60).len(), 3);
        control.on_timeout(NOW);
        assert_eq!(send(&mut control, 58).len(), 1);
    }
}
