//! Claim: tokens reach their experts, and come back, in the times that were measured for DeepEP's kernels.

use crate::lab::{agreed_on, lay, run_on};
use engine::Outcome;
use model::plan::Role;
use model::{Plan, Time};

/// A layer among servers of eight GPUs with NICs of 400 Gb/s behind one switch; `nvlink` in GB/s.
fn layer(servers: u32, nvlink: u32, keys: &str) -> String {
    format!(
        "[server]\ngpus = 8\nnvlink = {{ rate = \"{}Gbps\", delay = \"500ns\" }}\n[topology.rails]\nservers = {servers}\n\
         kind = \"per-server\"\nspines = 0\n[wire]\npayload = \"4KiB\"\n[[workload]]\n[workload.experts]\nmodel = \"deepseek-v3\"\n{keys}\n",
        8 * nvlink
    )
}

/// The time from the first rank's entry into the operations of a name until the last rank has left them, in us.
fn us(plan: &Plan, outcome: &Outcome, name: &str) -> f64 {
    let of = |role| {
        plan.tasks.iter().zip(&outcome.tasks).filter(move |(task, _)| {
            task.role == role && plan.operations.get(task.operation as usize).is_some_and(|o| o.name == name)
        })
    };
    let start = of(Role::Enter).map(|(_, record)| record.end).min().unwrap_or(Time::ZERO);
    of(Role::Leave).map(|(_, record)| record.end).max().unwrap_or(Time::ZERO).since(start).as_us()
}

/// Times of dispatch and combine.
fn both(text: &str, twice: bool) -> [f64; 2] {
    let checked = lay(text);
    let outcome = if twice { agreed_on(&checked, text) } else { run_on(&checked) };
    ["dispatch", "combine"].map(|name| us(&checked.plan, &outcome, name))
}

#[test]
fn low_latency_kernels_take_what_was_measured_on_connectx_7() {
    // 128 tokens to 8 experts each, 7,408 B there and 14,336 B back, on H800; us (deepseek-ai/DeepEP, README).
    let measured = [
        (2, [118.0, 195.0]),
        (4, [155.0, 273.0]),
        (8, [173.0, 314.0]),
        (16, [192.0, 369.0]),
        (32, [194.0, 360.0]),
    ];
    for (servers, measured) in measured {
        let message = if servers <= 8 { "token" } else { "pair" };
        let keys =
            format!("tokens = 128\nrouting = {{ kernel = \"deepep-low-latency\", message = \"{message}\" }}");
        let times = both(&layer(servers, 160, &keys), servers == 2);
        for (us, measured) in times.into_iter().zip(measured) {
            assert!((us / measured - 1.0).abs() < 0.07, "{servers} servers: {us} us, measured {measured} us");
        }
    }
}

#[test]
fn normal_kernels_carry_what_was_measured_on_connectx_7() {
    // GB/s of dispatch and combine, which count tokens for the own server as well (deepseek-ai/DeepEP, README: H800, and V2). A token
    // goes to this many servers in the mean, of which one is its own with probability 1 / servers. For V2, NVLink as of H100.
    for (servers, nvlink, to, measured) in [
        (4, 160, 3.617, [58.0, 57.0]),
        (8, 160, 3.629, [51.0, 50.0]),
        (2, 370, 1.994, [90.0, 90.0]),
        (4, 370, 3.617, [61.0, 61.0]),
    ] {
        let keys = "tokens = 1024\nrouting = { kernel = \"deepep-normal\", servers-per-token = 4 }";
        let times = both(&layer(servers, nvlink, keys), false);
        for ((us, token), measured) in times.into_iter().zip([7_392.0, 14_336.0]).zip(measured) {
            let rate = 1024.0 * to * token / us / 1e3;
            assert!(
                (rate / measured - 1.0).abs() < 0.05,
                "{servers} servers: {rate} GB/s, measured {measured}"
            );
        }
    }
}

#[test]
fn one_micro_batch_computes_while_the_other_is_on_the_network() {
    let step = |micro: u32, compute: &str| {
        let keys = format!(
            "tokens = 128\nlayers = 4\nmicro-batches = {micro}\nrouting = {{ message = \"pair\" }}\n{compute}"
        );
        let text = layer(2, 160, &keys).replace("spines = 0", "spines = 0\ndelay = \"500ns\"");
        let checked = lay(&text);
        let outcome = agreed_on(&checked, &text);
        outcome.tasks.iter().map(|record| record.end).max().unwrap().as_us()
    };
    // What two micro-batches compute in four layers, and what their tokens take on the network.
    let (compute, network) = (4.0 * 2.0 * 100.0, step(1, ""));
    let overlapped = step(2, "compute = { attention = \"60us\", experts = \"40us\" }");
    let serial = step(1, "compute = { attention = \"120us\", experts = \"80us\" }");
    assert!((serial / (compute + network) - 1.0).abs() < 0.01, "{serial}, {compute} + {network}");
    assert!(overlapped >= compute && overlapped < 0.8 * serial, "{overlapped}, {serial}");
}
