//! Instances: the GPUs of a server that hold a model together, and their NICs.

use crate::placement::Servers;
use crate::workload::ranks::Ranks;
use finding::{Finding, code};
use model::Fabric;
use serving::kv::{Heads, Keeps, Kv};
use serving::spec::Instance;
use std::collections::BTreeSet;

/// The instances of some GPUs of some servers, each of `tp` GPUs of one server.
pub(super) fn instances(
    (servers, named): (&Servers, Option<&Servers>),
    tp: Option<u64>,
    ranks: &Ranks,
    fabric: &Fabric,
    kv: &Kv,
) -> Result<Vec<Instance>, Finding> {
    let named = named.map(|gpus| gpus.of_gpus(ranks.per_server())).transpose()?;
    let gpus = named.as_ref().map_or(ranks.per_server(), Vec::len);
    let tp = tp.unwrap_or(gpus as u64);
    if tp == 0 || !(gpus as u64).is_multiple_of(tp) {
        let text = format!("expected a divisor of the {gpus} GPUs of a server, found {tp}");
        return Err(code::FIT.at("tp", text));
    }
    if let Keeps::Heads(Heads { kv, .. }) = kv.keeps
        && !kv.is_multiple_of(tp)
        && !tp.is_multiple_of(kv)
    {
        let text = format!(
            "expected a divisor or a multiple of the model's {kv} heads of keys and values, found {tp}"
        );
        return Err(code::FIT.at("tp", text));
    }
    let mut all = Vec::new();
    for server in servers.of(fabric.servers())? {
        let all_of: Vec<u32> = (0..ranks.count() as u32).filter(|rank| ranks.node(*rank) == server).collect();
        // Of ranks that share a NIC, the first stands for it.
        let nic = |rank: &u32| {
            *all_of.iter().find(|other| ranks.ports(**other) == ranks.ports(*rank)).unwrap_or(rank)
        };
        let server_nics: BTreeSet<u32> = all_of.iter().map(nic).collect();
        let server_nics: Vec<u32> = server_nics.into_iter().collect();
        let is_named =
            |rank: &u32| named.as_ref().is_none_or(|gpus| gpus.contains(&(ranks.place(*rank) as u32)));
        let mine: Vec<u32> = all_of.iter().copied().filter(is_named).collect();
        all.extend(mine.chunks(tp as usize).map(|ranks| Instance {
            nics: ranks.iter().map(nic).collect(),
            server_nics: server_nics.clone(),
        }));
    }
    Ok(all)
}
