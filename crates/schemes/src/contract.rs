//! What the engine expects of a scheme, as a test that any scheme can be held against.
//!
//! A scheme forwards a packet by a port that leads to its destination. It leaves data as it is, sends the control packets of a queue pair to a
//! host by one port, drops and holds only what its [`crate::Facts`] say, releases all that it holds, and does the same again when it is asked the same.

use crate::SchemeConfig;
use crate::bench::{Bench, Seen, dragonfly, leaf_spine, pods, reply};
use model::annex::TAG_BITS;
use model::draw::{Key, Purpose};
use model::{Kind, Packet, Plan, PortIndex, Psn, QpId, Time, Verdict};
use std::collections::BTreeMap;

/// Holds a scheme with its defaults against the contract: random packets pass through switches of three kinds of fabrics.
///
/// # Panics
/// If the scheme breaks a rule, and if there is no scheme of that name.
pub fn hold(name: &str) {
    let Some(config) = SchemeConfig::named(name) else { panic!("there is no scheme `{name}`") };
    for switch in ["leaf0", "leaf2", "spine1", "edge0.0", "edge1.1", "up0.1", "core0.0", "g0r0", "g3r2"] {
        let fabric = || {
            let flat = switch.starts_with("leaf") || switch.starts_with("spine");
            match flat {
                true => leaf_spine(3, 4, 2),
                false if switch.starts_with('g') => dragonfly(4, 3, 2),
                false => pods(3, 2, &[2, 2]),
            }
        };
        let plan = fabric();
        let mut control = BTreeMap::new();
        let mut log = Vec::new();
        story(&config, fabric(), switch, 7, 6_000, &mut |sent, seen| {
            for signal in &seen.emitted {
                let own = signal.kind() == Kind::Signal;
                assert!(own && signal.qp() == sent.qp(), "{name} emits a packet of another queue pair");
            }
            let same = (seen.pkt.qp(), seen.pkt.to(), seen.pkt.frame());
            assert_eq!(same, (sent.qp(), sent.to(), sent.frame()), "{name} changes a packet");
            match seen.verdict {
                Verdict::Forward(port) => {
                    let known =
                        seen.ports.contains(&port) || leads_there(&plan, switch, sent, seen.via, port);
                    assert!(known, "{name} invents port {port}");
                    if sent.kind().is_control() {
                        let before = control.insert((sent.qp(), sent.to()), port);
                        assert!(before.is_none_or(|p| p == port), "{name} sprays control packets");
                    } else {
                        assert_eq!(seen.pkt, *sent, "{name} changes data");
                    }
                }
                Verdict::Drop => {
                    let heard = sent.kind() == Kind::Signal && seen.home;
                    let judged = config.facts().judges_nacks && sent.kind() == Kind::Nack;
                    assert!(judged || heard, "{name} drops a packet");
                }
                Verdict::Hold => {
                    let (here, data) = (seen.ports.len() == 1, sent.is_data());
                    assert!(here && data, "{name} holds a packet with a choice of ports");
                    assert_eq!(seen.pkt, *sent, "{name} changes data");
                }
            }
            log.push((seen.verdict, seen.pkt));
        });
        let mut again = log.iter();
        story(&config, fabric(), switch, 7, 6_000, &mut |_, seen| {
            assert_eq!(again.next(), Some(&(seen.verdict, seen.pkt)), "{name} is not reproducible");
        });
    }
}

/// Sends a switch `count` packets drawn from `seed`, and shows `look` the effects of each.
fn story(
    config: &SchemeConfig,
    mut plan: Plan,
    switch: &str,
    seed: u64,
    count: u64,
    look: &mut dyn FnMut(&Packet, Seen),
) {
    plan.seed = seed;
    let mut bench = Bench::new(&plan, switch, config);
    let key = Key::new(seed, Purpose::Workload, 0);
    for i in 0..count {
        let pick = |what, n| model::draw::below(key.draw2(i, what), n);
        let qp = QpId(pick(0, plan.qps.len()) as u32);
        let psn = Psn::new((i as u32 / 8).wrapping_sub(4).wrapping_add(pick(1, 8) as u32));
        bench.queued.iter_mut().for_each(|q| *q = pick(2, 3) as u32 * 1500);
        // A tag that any other switch may have written.
        bench.tag = key.draw2(i, 4) >> (64 - TAG_BITS);
        let mut pkt = match pick(3, 7) {
            0 => reply(&plan, Kind::Ack, qp, psn),
            1 => reply(&plan, Kind::Nack, qp, psn),
            2 => reply(&plan, Kind::Cnp, qp, psn),
            3 => reply(&plan, Kind::Signal, qp, psn),
            _ => bench.data(qp, psn),
        };
        if pkt.is_data() && pick(5, 4) == 0 {
            pkt.mark();
        }
        bench.pass(bench.now);
        let seen = bench.see(pkt);
        look(&pkt, seen);
        if bench.site().fabric().attachment(plan.qps[qp.index()].to) == bench.node {
            let emitted = bench.depart(qp, psn);
            assert!(emitted.len() <= 1);
            for nack in emitted {
                assert_eq!((nack.kind(), nack.qp()), (Kind::Nack, qp));
                assert_eq!(nack.to(), plan.qps[qp.index()].from);
                assert_eq!(nack.frame(), plan.wire.ack);
            }
        }
    }
    // The test switch checks that only held packets are released, and by ports that lead to their hosts.
    bench.queued.fill(0);
    bench.pass(Time::NEVER);
    assert!(bench.held.is_empty(), "{} holds packets for ever", config.name());
}

/// True if the packet may take the detour `via`, and `port` leads there.
fn leads_there(plan: &Plan, switch: &str, pkt: &Packet, via: Option<model::Detour>, port: PortIndex) -> bool {
    let router = plan.fabric.router(plan.fabric.find(switch).unwrap());
    let detours = router.detours(pkt.to());
    let all = (0..detours.len()).filter_map(|i| detours.get(i));
    pkt.is_data() && all.into_iter().any(|(detour, ports)| Some(detour) == via && ports.contains(&port))
}
