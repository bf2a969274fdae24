//! Claim: a receiver's penalty leaves its sender one packet per round trip, and the window is back once the penalty is over.

use crate::lab::{agreed_on, lay};

/// Data packets that one sender puts on its link in 1 ms at 100 Gb/s, when its receiver asks for these penalties.
fn sent(transport: &str, penalties: &str) -> u64 {
    let text = format!(
        "[topology.leaf-spine]\nleaves = 2\nspines = 1\nhosts-per-leaf = 1\nrate = \"100Gbps\"\ndelay = \"2us\"\n\
         [wire]\nframe = \"4158B\"\n[switch]\npfc = \"off\"\n[nic]\ntimeout = {{ fixed = \"500us\" }}\n\
         [nic.transport.{transport}]\npenalties = [{penalties}]\n[nic.congestion.nscc]\n[stop]\nafter = \"1ms\"\n\
         [[workload]]\nflows = {{ list = [{{ from = \"host0\", to = \"host1\", bytes = \"100MB\" }}] }}\n"
    );
    agreed_on(&lay(&text), &text).data.sent
}

#[test]
fn the_largest_penalty_leaves_one_packet_per_round_trip() {
    for transport in ["uec", "mrc"] {
        let free = sent(transport, "");
        assert!(free > 2_800, "{transport}: {free} packets of 0.33 us");
        // A round trip takes 16 us and four frames of 0.33 us, so 1 ms has 57 of them. The first window has 78 packets.
        let penalised = sent(transport, "{ share = 127 }");
        assert!((57..150).contains(&penalised), "{transport}: {penalised}");
        let half = sent(transport, "{ until = \"500us\" }");
        let share = half as f64 / free as f64;
        assert!((0.45..0.6).contains(&share), "{transport}: {half} of {free}");
    }
}
