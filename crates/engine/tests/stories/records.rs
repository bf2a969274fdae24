//! Claim: what a run records is chosen freely. The events of a queue pair are the same with and without series beside them.

use crate::lab::{agreed_on, lay};
use model::{LinkId, QpId, Time};

#[test]
fn the_events_of_a_followed_queue_pair_need_no_series_of_it() {
    let text = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\nrate = \"100Gbps\"\ndelay = \"1us\"\n\
                [scheme.rps]\n[nic.transport.nic-sr]\n[nic.congestion.none]\n\
                [[workload]]\npermutation = { bytes = \"100kB\" }\n";
    let mut checked = lay(text);
    let mut events_with = |qps: &[u32], links: &[u32]| {
        let record = &mut checked.plan.record;
        record.qps = qps.iter().copied().map(QpId).collect();
        record.links = links.iter().copied().map(LinkId).collect();
        (record.follow, record.events) = (vec![QpId(1)], 10_000);
        (record.width, record.bins) = (Time::from_us(2), 16);
        let run = agreed_on(&checked, text);
        run.notes.events.iter().map(|event| (event.at, event.what, event.psn)).collect::<Vec<_>>()
    };
    let alone = events_with(&[], &[]);
    assert!(alone.len() > 100, "{} events", alone.len());
    for (qps, links) in [(&[1][..], &[][..]), (&[0], &[]), (&[], &[0, 3]), (&[0, 2], &[1])] {
        assert_eq!(events_with(qps, links), alone, "series of queue pairs {qps:?} and links {links:?}");
    }
}
