//! `nics.parquet`: one row per port of a NIC.

use crate::data::RunData;
use crate::table::{Column, Table};
use engine::outcome::{Ending, NicRecord};
use model::HostId;

/// Name, unit and meaning of a column, and its count.
type Count = (&'static str, &'static str, &'static str, fn(&NicRecord) -> u64);

const PACKETS: &str = "packets";

const COUNTS: [Count; 14] = [
    ("sent", PACKETS, "data packets put on the wire; retransmissions included", |nic| nic.sent),
    ("retransmitted", PACKETS, "packets retransmitted", |nic| nic.retransmitted),
    ("accepted", PACKETS, "data packets accepted", |nic| nic.accepted),
    ("duplicate", PACKETS, "arrivals of packets that it already had", |nic| nic.duplicate),
    ("discarded", PACKETS, "arrivals that it discarded", |nic| nic.discarded),
    (
        "no_room",
        PACKETS,
        "arrivals among these without room in the NIC: its queue was full (`nic.receive`), or they came in a burst of losses at a full port (`nic.ingress`)",
        |nic| nic.no_room,
    ),
    ("out_of_order", PACKETS, "arrivals with a PSN above the ePSN", |nic| nic.out_of_order),
    ("marked", PACKETS, "arrivals of data with a mark", |nic| nic.marked),
    ("acks_sent", PACKETS, "ACKs sent", |nic| nic.acks_sent),
    ("nacks_sent", PACKETS, "NACKs sent", |nic| nic.nacks_sent),
    ("nacks_received", PACKETS, "NACKs that arrived", |nic| nic.nacks_received),
    ("cnps_sent", PACKETS, "CNPs sent", |nic| nic.cnps_sent),
    ("cnps_received", PACKETS, "CNPs that arrived", |nic| nic.cnps_received),
    ("timeouts", "events", "retransmission timeouts", |nic| nic.timeouts),
];

/// The ports at which queue pairs have used up their retries.
fn exceeded(run: RunData<'_>) -> Vec<HostId> {
    let moved = run.outcome.failovers.iter().map(|failover| failover.from);
    let ended = match &run.outcome.ending {
        Ending::RetryExceeded(exceeded) => Some(run.plan.qps[exceeded.qp.index()].from),
        _ => None,
    };
    moved.chain(ended).collect()
}

/// The table of NICs. A NIC whose ports serve all its queue pairs has its counts in the row of its first port.
pub fn table(run: RunData<'_>) -> Table {
    let fabric = &run.plan.fabric;
    let hosts = || (0..run.outcome.nics.len() as u32).map(HostId);
    let name = |host| fabric.host_name(host).into_owned();
    let mut columns = vec![
        Column::text("host", "port of a NIC, as flows name it", hosts().map(name)),
        Column::text(
            "node",
            "host that the NIC is in",
            hosts().map(|host| fabric.name(fabric.node_of(host)).to_owned()),
        ),
        Column::count("port", "-", "port of the host", hosts().map(|host| fabric.uplink(host).port.0.into())),
    ];
    let counts = COUNTS
        .iter()
        .map(|(key, unit, about, count)| Column::count(key, unit, about, run.outcome.nics.iter().map(count)));
    columns.extend(counts);
    let exceeded = exceeded(run);
    let of = hosts().map(|host| exceeded.iter().filter(|other| **other == host).count() as u64);
    let about = "queue pairs that used up their retries: each has moved to another port or has ended the run";
    columns.push(Column::count("retries_exceeded", "events", about, of));
    Table::new(columns, 1)
}
