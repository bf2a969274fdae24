//! Retransmission timer.

use finding::{Finding, code};
use model::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Unit of InfiniBand's timeouts, 4.096 us (InfiniBand Architecture, Local ACK Timeout).
const IB_UNIT: Time = Time::from_ns(4_096);
/// Largest exponent of an InfiniBand timeout: the field has 5 bits.
const IB_MAX: u8 = 31;
/// Smallest exponent that ConnectX-6 firmware uses unless `min_ack_timeout_limit` is disabled (measured in a public study
/// of RETRY_EXC errors).
const IB_FLOOR: u8 = 16;

/// First timeouts after the post of a ConnectX-6 with adaptive retransmission. They are the centres of the four spans, 0.4
/// to 0.8 ms wide, into which all first retransmissions of the same study fell (firmware 20.43.4100, defaults).
const ADP_FIRST: [Time; 4] =
    [Time::from_us(12_400), Time::from_us(20_900), Time::from_us(37_600), Time::from_us(71_400)];
/// Further retransmissions, as times after the post. The second number is the smallest ACK timeout exponent of a queue
/// pair for which the study saw the retransmission: it follows only if the step to it does not exceed the ACK timeout.
/// (The step to 3930 ms, 2148 ms, counts as the 2147 ms of exponent 19, since the study gives whole milliseconds.)
const ADP_LATER: [(Time, u8); 7] = [
    (Time::from_us(138_400), IB_FLOOR),
    (Time::from_us(239_000), IB_FLOOR),
    (Time::from_us(440_400), IB_FLOOR),
    (Time::from_us(977_000), 17),
    (Time::from_us(1_782_000), 18),
    (Time::from_us(3_930_000), 19),
    (Time::from_us(8_225_000), 20),
];

/// Time that a sender waits without progress before it retransmits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Timeout {
    /// Fixed time.
    Fixed(Time),
    /// 4.096 us times 2^n, n up to 31; 0 disables the timer (InfiniBand Architecture, Local ACK Timeout). Hardware may take
    /// up to four times as long; this timer does not.
    Ib(u8),
    /// As `ib`, with n at least 16, which is 268 ms (a ConnectX-6 with its default floor on ACK timeouts); 0 disables the
    /// timer.
    IbFloor(u8),
    /// NVIDIA's adaptive retransmission on a ConnectX-6 (`roce_adp_retrans_en`, on by default), for a queue pair with this
    /// ACK timeout exponent, up to 31; 0 disables the timer. The first timeout comes 12.4, 20.9, 37.6 or 71.4 ms after the
    /// last progress; one of these is drawn for each queue pair (our choice: the study saw all of them). Further timeouts
    /// come 138.4, 239 and 440.4 ms after the last progress, and with exponents above 16 up to 8225 ms. After that they come
    /// every 2 x 4.096 us x 2^n, with n at least 16 (measured in a public study of RETRY_EXC errors; the vendor's numbers
    /// are not public, nor is how it counts `retries`: we count every timeout).
    Adp(u8),
    /// No timer: a packet that no NACK brings back is lost for good.
    None,
}

/// Growth of the timeout over consecutive timeouts without progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Backoff {
    /// Factor between consecutive timeouts. Default 2 (our choice: doubling, as in TCP).
    #[serde(default = "doubling")]
    pub factor: u32,
    /// Upper bound of the timeout. No default.
    pub cap: Time,
}

const fn doubling() -> u32 {
    2
}

impl Timeout {
    /// Longest timeout before any backoff; [`Time::NEVER`] if there is no timer.
    pub const fn span(self) -> Time {
        match self {
            Timeout::Adp(n) => adp_regular(n),
            Timeout::Fixed(span) => span,
            Timeout::Ib(n) => ib(n),
            Timeout::IbFloor(n) if n != 0 && n < IB_FLOOR => ib(IB_FLOOR),
            Timeout::IbFloor(n) => ib(n),
            Timeout::None => Time::NEVER,
        }
    }

    /// Checks whether the value is possible.
    pub fn validate(&self) -> Result<(), Finding> {
        match *self {
            Timeout::Fixed(Time::ZERO) => Err(code::RANGE.at("timeout.fixed", "must be longer than 0")),
            Timeout::Ib(n) | Timeout::IbFloor(n) | Timeout::Adp(n) if n > IB_MAX => {
                let field = match self {
                    Timeout::Ib(_) => "timeout.ib",
                    Timeout::IbFloor(_) => "timeout.ib-floor",
                    _ => "timeout.adp",
                };
                Err(code::RANGE.at(field, "must be at most 31 (5 bits)"))
            }
            _ => Ok(()),
        }
    }

    /// True if the preset schedules consecutive timeouts itself.
    pub(crate) const fn is_schedule(self) -> bool {
        matches!(self, Timeout::Adp(_))
    }

    /// Timings of the preset: one, or several of which every queue pair draws one.
    pub(crate) fn timings(self, backoff: Option<Backoff>) -> Vec<Timing> {
        match self {
            Timeout::Adp(n) if n > 0 => ADP_FIRST.map(|first| Timing::adp(first, n)).into(),
            _ => vec![Timing::new(self, backoff)],
        }
    }
}

/// Regular timeout of adaptive retransmission after its schedule: twice the nominal one.
const fn adp_regular(n: u8) -> Time {
    let nominal = Timeout::IbFloor(n).span();
    if nominal.ps() == Time::NEVER.ps() { nominal } else { Time(2 * nominal.ps()) }
}

const fn ib(n: u8) -> Time {
    if n == 0 || n > IB_MAX { Time::NEVER } else { Time(IB_UNIT.ps() << n) }
}

impl Backoff {
    /// Checks whether the values are possible.
    pub fn validate(&self) -> Result<(), Finding> {
        if self.factor == 0 {
            return Err(code::RANGE.at("backoff.factor", "must be at least 1"));
        }
        if self.cap == Time::ZERO {
            return Err(code::RANGE.at("backoff.cap", "must be longer than 0"));
        }
        Ok(())
    }
}

/// Schedule of a NIC's retransmission timers. A sender's timer starts with the first outstanding packet, restarts on
/// progress (InfiniBand Architecture, o9-85) and when it fires, and stops when no packet is outstanding.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(Hash))]
pub struct Timing {
    /// First timeout after progress.
    base: Time,
    /// Further timeouts without progress; growth begins after them.
    scheduled: Box<[Time]>,
    cap: Time,
    factor: u32,
}

impl Timing {
    /// Timing of a preset without a schedule.
    pub(crate) fn new(timeout: Timeout, backoff: Option<Backoff>) -> Self {
        let base = timeout.span().max(Time(1));
        let (factor, cap) = backoff.map_or((1, base), |b| (b.factor.max(1), b.cap.max(base)));
        Timing { base, scheduled: Box::default(), cap, factor }
    }

    fn adp(first: Time, n: u8) -> Self {
        let mut at = first;
        let mut scheduled = Vec::new();
        for (after, _) in ADP_LATER.into_iter().take_while(|(_, least)| *least <= n.max(IB_FLOOR)) {
            scheduled.push(Time(after.ps() - at.ps()));
            at = after;
        }
        let regular = adp_regular(n);
        scheduled.push(regular);
        Timing { base: first, scheduled: scheduled.into(), cap: regular, factor: 1 }
    }

    /// Time at which a timer that starts now fires, after `fired` consecutive timeouts.
    #[inline]
    pub fn deadline(&self, now: Time, fired: u8) -> Time {
        let span = if fired == 0 { self.base } else { self.later(fired) };
        Time(now.ps().saturating_add(span.ps()))
    }

    #[cold]
    fn later(&self, fired: u8) -> Time {
        let fired = usize::from(fired);
        if let Some(span) = self.scheduled.get(fired - 1) {
            return *span;
        }
        let longer = |span: Time| Time(span.ps().saturating_mul(u64::from(self.factor))).min(self.cap);
        let last = self.scheduled.last().copied().unwrap_or(self.base);
        let mut span = last;
        for _ in self.scheduled.len()..fired {
            let next = longer(span);
            if next == span {
                break;
            }
            span = next;
        }
        span
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
    fn the_timeout_doubles_up_to_its_cap() {
        let ms = Time::from_ms;
        let backoff = Some(Backoff { factor: 2, cap: ms(3) });
        let timing = Timing::new(Timeout::Fixed(ms(1)), backoff);
        let spans = [0, 1, 2, 3, 255].map(|fired| timing.deadline(ms(10), fired));
        assert_eq!(spans, [ms(11), ms(12), ms(13), ms(13), ms(13)]);
    }

    #[test]
    fn without_a_timeout_the_timer_never_fires() {
        let timing = Timing::new(Timeout::None, None);
        assert_eq!(timing.deadline(Time::from_ms(1), 0), Time::NEVER);
    }

    /// Times after the last progress at which the timer fires, in tenths of a millisecond.
    fn fires(timing: &Timing, times: u8) -> Vec<u64> {
        let next = |at: &mut Time, fired| {
            *at = timing.deadline(*at, fired);
            at.ps() / 100_000_000
        };
        (0..times).scan(Time::ZERO, |at, fired| Some(next(at, fired))).collect()
    }

    #[test]
    fn adaptive_retransmission_follows_its_schedule() {
        let timings = Timeout::Adp(14).timings(None);
        let firsts: Vec<u64> = timings.iter().map(|t| fires(t, 1)[0]).collect();
        assert_eq!(firsts, [124, 209, 376, 714]);
        for timing in &timings {
            // Later timeouts are 537 ms apart.
            assert_eq!(fires(timing, 6)[1..], [1384, 2390, 4404, 9772, 15141]);
        }
        let long = &Timeout::Adp(20).timings(None)[0];
        assert_eq!(fires(long, 9), [124, 1384, 2390, 4404, 9770, 17820, 39300, 82250, 168149]);
        assert_eq!(Timeout::Adp(18).timings(None)[0].scheduled.len(), 6);
        assert_eq!(long.deadline(Time::ZERO, 255), Timeout::Adp(20).span());
        assert_eq!(Timeout::Adp(0).timings(None), [Timing::new(Timeout::None, None)]);
    }
}
