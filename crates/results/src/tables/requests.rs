//! `requests.parquet`: one row per request of inference serving, with the parts of the time to its first token.

use crate::data::RunData;
use crate::table::{Column, Table};
use model::Time;
use serving::{Parts, Record};

/// Most rows of the table; with more, every second, third, ... row is kept.
const MOST_ROWS: usize = 1_000_000;

/// A part of the time to the first token: the name of its column, its meaning, and how it is read.
type Part = (&'static str, &'static str, fn(Parts) -> Time);

/// The parts in their order. With `first-token = "decode"` they add up to `ttft_ps`.
const PARTS: [Part; 8] = [
    ("queue_ps", "waiting for a prefill instance", |parts| parts.queue),
    ("prefill_ps", "computation of the prompt, as part of a batch", |parts| parts.prefill),
    ("memory_ps", "waiting for memory at the decode instance", |parts| parts.memory),
    ("host_ps", "host software before the bytes, as far as it lengthens the transfer", |parts| parts.host),
    ("alone_ps", "transfer of KV alone on the fabric", |parts| parts.alone),
    ("excess_ps", "transfer of KV beyond that", |parts| parts.excess),
    ("wait_ps", "waiting for a slot and for the end of a step", |parts| parts.wait),
    ("first_step_ps", "first step of decoding", |parts| parts.first_step),
];

/// The table of requests; `None` in a run that serves none.
pub fn table(run: RunData<'_>) -> Option<Table> {
    let requests = &run.served?.requests;
    let every = requests.len().div_ceil(MOST_ROWS).max(1);
    let rows = || (0..requests.len()).step_by(every).map(|i| (i, &requests[i]));
    let count = |pick: fn(&Record) -> u64| rows().map(move |(_, record)| pick(record));
    let time = |pick: fn(&Record) -> Option<Time>| rows().map(move |(_, record)| pick(record).map(Time::ps));
    let mut columns = vec![
        Column::count(
            "request",
            "-",
            "number of the request, from 0, by arrival",
            rows().map(|(i, _)| i as u64),
        ),
        Column::count("input", "tokens", "tokens of the prompt", count(|record| record.input)),
        Column::count("output", "tokens", "tokens of the answer", count(|record| record.output)),
        Column::count(
            "cached",
            "tokens",
            "tokens of the prompt that the prefill instance had in its cache",
            count(|record| record.cached),
        ),
        Column::count("bytes", "B", "bytes of KV that were sent", count(|record| record.bytes)),
        Column::count("prefill", "-", "prefill instance, from 0", count(|record| record.prefill.into())),
        Column::maybe(
            "decode",
            "-",
            "decode instance, from 0; empty if none was chosen",
            rows().map(|(_, record)| record.decode.map(u64::from)),
        ),
        Column::count(
            "arrival_ps",
            "ps",
            "time at which the request came",
            count(|record| record.arrival.ps()),
        ),
    ];
    columns.extend(PARTS.map(|(name, about, pick)| {
        Column::maybe(
            name,
            "ps",
            about,
            rows().map(move |(_, record)| record.parts.map(|parts| pick(parts).ps())),
        )
    }));
    columns.extend([
        Column::maybe(
            "ttft_ps",
            "ps",
            "time to the first token; empty if there was none",
            time(Record::ttft),
        ),
        Column::maybe(
            "tpot_ps",
            "ps",
            "mean time of the tokens after the first; empty for one token",
            time(Record::tpot),
        ),
        Column::maybe(
            "end_ps",
            "ps",
            "time of the last token; empty if the run ended before",
            time(|record| record.end),
        ),
    ]);
    Some(Table::new(columns, every))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{outcome, plan};
    use arrow_array::Array;
    use serving::Served;

    #[test]
    fn the_parts_in_the_table_add_up_to_the_time_to_the_first_token() {
        let parts = Parts {
            queue: Time(1),
            prefill: Time(20),
            memory: Time(300),
            host: Time(4000),
            alone: Time(50_000),
            excess: Time(600_000),
            wait: Time(7_000_000),
            first_step: Time(80_000_000),
        };
        let done = Record {
            output: 1,
            arrival: Time(5),
            parts: Some(parts),
            first: Some(Time(87_654_326)),
            end: Some(Time(87_654_326)),
            ..Record::default()
        };
        let served = Served { requests: vec![done, Record::default()], ..Served::default() };
        let (plan, outcome) = (plan(1), outcome(1));
        let run = RunData { plan: &plan, ideal: &[], outcome: &outcome, served: Some(&served) };
        let table = table(run).unwrap();
        let of = |name: &str, row| table.counts(name).unwrap().value(row);
        let sum: u64 = PARTS.iter().map(|(name, ..)| of(name, 0)).sum();
        assert_eq!((sum, of("ttft_ps", 0)), (87_654_321, 87_654_321));
        assert!(table.counts("ttft_ps").unwrap().is_null(1), "the second request has no token");
    }
}
