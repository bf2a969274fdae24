//! Frame sizes and transmission times.

use crate::telemetry::area;
use crate::{Rate, Time};

/// Rounding of transmission times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// To the nearest picosecond: exact at 100, 200, 400 and 800 Gb/s.
    #[default]
    Picosecond,
    /// Down to a whole nanosecond, at least one, as in the HPCC family of ns-3 simulators.
    TruncatedNanosecond,
}

/// Sizes of all frames of a run, in bytes, and the rounding of their transmission times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Headers and trailers of a data frame.
    pub header: u32,
    /// Most payload in a data frame.
    pub payload: u32,
    /// Shortest data frame; shorter frames are padded.
    pub min_frame: u32,
    /// Preamble, start-of-frame delimiter and inter-packet gap: they take link time, but no buffer.
    pub gap: u32,
    /// Frame of an ACK or NACK.
    pub ack: u32,
    /// Bytes of padding in an ACK or NACK, in whose place further headers may stand.
    pub ack_padding: u32,
    /// Frame of a CNP.
    pub cnp: u32,
    /// Smallest signal of any scheme; 0 if no scheme sends signals.
    pub signal: u32,
    /// PFC pause or resume frame; 0 if it takes no link time.
    pub pfc: u32,
    /// Hops that the telemetry area of a packet has room for; 0 in runs without telemetry. `header` and `ack` include the
    /// area.
    pub hops: u8,
    /// Rounding of transmission times.
    pub clock: Clock,
}

impl Wire {
    /// RoCEv2 over IPv4: Ethernet 14 + FCS 4, IPv4 20, UDP 8, BTH 12, ICRC 4 (InfiniBand Architecture, Annex
    /// A17); AETH 4 in an ACK or NACK, 16 reserved bytes in a CNP; preamble 8 and gap 12 (IEEE 802.3).
    /// `frame` is the largest data frame, headers and FCS included. The RETH of a message's first packet is
    /// not counted (16 B per message; our choice).
    pub const fn roce(frame: u32) -> Self {
        Wire {
            header: 62,
            payload: frame - 62,
            min_frame: 64,
            gap: 20,
            ack: 66,
            ack_padding: 0,
            cnp: 78,
            signal: 0,
            pfc: 0,
            hops: 0,
            clock: Clock::Picosecond,
        }
    }

    /// The sizes of the HPCC family of ns-3 simulators: data = payload + 48 (14 + 20 + 8 + 6), ACK = 60, PFC = 43; no
    /// preamble, gap or FCS; transmission times truncated to nanoseconds. An ACK has 14 bytes of padding in HPCC's program
    /// and 8 in ConWeave's.
    pub const fn ns3(payload: u32) -> Self {
        Wire {
            header: 48,
            payload,
            // Our choice: a message without payload still sends a byte, even where `header` is set to 0.
            min_frame: 1,
            gap: 0,
            ack: 60,
            ack_padding: 8,
            cnp: 60,
            signal: 0,
            pfc: 43,
            hops: 0,
            clock: Clock::TruncatedNanosecond,
        }
    }

    /// These sizes with a telemetry area for `hops` hops on data, ACKs and NACKs ([`crate::telemetry`]). The payload stays,
    /// and frames grow.
    #[must_use]
    pub const fn with_telemetry(self, hops: u8) -> Self {
        let area = if hops > 0 { area(hops) } else { 0 };
        Wire { header: self.header + area, ack: self.ack + area, hops, ..self }
    }

    /// These sizes with `bytes` more in the headers of data, ACKs and NACKs. The payload stays, and frames grow; an ACK first
    /// uses its padding.
    #[must_use]
    pub const fn with_stamp(self, bytes: u32) -> Self {
        let padding = if bytes < self.ack_padding { bytes } else { self.ack_padding };
        Wire {
            header: self.header + bytes,
            ack: self.ack + bytes - padding,
            ack_padding: self.ack_padding - padding,
            ..self
        }
    }

    /// Size of the frame of a data packet with `payload` bytes.
    #[inline]
    pub const fn data_frame(&self, payload: u32) -> u32 {
        let frame = self.header + payload;
        if frame < self.min_frame { self.min_frame } else { frame }
    }

    /// Size of the largest data frame.
    pub const fn max_frame(&self) -> u32 {
        self.data_frame(self.payload)
    }

    /// Size of the smallest frame that crosses a link in this run.
    pub const fn smallest_frame(&self) -> u32 {
        let mut least = self.data_frame(0);
        if self.ack < least {
            least = self.ack;
        }
        if self.cnp < least {
            least = self.cnp;
        }
        if self.signal > 0 && self.signal < least {
            least = self.signal;
        }
        least
    }

    /// Number of data packets of a message of `bytes` payload; an empty message takes one.
    pub const fn packets(&self, bytes: u64) -> u64 {
        let n = bytes.div_ceil(self.payload as u64);
        if n == 0 { 1 } else { n }
    }

    /// Payload in bytes of packet number `index` of a message of `bytes`.
    #[inline]
    pub const fn payload_of(&self, bytes: u64, index: u64) -> u32 {
        let left = bytes.saturating_sub(index * self.payload as u64);
        if left < self.payload as u64 { left as u32 } else { self.payload }
    }

    /// Transmission time of a frame of `frame` bytes on a link of `rate`.
    pub const fn transmission(&self, rate: Rate, frame: u32) -> Time {
        let bytes = (frame + self.gap) as u64;
        match self.clock {
            Clock::Picosecond => rate.time_for(bytes),
            Clock::TruncatedNanosecond => {
                let ns = bytes as u128 * 8_000_000_000 / rate.0 as u128;
                Time::from_ns(if ns == 0 { 1 } else { ns as u64 })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_of_the_themis_paper_takes_30_4_ns_at_400g() {
        let wire = Wire::roce(1500);
        assert_eq!(wire.payload, 1438);
        assert_eq!(wire.transmission(Rate::from_gbps(400), wire.max_frame()), Time(30_400));
        assert_eq!(wire.data_frame(1), 64);
    }

    /// A frame of no bytes would count as nothing in flight, and its loss would never be repaired.
    #[test]
    fn a_frame_has_at_least_a_byte() {
        let bare = Wire { header: 0, ..Wire::ns3(1000) };
        assert_eq!([0, 1, 1000].map(|payload| bare.data_frame(payload)), [1, 1, 1000]);
    }

    #[test]
    fn the_ns3_family_truncates_to_a_nanosecond() {
        let wire = Wire::ns3(1000);
        assert_eq!(wire.transmission(Rate::from_gbps(100), 1048), Time::from_ns(83));
        assert_eq!(wire.transmission(Rate::from_gbps(400), 60), Time::from_ns(1));
    }

    /// An empty message takes a packet without payload.
    #[test]
    fn the_smallest_frame_has_no_payload() {
        assert_eq!(Wire::ns3(1000).smallest_frame(), 48);
        assert_eq!(Wire::roce(1500).smallest_frame(), 64);
    }

    #[test]
    fn a_stamp_takes_the_padding_of_acks_first() {
        let wire = Wire::ns3(1000).with_stamp(6).with_stamp(4);
        assert_eq!((wire.max_frame(), wire.payload, wire.ack), (1_058, 1_000, 62));
        let roce = Wire::roce(1500).with_stamp(8);
        assert_eq!((roce.max_frame(), roce.ack), (1_508, 74));
    }

    #[test]
    fn telemetry_of_ten_hops_takes_82_bytes_of_data_and_acks() {
        let wire = Wire::ns3(1000).with_telemetry(10);
        assert_eq!((wire.max_frame(), wire.ack, wire.cnp), (1130, 142, 60));
        assert_eq!(Wire::ns3(1000).with_telemetry(0), Wire::ns3(1000));
    }

    #[test]
    fn the_last_packet_is_short() {
        let wire = Wire::roce(1500);
        assert_eq!(wire.packets(1438), 1);
        assert_eq!(wire.packets(1439), 2);
        assert_eq!(wire.payload_of(1439, 1), 1);
        assert_eq!(wire.packets(0), 1);
    }
}
