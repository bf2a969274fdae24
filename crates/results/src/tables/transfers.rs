//! `transfers.parquet`: one row per transfer of KV that has arrived, by the request that it serves.

use crate::data::RunData;
use crate::table::{Column, Table};
use model::Time;
use serving::Record;

/// Most rows of the table; with more, every second, third, ... row is kept.
const MOST_ROWS: usize = 1_000_000;

/// A transfer that has arrived.
struct Row<'a> {
    request: u64,
    record: &'a Record,
    end: Time,
    alone: Time,
    excess: Time,
}

/// The table of transfers; `None` in a run that serves none.
pub fn table(run: RunData<'_>) -> Option<Table> {
    let requests = &run.served?.requests;
    let rows: Vec<Row<'_>> = (0..)
        .zip(requests)
        .filter_map(|(request, record)| {
            let (alone, excess) = record.crossed?;
            Some(Row { request, record, end: record.received?, alone, excess })
        })
        .collect();
    let every = rows.len().div_ceil(MOST_ROWS).max(1);
    let count = |pick: fn(&Row<'_>) -> u64| rows.iter().step_by(every).map(pick);
    let columns = vec![
        Column::count(
            "request",
            "-",
            "number of the request, as in requests.parquet",
            count(|row| row.request),
        ),
        Column::count("prefill", "-", "prefill instance, from 0", count(|row| row.record.prefill.into())),
        Column::maybe(
            "decode",
            "-",
            "decode instance, from 0",
            rows.iter().step_by(every).map(|row| row.record.decode.map(u64::from)),
        ),
        Column::count("bytes", "B", "bytes of KV", count(|row| row.record.bytes)),
        Column::count(
            "start_ps",
            "ps",
            "time at which its bytes could start: after the host software, and with groups of layers after the prefill",
            count(|row| row.end.since(row.alone + row.excess).ps()),
        ),
        Column::count("end_ps", "ps", "time at which the last byte arrived", count(|row| row.end.ps())),
        Column::count("alone_ps", "ps", "time alone on the fabric", count(|row| row.alone.ps())),
        Column::count("excess_ps", "ps", "time beyond that", count(|row| row.excess.ps())),
    ];
    Some(Table::new(columns, every))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{outcome, plan};
    use serving::Served;

    #[test]
    fn only_transfers_that_have_arrived_have_rows_and_a_row_has_its_start() {
        let done = Record {
            bytes: 7,
            decode: Some(1),
            crossed: Some((Time(50), Time(6))),
            received: Some(Time(1000)),
            ..Record::default()
        };
        let served = Served { requests: vec![Record::default(), done], ..Served::default() };
        let (plan, outcome) = (plan(1), outcome(1));
        let run = RunData { plan: &plan, ideal: &[], outcome: &outcome, served: Some(&served) };
        let table = table(run).unwrap();
        let of = |name: &str| table.counts(name).unwrap().value(0);
        assert_eq!(table.rows(), 1);
        assert_eq!([of("request"), of("start_ps"), of("end_ps"), of("decode")], [1, 944, 1000, 1]);
    }
}
