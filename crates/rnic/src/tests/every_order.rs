//! Every loss and every order of arrival, for a message small enough to try them all.

use super::{ReceiverCalls as _, SenderCalls as _};
use crate::{AnyReceiver, AnySender, NicConfig, TransportConfig};
use model::annex::{Envelope, Sack, Selective};
use model::transport::{Arrived, Departure, Fate, Reply};
use model::{Psn, Sender as _, Time};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

const PACKETS: u64 = 8;
const PATHS: usize = 3;

/// A message of eight packets over three paths, packet k on path k mod 3. Each path keeps its order. Bit n of `losses` loses
/// transmission n, where the first eight transmissions include retransmissions; later transmissions arrive.
struct Story {
    sender: AnySender,
    receiver: AnyReceiver,
    /// Packets in flight by path, whether each asks for an ACK, its message, and the time of its transmission.
    paths: [VecDeque<(u64, bool, Envelope, Time)>; PATHS],
    /// Replies, and the time at which the packet was sent that each answers.
    replies: VecDeque<(Reply, Selective, Sack, Time)>,
    losses: u32,
    sent: u32,
    taken: [u8; PACKETS as usize],
    now: Time,
}

impl Clone for Story {
    fn clone(&self) -> Self {
        let sender = match &self.sender {
            AnySender::Counting(s) => AnySender::Counting(s.clone()),
            AnySender::Scoreboard(s) => AnySender::Scoreboard(s.clone()),
            AnySender::InFlight(s) => AnySender::InFlight(s.clone()),
            AnySender::Sack(s) => AnySender::Sack(s.clone()),
            AnySender::Counted(s) => AnySender::Counted(s.clone()),
            AnySender::Custom(_) => unreachable!("the list has no custom part"),
        };
        let receiver = match &self.receiver {
            AnyReceiver::Keeping(r) => AnyReceiver::Keeping(r.clone()),
            AnyReceiver::InOrder(r) => AnyReceiver::InOrder(r.clone()),
            AnyReceiver::Selective(r) => AnyReceiver::Selective(r.clone()),
            AnyReceiver::Sack(r) => AnyReceiver::Sack(r.clone()),
            AnyReceiver::Counted(r) => AnyReceiver::Counted(r.clone()),
            AnyReceiver::Custom(_) => unreachable!("the list has no custom part"),
        };
        let (paths, replies) = (self.paths.clone(), self.replies.clone());
        Story { sender, receiver, paths, replies, ..*self }
    }
}

impl Story {
    fn new(config: &NicConfig, losses: u32) -> Self {
        let nic = config.build();
        let (mut sender, receiver) = (nic.sender(), nic.receiver());
        sender.post(PACKETS);
        Story {
            sender,
            receiver,
            paths: Default::default(),
            replies: VecDeque::new(),
            losses,
            sent: 0,
            taken: [0; PACKETS as usize],
            now: Time::ZERO,
        }
    }

    /// Hash of the state.
    fn state(&self) -> u64 {
        let mut h = DefaultHasher::new();
        match &self.sender {
            AnySender::Counting(s) => s.hash(&mut h),
            AnySender::Scoreboard(s) => s.hash(&mut h),
            AnySender::InFlight(s) => s.hash(&mut h),
            AnySender::Sack(s) => s.hash(&mut h),
            AnySender::Counted(s) => s.hash(&mut h),
            AnySender::Custom(_) => {}
        }
        match &self.receiver {
            AnyReceiver::Keeping(r) => r.hash(&mut h),
            AnyReceiver::InOrder(r) => r.hash(&mut h),
            AnyReceiver::Selective(r) => r.hash(&mut h),
            AnyReceiver::Sack(r) => r.hash(&mut h),
            AnyReceiver::Counted(r) => r.hash(&mut h),
            AnyReceiver::Custom(_) => {}
        }
        (&self.paths, &self.replies, self.sent.min(8), self.taken, self.now).hash(&mut h);
        // Only losses that are still to come belong to the state.
        (self.losses >> self.sent.min(8)).hash(&mut h);
        h.finish()
    }

    fn send_all(&mut self) {
        while let Some(sent) = self.sender.send(self.now, u64::MAX) {
            let Departure { seq, asks, envelope, .. } = sent;
            let lost = self.sent < 8 && self.losses >> self.sent & 1 != 0;
            self.sent += 1;
            assert!(self.sent < 500, "the sender never stops");
            if !lost {
                self.paths[seq as usize % PATHS].push_back((seq, asks, envelope, self.now));
            }
        }
    }

    /// The next packet of a path arrives.
    fn deliver(&mut self, path: usize) {
        let Some((seq, asks, envelope, sent)) = self.paths[path].pop_front() else { return };
        let packet = Arrived {
            psn: Psn::from_seq(seq),
            frame: 1,
            marked: false,
            last: seq + 1 == PACKETS,
            asks,
            envelope,
        };
        let answer = self.receiver.on_arrived(self.now, packet);
        if answer.fate == Fate::Accepted {
            self.taken[seq as usize] += 1;
        }
        self.replies
            .extend(answer.reply.map(|reply| (reply, self.receiver.selective(), self.receiver.sack(), sent)));
    }

    /// Runs until a choice among paths with packets to deliver, or to the end; returns those paths. Replies reach the sender
    /// at once or, if `late`, when no data is in flight.
    fn advance(&mut self, late: bool) -> Vec<usize> {
        for _ in 0..1_000 {
            self.send_all();
            if self.sender.una() == PACKETS {
                assert_eq!((self.taken, self.receiver.expected()), ([1; PACKETS as usize], PACKETS));
                return Vec::new();
            }
            let open: Vec<usize> = (0..PATHS).filter(|&p| !self.paths[p].is_empty()).collect();
            let reply = if open.is_empty() || !late { self.replies.pop_front() } else { None };
            if let Some((reply, selective, sack, sent)) = reply {
                let trip = Time(self.now.ps() - sent.ps());
                self.sender.on_sack(self.now, reply, selective, (&sack, trip), u64::MAX);
            } else if open.is_empty() {
                self.now = self.sender.deadline();
                assert_ne!(self.now, Time::NEVER, "the sender is stuck without a timer");
                self.sender.on_timeout(self.now);
            } else {
                return open;
            }
        }
        panic!("the exchange does not end");
    }
}

/// Plays every order of arrival under each of these losses; returns the number of states. Each state is played once, since
/// its future depends on nothing else.
fn play_all(config: &NicConfig, losses: std::ops::Range<u32>, late: bool) -> usize {
    #[expect(clippy::disallowed_types, reason = "its order is never used")]
    let mut seen = std::collections::HashSet::new();
    let mut open: Vec<Story> = losses.map(|losses| Story::new(config, losses)).collect();
    while let Some(mut story) = open.pop() {
        for path in story.advance(late) {
            let mut next = story.clone();
            next.deliver(path);
            if seen.insert(next.state()) {
                open.push(next);
            }
        }
    }
    seen.len()
}

#[test]
fn every_loss_and_every_order_of_arrival_ends_with_delivery() {
    for name in TransportConfig::NAMES {
        let config: NicConfig = toml::from_str(&format!("[transport.{name}]")).unwrap();
        // Go-back-N often has two copies of a packet in flight, and most of the states.
        let all = |late: bool| play_all(&config, 0..1 << 8, late);
        let states = std::thread::scope(|scope| {
            let at_once = scope.spawn(|| all(false));
            all(true) + at_once.join().unwrap()
        });
        assert!(states > 10_000, "{name}: {states}");
    }
}

/// With its default bitmap MP-RDMA drops nothing in so short a message, so this test has a smaller one.
#[test]
fn every_order_ends_with_delivery_even_if_mp_rdma_drops() {
    let config: NicConfig = toml::from_str("[transport.mp-rdma]\nbitmap = 3").unwrap();
    let states = play_all(&config, 0..1 << 8, false) + play_all(&config, 0..1 << 8, true);
    assert!(states > 10_000, "{states}");
}
