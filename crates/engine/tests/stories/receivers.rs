//! Claim: a receiver may wait with its ACKs until a timer fires, and messages may complete by a count of packets. The
//! engines agree on the outcome.
//!
//! The receivers are a test's own; the rest is a scenario's.

use crate::lab::{agreed, lay, leaf_spine};
use engine::outcome::Outcome;
use model::transport::{Fate, Inbound, Overdue, Reception, Reply, Standing};
use model::{HostId, Parts, Plan, Psn, QpId, QpSite, Receiver, Site, Time};
use sim::RealParts;

type Real = RealParts<'static, ()>;

/// Behaviour of the test's receivers.
#[derive(Clone, Copy)]
pub(crate) enum Habit {
    /// Acknowledges `most` packets at once, or fewer packets once the first has waited for `patience`.
    Coalesces { most: u32, patience: Time },
    /// Messages complete by the number of accepted packets, or in order.
    Counts(bool),
    /// Answers the headers of a cut packet with a NACK of the ePSN, and those of an old packet with an ACK; or not at all.
    AnswersCuts(bool),
}

/// A receiver with a habit on top of a real one.
struct Habitual<R> {
    receiver: R,
    habit: Habit,
    accepted: u64,
    /// The ACK that waits, the number of packets that it answers, and the time at which it leaves.
    waiting: Option<Reply>,
    packets: u32,
    leaves: Time,
}

impl<R: Receiver> Habitual<R> {
    fn on_data(&mut self, now: Time, last: bool, got: Reception) -> Reception {
        self.accepted += u64::from(got.fate == Fate::Accepted);
        let Habit::Coalesces { most, patience } = self.habit else { return got };
        let may_wait = !last && !got.out_of_order && matches!(got.reply, Some(Reply::Ack(_)));
        if may_wait && self.packets + 1 < most {
            if self.packets == 0 {
                self.leaves = now + patience;
            }
            self.packets += 1;
            self.waiting = got.reply;
            return Reception { reply: None, ..got };
        }
        if got.reply.is_some() {
            (self.packets, self.leaves) = (0, Time::NEVER);
        }
        got
    }

    fn on_cut(&self, psn: Psn, got: Reception) -> Reception {
        let Habit::AnswersCuts(true) = self.habit else { return got };
        let expected = self.receiver.standing().expected;
        let reply = match psn.unwrap_near(expected) < expected {
            true => Reply::Ack(Psn::from_seq(expected - 1)),
            false => Reply::Nack(Psn::from_seq(expected)),
        };
        Reception { reply: Some(reply), ..got }
    }
}

impl<R: Receiver> Receiver for Habitual<R> {
    fn on_arrival(&mut self, now: Time, inbound: Inbound) -> (Reception, Standing) {
        let (got, _) = self.receiver.on_arrival(now, inbound);
        let got = match inbound {
            Inbound::Data(packet) => self.on_data(now, packet.last, got),
            Inbound::Headers { psn, .. } => self.on_cut(psn, got),
            _ => got,
        };
        (got, self.standing())
    }

    fn standing(&self) -> Standing {
        let standing = Standing { deadline: self.leaves, ..self.receiver.standing() };
        match self.habit {
            Habit::Counts(true) => Standing { completed: self.accepted, ..standing },
            _ => standing,
        }
    }

    fn on_deadline(&mut self, now: Time) -> Overdue {
        if self.leaves > now {
            return Overdue::default();
        }
        (self.packets, self.leaves) = (0, Time::NEVER);
        Overdue { probe: None, reply: self.waiting.take().map(|reply| (reply, false)) }
    }
}

struct Habits {
    parts: Real,
    habit: Habit,
}

impl Parts for Habits {
    type Scheme = <Real as Parts>::Scheme;
    type Sender = <Real as Parts>::Sender;
    type Receiver = Habitual<<Real as Parts>::Receiver>;
    type Congestion = <Real as Parts>::Congestion;
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
        let receiver = self.parts.receiver(plan, qp);
        let (waiting, leaves) = (None, Time::NEVER);
        Habitual { receiver, habit: self.habit, accepted: 0, waiting, packets: 0, leaves }
    }

    fn congestion(&self, plan: &Plan, qp: QpId) -> Self::Congestion {
        self.parts.congestion(plan, qp)
    }

    fn steering(&self, _: QpSite<'_>) {}

    fn granter(&self, _: &Plan, _: HostId) {}
}

/// The outcome of a scenario whose receivers have a habit, on which the engines agree.
pub(crate) fn with(habit: Habit, text: &str) -> Outcome {
    let checked = Box::leak(Box::new(lay(text)));
    let parts = Habits { parts: RealParts::new(&checked.schemes, &checked.nics), habit };
    agreed(&checked.plan, &parts, text)
}

/// Thirty packets from one host to another, at most three of them unacknowledged.
fn thirty_packets() -> String {
    leaf_spine(1, 1, 2, "")
        + "[nic.congestion.none]\n[nic.transport.nic-sr]\nmax-outstanding = 3\n\
           [[workload]]\nflows = { list = [{ from = \"host0\", to = \"host1\", bytes = \"43140B\" }] }\n"
}

#[test]
fn a_window_below_the_size_of_an_ack_waits_for_the_timer_in_every_round() {
    let run = |most, us| with(Habit::Coalesces { most, patience: Time::from_us(us) }, &thirty_packets());
    let (fast, slow) = (run(4, 10), run(4, 20));
    // Ten rounds of three packets. In the last one, the last packet of the message is acknowledged at once.
    assert_eq!((fast.control.ack, slow.control.ack), (10, 10));
    assert_eq!(slow.messages[0].acked.since(fast.messages[0].acked), Time::from_us(9 * 10));
    // An ACK for every third packet does not wait.
    let prompt = [run(3, 10), run(3, 20)];
    assert_eq!(prompt[0].messages, prompt[1].messages);
    assert!(prompt[0].messages[0].acked < fast.messages[0].acked.since(Time::from_us(80)));
}

#[test]
fn coalesced_acks_survive_losses_pauses_and_all_classes() {
    for (keys, nic) in [
        ("", ""),
        ("[switch]\nclasses = \"one\"\necn = { mark = \"enqueue\" }\n", ""),
        ("[switch]\nclasses = \"cnp-first\"\nbuffer = \"1MB\"\n", "[nic.transport.ideal]\n"),
        ("[links]\nloss = 0.01\nlose-replies = true\n", "[nic]\ntimeout = { fixed = \"60us\" }\n"),
        (
            "[switch]\nclasses = [{ kinds = [\"ack\", \"nack\", \"cnp\", \"signal\", \"control\"] }, \
             { kinds = [\"data\", \"trimmed\"] }]\n",
            "[nic.transport.go-back-n]\n",
        ),
    ] {
        let text = leaf_spine(2, 2, 4, "")
            + keys
            + nic
            + "[scheme.rps]\n[[workload]]\nall-to-all = { per-pair = \"40kB\", groups = \"all\" }\n";
        let run = with(Habit::Coalesces { most: 8, patience: Time::from_us(2) }, &text);
        assert_eq!(run.ending.name(), "finished", "{text}");
        assert!(run.control.ack < run.data.accepted, "{:?}", run.control);
    }
}

#[test]
fn a_message_that_completes_by_count_does_not_wait_for_packets_before_it() {
    // Two messages on each of four queue pairs, sprayed over four paths.
    let pairs = (0..4).map(|host| {
        let message = format!("{{ from = \"host{host}\", to = \"host{}\", bytes = \"30kB\" }}, ", host + 4);
        message.repeat(2)
    });
    let list: String = pairs.collect();
    let text = leaf_spine(2, 4, 4, "")
        + "[nic.congestion.none]\n[nic.transport.ideal]\n[scheme.rps]\n"
        + &format!("[[workload]]\nflows = {{ list = [{list}] }}\n");
    let (counted, ordered) = (with(Habit::Counts(true), &text), with(Habit::Counts(false), &text));
    assert!(counted.data.out_of_order > 0, "{:?}", counted.data);
    let pairs = || counted.messages.iter().zip(&ordered.messages);
    assert!(pairs().all(|(by_count, in_order)| by_count.received <= in_order.received));
    assert!(pairs().any(|(by_count, in_order)| by_count.received < in_order.received));
    assert_eq!(counted.data, ordered.data);
}
