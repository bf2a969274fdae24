//! Counters of runs under operators' names.

use counters::{View, compare, view, views};
use lab::{Prepared, Run};
use proptest::prelude::*;
use scenario::{Source, check};

/// Eight senders to one host behind a spine, with marks, CNPs and pauses; `more` are other settings.
fn incast(more: &str) -> Run {
    let text = format!(
        "[topology.leaf-spine]\nleaves = 3\nspines = 2\nhosts-per-leaf = 4\n[[workload]]\nincast = {{ senders = 8, bytes = \"300kB\" }}\n{more}"
    );
    lab::run(
        Prepared::by(|| check(&Source::new("c.toml", text), &[])).unwrap_or_else(|error| panic!("{error}")),
    )
}

fn counter(view: &View, name: &str) -> f64 {
    let found = view.counters.iter().find(|counter| counter.name == name);
    found.and_then(|counter| counter.total).unwrap_or_else(|| panic!("{name}"))
}

fn seen(run: &Run, names: &str) -> View {
    view(&run.results(Vec::new()), names, None).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_cnp_that_is_sent_is_handled_or_lost() {
    let run = incast("");
    let (nics, control) = (seen(&run, "mlx5"), run.outcome.control);
    let (sent, handled) = (counter(&nics, "np_cnp_sent"), counter(&nics, "rp_cnp_handled"));
    assert!(sent > 0.0 && sent == control.cnp as f64);
    assert!(
        handled <= sent && sent - handled <= (control.dropped + control.in_flight) as f64,
        "{sent} {handled} {control:?}"
    );
    // A packet may be marked at several ports.
    let marked: u64 = run.outcome.links.iter().map(|link| link.marks).sum();
    let arrived = counter(&nics, "np_ecn_marked_roce_packets");
    assert!(sent <= arrived && arrived <= marked as f64, "{sent} {arrived} {marked}");
    assert_eq!(counter(&nics, "out_of_sequence"), run.outcome.data.out_of_order as f64);
}

#[test]
fn a_pause_that_is_sent_arrives() {
    let run = incast("[switch]\npfc.alpha = \"1/1024\"\n[nic.congestion.none]\n");
    let (nics, ports) = (seen(&run, "mlx5"), seen(&run, "sonic"));
    let received = counter(&nics, "rx_prio#_pause") + counter(&ports, "Rx PFC#");
    let sent = counter(&nics, "tx_prio#_pause") + counter(&ports, "Tx PFC#");
    assert!(received > 0.0 && received == sent);
    assert_eq!(sent, run.outcome.control.pause as f64);
    // The receiver's switch pauses what feeds it; the receiving NIC pauses nobody.
    assert_eq!(counter(&nics, "tx_prio#_pause"), 0.0);
}

/// Ports that are out of credits have received no pause frame.
#[test]
fn times_without_credits_are_no_pauses() {
    let heavy = |more: &str| incast(&format!("[switch]\ncbfc = \"on\"\n[nic.congestion.none]\n{more}"));
    let run = heavy("");
    assert!(run.outcome.links.iter().any(|link| link.pauses > 0) && run.outcome.control.pause == 0);
    let why = |run: &Run, of: &str, name: &str| {
        let view = seen(run, of);
        let found = view.counters.iter().find(|counter| counter.name == name);
        let counter = found.unwrap_or_else(|| panic!("{name}"));
        assert!(counter.total.is_none() && counter.most.is_none() && counter.by_port.is_empty(), "{name}");
        assert!(view.text().contains(counter.source));
        counter.source
    };
    let names = [
        ("mlx5", "rx_prio#_pause"),
        ("mlx5", "tx_prio#_pause"),
        ("mlx5", "rx_prio#_pause_duration"),
        ("sonic", "Rx PFC#"),
        ("sonic", "SAI_PORT_STAT_PFC_#_ON2OFF_RX_PKTS"),
        ("junos", "PFC priority # tx"),
    ];
    for (of, name) in names {
        assert_eq!(why(&run, of, name), "credits, no pause frames");
    }
    // A scheme that pauses sends frames beside credits, and the columns have both.
    let both = heavy("[scheme.flowcut]\ndeployment = \"full\"\nbackpressure = \"class\"\n");
    assert!(both.outcome.control.pause > 0);
    assert!(why(&both, "mlx5", "rx_prio#_pause").contains("not told apart"));
}

/// A cable that dies ends the job with one queue pair without retries.
#[test]
fn a_queue_pair_without_retries_is_where_operators_look() {
    let dead = "[nic]\ntimeout = { fixed = \"50us\" }\nretries = 2\n[[failure]]\nlinks = [[\"host0\", \"leaf0\"]]\nat = \"10us\"\n";
    let nics = seen(&incast(dead), "mlx5");
    assert_eq!(counter(&nics, "req_transport_retries_exceeded"), 1.0);
    assert!(counter(&nics, "local_ack_timeout_err") >= 3.0);
    assert_eq!(counter(&seen(&incast(""), "mlx5"), "req_transport_retries_exceeded"), 0.0);
}

/// With queues by themselves, the counts of a port's queues add up to those of the port.
#[test]
fn queues_add_up_to_their_port() {
    let run = incast("[record]\nqueues = true\n");
    let results = run.results(Vec::new());
    let (queues, links) = (results.table("queues").unwrap(), results.table("links").unwrap());
    let sum = |name: &str| queues.counts(name).unwrap().values().iter().sum::<u64>();
    let roles = links.texts("role").unwrap();
    let of_switches = |name: &str| {
        let counts = links.counts(name).unwrap();
        (0..links.rows()).filter(|row| roles.value(*row) != "host").map(|row| counts.value(row)).sum::<u64>()
    };
    for name in ["frames", "bytes", "drops", "marks"] {
        assert_eq!(sum(name), of_switches(name), "{name}");
    }
    assert!(incast("").results(Vec::new()).table("queues").is_none());
}

/// `show queue counters` and `show queue watermark` have a row per queue: the rows add up to the port, and the longest queue of a switch
/// with one queue of data is that of the port.
#[test]
fn queues_are_printed_under_the_names_of_the_switch() {
    let run = incast("[record]\nqueues = true\n");
    for (of, frames, longest) in
        [("sonic", "Counter/pkts", "UC#"), ("junos", "Transmitted packets", "Queue-depth bytes peak")]
    {
        let ports = seen(&run, of);
        let queues = ports.details.iter().find(|details| details.by == "queue").unwrap();
        let at = |name: &str| queues.counters.iter().position(|counter| *counter == name).unwrap();
        let column = |name: &str| {
            let at = at(name);
            queues.rows.iter().map(move |row| &row.counts[at]).collect::<Vec<_>>()
        };
        assert_eq!(column(frames).iter().map(|count| count.total).sum::<f64>(), counter(&ports, frames));
        let most = column(longest).into_iter().max_by(|a, b| a.total.total_cmp(&b.total)).unwrap();
        assert_eq!(most.total, counter(&ports, longest));
        let port = most.at.clone().unwrap();
        let one = view(&run.results(Vec::new()), of, Some(&port)).unwrap();
        let of_port: f64 = one.details[0].rows.iter().map(|row| row.counts[at(frames)].total).sum();
        assert_eq!((one.ports.len(), of_port), (1, counter(&one, frames)), "{port}");
        assert!(ports.text().contains("packets of"));
    }
    assert!(seen(&run, "mlx5").details.is_empty());
    let plain = seen(&incast(""), "sonic");
    assert!(plain.details.is_empty());
    let why = plain.counters.iter().find(|one| one.name == "shared PG#").map(|one| (one.total, one.source));
    assert_eq!(why, Some((None, "`record.queues = true` counts it")));
}

/// A priority group holds its share of the pool, then headroom, and pauses when it takes the first byte of headroom.
#[test]
fn a_priority_group_that_takes_headroom_has_paused() {
    let record = "[record]\nqueues = true\n[nic.congestion.none]\n[switch]\n";
    let quiet = incast(&format!("{record}buffer = \"64MB\"\n"));
    let heavy = incast(&format!("{record}pfc.alpha = \"1/1024\"\n"));
    for run in [&quiet, &heavy] {
        let results = run.results(Vec::new());
        let (groups, links) = (results.table("priority_groups").unwrap(), results.table("links").unwrap());
        let (to, ports) = (links.texts("to").unwrap(), links.counts("peer_port").unwrap());
        let pauses: std::collections::BTreeMap<(String, u64), u64> = (0..links.rows())
            .map(|row| {
                ((to.value(row).to_owned(), ports.value(row)), links.counts("pauses").unwrap().value(row))
            })
            .collect();
        let (nodes, port) = (groups.texts("node").unwrap(), groups.counts("port").unwrap());
        let [shared, headroom] =
            ["max_shared_bytes", "max_headroom_bytes"].map(|name| groups.counts(name).unwrap());
        for row in 0..groups.rows() {
            let paused = pauses[&(nodes.value(row).to_owned(), port.value(row))];
            assert_eq!(headroom.value(row) > 0, paused > 0, "{} {}", nodes.value(row), port.value(row));
        }
        // What a switch holds at one time is at most the sum of what its groups have ever held, and at least the most of one.
        let pools = results.table("pools").unwrap();
        for row in 0..pools.rows() {
            let node = pools.texts("node").unwrap().value(row);
            let own = || (0..groups.rows()).filter(|row| nodes.value(*row) == node);
            for (name, column) in [("max_shared_bytes", shared), ("max_headroom_bytes", headroom)] {
                let all = pools.counts(name).unwrap().value(row);
                let (most, sum) =
                    (own().map(|row| column.value(row)).max(), own().map(|row| column.value(row)).sum());
                assert!(most.is_some_and(|most| most <= all) && all <= sum, "{node} {name}: {all}");
            }
        }
    }
    let (few, many) = (seen(&quiet, "sonic"), seen(&heavy, "sonic"));
    assert_eq!([counter(&few, "headroom PG#"), counter(&few, "Tx PFC#")], [0.0, 0.0]);
    assert!(counter(&few, "shared PG#") > 100_000.0);
    let most = |name: &str| many.counters.iter().find(|one| one.name == name).unwrap().most.clone().unwrap();
    let (port, bytes) = most("headroom PG#");
    let (node, all) = most("headroom ingress_lossless_pool");
    assert!(bytes > 0.0 && all >= bytes && port.starts_with(&node) && !node.contains(':'), "{port} {node}");
    assert!(many.details.iter().any(|details| details.by == "priority group" && !details.rows.is_empty()));
}

/// With the rule of one cell for each packet, a group's watermark is whole cells, and room that is reserved is not shared.
#[test]
fn watermarks_count_cells_and_leave_reserved_room_out() {
    let run = |guarantee: &str| {
        let cells = format!("cell = \"10kB\"\nguarantee = \"{guarantee}\"\nbuffer = \"400MB\"\n");
        let all = incast(&format!("[record]\nqueues = true\n[nic.congestion.none]\n[switch]\n{cells}"));
        counter(&seen(&all, "sonic"), "shared PG#")
    };
    let plain = run("0B");
    assert!(plain > 1e6 && plain % 10_000.0 == 0.0, "{plain}");
    assert_eq!(run("200kB"), plain - 200_000.0);
}

/// What adaptive switching has moved is counted for all switches together, and only by it.
#[test]
fn moves_of_adaptive_switching_have_their_name() {
    let name = "SAI_NEXT_HOP_GROUP_ATTR_ARS_NEXT_HOP_REASSIGNMENTS";
    let of = |run: &Run, at: Option<&str>| {
        let view = view(&run.results(Vec::new()), "sonic", at).unwrap();
        let found = view.counters.into_iter().find(|one| one.name == name).unwrap();
        (found.total, found.source)
    };
    let run = incast("[scheme.ars]\nmode = \"flowlet-random\"\nidle = \"1ns\"\n");
    let moves =
        run.outcome.counters.iter().find(|(name, _)| *name == "ars_moves").map(|found| found.1 as f64);
    assert!(moves > Some(0.0));
    assert_eq!(of(&run, None).0, moves);
    assert_eq!(of(&run, Some("leaf0")), (None, "counted for all switches together"));
    assert_eq!(of(&incast(""), None), (None, "the run's scheme does not count it"));
}

/// A frame that noise takes is a gap at the far end and a replay at the near one.
#[test]
fn a_gap_at_one_end_is_a_replay_at_the_other() {
    let run = incast("[links]\nllr = \"on\"\n[[failure]]\nlinks = [[\"leaf*\", \"spine*\"]]\nloss = 0.01\n");
    let ports = seen(&run, "sonic");
    let [replays, gaps] =
        ["TX_REPLAY", "RX_MISSING_SEQ"].map(|name| counter(&ports, &format!("SAI_PORT_STAT_LLR_{name}")));
    assert!(replays > 0.0 && replays == gaps, "{replays} {gaps}");
}

/// SONiC's queues 3 and 4 are lossless: each pauses by itself.
#[test]
fn lossless_queues_pause_apart() {
    let run = incast(
        "[switch]\ndscp-map = \"sonic\"\npfc.alpha = \"1/1024\"\n[nic]\ndscp = 3\n[nic.congestion.none]\n\
         [class.background.nic]\ndscp = 4\n\
         [[workload]]\nclass = \"background\"\nincast = { senders = 8, bytes = \"300kB\" }\n",
    );
    let results = run.results(Vec::new());
    let links = results.table("links").unwrap();
    let sum = |name: &str| links.counts(name).unwrap().values().iter().sum::<u64>();
    let [all, one, other, ends] = ["pauses", "pauses_p0", "pauses_p1", "resumes"].map(sum);
    assert!(one > 0 && other > 0 && one + other == all, "{one} {other} {all}");
    let time = |name: &str| links.reals(name).unwrap().values().iter().sum::<f64>();
    let [paused, one, other] = ["paused_us", "paused_us_p0", "paused_us_p1"].map(time);
    assert!(
        one > 0.0 && other > 0.0 && paused <= one + other && paused >= one.max(other),
        "{paused} {one} {other}"
    );
    assert_eq!(ends, all, "every pause has ended");
    let ports = seen(&run, "sonic");
    let nics = counter(&ports, "SAI_PORT_STAT_PFC_#_ON2OFF_RX_PKTS");
    assert!(nics > 0.0 && nics <= ends as f64);
    let plain = incast("").results(Vec::new());
    assert!(
        plain.table("links").unwrap().counts("pauses_p0").is_none(),
        "one priority needs no column of its own"
    );
}

#[test]
fn a_storm_is_where_operators_look() {
    let watchdog = "detection-time = \"1ms\", restoration-time = \"1ms\"";
    let run = incast(&format!(
        "[switch]\npfc.watchdog = {{ {watchdog} }}\n[[failure]]\nstorm = [\"host0\"]\nuntil = \"4ms\"\n"
    ));
    let ports = seen(&run, "sonic");
    let [found, over, out, into] =
        ["STORM DETECTED", "STORM RESTORED", "TX DROP", "RX DROP"].map(|name| counter(&ports, name));
    assert!(found >= 1.0 && over == found, "{found} {over}");
    let lost = run.outcome.data.dropped_watchdog + run.outcome.control.dropped;
    assert!(out > 0.0 && out + into == lost as f64, "{out} {into} {lost}");
    // The host has sent what its switch has received.
    let pauses = counter(&seen(&run, "mlx5"), "tx_prio#_pause");
    assert!(pauses > 10.0 && pauses + counter(&ports, "Tx PFC#") == run.outcome.control.pause as f64);
}

/// A NIC that may not pause discards what its slow host has no room for; one that pauses, or whose host is fast, loses nothing.
#[test]
fn what_a_slow_host_has_no_room_for_is_where_operators_look() {
    let slow = |pause: bool| {
        let pfc = if pause { "on" } else { "off" };
        let queue = format!("rate = \"20Gbps\", buffer = \"50kB\", pause = {pause}, hosts = [\"host0\"]");
        incast(&format!("[nic]\nreceive = {{ {queue} }}\n[nic.congestion.none]\n[switch]\npfc = \"{pfc}\"\n"))
    };
    let discards = |run: &Run| counter(&seen(run, "mlx5"), "rx_discards_phy");
    let run = slow(false);
    let nics = seen(&run, "mlx5");
    let lost = discards(&run);
    let of_run =
        run.outcome.counters.iter().find(|(name, _)| *name == "receive_discards").map(|found| found.1);
    assert!(lost > 0.0 && of_run == Some(lost as u64), "{lost} {of_run:?}");
    let most = nics.counters.iter().find(|one| one.name == "rx_discards_phy").unwrap();
    assert_eq!(most.most, Some(("host0".to_owned(), lost)), "no other NIC has lost any");
    let arrived = counter(&nics, "rx_vport_rdma_unicast_packets");
    assert!(lost <= run.outcome.data.discarded as f64 && lost < arrived, "{lost} of {arrived}");
    let paused = slow(true);
    assert!(counter(&seen(&paused, "mlx5"), "tx_prio#_pause") > 0.0);
    assert_eq!([discards(&paused), discards(&incast(""))], [0.0, 0.0]);
}

/// A NIC that loses bursts at a full port counts them as well.
#[test]
fn bursts_lost_at_a_full_port_are_discards_of_the_nic() {
    let run = incast(
        "[nic]\ningress = { above = \"80Gbps\", loss = 0.02, burst = 4, interval = \"5us\" }\n[nic.congestion.none]\n",
    );
    let lost =
        run.outcome.counters.iter().find(|(name, _)| *name == "ingress_losses").map_or(0, |found| found.1);
    assert!(lost > 0);
    assert_eq!(counter(&seen(&run, "mlx5"), "rx_discards_phy"), lost as f64);
}

#[test]
fn losses_of_a_lossy_fabric_are_where_operators_look() {
    let run = incast("[switch]\npfc = \"off\"\nbuffer = \"200kB\"\n[nic.congestion.none]\n");
    let (nics, ports, control) = (seen(&run, "mlx5"), seen(&run, "sonic"), run.outcome.control);
    let drops = counter(&ports, "Drop/pkts");
    assert!(drops > 0.0 && drops == run.outcome.data.dropped_buffer as f64);
    let lost = (control.blocked + control.dropped + control.in_flight) as f64;
    let nacks = counter(&nics, "packet_seq_err");
    assert!(nacks > 0.0 && control.nack as f64 - nacks <= lost, "{nacks} {control:?}");
    let spine = view(&run.results(Vec::new()), "sonic", Some("spine0")).unwrap();
    assert!(spine.ports.iter().all(|port| port.starts_with("spine0:")) && !spine.ports.is_empty());
    assert!(
        view(&run.results(Vec::new()), "sonic", Some("spine9"))
            .unwrap_err()
            .to_string()
            .contains("no switch `spine9`; did you mean `spine")
    );
    let unknown = view(&run.results(Vec::new()), "eos", None).unwrap_err().to_string();
    assert!(unknown.contains("`mlx5`, `sonic`, `junos`"), "{unknown}");
}

#[test]
fn a_dump_stands_beside_the_run_in_shares_and_rates() {
    let nics = seen(&incast(""), "mlx5");
    let dump = "NIC statistics:\n     rx_vport_rdma_unicast_packets: 1000\n     np_ecn_marked_roce_packets: 10\n     rx_discards_phy: 0\n     out_of_buffer: 4\n";
    let later = dump.replace("1000", "3000").replace(": 10\n", ": 110\n");
    let both = compare(&nics, &format!("{dump}{later}"), Some(10.0)).unwrap();
    let of = |name: &str| both.counters.iter().find(|one| one.name == name).unwrap();
    let marked = of("np_ecn_marked_roce_packets");
    assert_eq!(
        (both.readings, both.devices, marked.dump_share, marked.dump_rate),
        (2, 1, Some(0.05), Some(10.0))
    );
    assert!(marked.run_share.is_some_and(|share| share > 0.0 && share < 1.0));
    assert!(
        of("out_of_buffer").note.contains("always have a buffer")
            && of("np_cnp_sent").note == "the dump lacks it"
    );
    assert!(both.text().contains("2 readings"));
    // A count that the dump has under one of its names is not missing under the other.
    assert!(both.counters.iter().all(|one| one.name != "rx_prio#_discards"));
    assert_eq!(compare(&nics, dump, None).unwrap().readings, 1);
    assert!(compare(&nics, dump, Some(0.0)).unwrap_err().to_string().contains("seconds above 0"));
    let none = compare(&nics, "hello\n", None).unwrap_err().to_string();
    assert!(none.contains("the dump has no counter of mlx5"), "{none}");
}

/// Every count of the table of names is a column, and every share has its base.
#[test]
fn names_lead_to_columns() {
    let results = incast("[record]\nqueues = true\n").results(Vec::new());
    let columns = |table: &str| {
        results
            .table(table)
            .unwrap()
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect::<Vec<_>>()
    };
    let (nics, links) = (columns("nics"), columns("links"));
    let sprayed = incast("[scheme.ars]\n").results(Vec::new());
    let [queues, groups, pools] = ["queues", "priority_groups", "pools"].map(columns);
    for line in include_str!("../src/names.tsv").lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(fields.len(), 8, "{line}");
        let known = match fields[3].split_once('.') {
            None => fields[3] == "-",
            Some(("nics", column)) => nics.iter().any(|own| own == column),
            Some(("queues", column)) => queues.iter().any(|own| own == column),
            Some(("groups", column)) => groups.iter().any(|own| own == column),
            Some(("pools", column)) => pools.iter().any(|own| own == column),
            Some(("run", counter)) => sprayed.summary.counters.contains_key(counter),
            Some((_, column)) => links.iter().any(|own| own == column),
        };
        assert!(known, "{line}");
    }
    for names in views() {
        let view = view(&results, names, None).unwrap();
        for per in view.counters.iter().filter_map(|counter| counter.per) {
            assert!(
                view.counters.iter().any(|counter| counter.name == per && counter.total.is_some()),
                "{per}"
            );
        }
        assert!(view.text().contains("not counted"));
    }
}

proptest! {
    #[test]
    fn no_dump_causes_a_panic(words in prop::collection::vec("(link|Port|Rx|Tx|TxQ|PFC3|PG0|UC1|Queue:|Physical interface:|Priority|occupancy per |  Transmitted:|Peak|Drop/pkts|Counter/pkts|np_cnp_sent|:|\n|-|[0-9,]{1,22}|.{0,4})", 0..60)) {
        thread_local!(static VIEWS: Vec<View> = { let run = incast(""); views().into_iter().map(|names| seen(&run, names)).collect() });
        VIEWS.with(|views| for view in views { let _ = compare(view, &words.join(" "), Some(1.0)).map(|comparison| comparison.text()); });
    }
}
