//! Servers with several GPUs, and training steps that fit them. Drawn key by key, a training step would nearly never fit: its
//! sizes must divide each other.

use crate::draws::Draws;
use serde_json::{Map, Value as Json, json};

/// A table `server`.
pub(crate) fn server(draws: &mut Draws) -> Json {
    let gpus = *draws.pick(&[1u64, 2, 4, 8]);
    let mut keys = Map::new();
    keys.insert("gpus".to_owned(), gpus.into());
    if draws.chance(0.2) {
        keys.insert("nics".to_owned(), (*draws.pick(&[1, gpus, 2 * gpus])).into());
    }
    if draws.chance(0.2) {
        keys.insert("ports-per-nic".to_owned(), 2.into());
    }
    match draws.below(4) {
        0 => drop(keys.insert("nvlink".to_owned(), "off".into())),
        1 => drop(keys.insert("nvlink".to_owned(), json!({ "rate": "200Gbps", "delay": "100ns" }))),
        _ => {}
    }
    keys.into()
}

/// Makes the ports of NICs devices between which queue pairs fail over.
pub(crate) fn fail_over(draws: &mut Draws, keys: &mut Map<String, Json>) {
    if let Some(server) = keys.get_mut("server") {
        server["bond-failover"] = "wait".into();
        let nic = keys.entry("nic").or_insert_with(|| json!({}));
        nic["timeout"] = json!({ "fixed": "90us" });
        nic["retries"] = draws.below(3).into();
        nic["on-retry-exceeded"] = "nccl-failover".into();
    }
}

/// A table `topology.rails` in which every host reaches every other.
pub(crate) fn rails(draws: &mut Draws) -> Json {
    let servers = 1 + draws.below(4) as u64;
    json!({
        "servers": servers,
        "kind": *draws.pick(&["rail-optimised", "per-server"]),
        "servers-per-segment": 1 + draws.below(servers as usize),
        "planes": *draws.pick(&[1, 1, 1, 2]),
        "spines": 1 + draws.below(3),
        "uplink-delay": *draws.pick(&["200ns", "1us", "3us"]),
    })
}

/// Settings of a job `training` for so many ranks.
pub(crate) fn training(draws: &mut Draws, ranks: usize) -> Json {
    let mut left = ranks.max(1) as u64;
    let mut share = |draws: &mut Draws| {
        let divisors: Vec<u64> = (1..=left.min(8)).filter(|n| left.is_multiple_of(*n)).collect();
        let size = *draws.pick(&divisors);
        left /= size;
        size
    };
    let (tp, pp, cp) = (share(draws), share(draws), if draws.chance(0.3) { share(draws) } else { 1 });
    let experts = left > 1 && draws.chance(0.4);
    let parts = if draws.chance(0.2) { 2 } else { 1 };
    let micros = pp * (1 + draws.below(2) as u64);
    let mut model = json!({
        "hidden": 16, "heads": 4, "ffn": 32, "vocab": 20, "layers": pp * parts * (1 + draws.below(2) as u64),
        "gated": draws.chance(0.5),
    });
    if experts {
        model["moe"] = json!({ "experts": left * 2, "top-k": 2 });
    }
    let mut keys = json!({
        "model": model,
        "parallel": { "tp": tp, "pp": pp, "cp": cp, "ep": if experts { left } else { 1 }, "sequence-parallel": draws.chance(0.6) },
        "batch": { "global": left * micros, "sequence": tp * cp * (1 + draws.below(3) as u64) },
        "optimizer": *draws.pick(&["replicated", "distributed", "zero-3"]),
        "bucket": *draws.pick(&["500B", "2kB", "1MB"]),
        "compute": { "forward": "3us", "backward": "6us" },
        "steps": 1 + draws.below(2),
    });
    if parts > 1 {
        keys["schedule"] = json!({ "interleaved": parts });
    } else if draws.chance(0.3) {
        keys["schedule"] = "gpipe".into();
    }
    if experts && draws.chance(0.5) {
        keys["routing"] = json!({ "skew": 0.7, "capacity": 1.5 });
    }
    if draws.chance(0.3) {
        let algorithm = *draws.pick(&["ring", "nccl", "hierarchical", "halving-doubling", "direct"]);
        keys["collectives"] = json!({ "tp": { "algorithm": algorithm } });
    }
    keys
}
