//! A packet in flight: 16 bytes, copied by value.

use crate::{HostId, PortIndex, QpId};
use std::fmt;
use themis::Psn;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// RDMA Write payload, with its own PSN.
    Data = 0,
    /// Positive acknowledgement. Its PSN is that of the last packet received in order (ePSN - 1).
    Ack = 1,
    /// Negative acknowledgement, PSN sequence error. Its PSN is the ePSN; it acknowledges all packets before.
    Nack = 2,
    /// Congestion notification packet.
    Cnp = 3,
    /// Message between the parts of a scheme, from a switch to another switch or to a sender. Its tag is the content
    /// ([`crate::Annex::tag`]), which only the scheme interprets.
    Signal = 4,
    /// Headers of a data packet that a switch has cut. PSN and all flags are those of the data packet, and the echo flag
    /// reports that its receiver's switch cut it.
    Trimmed = 5,
    /// Control message from end to end. Its PSN is one of [`Packet::AMOUNT`] and the constants after it, and the
    /// annex holds the content.
    Control = 6,
    /// Question of a sender that infers losses: its receiver answers by an ACK. It waits in the queues of data, so it comes after
    /// the data that was sent before it.
    Probe = 7,
}

impl Kind {
    /// All kinds, each at the index of its number.
    pub const ALL: [Kind; 8] = [
        Kind::Data,
        Kind::Ack,
        Kind::Nack,
        Kind::Cnp,
        Kind::Signal,
        Kind::Trimmed,
        Kind::Control,
        Kind::Probe,
    ];

    /// True for everything but data.
    #[inline]
    pub const fn is_control(self) -> bool {
        !matches!(self, Kind::Data)
    }

    /// True for data and for its headers, which travel from the sender to the receiver.
    #[inline]
    pub const fn is_forward(self) -> bool {
        matches!(self, Kind::Data | Kind::Trimmed)
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// The set of these kinds.
    pub const fn of(kinds: &[Kind]) -> Self {
        let (mut set, mut i) = (0, 0);
        while i < kinds.len() {
            set |= 1 << kinds[i] as u8;
            i += 1;
        }
        Kinds(set)
    }

    /// All kinds outside the set.
    #[must_use]
    pub const fn others(self) -> Self {
        Kinds(!self.0 & ALL)
    }

    /// The kinds of either set.
    #[must_use]
    pub const fn and(self, other: Kinds) -> Self {
        Kinds(self.0 | other.0)
    }

    /// True if the set contains this kind.
    pub const fn has(self, kind: Kind) -> bool {
        self.0 >> kind as u8 & 1 != 0
    }

    /// True if the set contains the packet's kind.
    #[inline(always)]
    pub const fn take(self, pkt: &Packet) -> bool {
        self.0 >> (pkt.when & KIND) & 1 != 0
    }
}

/// One packet.
///
/// From the highest bit on, `when` holds the time offset in the engine's window (29 bits, picoseconds), the ingress port
/// (10 bits), the frame size in bytes (14 bits), the upper 4 bits of the PSN, four flags, and the kind (3 bits). `what`
/// holds the destination host (20 bits), the queue pair (24 bits), and the lower 20 bits of the PSN. The order of `when` is
/// therefore the order of arrival, then of ports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    when: u64,
    what: u64,
}

/// Kinds from the sender to the receiver, see [`Kind::is_forward`].
const FORWARD: Kinds = Kinds::of(&[Kind::Data, Kind::Trimmed]);
/// A bit for every kind.
const ALL: u8 = u8::MAX;

const KIND: u64 = 0b111;
const CE: u64 = 1 << 3;
const ECHO: u64 = 1 << 4;
const RETRANSMISSION: u64 = 1 << 5;
/// The end of a message on data and its headers, a switch's reaction on CNPs and replies.
const LAST_OR_REACTED: u64 = 1 << 6;
const PSN_HIGH_SHIFT: u32 = 7;
const PSN_HIGH: u64 = 0b1111 << PSN_HIGH_SHIFT;
const PSN_LOW_BITS: u32 = 20;
const PSN_LOW: u64 = (1 << PSN_LOW_BITS) - 1;
const SIZE_SHIFT: u32 = 11;
const SIZE_MASK: u64 = (1 << 14) - 1;
const PORT_MASK: u64 = (1 << 10) - 1;
const QP_SHIFT: u32 = PSN_LOW_BITS;
const QP_MASK: u64 = (1 << 24) - 1;
const TO_SHIFT: u32 = 44;

impl Packet {
    /// PSN of a control message that carries a running sum, such as a grant.
    pub const AMOUNT: Psn = Psn::new(0);
    /// PSN of a control message that its receiver sends back.
    pub const PROBE: Psn = Psn::new(1);
    /// PSN of the answer to such a message.
    pub const ANSWER: Psn = Psn::new(2);
    /// PSN of a report on the ports of a NIC that are down.
    pub const PORTS: Psn = Psn::new(3);
    /// PSN of the confirmation of such a report.
    pub const PORTS_HEARD: Psn = Psn::new(4);
    /// Largest frame that the layout can name, bytes.
    pub const MAX_FRAME: u32 = SIZE_MASK as u32;
    /// Most ports that a node can have; the number behind the last port is the virtual port.
    pub const MAX_PORTS: usize = PORT_MASK as usize;
    /// Number of bits of [`Packet::word`] below the time offset.
    pub const TIME_SHIFT: u32 = 35;
    /// Number of bits of [`Packet::word`] below the ingress port.
    pub const PORT_SHIFT: u32 = 25;
    /// The bits of [`Packet::word`] below the ingress port, which no arrival changes.
    pub const LOW_MASK: u64 = (1 << Self::PORT_SHIFT) - 1;
    /// End of the time offsets that the layout can name, ps.
    pub const OFFSETS: u64 = 1 << (u64::BITS - Self::TIME_SHIFT);

    /// A packet of `frame` bytes (Ethernet header to FCS) on queue pair `qp` to host `to`.
    #[inline]
    pub const fn new(kind: Kind, qp: QpId, to: HostId, psn: Psn, frame: u32) -> Self {
        let (high, low) = Self::halves(psn);
        Packet {
            when: (frame as u64) << SIZE_SHIFT | high | kind as u64,
            what: (to.0 as u64) << TO_SHIFT | (qp.0 as u64 & QP_MASK) << QP_SHIFT | low,
        }
    }

    /// The bits of a PSN in the first word, and those in the second.
    #[inline(always)]
    const fn halves(psn: Psn) -> (u64, u64) {
        let psn = psn.value() as u64;
        (psn >> PSN_LOW_BITS << PSN_HIGH_SHIFT, psn & PSN_LOW)
    }

    /// The first of the packet's two words: time offset, ingress port, and below them fields that no arrival changes. Words
    /// of one window are in the order of arrival.
    #[inline(always)]
    pub const fn word(&self) -> u64 {
        self.when
    }

    /// This packet with another first word.
    #[inline(always)]
    #[must_use]
    pub const fn with_word(self, word: u64) -> Self {
        Packet { when: word, what: self.what }
    }

    /// Kind of the packet.
    #[inline]
    pub const fn kind(&self) -> Kind {
        match self.when & KIND {
            0 => Kind::Data,
            1 => Kind::Ack,
            2 => Kind::Nack,
            3 => Kind::Cnp,
            4 => Kind::Signal,
            5 => Kind::Trimmed,
            6 => Kind::Control,
            _ => Kind::Probe,
        }
    }

    /// [`Packet::kind`] as a number.
    #[inline(always)]
    pub const fn kind_number(&self) -> u32 {
        (self.when & KIND) as u32
    }

    /// True for data.
    #[inline]
    pub const fn is_data(&self) -> bool {
        self.when & KIND == 0
    }

    /// True for data and for its headers, see [`Kind::is_forward`].
    #[inline(always)]
    pub const fn is_forward(&self) -> bool {
        FORWARD.take(self)
    }

    /// Packet sequence number; for replies see [`Kind`].
    #[inline]
    pub const fn psn(&self) -> Psn {
        Psn::new(((self.when & PSN_HIGH) << (PSN_LOW_BITS - PSN_HIGH_SHIFT) | self.what & PSN_LOW) as u32)
    }

    /// Queue pair, the same number in both directions.
    #[inline]
    pub const fn qp(&self) -> QpId {
        QpId((self.what >> QP_SHIFT & QP_MASK) as u32)
    }

    /// Destination host.
    #[inline]
    pub const fn to(&self) -> HostId {
        HostId((self.what >> TO_SHIFT) as u32)
    }

    /// Destination and queue pair in one number.
    #[inline(always)]
    pub const fn address(&self) -> u64 {
        self.what >> QP_SHIFT
    }

    /// Bytes from the Ethernet header to the FCS, preamble and gap not counted.
    #[inline]
    pub const fn frame(&self) -> u32 {
        (self.when >> SIZE_SHIFT & SIZE_MASK) as u32
    }

    /// Congestion experienced: true if a switch has marked the packet.
    #[inline]
    pub const fn marked(&self) -> bool {
        self.when & CE != 0
    }

    /// Marks the packet (ECN codepoint CE).
    #[inline]
    pub const fn mark(&mut self) {
        self.when |= CE;
    }

    /// Removes the mark, after a switch has notified the sender instead of the receiver.
    #[inline]
    pub const fn unmark(&mut self) {
        self.when &= !CE;
    }

    /// For a CNP or a reply that echoes a mark: true if a switch has reacted to it, so that no other switch should.
    #[inline]
    pub const fn reacted(&self) -> bool {
        !FORWARD.take(self) && self.when & LAST_OR_REACTED != 0
    }

    /// Notes that a switch has reacted to the packet, a CNP or a reply.
    #[inline]
    pub const fn react(&mut self) {
        debug_assert!(!FORWARD.take(self));
        self.when |= LAST_OR_REACTED;
    }

    /// True for a reply that echoes a mark instead of a CNP, as in the ns-3 family of simulators, for headers that the
    /// receiver's switch cut, and for a CNP with content ([`crate::Advice`]).
    #[inline]
    pub const fn echo(&self) -> bool {
        self.when & ECHO != 0
    }

    /// True for the last packet of a message, whose sender requests an ACK (BTH AckReq).
    #[inline]
    pub const fn last(&self) -> bool {
        FORWARD.take(self) && self.when & LAST_OR_REACTED != 0
    }

    /// True for a retransmission. Only statistics read this flag: real packets do not carry it.
    #[inline]
    pub const fn retransmission(&self) -> bool {
        self.when & RETRANSMISSION != 0
    }

    /// This packet with the echo flag set to `on`.
    #[inline]
    #[must_use]
    pub const fn with_echo(mut self, on: bool) -> Self {
        self.when = self.when & !ECHO | if on { ECHO } else { 0 };
        self
    }

    /// This data packet with the last-of-message flag set to `on`.
    #[inline]
    #[must_use]
    pub const fn with_last(mut self, on: bool) -> Self {
        debug_assert!(self.is_data());
        self.when = self.when & !LAST_OR_REACTED | if on { LAST_OR_REACTED } else { 0 };
        self
    }

    /// This packet with the retransmission flag set to `on`.
    #[inline]
    #[must_use]
    pub const fn with_retransmission(mut self, on: bool) -> Self {
        self.when = self.when & !RETRANSMISSION | if on { RETRANSMISSION } else { 0 };
        self
    }

    /// This reply as another kind with another PSN, such as a blocked NACK that becomes an ACK.
    #[inline]
    #[must_use]
    pub const fn with_kind(self, kind: Kind, psn: Psn) -> Self {
        let (high, low) = Self::halves(psn);
        Packet { when: self.when & !(KIND | PSN_HIGH) | high | kind as u64, what: self.what & !PSN_LOW | low }
    }

    /// This packet to another host.
    #[inline]
    #[must_use]
    pub const fn with_to(self, to: HostId) -> Self {
        let below = (1 << TO_SHIFT) - 1;
        Packet { when: self.when, what: (to.0 as u64) << TO_SHIFT | self.what & below }
    }

    /// The headers of this data packet, cut to at most `frame` bytes. `last_hop` is true if the receiver's switch cut it.
    #[inline]
    #[must_use]
    pub const fn cut(mut self, frame: u32, last_hop: bool) -> Self {
        let frame = if frame < self.frame() { frame } else { self.frame() };
        self.when = self.when & !(KIND | SIZE_MASK << SIZE_SHIFT)
            | (frame as u64) << SIZE_SHIFT
            | Kind::Trimmed as u64;
        self.with_echo(last_hop)
    }

    /// This packet, about to arrive at `port` of a node, `offset` picoseconds into a window.
    #[inline]
    #[must_use]
    pub const fn arriving(mut self, offset: u32, port: PortIndex) -> Self {
        self.when = (offset as u64) << Self::TIME_SHIFT
            | (port.0 as u64) << Self::PORT_SHIFT
            | self.when & Self::LOW_MASK;
        self
    }

    /// Picoseconds from the window's start to the packet's arrival.
    #[inline]
    pub const fn offset(&self) -> u32 {
        (self.when >> Self::TIME_SHIFT) as u32
    }

    /// Sort key of the packets that arrive at one node: by time, then by port number XOR `turn` (ten bits).
    #[inline]
    pub const fn order(&self, turn: u16) -> u64 {
        self.when ^ (turn as u64 & PORT_MASK) << Self::PORT_SHIFT
    }

    /// The port at which the packet arrived.
    #[inline]
    pub const fn ingress(&self) -> PortIndex {
        PortIndex((self.when >> Self::PORT_SHIFT & PORT_MASK) as u16)
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {} of qp {} to host {}, {} B",
            self.kind(),
            self.psn(),
            self.qp(),
            self.to(),
            self.frame()
        )?;
        for (on, word) in [
            (self.marked(), " CE"),
            (self.echo(), " echo"),
            (self.reacted(), " reacted"),
            (self.last(), " last"),
            (self.retransmission(), " again"),
        ] {
            if on {
                f.write_str(word)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_back() {
        for kind in Kind::ALL {
            let packet = Packet::new(kind, QpId(1), HostId(2), Psn::new(0xFFFFFF), 64);
            assert_eq!((packet.kind(), packet.kind_number()), (kind, kind as u32));
            assert!(Kinds::of(&[kind]).take(&packet) && !Kinds::of(&[kind]).others().take(&packet));
        }
    }

    #[test]
    fn a_packet_is_sixteen_bytes() {
        assert_eq!(size_of::<Packet>(), 16);
    }

    #[test]
    fn packing_keeps_every_field() {
        const LATEST: u32 = Packet::OFFSETS as u32 - 1;
        let host = HostId(HostId::MOST as u32 - 1);
        let p = Packet::new(Kind::Nack, QpId(0xABCDEF), host, Psn::new(0xFFFFFF), Packet::MAX_FRAME)
            .with_echo(true)
            .arriving(LATEST, PortIndex::VIRTUAL);
        assert_eq!(p.kind(), Kind::Nack);
        assert_eq!((p.qp(), p.to(), p.psn()), (QpId(0xABCDEF), host, Psn::new(0xFFFFFF)));
        assert_eq!((p.frame(), p.offset(), p.ingress()), (Packet::MAX_FRAME, LATEST, PortIndex::VIRTUAL));
        assert!(p.echo() && !p.marked() && !p.retransmission() && !p.reacted());
        let p = p.arriving(7, PortIndex(3)).with_kind(Kind::Ack, Psn::new(0x100005));
        assert_eq!(
            (p.offset(), p.ingress(), p.kind(), p.psn()),
            (7, PortIndex(3), Kind::Ack, Psn::new(0x100005))
        );
        assert_eq!((p.qp(), p.to(), p.frame()), (QpId(0xABCDEF), host, Packet::MAX_FRAME));
        assert!(p.echo());
        let mut noted = p;
        noted.react();
        noted.mark();
        assert!(noted.reacted() && noted.marked() && noted.echo() && !noted.retransmission());
        noted.unmark();
        assert!(noted.reacted() && !noted.marked() && !p.reacted());
    }

    #[test]
    fn a_cut_packet_keeps_everything_but_its_payload() {
        let mut data = Packet::new(Kind::Data, QpId(7), HostId(9), Psn::new(0xFFFFFF), 4150)
            .with_last(true)
            .with_retransmission(true)
            .arriving(5, PortIndex(3));
        data.mark();
        let (last, before) = (data.cut(64, true), data.cut(64, false));
        assert_eq!((last.kind(), last.frame(), last.is_data()), (Kind::Trimmed, 64, false));
        assert_eq!((last.qp(), last.to(), last.psn()), (data.qp(), data.to(), data.psn()));
        assert_eq!((last.offset(), last.ingress()), (5, PortIndex(3)));
        assert!(last.marked() && last.last() && last.retransmission() && last.echo() && !before.echo());
        assert_eq!(data.cut(9000, false).frame(), 4150, "no packet grows");
        assert!(last.kind().is_control() && last.kind().is_forward() && Kind::Control.is_control());
    }

    #[test]
    fn the_end_of_a_message_and_the_reaction_to_a_reply_share_a_bit() {
        let packet = |kind| Packet::new(kind, QpId(1), HostId(2), Psn::new(3), 64);
        let last = packet(Kind::Data).with_last(true).with_retransmission(true);
        assert!(last.last() && last.retransmission() && !last.echo() && !last.reacted());
        assert!(!last.with_last(false).last());
        let mut cnp = packet(Kind::Cnp);
        cnp.react();
        assert!(cnp.reacted() && !cnp.last() && !cnp.retransmission());
    }

    #[test]
    fn words_are_in_the_order_of_arrival() {
        let p = Packet::new(Kind::Data, QpId(9), HostId(70_000), Psn::new(0xFFFFFF), Packet::MAX_FRAME);
        let word = |offset, port| p.arriving(offset, PortIndex(port)).word();
        assert!(word(4, 9) < word(5, 0) && word(5, 0) < word(5, 1));
        assert_eq!(word(5, 3) >> Packet::TIME_SHIFT, 5);
        assert_eq!(word(5, 3) >> Packet::PORT_SHIFT & 0x3FF, 3);
        assert_eq!(word(5, 3) & Packet::LOW_MASK, p.word());
        assert_eq!(p.with_word(word(5, 3)), p.arriving(5, PortIndex(3)));
    }
}
