//! Ports towards hosts: eight classes with strict and weighted turns, ECN, PFC, and the buffer that all ports of a ToR
//! share.

use crate::draw::{Chance, Draw};
use crate::pool::Frame;
use crate::units::{Rate, Span, Time};
use std::collections::VecDeque;
use wire::ethernet::{Address, EtherType};
use wire::pfc;

/// Number of classes (IEEE 802.1Q has eight priorities).
pub const CLASSES: usize = 8;
/// Bytes that a frame takes on the wire beside its own: preamble and start delimiter 8, FCS 4, gap 12 (IEEE 802.3, 3.2
/// and 4.4.2).
pub const WIRE_OVERHEAD: u64 = 24;
/// Rate by which a port without a rate counts pause quanta. Our choice; such ports have no queue of their own.
const PAUSE_RATE: u64 = 10_000_000_000;
/// Bytes per unit of weight and round. Our choice: the longest frame, so that a turn always sends one.
const QUANTUM: u64 = crate::frame::LONGEST as u64 + WIRE_OVERHEAD;
/// Length of a pause frame without FCS, bytes: the shortest frame.
const PAUSE_FRAME: usize = wire::ethernet::MIN_FRAME - wire::ethernet::FCS_LEN;
/// Opcode of a pause of all classes (IEEE 802.3, annex 31B), which lossless classes must not obey.
const GLOBAL_PAUSE: u16 = 0x0001;

/// Where a frame's class comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The DSCP.
    #[default]
    Dscp,
    /// The priority of the outer VLAN tag; the DSCP of frames without a tag.
    Pcp,
}

/// Instant of a packet's mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkAt {
    /// When it leaves the queue: the depth is what remains.
    #[default]
    Dequeue,
    /// When it joins the queue: the depth includes it.
    Enqueue,
}

/// ECN marking by queue depth: never up to `kmin`, always above `kmax`, and in between with a chance that grows to `pmax`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marking {
    /// Depth up to which no packet is marked, bytes.
    pub kmin: u64,
    /// Depth above which all packets are marked, bytes.
    pub kmax: u64,
    /// Chance at `kmax`.
    pub pmax: Chance,
    /// Instant of the mark.
    pub at: MarkAt,
}

impl Marking {
    /// Chance of a mark at a queue depth.
    pub const fn chance(&self, depth: u64) -> Chance {
        if depth <= self.kmin {
            Chance::NEVER
        } else if depth > self.kmax {
            Chance::ALWAYS
        } else {
            self.pmax.part(depth - self.kmin, self.kmax - self.kmin)
        }
    }
}

/// The buffer of a ToR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Size, bytes.
    pub size: u64,
    /// Factor in percent: a lossy queue may have this share of the free buffer (Choudhury and Hahne, 1998).
    pub alpha_percent: u64,
    /// Bytes of a lossless class from one port above which the ToR pauses the port.
    pub xoff: u64,
    /// Bytes at or below which the ToR resumes the port.
    pub xon: u64,
}

/// Settings of the classes, the same for all ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Source of a frame's class.
    pub trust: Trust,
    /// Class by DSCP.
    pub dscp: [u8; 64],
    /// Classes that PFC protects.
    pub lossless: [bool; CLASSES],
    /// Classes that go first, highest number first.
    pub strict: [bool; CLASSES],
    /// Weights of the others; at least 1.
    pub weights: [u32; CLASSES],
    /// ECN marking by class.
    pub marking: [Option<Marking>; CLASSES],
    /// The buffer.
    pub buffer: Buffer,
    /// A class that is paused for longer is drained.
    pub watchdog: Span,
}

impl Default for Classes {
    /// One class for all data, and class 6 for CNPs (DSCP 48, the usual setting of RoCEv2 NICs) with strict priority. The
    /// buffer is that of a small switch.
    fn default() -> Self {
        let mut dscp = [0; 64];
        dscp[48] = 6;
        let mut strict = [false; CLASSES];
        strict[6] = true;
        Classes {
            trust: Trust::Dscp,
            dscp,
            lossless: [false; CLASSES],
            strict,
            weights: [1; CLASSES],
            marking: [None; CLASSES],
            buffer: Buffer { size: 16 << 20, alpha_percent: 100, xoff: 128 << 10, xon: 96 << 10 },
            watchdog: Span::from_millis(200),
        }
    }
}

/// A frame on a port's queue.
#[derive(Debug)]
struct Queued {
    frame: Frame,
    /// Bytes on the wire.
    cost: u64,
}

/// A port towards a host.
#[derive(Debug)]
pub(crate) struct Egress {
    rate: Option<Rate>,
    last_hop: Span,
    queues: [VecDeque<Queued>; CLASSES],
    /// Bit n is set while class n has frames.
    waiting: u8,
    bytes: [u64; CLASSES],
    /// Pause frames, which nothing holds up.
    urgent: VecDeque<Frame>,
    /// End of each class's pause.
    paused: [Time; CLASSES],
    /// Start of each class's pause; `None` if the class is not paused.
    since: [Option<Time>; CLASSES],
    /// Bit n is set while `since` of class n is known.
    pausing: u8,
    /// End of the transmission under way.
    pub(crate) busy: Time,
    deficit: [u64; CLASSES],
    /// Class whose turn it is, and whether it has got its share of this round.
    turn: (usize, bool),
    /// Frames on the last hop.
    line: VecDeque<(Time, Time, Frame)>,
    pub(crate) draw: Draw,
}

/// What a port sends next.
#[derive(Debug)]
pub(crate) enum Next {
    /// A pause frame.
    Pause(Frame),
    /// A frame of a class.
    Data(Frame, usize),
}

impl Egress {
    pub(crate) fn new(rate: Option<Rate>, last_hop: Span, seed: u64, ordinal: u64) -> Self {
        Egress {
            rate,
            last_hop,
            queues: Default::default(),
            waiting: 0,
            bytes: [0; CLASSES],
            urgent: VecDeque::new(),
            paused: [Time::ZERO; CLASSES],
            since: [None; CLASSES],
            pausing: 0,
            busy: Time::ZERO,
            deficit: [0; CLASSES],
            turn: (0, false),
            line: VecDeque::new(),
            draw: Draw::new(seed, ordinal),
        }
    }

    /// Bytes on a class's queue.
    pub(crate) fn depth(&self, class: usize) -> u64 {
        self.bytes[class]
    }

    pub(crate) fn push(&mut self, frame: Frame, class: usize) {
        let cost = frame.len() as u64 + WIRE_OVERHEAD;
        self.bytes[class] += frame.len() as u64;
        self.queues[class].push_back(Queued { frame, cost });
        self.waiting |= 1 << class;
    }

    fn pop(&mut self, class: usize) -> Option<Frame> {
        let Queued { frame, .. } = self.queues[class].pop_front()?;
        self.bytes[class] -= frame.len() as u64;
        if self.queues[class].is_empty() {
            self.waiting &= !(1 << class);
        }
        Some(frame)
    }

    /// True if the port can send a frame of any class at once, without a queue.
    pub(crate) fn is_free(&self, now: Time) -> bool {
        self.busy <= now && self.waiting | self.pausing == 0 && self.urgent.is_empty()
    }

    /// True if a frame that is sent now is at the other end now.
    #[inline]
    pub(crate) fn is_straight(&self, now: Time) -> bool {
        self.is_free(now) && self.rate.is_none() && self.last_hop == Span::ZERO && self.line.is_empty()
    }

    pub(crate) fn push_pause(&mut self, frame: Frame) {
        self.urgent.push_back(frame);
    }

    /// The frame to send now, if the port is free and may send.
    pub(crate) fn next(&mut self, now: Time, classes: &Classes) -> Option<Next> {
        if self.busy > now {
            return None;
        }
        if let Some(frame) = self.urgent.pop_front() {
            return Some(Next::Pause(frame));
        }
        let class = self.choose(now, classes)?;
        Some(Next::Data(self.pop(class)?, class))
    }

    fn may_send(&self, now: Time, class: usize) -> bool {
        !self.queues[class].is_empty() && self.paused[class] <= now
    }

    fn choose(&mut self, now: Time, classes: &Classes) -> Option<usize> {
        if self.waiting == 0 {
            return None;
        }
        let strict = (0..CLASSES).rev().find(|&class| classes.strict[class] && self.may_send(now, class));
        if strict.is_some() {
            return strict;
        }
        if !(0..CLASSES).any(|class| self.may_send(now, class)) {
            return None;
        }
        // Deficit round robin (Shreedhar and Varghese, 1995).
        loop {
            let (class, served) = self.turn;
            if !classes.strict[class] && self.may_send(now, class) {
                if !served {
                    self.deficit[class] += QUANTUM * u64::from(classes.weights[class]);
                    self.turn.1 = true;
                }
                let cost = self.queues[class].front().map_or(0, |queued| queued.cost);
                if self.deficit[class] >= cost {
                    self.deficit[class] -= cost;
                    return Some(class);
                }
            } else if self.queues[class].is_empty() {
                self.deficit[class] = 0;
            }
            self.turn = ((class + 1) % CLASSES, false);
        }
    }

    /// Starts a transmission. Returns the frame at once if it arrives at once.
    pub(crate) fn transmit(&mut self, now: Time, frame: Frame) -> Option<Frame> {
        let time = self.rate.map_or(Span::ZERO, |rate| rate.time_of(frame.len() as u64 + WIRE_OVERHEAD));
        self.busy = now + time;
        let arrives = self.busy + self.last_hop;
        if arrives == now && self.line.is_empty() {
            return Some(frame);
        }
        self.line.push_back((arrives, now, frame));
        None
    }

    /// Instant at which the next frame reaches the end of the last hop.
    pub(crate) fn line_due(&self) -> Option<Time> {
        self.line.front().map(|(at, ..)| *at)
    }

    /// The next frame at the end of the last hop, and the instant at which its transmission started.
    pub(crate) fn arrive(&mut self) -> Option<(Time, Frame)> {
        self.line.pop_front().map(|(_, started, frame)| (started, frame))
    }

    /// Instant at which the port has something to do.
    pub(crate) fn due(&self, watchdog: Span) -> Option<Time> {
        if !self.urgent.is_empty() {
            return Some(self.busy);
        }
        if self.waiting == 0 {
            return None;
        }
        let class = |class: usize| {
            let waits = (!self.queues[class].is_empty()).then_some(self.paused[class].max(self.busy))?;
            let bites =
                self.since[class].map(|since| since + watchdog).filter(|_| self.paused[class] > self.busy);
            Some(bites.map_or(waits, |bites| bites.min(waits)))
        };
        (0..CLASSES).filter_map(class).min()
    }

    /// Obeys a pause frame for a class.
    pub(crate) fn pause(&mut self, now: Time, class: usize, quanta: u16) {
        if quanta == 0 {
            self.paused[class] = now;
            return self.forget_pause(class);
        }
        if self.paused[class] <= now {
            self.since[class] = Some(now);
            self.pausing |= 1 << class;
        }
        self.paused[class] = now + self.pause_time(quanta);
    }

    /// The time that so many quanta take: a quantum is the time of 512 bits.
    pub(crate) fn pause_time(&self, quanta: u16) -> Span {
        let rate = self.rate.or(Rate::from_bits(PAUSE_RATE));
        rate.map_or(Span::ZERO, |rate| rate.time_of_bits(512 * u64::from(quanta)))
    }

    fn forget_pause(&mut self, class: usize) {
        self.since[class] = None;
        self.pausing &= !(1 << class);
    }

    /// The next frame of a class that has been paused for longer than the watchdog allows.
    pub(crate) fn bitten(&mut self, now: Time, watchdog: Span) -> Option<(usize, Frame)> {
        if self.pausing == 0 {
            return None;
        }
        for class in 0..CLASSES {
            let Some(since) = self.since[class] else { continue };
            if self.paused[class] <= now {
                self.forget_pause(class);
            } else if now.since(since) >= watchdog {
                match self.pop(class) {
                    Some(frame) => return Some((class, frame)),
                    None => self.since[class] = Some(now),
                }
            }
        }
        None
    }
}

/// What a MAC control frame asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// Pauses and resumptions of classes.
    Pfc(pfc::Repr),
    /// A pause of all classes, or another opcode: ignored.
    Ignored,
}

/// Reads a MAC control frame, from its link header's payload.
pub(crate) fn control(payload: &[u8]) -> Control {
    match pfc::View::new(payload).ok().and_then(|view| pfc::Repr::parse(&view).ok()) {
        Some(repr) if repr.quanta.iter().any(Option::is_some) => Control::Pfc(repr),
        // Also an opcode of GLOBAL_PAUSE, and a vector without a class.
        _ => Control::Ignored,
    }
}

/// Writes a pause frame of one class. Returns its length.
pub(crate) fn write_pause(buffer: &mut [u8], source: Address, class: usize, quanta: u16) -> Option<usize> {
    let frame = buffer.get_mut(..PAUSE_FRAME)?;
    frame.fill(0);
    let link =
        wire::ethernet::Repr { destination: pfc::DESTINATION, source, ether_type: EtherType::MAC_CONTROL };
    link.emit(&mut wire::ethernet::View::new(&mut *frame).ok()?);
    let mut view = pfc::View::new(&mut frame[wire::ethernet::LEN..]).ok()?;
    pfc::Repr::of(class as u8, quanta).emit(&mut view);
    Some(PAUSE_FRAME)
}

/// True for a pause of all classes.
pub(crate) fn is_global_pause(payload: &[u8]) -> bool {
    payload.first_chunk().is_some_and(|opcode| u16::from_be_bytes(*opcode) == GLOBAL_PAUSE)
}
