//! Two hosts like rdma_rxe with their NICs on virtual time, and four paths of different lengths between them.

use super::{data, nic, psn, reply};
use crate::{Bump, Face, Out, Settings, Side};
use model::Time;
use model::draw::below;
use std::collections::BTreeMap;
use wire::aeth::Syndrome;
use wire::roce::{Extension, Repr};

/// PSN of packet 0: the PSNs wrap in the middle of the run.
const FIRST: u32 = 0xFF_FFFF - 200;
/// Packets that a host has under way at most, and its timeout, as in rdma_rxe.
const WINDOW: u32 = 128;
const TIMEOUT: Time = Time::from_ms(67);

pub(super) struct World {
    pub(super) bump: Bump,
    pub(super) loss_per_thousand: u64,
    /// Numbers of the packets that host 2 has executed.
    pub(super) delivered: Vec<u32>,
    now: Time,
    /// Frames on their way, by time of arrival.
    flying: BTreeMap<(Time, u64), (Face, Vec<u8>)>,
    drawn: u64,
    /// Host 1: first packet not acknowledged, next packet, and the time of the last progress.
    una: u32,
    next: u32,
    progress: Time,
}

impl World {
    pub(super) fn new(toml: &str, seed: u64) -> Self {
        let bump = Bump::new(&Settings { nics: vec![None; 2], personality: nic(toml) });
        World {
            bump,
            loss_per_thousand: 0,
            delivered: vec![],
            now: Time::ZERO,
            flying: BTreeMap::new(),
            drawn: seed << 32,
            una: 0,
            next: 0,
            progress: Time::ZERO,
        }
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        // SplitMix64 (Steele, Lea and Flood, 2014).
        let mut z = self.drawn.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub(super) fn run(&mut self, packets: u32) {
        let mut steps = 0;
        while self.una < packets {
            steps += 1;
            assert!(steps < 200_000, "no progress at packet {}", self.una);
            while self.next < packets && self.next - self.una < WINDOW {
                let frame = data((FIRST + self.next) % (1 << 24));
                self.next += 1;
                self.bump.frame(self.now, Face { nic: 0, side: Side::Host }, frame);
                self.move_on();
            }
            let timeout = Time(self.progress.ps() + TIMEOUT.ps());
            let arrival = self.flying.keys().next().map_or(Time::NEVER, |(at, _)| *at);
            self.now = arrival.min(timeout).min(self.bump.poll_at().unwrap_or(Time::NEVER)).max(self.now);
            self.bump.tick(self.now);
            self.move_on();
            while let Some(first) = self.flying.first_entry().filter(|first| first.key().0 <= self.now) {
                let (face, frame) = first.remove();
                self.bump.frame(self.now, face, frame);
                self.move_on();
            }
            if self.now >= timeout {
                (self.next, self.progress) = (self.una, self.now);
            }
        }
    }

    /// Carries frames away from the NICs.
    fn move_on(&mut self) {
        while let Some(out) = self.bump.poll() {
            let Out::Send { face, frame } = out else { continue };
            match (face.side, face.nic) {
                (Side::Host, 0) => self.host1(&frame),
                (Side::Host, _) => self.host2(&frame),
                (Side::Network, nic) => {
                    let is_data = nic == 0;
                    let (lost, path) = (self.draw() % 1000, below(self.draw(), 4) as u64);
                    if is_data && lost < self.loss_per_thousand {
                        continue;
                    }
                    let delay = if is_data { 200 + 600 * path } else { 200 };
                    let at = Time(self.now.ps() + Time::from_us(delay).ps());
                    let order = self.drawn;
                    self.flying.insert((at, order), (Face { nic: 1 - nic, side: Side::Network }, frame));
                }
            }
        }
    }

    /// Host 1 hears a reply. Its NIC lets no NACK for a missing packet pass.
    fn host1(&mut self, frame: &[u8]) {
        let (repr, _) = Repr::parse(frame).unwrap();
        let Extension::Aeth(aeth) = repr.extension else { panic!("a reply") };
        assert_eq!(aeth.syndrome, Syndrome::ACK);
        let acked = psn(frame).wrapping_sub(FIRST).wrapping_add(1) & 0xFF_FFFF;
        if acked <= self.next && acked > self.una {
            (self.una, self.progress) = (acked, self.now);
            self.next = self.next.max(acked);
        }
    }

    /// Host 2 executes the packet that it expects, acknowledges older ones, and would NACK later ones.
    fn host2(&mut self, frame: &[u8]) {
        let number = psn(frame).wrapping_sub(FIRST) & 0xFF_FFFF;
        let expected = self.delivered.len() as u32;
        assert!(number <= expected, "{number} before {expected}");
        if number == expected {
            self.delivered.push(number);
        }
        let ack = reply((FIRST + self.delivered.len() as u32 - 1) % (1 << 24), Syndrome::ACK);
        self.bump.frame(self.now, Face { nic: 1, side: Side::Host }, ack);
    }
}
