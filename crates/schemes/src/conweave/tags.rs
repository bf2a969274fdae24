//! Headers of ConWeave: the flags on data packets, and the signals between ToRs.

use model::Time;

/// Unit of the 16-bit times on packets, ps.
const TICK: u64 = 64_000;
/// Span after which these times wrap.
pub(super) const WRAP: Time = Time(TICK << 16);
/// Count of epoch numbers: two bits, as in section 3.2 of the paper.
pub(super) const EPOCHS: u8 = 4;

const REQUEST: u32 = 2;
const TAIL: u32 = 3;
const REROUTED: u32 = 4;
const STAMP: u32 = 5;
const PATH: u32 = 21;
const PATH_BITS: u32 = 10;
/// Most paths between two racks.
pub(super) const MOST_PATHS: usize = 1 << PATH_BITS;
const REST: u32 = PATH + PATH_BITS;
const REST_MASK: u64 = (1 << 9) - 1;

/// A time as packets carry it.
pub(super) fn stamp(now: Time) -> u16 {
    (now.ps() / TICK) as u16
}

/// Span between two times on packets.
pub(super) fn between(earlier: u16, later: u16) -> Time {
    Time(u64::from(later.wrapping_sub(earlier)) * TICK)
}

/// Header that the sender's ToR writes on data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// Modulo [`EPOCHS`].
    pub(super) epoch: u8,
    /// RTT_REQUEST.
    pub(super) request: bool,
    pub(super) tail: bool,
    pub(super) rerouted: bool,
    /// Time at which the sender's ToR sent the packet; on a rerouted packet, the time at which it sent the TAIL.
    pub(super) stamp: u16,
    /// Number of the path among those to the receiver's rack.
    pub(super) path: u16,
    /// Remaining choices of the switches further up: each takes the remainder and leaves the quotient.
    pub(super) rest: u16,
}

impl Header {
    pub(super) fn tag(self) -> u64 {
        u64::from(self.epoch % EPOCHS)
            | u64::from(self.request) << REQUEST
            | u64::from(self.tail) << TAIL
            | u64::from(self.rerouted) << REROUTED
            | u64::from(self.stamp) << STAMP
            | (u64::from(self.path) & (MOST_PATHS as u64 - 1)) << PATH
            | (u64::from(self.rest) & REST_MASK) << REST
    }

    pub(super) fn read(tag: u64) -> Header {
        let flag = |bit: u32| tag >> bit & 1 == 1;
        Header {
            epoch: (tag % u64::from(EPOCHS)) as u8,
            request: flag(REQUEST),
            tail: flag(TAIL),
            rerouted: flag(REROUTED),
            stamp: (tag >> STAMP) as u16,
            path: (tag >> PATH & (MOST_PATHS as u64 - 1)) as u16,
            rest: (tag >> REST & REST_MASK) as u16,
        }
    }

    /// Index of the port, of `n`, that a switch between the ToRs takes, and the tag for the next switch.
    #[inline]
    pub(super) fn onward(tag: u64, n: usize) -> (usize, u64) {
        let (rest, n) = (tag >> REST & REST_MASK, n.max(1) as u64);
        ((rest % n) as usize, tag & !(REST_MASK << REST) | (rest / n) << REST)
    }
}

/// Signal of the receiver's ToR to the sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TorSignal {
    /// RTT_REPLY to the request of this epoch.
    Reply(u8),
    /// CLEAR: the TAIL of this epoch has come.
    Clear(u8),
    /// NOTIFY: this path marks packets.
    Notify(u16),
}

impl TorSignal {
    pub(super) fn tag(self) -> u64 {
        match self {
            TorSignal::Reply(epoch) => 1 | u64::from(epoch) << 2,
            TorSignal::Clear(epoch) => 2 | u64::from(epoch) << 2,
            TorSignal::Notify(path) => 3 | u64::from(path) << 2,
        }
    }

    pub(super) fn read(tag: u64) -> Option<TorSignal> {
        let epoch = (tag >> 2 & u64::from(EPOCHS - 1)) as u8;
        match tag & 3 {
            1 => Some(TorSignal::Reply(epoch)),
            2 => Some(TorSignal::Clear(epoch)),
            3 => Some(TorSignal::Notify((tag >> 2 & (MOST_PATHS as u64 - 1)) as u16)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::annex::TAG_BITS;

    #[test]
    fn every_field_survives_packing() {
        let full = Header {
            epoch: 3,
            request: true,
            tail: true,
            rerouted: true,
            stamp: u16::MAX,
            path: 1023,
            rest: 511,
        };
        for header in [
            full,
            Header::default(),
            Header { request: false, rest: 0, ..full },
            Header { tail: false, path: 0, ..full },
            Header { rerouted: false, stamp: 0, ..full },
        ] {
            assert!(header.tag() >> TAG_BITS == 0);
            assert_eq!(Header::read(header.tag()), header);
        }
        for signal in [TorSignal::Reply(3), TorSignal::Clear(0), TorSignal::Notify(1023)] {
            assert!(signal.tag() >> TAG_BITS == 0);
            assert_eq!(TorSignal::read(signal.tag()), Some(signal));
        }
        assert_eq!(TorSignal::read(0), None);
    }

    #[test]
    fn switches_share_out_the_digits_of_the_path_number() {
        // 8 uplinks at the ToR, 4 at the switch above it, 1 at the core.
        let mut taken = std::collections::BTreeSet::new();
        for path in 0..32u16 {
            let tag = Header { path, rest: path / 8, ..Header::default() }.tag();
            let (up, tag) = Header::onward(tag, 4);
            let (down, tag) = Header::onward(tag, 1);
            assert_eq!((down, Header::read(tag).path, Header::read(tag).rest), (0, path, 0));
            taken.insert((path % 8, up));
        }
        assert_eq!(taken.len(), 32);
    }

    #[test]
    fn spans_survive_the_wrap_of_stamps() {
        let (a, b) = (Time::from_us(4_190), Time::from_us(4_230));
        assert!(stamp(b) < stamp(a), "the stamp has wrapped");
        let span = between(stamp(a), stamp(b));
        assert!(span.ps().abs_diff(40_000_000) <= TICK, "{span}");
    }
}
