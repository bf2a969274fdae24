//! The retransmission timer.

use crate::config::Invalid;
use model::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Unit of InfiniBand's timeouts, 4.096 us (InfiniBand Architecture, Local ACK Timeout).
const IB_UNIT: Time = Time::from_ns(4_096);
/// Largest exponent of an InfiniBand timeout: the field has 5 bits.
const IB_MAX: u8 = 31;
/// Least exponent that ConnectX-6 firmware uses unless `min_ack_timeout_limit` is disabled: measured, in a
/// public study of RETRY_EXC errors.
const IB_FLOOR: u8 = 16;

/// How long a sender waits without progress before it sends again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Timeout {
    /// This long.
    Fixed(Time),
    /// 4.096 us times 2^n, n up to 31; 0 disables the timer (InfiniBand Architecture, Local ACK Timeout).
    /// Hardware may take up to four times as long; this does not.
    Ib(u8),
    /// The same with n at least 16, 268 ms (a ConnectX-6 with its default floor on ACK timeouts). 0 disables it.
    IbFloor(u8),
    /// No timer: what a NACK does not bring back is lost for good.
    None,
}

/// How the timeout grows while one follows another without progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Backoff {
    /// Each timeout is this many times the one before. Default 2 (our choice: doubling, as TCP's).
    #[serde(default = "doubling")]
    pub factor: u32,
    /// But never longer than this. No default.
    pub cap: Time,
}

const fn doubling() -> u32 {
    2
}

impl Timeout {
    /// The span, [`Time::NEVER`] if there is no timer.
    pub const fn span(self) -> Time {
        match self {
            Timeout::Fixed(span) => span,
            Timeout::Ib(n) => ib(n),
            Timeout::IbFloor(n) if n != 0 && n < IB_FLOOR => ib(IB_FLOOR),
            Timeout::IbFloor(n) => ib(n),
            Timeout::None => Time::NEVER,
        }
    }

    /// Whether the value is possible.
    pub fn validate(&self) -> Result<(), Invalid> {
        match *self {
            Timeout::Fixed(Time::ZERO) => Err(Invalid::new("timeout.fixed", "must be longer than 0")),
            Timeout::Ib(n) | Timeout::IbFloor(n) if n > IB_MAX => {
                let field = if matches!(self, Timeout::Ib(_)) { "timeout.ib" } else { "timeout.ib-floor" };
                Err(Invalid::new(field, "must be at most 31 (5 bits)"))
            }
            _ => Ok(()),
        }
    }
}

const fn ib(n: u8) -> Time {
    if n == 0 || n > IB_MAX { Time::NEVER } else { Time(IB_UNIT.ps() << n) }
}

impl Backoff {
    /// Whether the values are possible.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.factor == 0 {
            return Err(Invalid::new("backoff.factor", "must be at least 1"));
        }
        if self.cap == Time::ZERO {
            return Err(Invalid::new("backoff.cap", "must be longer than 0"));
        }
        Ok(())
    }
}

/// How the retransmission timers of a NIC run. A sender's timer starts with the first packet outstanding, starts
/// again on progress (InfiniBand Architecture, o9-85) and when it fires, and stops when nothing is outstanding.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct Timing {
    /// The span after progress.
    base: Time,
    cap: Time,
    factor: u32,
}

impl Timing {
    pub(crate) fn new(timeout: Timeout, backoff: Option<Backoff>) -> Self {
        let base = timeout.span().max(Time(1));
        let (factor, cap) = backoff.map_or((1, base), |b| (b.factor.max(1), b.cap.max(base)));
        Timing { base, cap, factor }
    }

    /// When a timer fires that starts now, after `fired` timeouts in a row.
    #[inline]
    pub(crate) fn deadline(&self, now: Time, fired: u8) -> Time {
        let longer = |span: Time| Time(span.ps().saturating_mul(u64::from(self.factor))).min(self.cap);
        let span = (0..fired).fold(self.base, |span, _| longer(span));
        Time(now.ps().saturating_add(span.ps()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_have_their_spans() {
        assert_eq!(Timeout::Ib(8).span(), Time(1_048_576_000)); // 1.05 ms
        assert_eq!(Timeout::Ib(14).span(), Time(67_108_864_000)); // 67 ms
        assert_eq!(Timeout::IbFloor(14).span(), Timeout::Ib(16).span());
        assert_eq!(Timeout::IbFloor(18).span(), Timeout::Ib(18).span());
        assert_eq!(Timeout::Ib(31).span().as_secs().round(), 8796.0);
        for never in [Timeout::Ib(0), Timeout::IbFloor(0), Timeout::None] {
            assert_eq!(never.span(), Time::NEVER);
        }
    }

    #[test]
    fn it_doubles_up_to_its_cap() {
        let ms = Time::from_ms;
        let backoff = Some(Backoff { factor: 2, cap: ms(3) });
        let timing = Timing::new(Timeout::Fixed(ms(1)), backoff);
        let spans = [0, 1, 2, 3, 255].map(|fired| timing.deadline(ms(10), fired));
        assert_eq!(spans, [ms(11), ms(12), ms(13), ms(13), ms(13)]);
    }

    #[test]
    fn without_a_timeout_it_never_fires() {
        let timing = Timing::new(Timeout::None, None);
        assert_eq!(timing.deadline(Time::from_ms(1), 0), Time::NEVER);
    }
}
