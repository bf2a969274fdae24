//! The requests of one queue pair on their way from the host to the network.
//!
//! The host's first PSN is packet 0 of the crate [`rnic`]. The sender decides which packet is next, the congestion control when
//! it may start. Copies of all packets under way answer NACKs.

use crate::frame::{Kind, MTUS, Roce};
use crate::pairing::End;
use model::transport::{Departure, Heard, Progress, Reply, Sender as _};
use model::{Allowance, Congestion as _, Psn, Time};
use rnic::{AnySender, Reacting};
use std::collections::VecDeque;
use wire::bth::Qpn;
use wire::ethernet;

/// Most copies of one flow. Our choice: rdma_rxe has at most 128 packets under way; a frame has about 4 KB at most, so the
/// copies take 8 MB.
pub(crate) const MOST_COPIES: usize = 2048;
/// Distance of PSNs beyond which a packet belongs to a new connection with the same number. Our choice: more than any NIC has
/// under way, and few of 2^24 first PSNs are nearer by chance.
pub(crate) const FAR: i32 = 1 << 16;
/// Bytes of a frame that stand on the wire and not in the frame's buffer: FCS, preamble and the gap between frames (IEEE 802.3).
const AROUND: u64 = ethernet::FCS_LEN as u64 + 8 + 12;

/// The sending side of a flow.
pub(crate) struct Sending {
    port: u16,
    paired: Option<Qpn>,
    /// PSN of packet 0.
    first: Psn,
    sender: AnySender,
    control: Reacting,
    /// True if packets have a pace.
    paced: bool,
    /// Number of packets that the host has sent, each for the first time.
    posted: u64,
    /// Packets not acknowledged, in order.
    copies: VecDeque<Copy>,
    /// Packets that the host has sent again and that wait for their turn.
    again: VecDeque<Copy>,
    /// Packet that the host has sent last.
    latest: u64,
    /// Length of the read that was posted last, if the number of its responses is not known.
    open_read: Option<u32>,
    mtu: Option<u32>,
    /// Earliest start of the next packet.
    next_at: Time,
    /// True after "receiver not ready": the host starts again, but not by its timer.
    not_ready: bool,
    /// Credits of the last ACK.
    credits: u8,
    /// Time of the last packet of the host.
    pub(crate) used: Time,
}

struct Copy {
    number: u64,
    frame: Vec<u8>,
}

/// What became of a packet of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// It is new.
    New,
    /// The host has sent it before; true if this is the first packet after a timeout of the host.
    Again(bool),
    /// There was no room for it.
    Full,
    /// It belongs to another connection.
    Foreign,
}

/// A packet that starts.
pub(crate) struct Start {
    pub(crate) frame: Vec<u8>,
    pub(crate) psn: Psn,
    /// True if a NACK has brought it back.
    pub(crate) retransmitted: bool,
}

impl Sending {
    pub(crate) fn new(first: &Roce, sender: AnySender, control: Reacting, paced: bool) -> Self {
        Sending {
            port: first.port,
            paired: None,
            first: first.psn,
            sender,
            control,
            paced,
            posted: 0,
            copies: VecDeque::new(),
            again: VecDeque::new(),
            latest: 0,
            open_read: None,
            mtu: None,
            next_at: Time::ZERO,
            not_ready: false,
            credits: 31, // none
            used: Time::ZERO,
        }
    }

    /// PSN of packet 0.
    pub(crate) fn first(&self) -> Psn {
        self.first
    }

    /// Path MTU, once it is known.
    pub(crate) fn mtu(&self) -> Option<u32> {
        self.mtu
    }

    /// Takes a packet of the host.
    pub(crate) fn post(&mut self, now: Time, roce: &Roce, frame: Vec<u8>) -> Posted {
        let distance = roce.psn.distance_from(self.psn(self.posted));
        let span_of_read = self.open_read.map(|bytes| MTUS.map(|mtu| (bytes.div_ceil(mtu), mtu)));
        let of_read = span_of_read.and_then(|s| s.into_iter().find(|(span, _)| *span as i32 == distance + 1));
        if of_read.is_none() && !(-FAR..FAR).contains(&distance) {
            return Posted::Foreign;
        }
        (self.used, self.port) = (now, roce.port);
        if distance < 0 {
            return self.post_again(now, distance, frame);
        }
        if let Some((_, mtu)) = of_read.filter(|_| distance > 0) {
            self.mtu = Some(mtu);
        }
        // Numbers without a packet: responses to a read, or packets that never reached this bump.
        self.posted += distance as u64;
        self.sender.post_message(distance as u64, 1, 1);
        self.mtu = roce.mtu.or(self.mtu);
        let span = roce.span(self.mtu);
        self.open_read = match (roce.kind, span) {
            (Kind::Read(bytes), None) => Some(bytes),
            _ => None,
        };
        self.latest = self.posted;
        if self.copies.len() >= MOST_COPIES {
            // Without the oldest copy, a NACK for it is the host's to answer.
            if self.copies.front().is_some_and(|copy| copy.number >= self.sender.position().high) {
                return Posted::Full;
            }
            self.copies.pop_front();
        }
        self.copies.push_back(Copy { number: self.posted, frame });
        let span = u64::from(span.unwrap_or(1));
        self.posted += span;
        self.sender.post_message(span, 1, 1);
        Posted::New
    }

    /// Takes a packet that the host sends again.
    fn post_again(&mut self, now: Time, distance: i32, frame: Vec<u8>) -> Posted {
        let Some(number) = self.posted.checked_add_signed(distance.into()) else { return Posted::Foreign };
        let timeout = number <= self.latest && !std::mem::take(&mut self.not_ready);
        self.latest = number;
        if timeout {
            self.control.on_timeout(now);
        }
        // A packet that was never sent still waits for its turn.
        let waits =
            number >= self.sender.position().high || self.again.iter().any(|copy| copy.number == number);
        if !waits && self.again.len() < MOST_COPIES {
            self.again.push_back(Copy { number, frame });
        }
        Posted::Again(timeout)
    }

    /// Time at which the next packet may start; `None` if there is none, or only a reply can release it.
    pub(crate) fn ready_at(&mut self, now: Time) -> Option<Time> {
        let Allowance { window, not_before, .. } = self.control.allowance(now);
        let ready = !self.again.is_empty() || self.sender.ready(window);
        ready.then(|| self.next_at.max(not_before))
    }

    /// The packet that starts now. `lost` counts retransmissions without a copy.
    pub(crate) fn start(&mut self, now: Time, lost: &mut u64) -> Option<Start> {
        let Allowance { window, pace, .. } = self.control.allowance(now);
        let start = match self.again.pop_front() {
            Some(Copy { number, frame }) => Start { psn: self.psn(number), frame, retransmitted: false },
            None => loop {
                let Departure { seq: number, again, .. } = self.sender.send(now, window)?;
                if let Ok(at) = self.copies.binary_search_by_key(&number, |copy| copy.number) {
                    let frame = self.copies[at].frame.clone();
                    break Start { psn: self.psn(number), frame, retransmitted: again };
                }
                *lost += u64::from(again);
            },
        };
        if self.paced {
            self.next_at = now + self.control.gap(now, pace, on_wire(&start.frame));
            self.control.on_sent(now, start.frame.len() as u64);
        }
        Some(start)
    }

    /// Handles a reply: ACK(psn), or NACK(psn). Returns whether the NACK has brought a packet back.
    pub(crate) fn reply(&mut self, now: Time, psn: Psn, nack: bool) -> bool {
        let psn = self.number(psn);
        let reply = if nack { Reply::Nack(psn) } else { Reply::Ack(psn) };
        let (Progress { acked, nack: heeded }, _) = self.sender.hear(now, &Heard::Reply(reply));
        if nack {
            self.control.on_nacked(now, acked, false);
        } else {
            self.control.on_ack(now, acked, false);
        }
        if heeded {
            self.control.on_nack(now);
        }
        let una = self.sender.position().una;
        while self.copies.front().is_some_and(|copy| copy.number < una) {
            self.copies.pop_front();
        }
        self.again.retain(|copy| copy.number >= una);
        heeded
    }

    /// Notes that the host will start again because its peer was not ready.
    pub(crate) fn note_not_ready(&mut self) {
        self.not_ready = true;
    }

    /// Handles a CNP.
    pub(crate) fn on_cnp(&mut self, now: Time) {
        self.control.on_cnp(now);
    }

    /// Notes the credits of an ACK.
    pub(crate) fn note_credits(&mut self, credits: u8) {
        self.credits = credits;
    }

    /// Credits for an ACK that the host gets in place of a NACK.
    pub(crate) fn credits(&self) -> u8 {
        self.credits
    }

    /// PSN of a packet.
    fn psn(&self, number: u64) -> Psn {
        self.first.add(Psn::from_seq(number).value())
    }

    /// Number of a PSN, as 24 bits.
    fn number(&self, psn: Psn) -> Psn {
        Psn::new(psn.value().wrapping_sub(self.first.value()))
    }
}

/// Length of a frame on the wire, bytes.
pub(crate) fn on_wire(frame: &[u8]) -> u64 {
    frame.len() as u64 + AROUND
}

impl End for Sending {
    fn port(&self) -> u16 {
        self.port
    }

    /// A reply names a packet that is under way, or one that was acknowledged not long ago.
    fn may_answer(&self, psn: Psn) -> bool {
        let distance = i64::from(psn.distance_from(self.psn(self.sender.position().una)));
        let ahead = (self.sender.position().high - self.sender.position().una) as i64;
        let behind = self.sender.position().una.min(MOST_COPIES as u64) as i64;
        // A NACK may name the first packet that was never sent; the responses to a read have PSNs of their own.
        (-behind..=ahead).contains(&distance) || self.open_read.is_some() && (0..1 << 22).contains(&distance)
    }

    fn paired(&mut self) -> &mut Option<Qpn> {
        &mut self.paired
    }
}
