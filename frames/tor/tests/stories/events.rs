//! Which packets an injected event meets: a table of rules over one stream of packets.

use crate::lab::{Lab, Transfer};
use tor::events::{Action, Matched, Rule};
use tor::{Event, PortId, Rate, Settings};
use wire::aeth::{self, Syndrome};
use wire::bth::Opcode;
use wire::ecn::Ecn;
use wire::roce::Extension;

/// Queue pair and PSN of the packets that a rule hits. Host 0 sends to the queue pairs 18 and 28 in turn, from the PSNs 100 and
/// 200 on. Host 1 sends to queue pair 38 from PSN 300 on, and acknowledges what has come to 18 after every second packet.
fn hits(rule: Rule) -> Vec<(u32, u32)> {
    let mut settings = Settings::of_ports(2);
    settings.events = vec![rule];
    let mut lab = Lab::new(&settings, Rate::from_bits(1_000_000_000).unwrap(), &[]);
    let of = |from, qps, first_psn| Transfer { from, to: 1 - from, qps, first_psn, ..Transfer::default() };
    let connections = [of(0, (17, 18), 100), of(0, (27, 28), 200), of(1, (37, 38), 300)];
    let data = |lab: &mut Lab, n: usize, psn| {
        let t = &connections[n];
        let frame = t.frame(true, Opcode::SendOnly, psn, Extension::None, 64, false, 0, Ecn::Ect0);
        lab.enter(PortId(t.from as u16), frame);
    };
    for psn in 0..8 {
        (0..3).for_each(|n| data(&mut lab, n, psn));
        if psn % 2 == 1 {
            let aeth = Extension::Aeth(aeth::Repr { syndrome: Syndrome::ACK, msn: 0 });
            let ack = connections[0].frame(false, Opcode::Acknowledge, psn, aeth, 0, false, 0, Ecn::NotEct);
            lab.enter(PortId(1), ack);
        }
    }
    let hit = lab.log.iter().filter_map(|note| match note.event {
        Event::Injected { packet, .. } => packet.map(|label| (label.qp.value(), label.psn.value())),
        _ => None,
    });
    hit.collect()
}

#[test]
fn a_rule_meets_the_packets_that_it_names() {
    let all = (1, u64::MAX);
    let drop = || Rule::new(Action::Drop);
    let of = |qp: u32, psns: &[u32]| psns.iter().map(|psn| (qp, *psn)).collect::<Vec<_>>();
    let table = [
        ("the first data packet", drop(), of(18, &[100])),
        ("from the other port", Rule { from: Some(PortId(1)), ..drop() }, of(38, &[300])),
        (
            "of the second connection",
            Rule { connection: Some(2), nth: (2, 3), ..drop() },
            of(28, &[201, 202]),
        ),
        ("of a connection that does not exist", Rule { connection: Some(3), nth: all, ..drop() }, vec![]),
        (
            "so far from the first PSN",
            Rule { psn: Some(5), nth: all, ..drop() },
            vec![(18, 105), (28, 205), (38, 305)],
        ),
        (
            "with a remainder",
            Rule { connection: Some(1), from: Some(PortId(0)), psn_mod: Some((4, 1)), nth: all, ..drop() },
            of(18, &[101, 105]),
        ),
        (
            "each third from the second on",
            Rule { from: Some(PortId(1)), every: 3, nth: (2, 7), ..drop() },
            of(38, &[303, 306]),
        ),
        ("ACKs", Rule { kind: Matched::Ack, nth: (2, 3), ..drop() }, of(17, &[103, 105])),
        (
            "ACKs are connections of their own",
            Rule { kind: Matched::Ack, connection: Some(1), ..drop() },
            of(17, &[101]),
        ),
        ("none of another kind", Rule { kind: Matched::Nack, nth: all, ..drop() }, vec![]),
        (
            "all from the sixth on",
            Rule { from: Some(PortId(1)), nth: (6, 6), ..Rule::new(Action::Stop) },
            of(38, &[305, 306, 307]),
        ),
    ];
    for (what, rule, expected) in table {
        assert_eq!(hits(rule), expected, "{what}");
    }
}
