//! Claim: what a run records is chosen freely. The events of a queue pair are the same with and without series beside them.

use crate::lab::{agreed_on, lay, leaf_spine};
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

/// Two lossless queues and one of control: what leaves by each, what it marks and how long it was.
#[test]
fn queues_of_a_port_are_counted_by_themselves() {
    let text = format!(
        "{}[switch]\ndscp-map = \"sonic\"\n[nic]\ndscp = 3\n[class.background.nic]\ndscp = 4\n[record]\nqueues = true\n\
         [[workload]]\nincast = {{ senders = 7, bytes = \"300kB\" }}\n\
         [[workload]]\nclass = \"background\"\nincast = {{ senders = 7, bytes = \"300kB\" }}\n",
        leaf_spine(3, 2, 3, "rate = \"100Gbps\"\ndelay = \"1us\"")
    );
    let checked = lay(&text);
    let run = agreed_on(&checked, &text);
    let classes = checked.plan.classes.all();
    let of = |class: usize| {
        let own = run.queues.iter().filter(move |one| usize::from(one.class) == class).map(|one| one.counts);
        own.fold((0, 0, 0), |(frames, marks, longest), one| {
            (frames + one.frames, marks + one.marks, one.longest.max(longest))
        })
    };
    let data = (0..classes.len()).filter(|class| classes[*class].kinds.has(model::Kind::Data));
    for class in data {
        let (frames, marks, longest) = of(class);
        assert!(frames > 7 * 200 && marks > 0 && longest > 100_000, "{class}: {frames} {marks} {longest}");
    }
    let cnps = classes.iter().position(|class| class.kinds.has(model::Kind::Cnp)).unwrap();
    let (frames, marks, _) = of(cnps);
    assert!(frames >= run.control.cnp && marks == 0, "{frames} {}", run.control.cnp);
}
