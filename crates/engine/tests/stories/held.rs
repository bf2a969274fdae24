//! Claim: a scheme may hold packets and make control packets of its own. The engines agree on the outcome, every
//! packet is in the books, and packets still held at the end count as held.
//!
//! The scheme is a test's own, in a box ([`schemes::AnyScheme::Custom`]). It holds every k-th packet and releases
//! it after some time or when a later packet passes.

use crate::lab::{agreed, lay, leaf_spine};
use engine::outcome::Outcome;
use model::scheme::Handle;
use model::{
    Cx, HostId, Interest, Kind, Packet, Parts, Plan, PortIndex, Psn, QpId, Scheme, Site, Time, Verdict,
};
use rnic::Nic;
use schemes::AnyScheme;
use std::collections::VecDeque;

/// The moment at which a held packet is released.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Until {
    /// Released at this time after the packet's arrival.
    Wake(Time),
    /// Released when another packet passes while this number of packets is held; all held packets then leave.
    Passing(usize),
}

/// Settings of the test's scheme.
#[derive(Clone, Copy, Debug)]
struct Habits {
    /// Holds every `hold`-th data packet that arrives; 0 holds none.
    hold: u64,
    until: Until,
    /// Holds control packets as well.
    control: bool,
    /// Sends a CNP to the source of every `emit`-th packet, on its arrival and on its departure to the host.
    emit: u64,
}

struct Holder {
    habits: Habits,
    senders: Vec<HostId>,
    met: u64,
    left: u64,
    held: VecDeque<(Handle, PortIndex, Time)>,
    emitted: u64,
    holds: u64,
}

impl Holder {
    fn cnp(&mut self, cx: &mut Cx<'_>, qp: QpId, frame: u32) {
        self.emitted += 1;
        cx.emit(Packet::new(Kind::Cnp, qp, self.senders[qp.index()], Psn::new(0), frame));
    }
}

impl Scheme for Holder {
    fn interest(&self) -> Interest {
        let emits = self.habits.emit > 0;
        Interest { every_packet: true, host_departures: emits, makes_replies: emits, ..Interest::default() }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        let port = cx.base_path(pkt, ports);
        if !pkt.is_data() && !self.habits.control {
            return Verdict::Forward(port);
        }
        self.met += 1;
        if self.habits.emit > 0 && pkt.is_data() && self.met.is_multiple_of(self.habits.emit) {
            self.cnp(cx, pkt.qp(), 78);
        }
        if self.habits.hold > 0 && self.met.is_multiple_of(self.habits.hold) {
            self.holds += 1;
            if let Until::Wake(after) = self.habits.until {
                cx.wake_at(cx.now + after);
            }
            self.held.push_back((cx.handle(), port, cx.now));
            return Verdict::Hold;
        }
        if matches!(self.habits.until, Until::Passing(n) if self.held.len() >= n) {
            for (handle, port, _) in self.held.drain(..) {
                cx.release(handle, port);
            }
        }
        Verdict::Forward(port)
    }

    fn on_depart(&mut self, cx: &mut Cx<'_>, pkt: &Packet, _: PortIndex) {
        self.left += 1;
        if self.left.is_multiple_of(self.habits.emit) {
            self.cnp(cx, pkt.qp(), 66);
        }
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        let Until::Wake(after) = self.habits.until else { return };
        while let Some(&(handle, port, since)) = self.held.front() {
            if since + after > cx.now {
                cx.wake_at(since + after);
                break;
            }
            cx.release(handle, port);
            self.held.pop_front();
        }
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("emitted", self.emitted);
        sink("holds", self.holds);
    }
}

/// The NIC of a scenario, with the test's scheme in every switch.
struct Holding {
    nic: Nic,
    habits: Habits,
}

impl Parts for Holding {
    type Scheme = AnyScheme;
    type Sender = rnic::AnySender;
    type Receiver = rnic::AnyReceiver;
    type Congestion = rnic::Reacting;

    type Annex = ();
    type Steering = ();
    type Granter = ();
    fn scheme(&self, site: Site<'_>) -> AnyScheme {
        AnyScheme::Custom(Box::new(Holder {
            habits: self.habits,
            senders: site.plan.qps.iter().map(|qp| qp.from).collect(),
            met: 0,
            left: 0,
            held: VecDeque::new(),
            emitted: 0,
            holds: 0,
        }))
    }

    fn sender(&self, _: &Plan, _: QpId) -> rnic::AnySender {
        self.nic.sender()
    }

    fn receiver(&self, _: &Plan, _: QpId) -> rnic::AnyReceiver {
        self.nic.receiver()
    }

    fn congestion(&self, plan: &Plan, qp: QpId) -> rnic::Reacting {
        self.nic.congestion(plan.fabric.uplink(plan.qps[qp.index()].from).rate)
    }
    fn steering(&self, _: model::QpSite<'_>) {}

    fn granter(&self, _: &Plan, _: model::HostId) {}
}

/// Runs a small fabric with these switch settings and the test's scheme on both engines.
fn hold(switch: &str, workload: &str, habits: Habits) -> Outcome {
    let fabric = leaf_spine(2, 2, 3, "rate = \"100Gbps\"\ndelay = \"200ns\"");
    let text = format!(
        "{fabric}{switch}\n[nic]\ntimeout = {{ fixed = \"50us\" }}\n[nic.transport.ideal]\n[[workload]]\n{workload}\n"
    );
    let checked = lay(&text);
    let parts = Holding { nic: checked.nics.of(QpId(0)).clone(), habits };
    let run = agreed(&checked.plan, &parts, &format!("{habits:?}\n{text}"));
    assert_eq!(counter(&run, "emitted"), run.control.forged);
    run
}

fn counter(run: &Outcome, name: &str) -> u64 {
    run.counters.iter().find(|(n, _)| *n == name).map_or(0, |(_, n)| *n)
}

const LOSSLESS: &str = "[switch]\nbuffer = \"100kB\"";
const LOSSY: &str = "[switch]\npfc = \"off\"\nbuffer = \"80kB\"";
const ONE_CLASS: &str = "[switch]\nbuffer = \"100kB\"\nclasses = \"one\"";
const PERMUTATION: &str = "permutation = { bytes = \"100kB\", kind = \"cross-rack\" }";
const INCAST: &str = "incast = { senders = 5, bytes = \"60kB\" }";

#[test]
fn packets_held_for_a_while_arrive_late_and_none_is_lost() {
    for switch in [LOSSLESS, ONE_CLASS] {
        for workload in [PERMUTATION, INCAST] {
            for control in [false, true] {
                let until = Until::Wake(Time::from_ns(1_700));
                let run = hold(switch, workload, Habits { hold: 7, until, control, emit: 0 });
                assert!(run.data.out_of_order > 0);
                assert_eq!(run.data.accepted + run.data.duplicate, run.data.sent);
                assert_eq!(run.data.held + run.control.in_flight, 0);
            }
        }
    }
}

#[test]
fn packets_held_until_others_pass_change_places_with_them() {
    for (switch, workload) in [(LOSSLESS, PERMUTATION), (LOSSY, INCAST), (ONE_CLASS, INCAST)] {
        for many in [1, 5] {
            let until = Until::Passing(many);
            let run = hold(switch, workload, Habits { hold: 3, until, control: false, emit: 0 });
            assert!(run.data.out_of_order > 0);
        }
    }
}

#[test]
fn packets_that_a_switch_makes_are_in_the_books() {
    for switch in [LOSSLESS, LOSSY, ONE_CLASS] {
        for (hold_each, until) in
            [(0, Until::Passing(1)), (5, Until::Passing(2)), (4, Until::Wake(Time::from_ns(900)))]
        {
            let run = hold(switch, PERMUTATION, Habits { hold: hold_each, until, control: true, emit: 4 });
            assert!(run.control.forged > 100);
            assert_eq!(
                run.control.created,
                run.control.ack + run.control.nack + run.control.cnp + run.control.forged
            );
        }
    }
}

#[test]
fn effects_of_a_packet_come_after_effects_of_its_departure() {
    // At the last switch, the arrival and the departure of one packet each make a CNP of its own size.
    for classes in ["one", "strict"] {
        let switch = format!("[switch]\nclasses = \"{classes}\"");
        let run =
            hold(&switch, PERMUTATION, Habits { hold: 0, until: Until::Passing(1), control: false, emit: 1 });
        assert!(run.control.forged > run.data.accepted);
    }
}

#[test]
fn a_stopped_run_counts_the_packets_still_held() {
    let workload = format!("{PERMUTATION}\n[stop]\nafter = \"5us\"");
    let until = Until::Wake(Time::from_us(50));
    let run = hold(LOSSLESS, &workload, Habits { hold: 5, until, control: false, emit: 0 });
    assert!(run.data.held > 0 && run.data.in_flight > 0);
    let accounted = run.data.accepted + run.data.duplicate + run.data.held + run.data.in_flight;
    assert_eq!(run.data.sent, accounted);
}

#[test]
fn held_packets_fill_the_buffer_and_pause_the_neighbours() {
    // 700 packets arrive at each leaf and none is released for 100 us, so the leaf must pause its hosts.
    let until = Until::Wake(Time::from_us(100));
    let run = hold(LOSSLESS, INCAST, Habits { hold: 1, until, control: false, emit: 0 });
    assert!(run.control.pause > 0);
    assert_eq!(run.data.dropped_buffer, 0);
}

#[test]
fn a_packet_that_finds_no_room_to_be_held_is_dropped_and_counted() {
    let until = Until::Wake(Time::from_us(100));
    let run = hold(
        "[switch]\npfc = \"off\"\nbuffer = \"20kB\"",
        PERMUTATION,
        Habits { hold: 2, until, control: false, emit: 0 },
    );
    assert!(run.data.dropped_buffer > 0);
}

#[test]
fn a_crowd_of_released_packets_fills_a_lossy_queue_at_once() {
    // About 44 packets of 1500 B are released together into a queue that may hold half of 120 kB. Packets that
    // arrive right behind them are dropped.
    let switch = "[switch]\npfc = \"off\"\nbuffer = \"120kB\"";
    for many in 38..50 {
        let until = Until::Passing(many);
        let run = hold(switch, INCAST, Habits { hold: 2, until, control: false, emit: 0 });
        assert!(run.data.dropped_buffer > 0);
    }
}

#[test]
fn packets_that_a_switch_makes_take_room_in_the_queue_that_they_share_with_data() {
    // In one class, a CNP for every packet joins the same lossy queue as data in its direction, and later packets
    // find a longer queue.
    let mut dropped = 0;
    for buffer in (8..60).step_by(2) {
        let switch = format!("[switch]\npfc = \"off\"\nbuffer = \"{buffer}kB\"\nclasses = \"one\"");
        for workload in [PERMUTATION, INCAST] {
            let habits = Habits { hold: 0, until: Until::Passing(1), control: false, emit: 1 };
            let run = hold(&switch, workload, habits);
            assert!(run.control.forged > 0);
            dropped += run.data.dropped_buffer;
        }
    }
    assert!(dropped > 0, "no queue was ever full");
}
