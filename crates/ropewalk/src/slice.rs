//! A smaller cluster that stands for a larger one: fewer racks or segments, and what that keeps.

use crate::cli::ScenarioArgs;
use crate::sheet::{Costs, Sheet};
use lab::failure::Failure;
use results::text::{count, number, table};
use scenario::Survey;
use scenario::sheet::oversubscription;
use std::fmt::Write;

/// Fewest racks or segments of a slice, if the whole has as many: with one, no packet crosses a spine.
const FEWEST: u64 = 2;

/// A value of the whole cluster, and of the slice.
struct Fact {
    name: &'static str,
    whole: String,
    slice: String,
}

/// The slice of about `gpus` GPUs (hosts without `[server]`) as text.
///
/// # Errors
/// If the fabric has no racks to leave out, or the scenario does not fit the smaller one.
pub(crate) fn of(args: &ScenarioArgs, whole: &Survey, gpus: u64) -> Result<String, Failure> {
    let sets = changes(whole, gpus).map_err(Failure::Asked)?;
    let mut smaller = args.clone();
    smaller.set.extend(sets.iter().cloned());
    let slice = crate::input::survey(&smaller)?;
    let mut text = String::new();
    let header = ["", "whole", "slice", ""];
    let mut rows = table(&header.map(str::to_owned), 1);
    for Fact { name, whole, slice } in facts(whole, &slice) {
        let kept = if whole == slice { "kept" } else { "differs" };
        rows.add_row([name.to_owned(), whole, slice, kept.to_owned()]);
    }
    for line in rows.to_string().lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let set: Vec<String> = sets.iter().map(|set| format!("--set {}", lab::shell::word(set))).collect();
    let _ = writeln!(text, "\nslice     {}", set.join(" "));
    Ok(text)
}

/// A whole number in the scenario.
fn whole_number(survey: &Survey, key: &str) -> Option<u64> {
    survey.checked().setting(key)?.value.parse().ok()
}

/// GPUs of a server; 1 without `[server]`.
fn gpus_per_server(survey: &Survey) -> u64 {
    let server = survey.checked().scenario.server.as_ref();
    server.and_then(|server| server.server().ok()).map_or(1, |server| server.gpus as u64)
}

/// The changes that leave racks or segments out.
fn changes(survey: &Survey, gpus: u64) -> Result<Vec<String>, String> {
    let of = |key: &str| whole_number(survey, key);
    let per_server = gpus_per_server(survey);
    // The key of the number of parts, hosts of a part, and the number of these hosts that the key counts for one.
    let (key, hosts_of_part, all) = if let (Some(leaves), Some(hosts)) =
        (of("topology.leaf-spine.leaves"), of("topology.leaf-spine.hosts-per-leaf"))
    {
        ("topology.leaf-spine.leaves", hosts, leaves)
    } else if let Some(servers) = of("topology.rails.servers") {
        ("topology.rails.servers", of("topology.rails.servers-per-segment").unwrap_or(servers), servers)
    } else {
        return Err("--slice leaves racks of a `leaf-spine` or segments of `rails` out; this fabric has another topology".into());
    };
    let parts = if key.ends_with("servers") { all.div_ceil(hosts_of_part.max(1)) } else { all };
    let wanted = (gpus as f64 / (per_server * hosts_of_part).max(1) as f64).round() as u64;
    let left = wanted.max(FEWEST).min(parts);
    let value = if key.ends_with("servers") { (left * hosts_of_part).min(all) } else { left };
    if value == all {
        let had = survey.checked().plan.fabric.servers() as u64 * per_server;
        return Err(format!(
            "a slice keeps whole racks or segments, and at least {FEWEST} of them: {gpus} leaves none of the {parts} out ({had} GPUs)"
        ));
    }
    let mut sets = vec![format!("{key}={value}")];
    for i in 0..survey.checked().scenario.workload.len() {
        // Replicas go with the GPUs, and every replica keeps its share of the batch.
        for key in ["parallel.dp", "batch.global"] {
            let key = format!("workload.{i}.training.{key}");
            let Some(number) = of(&key) else { continue };
            if number * value % all != 0 {
                return Err(format!(
                    "{key} = {number} cannot be divided as the fabric is, by {all} / {value}"
                ));
            }
            sets.push(format!("{key}={}", number * value / all));
        }
    }
    Ok(sets)
}

/// What a slice may keep, of both.
fn facts(whole: &Survey, slice: &Survey) -> Vec<Fact> {
    let of = |survey: &Survey| {
        let (checked, plan) = (survey.checked(), &survey.checked().plan);
        let gpus = gpus_per_server(survey);
        let tiers = checked.tiers();
        let first = tiers.first();
        let sheet = Sheet::of(survey, &Costs::default());
        let uplinks = first.map_or(0.0, |tier| tier.up_gbps);
        let qps = survey.queue_pairs() as f64;
        let hosts = plan.fabric.hosts().max(1) as f64;
        vec![
            ("GPUs", count(plan.fabric.servers() as u64 * gpus)),
            ("oversubscription", oversubscription(&plan.fabric)),
            ("ports of a ToR", first.map_or_else(String::new, |tier| count(tier.ports.1 as u64))),
            ("links from end to end, mean", number(checked.mean_links())),
            ("queue pairs of a NIC port", number(qps / hosts)),
            (
                "queue pairs per Tb/s above ToRs",
                number(if uplinks > 0.0 { qps / (uplinks / 1e3) } else { 0.0 }),
            ),
            ("bytes that a NIC port sends, most", results::text::bytes(survey.traffic.sent_per_port.1)),
            ("data packets", count(survey.traffic.packets)),
            ("seconds of a core, most", number(sheet.core_s.1)),
        ]
    };
    let both = of(whole).into_iter().zip(of(slice));
    both.map(|((name, whole), (_, slice))| Fact { name, whole, slice }).collect()
}
