//! `shares.parquet`: whose bytes the links of NICs carried, by traffic class.

use crate::data::RunData;
use crate::table::{Column, Table};
use model::{HostId, Plan, Time};
use std::collections::BTreeMap;

/// The class's bytes on the wire by port of a NIC and direction: true for what it sends.
type Carried = BTreeMap<(HostId, bool, u8), u64>;

/// One row.
struct Row<'a> {
    host: HostId,
    sends: bool,
    class: &'a str,
    bytes: u64,
    /// Bytes of all classes of the link.
    all: u64,
}

fn carried(run: RunData<'_>) -> Carried {
    let mut carried = Carried::new();
    for (message, record) in run.plan.messages.iter().zip(&run.outcome.messages) {
        let (qp, class) = (&run.plan.qps[message.qp.index()], run.plan.jobs[usize::from(message.job)].class);
        for (host, sends) in [(qp.from, true), (qp.to, false)] {
            *carried.entry((host, sends, class)).or_default() += record.wire_bytes;
        }
    }
    carried
}

/// The table of shares; `None` in a run that serves no requests.
pub fn table(run: RunData<'_>) -> Option<Table> {
    run.served?;
    let carried = carried(run);
    let mut all: BTreeMap<(HostId, bool), u64> = BTreeMap::new();
    for ((host, sends, _), bytes) in &carried {
        *all.entry((*host, *sends)).or_default() += bytes;
    }
    let name = |class: u8| run.plan.traffic_classes.get(usize::from(class)).map_or("", String::as_str);
    let row = |(&(host, sends, class), &bytes): (&(HostId, bool, u8), &u64)| Row {
        host,
        sends,
        class: name(class),
        bytes,
        all: all[&(host, sends)],
    };
    let rows: Vec<Row<'_>> = carried.iter().map(row).collect();
    let end = run.outcome.end;
    let fabric = &run.plan.fabric;
    let columns = vec![
        Column::text(
            "host",
            "port of a NIC, as flows name it",
            rows.iter().map(|row| fabric.host_name(row.host).into_owned()),
        ),
        Column::text(
            "direction",
            "`out` for what it sends, `in` for what is sent to it",
            rows.iter().map(|row| if row.sends { "out" } else { "in" }.to_owned()),
        ),
        Column::text("class", "traffic class", rows.iter().map(|row| row.class.to_owned())),
        Column::count(
            "bytes",
            "B",
            "bytes on the wire of the class's data, preambles and gaps included",
            rows.iter().map(|row| row.bytes),
        ),
        Column::real(
            "share",
            "-",
            "its share of the data of all classes on this link",
            rows.iter().map(|row| share(row.bytes, row.all)),
        ),
        Column::real(
            "load",
            "-",
            "its bytes / what the link carries up to the end of the run",
            rows.iter().map(|row| load(run.plan, &[row.host], row.bytes, end)),
        ),
    ];
    Some(Table::new(columns, 1))
}

fn share(bytes: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| bytes as f64 / all as f64)
}

/// Bytes over what these ports carry in a time.
fn load(plan: &Plan, hosts: &[HostId], bytes: u64, time: Time) -> Option<f64> {
    let rate: f64 = hosts.iter().map(|host| plan.line(*host).bps() as f64).sum();
    Some(bytes as f64 * 8.0 / (rate * time.as_secs())).filter(|load| load.is_finite())
}

/// By traffic class: what its senders send, over what their NICs carry from the class's first message to its last arrival.
pub(crate) fn loads(run: RunData<'_>) -> BTreeMap<String, f64> {
    let carried = carried(run);
    let of = |(class, name): (u8, &String)| {
        let mine = carried.iter().filter(|((_, sends, of), bytes)| *sends && *of == class && **bytes > 0);
        let (hosts, bytes): (Vec<HostId>, Vec<u64>) = mine.map(|((host, ..), bytes)| (*host, *bytes)).unzip();
        let records = run.plan.messages.iter().zip(&run.outcome.messages);
        let records = records.filter(|(message, _)| run.plan.jobs[usize::from(message.job)].class == class);
        let (mut first, mut last) = (Time::NEVER, Time::ZERO);
        for (_, record) in records.filter(|(_, record)| record.start != Time::NEVER) {
            let end = if record.received == Time::NEVER { run.outcome.end } else { record.received };
            (first, last) = (first.min(record.start), last.max(end));
        }
        let time = if first < last { last.since(first) } else { Time::ZERO };
        Some((name.clone(), load(run.plan, &hosts, bytes.iter().sum(), time)?))
    };
    run.classes().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use serving::Served;

    #[test]
    fn each_link_has_the_bytes_of_each_class_and_their_shares_add_up() {
        let (plan, mut outcome) = (testing::plan(3), testing::outcome(3));
        for (message, bytes) in outcome.messages.iter_mut().zip([1000, 3000, 0]) {
            message.wire_bytes = bytes;
        }
        let served = Served::default();
        let run = RunData { plan: &plan, ideal: &[], outcome: &outcome, served: Some(&served) };
        let table = table(run).unwrap();
        let out: u64 =
            std::iter::zip(table.counts("bytes").unwrap().values(), table.texts("direction").unwrap())
                .map(|(bytes, direction)| if direction == Some("out") { *bytes } else { 0 })
                .sum();
        assert_eq!(out, 4000);
        let shares = table.reals("share").unwrap();
        assert!(shares.iter().flatten().all(|share| (0.0..=1.0).contains(&share)));
        assert!(super::table(RunData { served: None, ..run }).is_none(), "no requests, no table");
        let rate = plan.line(HostId(0));
        let ms = Time::from_ms(1);
        let full = rate.bps() / 8 / 1000;
        assert_eq!(load(&plan, &[HostId(0)], full, ms), Some(1.0));
    }
}
