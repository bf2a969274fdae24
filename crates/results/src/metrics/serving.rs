//! Requests of inference serving: latencies, goodput, and what the network has to do with them.

use super::{Better, Shown, Unit};
use crate::data::RunData;
use crate::stats::{Spread, mean};
use model::Time;
use serving::{Parts, Record, Served, Verdict};
use std::collections::BTreeMap;

/// The job and the outcome of a run that served requests.
pub(crate) struct Of<'a> {
    served: &'a Served,
    run: RunData<'a>,
}

section! {
    /// Requests of inference serving.
    pub struct Serving read from of: &Of<'_>;

    /// Requests.
    requests: u64 = of.served.requests.len() as u64 => { label: "requests" };

    /// Requests that got their last token.
    finished: u64 = of.count(|record| record.end.is_some()) => { label: "requests finished", better: Better::More };

    /// Time to the first token.
    ttft_us: Option<Spread> = of.spread(|record| record.ttft()) => {
        label: "TTFT", unit: Unit::Microseconds, better: Better::Less, rare: true,
        statistics: &[
            ("mean", Shown::Page, ""),
            ("p50", Shown::Comparison, "TTFT us\np50"),
            ("p99", Shown::Sweep, "TTFT us\np99"),
        ],
    };

    /// Mean time of a request's tokens after the first (TPOT).
    tpot_us: Option<Spread> = of.spread(|record| record.tpot()) => {
        label: "TPOT", unit: Unit::Microseconds, better: Better::Less, rare: true,
        statistics: &[("p50", Shown::Page, ""), ("p99", Shown::Comparison, "TPOT us\np99")],
    };

    /// Time between two tokens of a request, median over all tokens after the first of all requests.
    itl_us_p50: Option<f64> = of.gap(50) => { label: "ITL, median", unit: Unit::Microseconds, better: Better::Less };

    /// Time between two tokens of a request, 99th percentile over all tokens after the first of all requests.
    itl_us_p99: Option<f64> = of.gap(99) => { label: "ITL, P99", unit: Unit::Microseconds, better: Better::Less };

    /// Requests that kept all limits, per second from the first arrival to the last token. Without limits all that finished count.
    goodput: Option<f64> = of.goodput() => { label: "requests per second within limits", better: Better::More };

    /// Requests that missed a limit, or did not finish.
    missed: u64 = of.verdicts(|verdict| verdict != Verdict::Met) => {
        label: "requests that missed a limit", better: Better::Less, shown: Shown::Comparison, heading: "missed\nlimits",
        rare: true,
    };

    /// Requests that missed a limit, and would have kept it without the excess of their own transfer. Waiting that other requests' excess
    /// causes does not count.
    missed_by_network: u64 = of.verdicts(|verdict| verdict == Verdict::MissedByNetwork) => {
        label: "misses that the network caused", better: Better::Less, shown: Shown::Comparison,
        heading: "by the\nnetwork", rare: true,
    };

    /// Time of a transfer / its time alone on the fabric, mean over requests whose KV arrived; host software before it does not count.
    /// With `way = "layers"`, both times count from the end of the prefill, so the part that the prefill hides is in neither.
    transfer_ratio: Option<f64> = of.ratio() => {
        label: "transfer / alone", unit: Unit::Times, better: Better::Less, shown: Shown::Comparison,
        heading: "transfer\n/ alone", rare: true,
    };

    /// Largest such ratio.
    worst_transfer_ratio: Option<f64> = of.worst() => {
        label: "transfer / alone, largest", unit: Unit::Times, better: Better::Less,
    };

    /// Bytes of KV that were sent.
    kv_bytes: u64 = of.served.requests.iter().map(|record| record.bytes).sum() => { label: "KV", unit: Unit::Bytes };

    /// KV's share of the payload of all flows of the run.
    kv_share: Option<f64> = of.share() => { label: "KV of all payload", unit: Unit::Fraction };

    /// By traffic class: bytes on the wire that NICs sent / what these NICs carry from the class's first message to its last arrival.
    loads: BTreeMap<String, f64> = crate::tables::shares::loads(of.run);

    /// Mean parts of the time to the first token by decoding.
    parts: MeanParts = MeanParts::read(of) => { part: "mean" };

    /// Limits, in words; empty if there are none.
    limits: String = of.limits();

    /// What is assumed and decides the answer, in sentences.
    assumed: Vec<String> = of.served.assumed.clone();
}

section! {
    /// Mean parts of the time to the first token by decoding, which follow one another, us.
    pub struct MeanParts read from of: &Of<'_>;

    /// Waiting for a prefill instance.
    queue_us: Option<f64> = of.part(|parts| parts.queue) => { label: "queue", unit: Unit::Microseconds };

    /// Computation of the prompt, as part of a batch.
    prefill_us: Option<f64> = of.part(|parts| parts.prefill) => { label: "prefill", unit: Unit::Microseconds };

    /// Waiting for memory at the decode instance.
    memory_us: Option<f64> = of.part(|parts| parts.memory) => { label: "memory wait", unit: Unit::Microseconds };

    /// Host software before the bytes, as far as it lengthens the transfer.
    host_us: Option<f64> = of.part(|parts| parts.host) => { label: "host software", unit: Unit::Microseconds };

    /// Transfer alone on the fabric.
    alone_us: Option<f64> = of.part(|parts| parts.alone) => { label: "transfer alone", unit: Unit::Microseconds };

    /// Transfer beyond that.
    excess_us: Option<f64> = of.part(|parts| parts.excess) => {
        label: "transfer excess", unit: Unit::Microseconds, better: Better::Less,
    };

    /// Waiting for a slot and for the end of a step.
    wait_us: Option<f64> = of.part(|parts| parts.wait) => { label: "decode wait", unit: Unit::Microseconds };

    /// First step of decoding.
    first_step_us: Option<f64> = of.part(|parts| parts.first_step) => { label: "first step", unit: Unit::Microseconds };
}

impl Of<'_> {
    fn count(&self, is: fn(&Record) -> bool) -> u64 {
        self.served.requests.iter().filter(|record| is(record)).count() as u64
    }

    fn spread(&self, of: fn(&Record) -> Option<Time>) -> Option<Spread> {
        Spread::of(self.served.requests.iter().filter_map(|record| Some(of(record)?.as_us())).collect())
    }

    fn verdicts(&self, is: fn(Verdict) -> bool) -> u64 {
        let Served { requests, slo, first_token, .. } = self.served;
        requests.iter().filter(|record| is(record.verdict(*slo, *first_token))).count() as u64
    }

    /// A percentile of the times between tokens, nearest rank.
    fn gap(&self, percent: u64) -> Option<f64> {
        let gaps = &self.served.gaps;
        let all: u64 = gaps.iter().map(|(_, count)| count).sum();
        let rank = (u128::from(all) * u128::from(percent)).div_ceil(100) as u64;
        let mut below = 0;
        let at = gaps.iter().find(|(_, count)| {
            below += count;
            below >= rank.max(1)
        })?;
        Some(Time(at.0).as_us())
    }

    fn goodput(&self) -> Option<f64> {
        let requests = &self.served.requests;
        let first = requests.iter().map(|record| record.arrival).min()?;
        let last = requests.iter().filter_map(|record| record.end).max()?;
        let met = self.verdicts(|verdict| verdict == Verdict::Met);
        Some(met as f64 / last.since(first).as_secs()).filter(|rate| rate.is_finite())
    }

    fn ratios(&self) -> impl Iterator<Item = f64> {
        let crossed = self.served.requests.iter().filter_map(|record| record.crossed);
        let moved = crossed.filter(|(alone, _)| *alone > Time::ZERO);
        moved.map(|(alone, excess)| (alone + excess).ps() as f64 / alone.ps() as f64)
    }

    fn ratio(&self) -> Option<f64> {
        mean(&self.ratios().collect::<Vec<_>>())
    }

    fn worst(&self) -> Option<f64> {
        self.ratios().max_by(f64::total_cmp)
    }

    fn share(&self) -> Option<f64> {
        let job = self.run.plan.jobs.len();
        let of = |mine: bool| {
            let all = self.run.plan.messages.iter().filter(move |m| !mine || Some(m.job) == self.served.job);
            all.map(|message| message.bytes).sum::<u64>()
        };
        let all = of(false);
        (job > 0 && all > 0).then(|| of(true) as f64 / all as f64)
    }

    fn part(&self, of: fn(Parts) -> Time) -> Option<f64> {
        let all = self.served.requests.iter().filter_map(|record| Some(of(record.parts?).as_us()));
        mean(&all.collect::<Vec<_>>())
    }

    fn limits(&self) -> String {
        let slo = self.served.slo;
        let of = |name: &str, limit: Option<Time>| limit.map(|limit| format!("{name} {limit}"));
        [of("TTFT", slo.ttft), of("TPOT", slo.tpot)].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Serving {
    /// The section of a run that served requests.
    pub fn of(served: &Served, run: RunData<'_>) -> Self {
        Serving::read(&Of { served, run })
    }

    /// Whether the network decided anything, in one sentence. A zero is an answer.
    pub fn network(&self) -> String {
        let Some(ratio) = self.transfer_ratio else {
            return "No transfer of KV has ended.".to_owned();
        };
        let caused = match (self.missed, self.limits.is_empty()) {
            (_, true) => "no limits were set (`slo`), so none was missed".to_owned(),
            (0, _) => "no request missed its limits".to_owned(),
            (missed, _) => format!("the network caused {} of {missed} misses", self.missed_by_network),
        };
        format!("KV transfers took {ratio:.2} times their time alone; {caused}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{outcome, plan};
    use serving::spec::Slo;

    /// Requests of 11 tokens: time to the first token and excess in ms, one every ms.
    fn section(requests: &[(u64, u64)], slo: Slo) -> Serving {
        let record = |(i, &(ttft, excess)): (u64, &(u64, u64))| {
            let ms = Time::from_ms;
            let parts = Parts {
                alone: ms(10),
                excess: ms(excess),
                queue: ms(ttft - excess - 10),
                ..Parts::default()
            };
            let (arrival, first) = (ms(i), ms(i + ttft));
            let end = Some(first + ms(100));
            Record {
                output: 11,
                bytes: 1000,
                arrival,
                parts: Some(parts),
                crossed: Some((parts.alone, parts.excess)),
                first: Some(first),
                end,
                ..Record::default()
            }
        };
        let requests = (0..).zip(requests).map(record).collect();
        let served =
            Served { requests, slo, gaps: vec![(1_000_000, 98), (5_000_000, 2)], ..Served::default() };
        let (plan, outcome) = (plan(1), outcome(1));
        Serving::of(&served, RunData { plan: &plan, ideal: &[], outcome: &outcome, served: Some(&served) })
    }

    #[test]
    fn one_sentence_says_what_the_network_caused_and_a_zero_is_an_answer() {
        let slo = Slo { ttft: Some(Time::from_ms(100)), tpot: None };
        let of = |requests: &[(u64, u64)]| section(requests, slo).network();
        assert_eq!(
            of(&[(90, 0), (150, 0)]),
            "KV transfers took 1.00 times their time alone; the network caused 0 of 1 misses."
        );
        assert_eq!(
            of(&[(90, 0), (105, 10), (150, 20)]),
            "KV transfers took 2.00 times their time alone; the network caused 1 of 2 misses."
        );
        assert!(of(&[(90, 70)]).ends_with("no request missed its limits."));
        assert!(section(&[(90, 0)], Slo::default()).network().contains("no limits were set"));
        assert_eq!(section(&[], slo).network(), "No transfer of KV has ended.");
    }

    #[test]
    fn goodput_counts_requests_within_all_limits_from_the_first_arrival_to_the_last_token() {
        let slo = Slo { ttft: Some(Time::from_ms(100)), tpot: Some(Time::from_ms(10)) };
        let told = section(&[(90, 0), (105, 10), (98, 20)], slo);
        // The last token comes at 1 + 105 + 100 ms.
        assert_eq!((told.missed, told.finished, told.goodput), (1, 3, Some(2.0 / 0.206)));
        assert_eq!((told.limits.as_str(), told.kv_bytes), ("TTFT 100ms, TPOT 10ms", 3000));
        assert_eq!((told.itl_us_p50, told.itl_us_p99), (Some(1.0), Some(5.0)));
        assert_eq!(told.parts.excess_us, Some(10_000.0));
    }
}
