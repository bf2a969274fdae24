//! A digest of telemetry: switches fold the loads of a packet's links into one small number, the load of the busiest link.
//!
//! PINT (Ben Basat et al., "PINT: Probabilistic In-band Network Telemetry", SIGCOMM 2020) as in the public HPCC simulator.
//! A switch keeps a [`Meter`] for every port: an average of the link's utilisation over a time T, the same at all switches.
//! When a data packet's frame starts, the port updates its meter. With B for the link's rate, q for the bytes that wait, and
//! `bytes` for those sent since the last update, dt before:
//!
//! U = (1 - dt/T) U + q dt / (B T^2) + bytes / (B T), where dt is at most T
//!
//! The switch encodes U ([`Code`]), and the packet keeps the largest code of its path.
//!
//! The simulator counts the bytes of the port's last packet. Here all bytes since the last update count, so ACKs between two
//! data packets hide none of them; after a pause longer than T, they count as sent over the whole pause. The simulator
//! computes U by tables of logarithms, as a switch without multiplication would, and here the arithmetic is exact to 2^-32.
//! A sender there reads a random share of the replies; here the packet decides, so all its switches know (the paper,
//! section 4.1, has one hash of the packet for all hops).

use crate::draw::{Key, Purpose};
use crate::telemetry::TracedLink;
use crate::{Packet, Rate, Time};

/// Bits behind the point of a utilisation.
const POINT: u32 = 32;
const ONE: u64 = 1 << POINT;
/// Bits behind the point of a utilisation per byte.
const PER_BYTE: u32 = 48;
/// Bits behind the point of a power of the base.
const POWER: u32 = 16;

/// A logarithmic code of utilisations: code p stands for base^p / resolution. Utilisations above the resolution have the
/// largest code.
///
/// A utilisation is rounded up to n units of 1 / resolution, at least one. The code is the floor or the ceiling of
/// log(n) to the base, drawn so that the decoded value is n in the mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    resolution: u64,
    /// Powers of the base.
    powers: Vec<u64>,
    /// Largest code.
    largest: u16,
}

impl Code {
    /// Most codes: 16 bits, of which the value 0 means that there is no code.
    const MOST: usize = u16::MAX as usize;

    /// The code of this base and resolution; `None` unless the base is above 1, the resolution is at least 2, and the codes of
    /// utilisations up to the resolution fit into 16 bits.
    pub fn new(base: f64, resolution: u32) -> Option<Self> {
        if !(base > 1.0 && base.is_finite() && resolution >= 2) {
            return None;
        }
        let end = f64::from(resolution) * f64::from(resolution);
        let mut powers = vec![1.0_f64];
        while let Some(last) = powers.last()
            && *last < end
        {
            if powers.len() == Code::MOST {
                return None;
            }
            powers.push(last * base);
        }
        // The bits of the simulator: those of the number of codes, without the code of `end` itself.
        if powers.len() - 1 <= 1 << u8::BITS {
            powers.truncate(1 << u8::BITS);
        }
        let powers: Vec<u64> =
            powers.into_iter().map(|power| (power * f64::from(1 << POWER)).round() as u64).collect();
        Some(Code { resolution: resolution.into(), largest: (powers.len() - 1) as u16, powers })
    }

    /// Bytes of a code on the wire.
    pub const fn bytes(&self) -> u8 {
        if self.largest <= u8::MAX as u16 { 1 } else { 2 }
    }

    /// The code of a utilisation with [`POINT`] bits behind the point; `draw` is uniform.
    fn encode(&self, utilization: u64, draw: u64) -> u16 {
        let units = (utilization.saturating_mul(self.resolution).saturating_add(ONE - 1) >> POINT).max(1);
        let units = units << POWER;
        let below = self.powers.partition_point(|power| *power <= units).saturating_sub(1);
        let (Some(lower), Some(upper)) = (self.powers.get(below), self.powers.get(below + 1)) else {
            return self.largest;
        };
        let up = u128::from(draw >> POINT) * u128::from(upper - lower) < u128::from(units - lower) << POINT;
        below as u16 + u16::from(up)
    }

    /// The utilisation of a code.
    pub fn decode(base: f64, resolution: u32, code: u16) -> f64 {
        // By squaring: `powi` may differ between platforms.
        let (mut power, mut square, mut rest) = (1.0, base, code);
        while rest > 0 {
            if rest & 1 == 1 {
                power *= square;
            }
            square *= square;
            rest >>= 1;
        }
        power / f64::from(resolution)
    }
}

/// The average utilisation of a link, which its port keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// The average, with [`POINT`] bits behind the point.
    utilization: u64,
    /// Time of the last update, ps, and bytes sent until then.
    at: u64,
    sent: u64,
}

/// A link at the start of a data packet's frame.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'l> {
    /// The link.
    pub link: &'l TracedLink,
    /// Start of the frame.
    pub at: Time,
    /// Bytes that the port has sent before.
    pub sent: u64,
    /// Bytes that wait behind the packet.
    pub queue: u64,
}

/// Settings of the digest that all switches of a run share.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    code: Code,
    /// T, ps.
    period: u64,
    /// 1 / T, with 64 bits behind the point.
    per_period: u64,
    /// Utilisation of a byte, with [`PER_BYTE`] bits behind the point, by number of the link's rate.
    per_byte: Vec<u64>,
    /// A packet has a code if a draw of 32 bits is below this.
    sampled: u64,
    key: Key,
}

impl Digest {
    /// The digest of a run with `seed` whose links have these rates. `share` of the packets carry a code, and utilisations
    /// are averages over `period`.
    pub fn new(code: Code, period: Time, share: f64, rates: &[Rate], seed: u64) -> Self {
        let period = period.ps().max(1);
        let of_byte = |rate: &Rate| {
            let product = (u128::from(rate.bps()) * u128::from(period)).max(1);
            u64::try_from((8_000_000_000_000_u128 << PER_BYTE) / product).unwrap_or(u64::MAX)
        };
        Digest {
            code,
            period,
            per_period: u64::MAX / period,
            per_byte: rates.iter().map(of_byte).collect(),
            sampled: (share.clamp(0.0, 1.0) * ONE as f64) as u64,
            key: Key::new(seed, Purpose::Digest, 0),
        }
    }

    /// Updates the meter of a link with the packet that starts there. Returns the packet's code, plus 1, if it carries one.
    #[inline]
    pub fn see(&self, meter: &mut Meter, sight: &Sight<'_>, pkt: &Packet) -> Option<u16> {
        self.update(meter, sight);
        let packet = u64::from(pkt.qp().0) << 32 | u64::from(pkt.psn().value());
        let sampled = self.sampled >= ONE || self.key.draw(packet) >> 32 < self.sampled;
        // Links draw with numbers that no queue pair has.
        let draw = || self.key.draw2(1 << 63 | u64::from(sight.link.number()), sight.at.ps());
        sampled.then(|| self.code.encode(meter.utilization, draw()).saturating_add(1))
    }

    #[inline]
    fn update(&self, meter: &mut Meter, sight: &Sight<'_>) {
        let (at, sent) = (sight.at.ps(), sight.sent);
        let (gap, bytes) = (at.saturating_sub(meter.at), sent.saturating_sub(meter.sent));
        let per_byte = self.per_byte.get(usize::from(sight.link.rate())).copied().unwrap_or_default();
        let of = |bytes: u64| (u128::from(bytes) * u128::from(per_byte)) >> (PER_BYTE - POINT);
        let utilization = match gap < self.period {
            true => {
                let weight = (u128::from(gap) * u128::from(self.per_period)) >> POINT;
                let old = (u128::from(meter.utilization) * (u128::from(ONE) - weight)) >> POINT;
                old + ((of(sight.queue) * weight) >> POINT) + of(bytes)
            }
            false => of(sight.queue) + of(bytes) * u128::from(self.period) / u128::from(gap),
        };
        *meter = Meter { utilization: u64::try_from(utilization).unwrap_or(u64::MAX), at, sent };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostId, Kind, Psn, QpId};

    const BASE: f64 = 1.05;
    const LINE: Rate = Rate::from_gbps(100);
    const T: Time = Time::from_us(10);

    fn code() -> Code {
        Code::new(BASE, 512).unwrap()
    }

    fn fixed(utilization: f64) -> u64 {
        (utilization * ONE as f64) as u64
    }

    #[test]
    fn a_code_takes_one_byte_at_base_1_05_and_two_at_1_01() {
        // As in the simulator: log2 of the logarithm of 512^2.
        for (base, bytes) in [(1.05, 1), (1.051, 1), (1.049, 2), (1.01, 2), (2.0, 1)] {
            assert_eq!(Code::new(base, 512).unwrap().bytes(), bytes, "{base}");
        }
        assert_eq!(code().largest, 255);
        for (base, resolution) in [(1.0, 512), (0.9, 512), (f64::NAN, 512), (1.0001, 512), (1.05, 1)] {
            assert_eq!(Code::new(base, resolution), None, "{base} {resolution}");
        }
    }

    #[test]
    fn a_decoded_utilisation_is_right_in_the_mean_and_never_off_by_more_than_the_base() {
        let (code, key) = (code(), Key::new(1, Purpose::Digest, 7));
        for utilization in [0.01, 0.1, 0.333, 0.5, 0.95, 1.0, 2.5, 40.0, 300.0] {
            let decoded: Vec<f64> = (0..4_000)
                .map(|i| Code::decode(BASE, 512, code.encode(fixed(utilization), key.draw(i))))
                .collect();
            // In units of 1/512, rounded up.
            let units = (utilization * 512.0_f64).ceil() / 512.0;
            let mean = decoded.iter().sum::<f64>() / decoded.len() as f64;
            assert!((mean / units - 1.0).abs() < 0.002, "{mean} is not {units} in the mean");
            let off = decoded.iter().map(|value| (value / units - 1.0).abs());
            let (most, sum) = off.fold((0.0_f64, 0.0), |(most, sum), off| (most.max(off), sum + off));
            assert!(most < BASE - 1.0, "{utilization}: {most}");
            assert!(sum / decoded.len() as f64 <= 0.025, "{utilization}: {sum}");
        }
    }

    #[test]
    fn codes_rise_with_the_utilisation_and_end_at_the_largest() {
        let code = code();
        let of = |utilization: f64| code.encode(fixed(utilization), 1 << 63);
        assert_eq!((of(0.0), of(1.0 / 512.0)), (0, 0), "the least utilisation is one unit");
        let codes: Vec<u16> = (0..5_000).map(|i| of(f64::from(i) / 512.0)).collect();
        assert!(codes.is_sorted() && codes.last() > codes.first());
        assert_eq!(code.encode(u64::MAX, 0), 255);
        assert_eq!(code.encode(fixed(600.0), u64::MAX), 255);
    }

    fn digest(share: f64) -> Digest {
        Digest::new(code(), T, share, &[Rate::from_gbps(25), LINE], 1)
    }

    /// The average after frames of 1250 B every `gap` ns with `queue` bytes behind them.
    fn after(gap: u64, queue: u64, frames: u64) -> f64 {
        let (digest, link, mut meter) = (digest(1.0), TracedLink::new(3, 1, 0), Meter::default());
        for i in 0..frames {
            let sight = Sight { link: &link, at: Time::from_ns(i * gap), sent: i * 1_250, queue };
            digest.update(&mut meter, &sight);
        }
        meter.utilization as f64 / ONE as f64
    }

    #[test]
    fn the_average_settles_at_load_plus_queue() {
        let near = |got: f64, wanted: f64| assert!((got - wanted).abs() < 0.01, "{got} is not {wanted}");
        // A frame takes 100 ns; in T the link sends 125 kB.
        near(after(100, 0, 2_000), 1.0);
        near(after(200, 0, 2_000), 0.5);
        near(after(100, 125_000, 2_000), 2.0);
        // It settles with the time constant T.
        near(after(100, 0, 101), 1.0 - 1.0 / std::f64::consts::E);
        // After more than T without a packet, only the time since the last one counts.
        near(after(20_000, 0, 3), 0.005);
    }

    #[test]
    fn the_average_rises_with_the_queue() {
        let levels: Vec<f64> = (0..50).map(|i| after(150, i * 5_000, 500)).collect();
        assert!(levels.windows(2).all(|pair| pair[0] < pair[1]), "{levels:?}");
    }

    #[test]
    fn all_switches_sample_the_same_packets_in_the_given_share() {
        let (digest, links) = (digest(0.25), [TracedLink::new(3, 1, 0), TracedLink::new(9, 0, 0)]);
        let mut count = 0;
        for psn in 0..8_000 {
            let pkt = Packet::new(Kind::Data, QpId(5), HostId(0), Psn::new(psn), 1_250);
            let codes = links.map(|link| {
                let sight = Sight { link: &link, at: Time::from_us(psn.into()), sent: 0, queue: 0 };
                digest.see(&mut Meter::default(), &sight, &pkt)
            });
            assert_eq!(codes[0].is_some(), codes[1].is_some());
            count += u32::from(codes[0].is_some());
        }
        assert!((1_900..2_100).contains(&count), "{count}");
    }
}
