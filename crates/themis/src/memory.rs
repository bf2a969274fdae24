//! Switch memory that Themis takes: Eq. 4 of Themis (APNET'25) in integers, and the ring length that a sound rule needs.

use crate::Width;

/// Picoseconds in a second.
const PS_PER_S: u128 = 1_000_000_000_000;

/// Bytes of a QP's entry at the destination ToR: 13 QP identity, 3 BePSN, 1 Valid, 3 queue (Themis, APNET'25, Eq. 4).
pub const QP_ENTRY_BYTES: u64 = 20;

/// Bytes of a PathMap entry at the source ToR (Themis, APNET'25, Eq. 4).
pub const PATH_ENTRY_BYTES: u64 = 2;

/// Bytes per QP that a switch needs to build a NACK, which the paper does not count: destination QPN and MSN, 3 bytes each,
/// copied from the blocked NACK. Our estimate.
pub const NACK_FIELDS_BYTES: u64 = 6;

/// Bytes per QP for the watch of a sound rule: one counter. Its flag shares the byte of Valid. Our estimate.
pub const WATCH_BYTES: u64 = 2;

/// Expansion factor F of the paper's ring as a fraction: 1.5 (Themis, APNET'25, Eq. 4).
pub const RING_FACTOR: (u64, u64) = (3, 2);

/// Entries of the paper's ring: ceil(BW x RTT_last x F / MTU), Themis (APNET'25), Eq. 4.
///
/// `rate` is in bit/s, `round_trip` is that of the last hop in ps, `factor` is numerator and denominator, and `mtu` is in
/// bytes. A denominator or MTU of 0 counts as 1. The result saturates.
pub const fn ring_entries(rate: u64, round_trip: u64, factor: (u64, u64), mtu: u64) -> u64 {
    let packet = floor_1(factor.1).saturating_mul(floor_1(mtu) * 8).saturating_mul(PS_PER_S);
    let window = (rate as u128 * round_trip as u128).saturating_mul(factor.0 as u128);
    saturate(window.div_ceil(packet))
}

/// Entries, and age limit, that a sound rule needs: the number of packets that can leave from the departure of a packet to
/// the arrival of the RNIC's reply to it, both included.
///
/// This is our derivation. The time in between is one MTU time for the packet, the last hop's `delay` down, up to one MTU
/// time until the RNIC's link is free, `reply_time`, and the `delay` up. Divide it by one MTU time and round up; an exact
/// multiple gives one more, since a packet then leaves in the instant in which the reply arrives.
///
/// All times are in ps. `reply_time` is the transmission time of the ACK and of any control frames ahead of it. An
/// `mtu_time` of 0 counts as 1. The result saturates.
pub const fn sound_ring_entries(delay: u64, mtu_time: u64, reply_time: u64) -> u64 {
    let mtu = floor_1(mtu_time);
    let open = 2 * delay as u128 + 2 * mtu + reply_time as u128;
    saturate(open / mtu + 1)
}

/// Sizes of the tables of one ToR, which is the source ToR of some QPs and the destination ToR of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables {
    /// PathMap entries, one per slot.
    pub path_entries: u64,
    /// QPs from other racks that end at one NIC.
    pub qps_per_nic: u64,
    /// NICs below the ToR.
    pub nics: u64,
    /// Ring entries per QP.
    pub ring: u64,
    /// Size of a ring entry.
    pub width: Width,
    /// Bytes per QP beside the ring: [`QP_ENTRY_BYTES`] and any further fields, such as [`NACK_FIELDS_BYTES`].
    pub qp_entry_bytes: u64,
}

impl Tables {
    /// The paper's example (Themis, APNET'25, Eq. 4): 256 paths, 16 NICs with 100 QPs each, and a ring of 100 entries of
    /// 1 byte, which 400 Gb/s, a last-hop round trip of 2 us, F = 1.5 and packets of 1500 B give.
    pub const PAPER: Self = Self {
        path_entries: 256,
        qps_per_nic: 100,
        nics: 16,
        ring: ring_entries(400_000_000_000, 2_000_000, RING_FACTOR, 1500),
        width: Width::W8,
        qp_entry_bytes: QP_ENTRY_BYTES,
    };

    /// Bytes of one QP: its entry and its ring.
    pub const fn qp_bytes(&self) -> u64 {
        self.qp_entry_bytes.saturating_add(self.ring.saturating_mul(self.width.bytes()))
    }

    /// Bytes of the whole switch, Themis (APNET'25), Eq. 4. Saturates.
    pub const fn total_bytes(&self) -> u64 {
        let qps = self.qps_per_nic.saturating_mul(self.nics);
        self.path_entries.saturating_mul(PATH_ENTRY_BYTES).saturating_add(self.qp_bytes().saturating_mul(qps))
    }
}

const fn floor_1(value: u64) -> u128 {
    if value == 0 { 1 } else { value as u128 }
}

const fn saturate(value: u128) -> u64 {
    if value >> 64 == 0 { value as u64 } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_costs_192_512_bytes() {
        assert_eq!(Tables::PAPER.ring, 100);
        assert_eq!(Tables::PAPER.qp_bytes(), 120);
        assert_eq!(Tables::PAPER.total_bytes(), 192_512);
    }

    #[test]
    fn wider_psns_and_further_fields_cost_more() {
        let with = |width, more| Tables { width, qp_entry_bytes: QP_ENTRY_BYTES + more, ..Tables::PAPER };
        assert_eq!(with(Width::W16, 0).total_bytes(), 352_512);
        assert_eq!(with(Width::W24, 0).total_bytes(), 512_512);
        assert_eq!(with(Width::W24, NACK_FIELDS_BYTES + WATCH_BYTES).total_bytes(), 525_312);
    }

    #[test]
    fn a_sound_ring_is_a_little_longer_than_the_round_trip_of_the_last_hop() {
        // 100 Gb/s: 1500 B take 120 ns, a 64 B ACK 5.12 ns.
        assert_eq!(sound_ring_entries(1_000_000, 120_000, 5_120), 19);
        assert_eq!(sound_ring_entries(100_000, 120_000, 5_120), 4);
        assert_eq!(ring_entries(100_000_000_000, 200_000, RING_FACTOR, 1500), 3);
        // On an exact multiple a packet leaves in the instant in which the reply arrives.
        assert_eq!(sound_ring_entries(60, 20, 20), 10);
        assert_eq!(sound_ring_entries(60, 20, 19), 9);
    }

    #[test]
    fn absurd_arguments_saturate() {
        assert_eq!(ring_entries(u64::MAX, u64::MAX, (u64::MAX, 0), 0), u64::MAX);
        assert_eq!(ring_entries(1, 1, (1, u64::MAX), u64::MAX), 1);
        assert_eq!(sound_ring_entries(u64::MAX, 0, u64::MAX), u64::MAX);
        let most = Tables { ring: u64::MAX, nics: u64::MAX, ..Tables::PAPER };
        assert_eq!(most.total_bytes(), u64::MAX);
    }
}
