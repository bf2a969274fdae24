use crate::{Checked, Source, check, plan_check};
use model::{HostId, MessageId};
use proptest::prelude::*;

const FABRIC: &str = "[topology.leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 4\n[[workload]]\n";

fn checked(workload: &str) -> Checked {
    check(&Source::new("t.toml", format!("{FABRIC}{workload}")), &[]).unwrap()
}

fn pairs(c: &Checked) -> Vec<(u16, u16)> {
    let mut pairs: Vec<_> = c.plan.qps.iter().map(|qp| (qp.from.0, qp.to.0)).collect();
    pairs.sort();
    pairs
}

#[test]
fn the_rings_of_fig_1_go_from_node_i_to_node_i_plus_2() {
    let c = crate::load("themis-fig1", &[]).unwrap();
    let want: Vec<_> = (0..8u16).map(|i| (i, (i + 2) % 8)).collect();
    assert_eq!(pairs(&c), want);
    assert_eq!((c.plan.messages.len(), c.plan.jobs[0].groups), (8, 2));
    assert!(c.plan.messages.iter().all(|m| m.bytes == 100_000_000));
}

#[test]
fn an_all_reduce_moves_every_byte_twice_but_for_one_share() {
    let c = checked("all-reduce = { bytes = \"10MB\" }");
    // Four groups of four: 6 steps; chunks of 10 MB go round so that each rank sends 2 x 10 MB - 2 chunks.
    assert_eq!((c.plan.messages.len(), c.plan.qps.len()), (4 * 4 * 6, 16));
    let total: u64 = c.plan.messages.iter().map(|m| m.bytes).sum();
    assert_eq!(total, 4 * 2 * 3 * 10_000_000);
    let first = c.plan.messages.iter().filter(|m| m.needs == 0).count();
    assert_eq!(first, 16);
    let (one, two) = (&c.plan.messages[0], &c.plan.messages[1]);
    assert_eq!((one.qp, two.needs), (two.qp, 1));
    let left = c.plan.messages.iter().find(|m| {
        c.plan.triggers[m.on_received.start as usize..m.on_received.end as usize].contains(&MessageId(1))
    });
    assert_eq!(c.plan.qps[left.unwrap().qp.index()].to, c.plan.qps[one.qp.index()].from);
}

#[test]
fn an_all_to_all_cuts_the_buffer_of_a_rank_into_shares() {
    let c = crate::load("themis-fig5-alltoall", &[]).unwrap();
    assert_eq!((c.plan.messages.len(), c.plan.qps.len(), c.plan.jobs[0].groups), (3840, 3840, 16));
    assert!(c.plan.messages.iter().all(|m| m.bytes == 18_750_000 && m.needs == 0));
    let c = checked("all-to-all = { per-pair = \"1MB\", schedule = \"staggered\", groups = \"all\" }");
    assert_eq!(c.plan.messages.len(), 16 * 15);
    assert_eq!(c.plan.messages.iter().filter(|m| m.needs == 0).count(), 16);
    assert_eq!(c.plan.triggers.len(), 16 * 14);
}

#[test]
fn permutations_are_drawn_by_the_seed() {
    for kind in ["random", "cross-rack", "shift"] {
        let c = checked(&format!("permutation = {{ kind = \"{kind}\" }}"));
        let (mut from, mut to): (Vec<_>, Vec<_>) = pairs(&c).into_iter().unzip();
        from.sort();
        to.sort();
        assert_eq!((&from, from.len()), (&to, 16), "{kind}");
        if kind != "random" {
            assert!(pairs(&c).iter().all(|&(a, b)| !c.plan.fabric.same_rack(HostId(a), HostId(b))), "{kind}");
        }
        assert_eq!(pairs(&c.with_seed(2).unwrap()) == pairs(&c), kind == "shift", "{kind}");
    }
}

#[test]
fn an_incast_takes_senders_from_all_racks() {
    let c = checked("incast = { senders = 5, receiver = \"host1\" }");
    assert_eq!(pairs(&c), [(0, 1), (4, 1), (5, 1), (8, 1), (12, 1)]);
}

#[test]
fn flows_share_a_queue_pair_in_order_of_their_starts_or_have_their_own() {
    let list = r#"flows = { list = [
        { from = "host0", to = "host5", bytes = "2B", start = "9us" },
        { from = "host0", to = "host5", bytes = "1B", start = "1us" },
    ] }"#;
    let c = checked(list);
    assert_eq!(c.plan.qps.len(), 1);
    assert_eq!(c.plan.messages.iter().map(|m| m.bytes).collect::<Vec<_>>(), [1, 2]);
    let c = checked(&format!("qp = \"per-message\"\nstart = \"1us\"\n{list}"));
    assert_eq!(c.plan.qps.len(), 2);
    assert_eq!(c.plan.messages[0].start, model::Time::from_us(2));
}

#[test]
fn jobs_run_side_by_side_under_their_names() {
    let c = checked(
        "incast = {}\n[[workload]]\nincast = {}\n[[workload]]\nname = \"bg\"\nbackground = true\npermutation = {}",
    );
    let names: Vec<_> = c.plan.jobs.iter().map(|j| (j.name.as_str(), j.background)).collect();
    assert_eq!(names, [("incast", false), ("incast-2", false), ("bg", true)]);
}

proptest! {
    #[test]
    fn every_collective_makes_a_sound_plan(
        leaves in 1usize..6, hosts in 1usize..6, bytes in 1u64..100_000, size in 2usize..12,
        kind in 0usize..4, per_message: bool,
    ) {
        let rule = if size % 2 == 0 { "groups = \"all\"".into() } else { format!("groups = \"contiguous\", group-size = {size}") };
        let job = match kind {
            0 => format!("all-reduce = {{ bytes = \"{bytes}B\", {rule} }}"),
            1 => format!("all-to-all = {{ bytes = \"{bytes}B\", {rule} }}"),
            2 => format!("all-to-all = {{ bytes = \"{bytes}B\", schedule = \"staggered\", {rule} }}"),
            _ => format!("neighbour-ring = {{ bytes = \"{bytes}B\", {rule} }}"),
        };
        let qp = if per_message { "per-message" } else { "persistent" };
        let text = format!("[topology.leaf-spine]\nleaves = {leaves}\nspines = 2\nhosts-per-leaf = {hosts}\n[[workload]]\nqp = \"{qp}\"\n{job}");
        if let Ok(c) = check(&Source::new("t.toml", text), &[]) {
            prop_assert_eq!(plan_check(&c.plan), Ok(()));
        }
    }
}
