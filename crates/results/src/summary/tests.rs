use super::*;
use crate::stats::Spread;
use crate::testing;
use crate::{METRICS, metrics::Shown};
use engine::outcome::MessageRecord;
use model::plan::Job;

fn summary(plan: &Plan, outcome: &Outcome) -> Summary {
    let ideal = vec![Time::from_us(5); plan.messages.len()];
    let title = Title { scenario: "test", scheme: "ecmp" };
    Summary::new(title, plan, &ideal, outcome, Timing::default())
}

#[test]
fn three_flows_by_hand() {
    // 12,500 B in 10, 20 and 30 us: 10, 5 and 3.33 Gb/s.
    let s = summary(&testing::plan(3), &testing::outcome(3));
    assert!(s.complete);
    assert_eq!(s.flows.count, 3);
    assert_eq!(s.flows.bytes, 37_500);
    assert_eq!(s.flows.fct_us, Some(Spread { mean: 20.0, p50: 20.0, p99: 30.0, max: 30.0, tail_mean: None }));
    assert_eq!(s.flows.slowdown, Some(Spread { mean: 4.0, p50: 4.0, p99: 6.0, max: 6.0, tail_mean: None }));
    let goodput = s.goodput_gbps.mean.unwrap();
    assert!((goodput - (10.0 + 5.0 + 10.0 / 3.0) / 3.0).abs() < 1e-9, "{goodput}");
    assert!((s.goodput_gbps.min.unwrap() - 10.0 / 3.0).abs() < 1e-9);
    // 20,000 wire bytes until 8, 18, 28 us at 100 Gb/s.
    let fraction = s.sending_rate_fraction.mean.unwrap();
    assert!((fraction - (0.2 + 0.16 / 1.8 + 0.16 / 2.8) / 3.0).abs() < 1e-9, "{fraction}");
    assert_eq!(s.classes.keys().collect::<Vec<_>>(), ["foreground"]);
}

#[test]
fn a_group_is_done_when_its_last_rank_has_received() {
    // Flow 0 and 2 form group 0, flow 1 group 1; received 1 us before acknowledged.
    let s = summary(&testing::plan(3), &testing::outcome(3));
    let times = &s.jobs["job"].groups.completion_us;
    assert_eq!(*times, Completion { slowest: Some(29.0), mean: Some(24.0), fastest: Some(19.0) });
}

#[test]
fn flows_of_different_sizes_are_told_apart_by_powers_of_ten() {
    let mut plan = testing::plan(5);
    for (message, bytes) in plan.messages.iter_mut().zip([1, 1_000, 1_001, 10_000, 10_001]) {
        message.bytes = bytes;
    }
    let mut outcome = testing::outcome(5);
    outcome.messages[2].acked = Time::NEVER;
    let s = summary(&plan, &outcome);
    let edges = |b: &SizeBucket| (b.over_bytes, b.up_to_bytes, b.count, b.finished, b.bytes);
    assert_eq!(
        s.flows.by_size.iter().map(edges).collect::<Vec<_>>(),
        [
            (0, 1, 1, 1, 1),
            (100, 1_000, 1, 1, 1_000),
            (1_000, 10_000, 2, 1, 11_001),
            (10_000, 100_000, 1, 1, 10_001)
        ]
    );
    // Message 3 took 40 us, eight times its ideal; message 2, beside it, never finished.
    let third = &s.flows.by_size[2];
    assert_eq!((third.fct_us.unwrap().mean, third.slowdown.unwrap().mean), (40.0, 8.0));
    let json: serde_json::Value = serde_json::from_str(&s.to_json()).unwrap();
    let keys: Vec<&String> = json["flows"]["by_size"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["over_bytes", "up_to_bytes", "count", "finished", "bytes", "fct_us", "slowdown"]);
    let alike = summary(&testing::plan(5), &testing::outcome(5));
    assert!(alike.flows.by_size.is_empty() && alike.to_json().contains("\"by_size\": []"));
}

#[test]
fn an_unfinished_flow_is_never_passed_off() {
    let mut outcome = testing::outcome(3);
    outcome.messages[2] = MessageRecord { start: Time::ZERO, ..MessageRecord::default() };
    let s = summary(&testing::plan(3), &outcome);
    assert!(!s.complete);
    assert_eq!((s.flows.count, s.flows.finished), (3, 2));
    let times = &s.jobs["job"].groups.completion_us;
    assert_eq!((times.slowest, times.mean, times.fastest), (None, None, Some(19.0)));
}

#[test]
fn flows_that_a_low_rate_held_for_most_of_their_time_are_counted_and_warned_of() {
    let plan = testing::plan(3);
    let mut outcome = testing::outcome(3);
    let plain = summary(&plan, &outcome);
    assert!(plain.flows.throttled == 0 && crate::caution::of_rates(&[&plain]).is_none());
    outcome.messages[0].slow = Time::from_us(5); // half of its 10 us
    outcome.messages[2].slow = Time::from_us(16); // more than half of its 30 us
    let s = summary(&plan, &outcome);
    assert_eq!(s.flows.throttled, 1);
    let caution = crate::caution::of_rates(&[&plain, &s]).unwrap();
    assert!(caution.contains("held 1 of 3 flows for most of their time (under "), "{caution}");
}

#[test]
fn background_flows_do_not_count_for_completeness() {
    let mut plan = testing::plan(3);
    plan.jobs.push(Job {
        name: "bg".into(),
        start: Time::ZERO,
        groups: 1,
        background: true,
        class: 1,
        tokens: 0,
    });
    (plan.messages[2].job, plan.messages[2].group) = (1, 0);
    let mut outcome = testing::outcome(3);
    outcome.messages[2].acked = Time::NEVER;
    let s = summary(&plan, &outcome);
    assert!(s.complete);
    assert_eq!(s.classes["background"].finished, 0);
    assert_eq!(s.classes["foreground"].finished, 2);
    assert!((s.goodput_gbps.mean.unwrap() - 7.5).abs() < 1e-9);
}

#[test]
fn a_drop_on_a_lossless_fabric_makes_a_run_incomplete() {
    let mut outcome = testing::outcome(3);
    outcome.broke_lossless.push(model::NodeId(2));
    assert!(!summary(&testing::plan(3), &outcome).complete);
}

#[test]
fn disorder_is_told_apart_by_class_where_there_are_several() {
    let mut plan = testing::plan(3);
    let mut outcome = testing::outcome(3);
    assert!(summary(&plan, &outcome).packets.out_of_order_by_class.is_empty());
    plan.jobs.push(model::plan::Job { name: "noise".into(), class: 1, ..plan.jobs[0].clone() });
    outcome.out_of_order = vec![4, 9];
    let by_class = summary(&plan, &outcome).packets.out_of_order_by_class;
    assert_eq!(by_class, BTreeMap::from([("background".into(), 9), ("foreground".into(), 4)]));
}

#[test]
fn the_keys_are_the_contract() {
    let s = summary(&testing::plan(3), &testing::outcome(3));
    let json: serde_json::Value = serde_json::from_str(&s.to_json()).unwrap();
    let keys = |v: &serde_json::Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        keys(&json),
        "scenario scheme seed digest complete ending sim_time_us timing packet_hops flows classes jobs goodput_gbps \
         sending_rate_fraction packets control counters"
    );
    assert_eq!(keys(&json["timing"]), "wall_s cpu_s setup_s threads engine hops_per_cpu_s peak_rss_mb");
    assert_eq!(keys(&json["flows"]), "count finished bytes fct_us slowdown throttled by_size by_distance");
    assert_eq!(keys(&json["classes"]["foreground"]), keys(&json["flows"]));
    assert_eq!(keys(&json["flows"]["fct_us"]), "mean p50 p99 max tail_mean");
    assert_eq!(keys(&json["jobs"]["job"]["groups"]["completion_us"]), "slowest mean fastest");
}

#[test]
fn nothing_vanishes_because_it_is_zero() {
    let quiet = summary(&testing::plan(3), &testing::outcome(3));
    let json: serde_json::Value = serde_json::from_str(&quiet.to_json()).unwrap();
    for (part, key) in [("packets", "dropped_scheme"), ("packets", "noticed"), ("control", "signals")] {
        assert_eq!(json[part][key], 0, "{key}");
    }
    assert_eq!(json["packets"]["out_of_order_by_class"], serde_json::json!({}));
    assert_eq!(json["flows"].get("by_distance"), Some(&serde_json::Value::Null));
    assert_eq!(json["packets"].get("reorder_buffer"), Some(&serde_json::Value::Null));
}

#[test]
fn a_summary_is_read_as_it_was_written() {
    let mut outcome = testing::outcome(3);
    (outcome.data.reorder_sum, outcome.data.reorder_peak) = (10, 3);
    let written = summary(&testing::plan(3), &outcome);
    let read: Summary = serde_json::from_str(&written.to_json()).unwrap();
    assert_eq!(read, written);
    let older: Summary = serde_json::from_str("{\"packets\": {\"sent\": 7}}").unwrap();
    assert_eq!((older.packets.sent, older.packets.dropped_scheme), (7, 0), "older versions left zeros out");
}

#[test]
fn every_number_of_the_summary_is_a_metric_with_its_meaning() {
    let mut outcome = testing::outcome(3);
    outcome.data.reorder_sum = 10;
    let mut plan = testing::plan(3);
    plan.messages[2].bytes = 1_000_000;
    let s = summary(&plan, &outcome);
    fn leaves(key: &str, value: &serde_json::Value, to: &mut Vec<String>) {
        let mut below = |name: &str, value| leaves(&format!("{key}.{name}"), value, to);
        match value {
            serde_json::Value::Object(entries) => entries.iter().for_each(|(name, v)| below(name, v)),
            serde_json::Value::Array(all) => {
                all.iter().for_each(|v| below(&format!("up_to_{}", v["up_to_bytes"]), v));
            }
            serde_json::Value::Number(_) => to.push(key[1..].to_owned()),
            _ => {}
        }
    }
    let mut keys = Vec::new();
    leaves("", &serde_json::to_value(&s).unwrap(), &mut keys);
    let numbers = s.numbers();
    let told: Vec<&String> = numbers.iter().filter(|(_, v)| v.is_number()).map(|(m, _)| &m.key).collect();
    keys.retain(|key| key != "seed");
    assert_eq!(told, keys.iter().collect::<Vec<_>>());
    assert!(numbers.iter().all(|(metric, _)| !metric.meaning.is_empty() && !metric.label.is_empty()));
    let (metric, value) = numbers.iter().find(|(m, _)| m.key == "classes.foreground.fct_us.p99").unwrap();
    assert_eq!((metric.label.as_str(), metric.unit.name(), value), ("FCT, P99", "us", &30.0.into()));
    assert!(metric.meaning.ends_with(": 99th percentile, nearest rank; traffic class foreground"));
    assert!(METRICS.iter().any(|metric| metric.key == "flows.by_size.up_to_*.slowdown.mean"));
    assert_eq!(metric.term().0, "FCT");
    assert_eq!(Metric::slowest_group().label, "slowest group");
    assert!(!Metric::slowest_group().term().1.contains('*'));
}

#[test]
fn shares_are_of_a_metric_and_headings_belong_to_tables() {
    for metric in METRICS.iter() {
        let whole = metric.share_of.map(|whole| METRICS.iter().any(|other| other.key == whole));
        assert_ne!(whole, Some(false), "{}", metric.key);
        assert!(whole.is_some() || !metric.percent, "{}", metric.key);
        let heading = metric.shown >= Shown::Comparison;
        assert_eq!(heading, !metric.heading.is_empty(), "{}", metric.key);
    }
}
