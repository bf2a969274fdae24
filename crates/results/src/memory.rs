//! The explanation of a run that ended for lack of memory: which packets and records take it, and which settings reduce it.

use crate::text::bytes;
use engine::outcome::Memory;
use model::Plan;

/// The explanation, one line for the use of memory and one for the settings that reduce it.
pub fn explain(plan: &Plan, memory: &Memory) -> String {
    let Memory { queues, longest, in_flight, records } = *memory;
    let longest = match longest {
        Some((link, most)) => format!(", {} of them {}", bytes(most), engine::link_name(&plan.fabric, link)),
        None => String::new(),
    };
    let parts = [
        (queues, format!("packets in queues ({}{longest})", bytes(queues)), SHORTER_QUEUES),
        (in_flight, format!("packets on links ({})", bytes(in_flight)), FEWER_IN_FLIGHT),
        (records, format!("records ({})", bytes(records)), FEWER_RECORDS),
    ];
    let advice =
        parts.iter().max_by_key(|(bytes, ..)| *bytes).map_or(SHORTER_QUEUES, |(_, _, advice)| *advice);
    let mut parts = parts.to_vec();
    parts.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
    let parts: Vec<_> = parts.into_iter().map(|(_, part, _)| part).collect();
    format!("memory is taken by {}\n{advice}, or end the run earlier by `[stop] after`", parts.join(", "))
}

const SHORTER_QUEUES: &str = "shorten the queues by a smaller `[switch] buffer` or `queue-cap`, by `[nic] window`, or by another congestion control";
const FEWER_IN_FLIGHT: &str = "reduce the packets in flight by `[nic] window`, or by shorter or slower links";
const FEWER_RECORDS: &str = "record less: `[record] events`, `most-events`, `taps`, `bins`";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use model::LinkId;

    #[test]
    fn the_largest_part_comes_first_and_decides_the_advice() {
        let plan = testing::plan(1);
        let link = engine::link_name(&plan.fabric, LinkId(0));
        let queues = Memory {
            queues: 680_000_000,
            longest: Some((LinkId(0), 670_000_000)),
            in_flight: 3_000_000,
            records: 20_000_000,
        };
        assert_eq!(
            explain(&plan, &queues),
            format!(
                "memory is taken by packets in queues (680 MB, 670 MB of them {link}), records (20.0 MB), packets on \
                 links (3,000 kB)\n{SHORTER_QUEUES}, or end the run earlier by `[stop] after`"
            )
        );
        let records = explain(&plan, &Memory { records: 1_000_000_000, ..queues });
        assert!(records.starts_with("memory is taken by records (1,000 MB), packets in queues"), "{records}");
        assert!(records.contains(FEWER_RECORDS), "{records}");
    }
}
