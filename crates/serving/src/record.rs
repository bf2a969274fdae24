//! What became of requests.

use crate::spec::{FirstToken, Slo};
use model::Time;

/// The parts of the time from a request's arrival to its first token by decoding. They follow one another, and add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Waiting for a prefill instance.
    pub queue: Time,
    /// Computation of the prompt, as part of a batch.
    pub prefill: Time,
    /// Waiting for memory at the decode instance.
    pub memory: Time,
    /// Host software before the bytes, as far as it lengthens the transfer.
    pub host: Time,
    /// The transfer alone on the fabric.
    pub alone: Time,
    /// What the transfer took beyond that.
    pub excess: Time,
    /// Waiting for a slot and for the end of a step.
    pub wait: Time,
    /// The first step of decoding.
    pub first_step: Time,
}

impl Parts {
    /// All parts in their order, with their names.
    pub fn named(&self) -> [(&'static str, Time); 8] {
        [
            ("queue", self.queue),
            ("prefill", self.prefill),
            ("memory", self.memory),
            ("host", self.host),
            ("alone", self.alone),
            ("excess", self.excess),
            ("wait", self.wait),
            ("first_step", self.first_step),
        ]
    }

    /// Their sum.
    pub fn sum(&self) -> Time {
        self.named().into_iter().fold(Time::ZERO, |sum, (_, time)| sum + time)
    }
}

/// What became of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Tokens that the prefill instance had in its cache.
    pub cached: u64,
    /// Bytes of KV that were sent.
    pub bytes: u64,
    /// Prefill instance, and decode instance, by number; the latter is missing if no decoding was placed.
    pub prefill: u32,
    /// See `prefill`.
    pub decode: Option<u32>,
    /// Time at which it came.
    pub arrival: Time,
    /// The parts of the time to its first token by decoding, once it has one.
    pub parts: Option<Parts>,
    /// Time of its transfer alone on the fabric, and beyond that, once its KV has arrived.
    pub crossed: Option<(Time, Time)>,
    /// Time at which its KV had arrived.
    pub received: Option<Time>,
    /// First token.
    pub first: Option<Time>,
    /// Last token.
    pub end: Option<Time>,
}

/// How a request fared with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It kept them.
    Met,
    /// It missed them, and would have without the excess of its own transfer, too.
    Missed,
    /// It missed them, and would have kept them without the excess of its own transfer.
    MissedByNetwork,
}

impl Record {
    /// Time to the first token.
    pub fn ttft(&self) -> Option<Time> {
        Some(self.first?.since(self.arrival))
    }

    /// Mean time per token after the first; missing for an answer of one token.
    pub fn tpot(&self) -> Option<Time> {
        let tokens = self.output.checked_sub(1).filter(|tokens| *tokens > 0)?;
        Some(Time(self.end?.since(self.first?).ps() / tokens))
    }

    /// The verdict on a request that has ended; one that has not counts as missed.
    pub fn verdict(&self, slo: Slo, first: FirstToken) -> Verdict {
        let (Some(ttft), Some(end), Some(at)) = (self.ttft(), self.end, self.first) else {
            return Verdict::Missed;
        };
        let excess = self.parts.map_or(Time::ZERO, |parts| parts.excess);
        let (of_first, of_rest) = match first {
            FirstToken::Decode => (excess, Time::ZERO),
            FirstToken::Prefill => (Time::ZERO, excess),
        };
        let rest = end.since(at);
        let keeps = |ttft: Time, rest: Time| {
            let tokens = u128::from(self.output.saturating_sub(1));
            let per_token = |limit: Time| u128::from(rest.ps()) <= u128::from(limit.ps()) * tokens;
            slo.ttft.is_none_or(|limit| ttft <= limit) && slo.tpot.is_none_or(per_token)
        };
        if keeps(ttft, rest) {
            Verdict::Met
        } else if keeps(ttft - of_first, rest - of_rest) {
            Verdict::MissedByNetwork
        } else {
            Verdict::Missed
        }
    }
}

/// What became of all requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// By request, in the order of time.
    pub requests: Vec<Record>,
    /// Times between two tokens of a request, ps, with their numbers.
    pub gaps: Vec<(u64, u64)>,
    /// Limits.
    pub slo: Slo,
    /// What counts as the first token.
    pub first_token: FirstToken,
    /// What is assumed and decides the answer, in sentences.
    pub assumed: Vec<String>,
    /// Number of the job whose messages carried KV, if it is known.
    pub job: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ttft: u64, excess: u64, rest: u64) -> Record {
        let ms = Time::from_ms;
        let parts = Parts { alone: ms(ttft - excess), excess: ms(excess), ..Parts::default() };
        Record {
            output: 11,
            arrival: ms(1000),
            parts: Some(parts),
            first: Some(ms(1000 + ttft)),
            end: Some(ms(1000 + ttft + rest)),
            ..Record::default()
        }
    }

    #[test]
    fn the_network_has_caused_a_miss_if_the_request_keeps_its_limit_without_its_excess() {
        let slo = Slo { ttft: Some(Time::from_ms(100)), tpot: Some(Time::from_ms(10)) };
        let of = |ttft, excess, rest| record(ttft, excess, rest).verdict(slo, FirstToken::Decode);
        assert_eq!(of(100, 50, 100), Verdict::Met);
        assert_eq!(of(101, 1, 100), Verdict::MissedByNetwork);
        assert_eq!(of(103, 1, 100), Verdict::Missed);
        assert_eq!(of(90, 50, 101), Verdict::Missed, "tokens are slow whatever the transfer");
        let by_prefill = record(90, 20, 110).verdict(slo, FirstToken::Prefill);
        assert_eq!(by_prefill, Verdict::MissedByNetwork, "the transfer lies between the first two tokens");
        assert_eq!(Record::default().verdict(slo, FirstToken::Decode), Verdict::Missed);
    }

    #[test]
    fn time_per_token_is_that_of_the_tokens_after_the_first() {
        assert_eq!(record(100, 0, 100).tpot(), Some(Time::from_ms(10)));
        assert_eq!(Record { output: 1, ..record(100, 0, 0) }.tpot(), None);
    }
}
