//! Settings of serving that contradict each other.

use super::{Loop, PlaceBy, RailUse, Serving, TransferWay};
use crate::placement::Servers;
use crate::workload::ranks::Ranks;
use finding::{Finding, code};
use model::{Fabric, NodeId};
use std::collections::BTreeSet;

impl Serving {
    /// Refuses GPUs that both sides name.
    pub(super) fn apart(&self, ranks: &Ranks, fabric: &Fabric) -> Result<(), Finding> {
        let gpus = |named: Option<&Servers>| named.map(|gpus| gpus.of_gpus(ranks.per_server())).transpose();
        let (mine, theirs) = (gpus(self.prefill.gpus.as_ref())?, gpus(self.decode.gpus.as_ref())?);
        let shared = match (&mine, &theirs) {
            (Some(mine), Some(theirs)) => theirs.iter().find(|gpu| mine.contains(gpu)),
            _ => Some(&0),
        };
        let mine: BTreeSet<NodeId> = self.prefill.servers.of(fabric.servers())?.into_iter().collect();
        let theirs = self.decode.servers.of(fabric.servers())?;
        match (theirs.into_iter().find(|server| mine.contains(server)), shared) {
            (Some(both), Some(_)) => {
                let text = format!(
                    "server {} has prefill instances; the two sides have servers of their own, or `gpus`",
                    both.0
                );
                Err(code::CONFLICT.at("decode.servers", text))
            }
            _ => Ok(()),
        }
    }

    /// Refuses caches, and placement by caches, without ids of blocks.
    pub(super) fn need_caches(&self) -> Result<(), Finding> {
        let has_blocks = self.trace.as_ref().is_some_and(super::Trace::has_blocks);
        for (cache, place, side) in [
            (self.prefill.cache_tokens, self.place.prefill, "prefill"),
            (self.decode.cache_tokens, self.place.decode, "decode"),
        ] {
            if cache > 0 && !has_blocks {
                let text =
                    "prompts have no ids of blocks, so no prefix is known; Mooncake's traces have them";
                return Err(code::NEEDS.at(&format!("{side}.cache-tokens"), text));
            }
            if place == PlaceBy::CacheAware && cache == 0 {
                let text = format!("\"cache-aware\" needs `{side}.cache-tokens` above 0");
                return Err(code::NEEDS.at(&format!("place.{side}"), text));
            }
        }
        let decodes_alone = match self.place.prefill {
            PlaceBy::NetworkAware => "network-aware",
            PlaceBy::Oracle => "oracle",
            PlaceBy::SameTier => "same-tier",
            PlaceBy::RoundRobin | PlaceBy::LeastLoaded | PlaceBy::CacheAware => return Ok(()),
        };
        let text = format!("\"{decodes_alone}\" chooses decode instances alone");
        Err(code::UNSUITED.at("place.prefill", text))
    }

    /// Refuses what looks at the network in an open loop.
    pub(super) fn open_loop(&self) -> Result<(), Finding> {
        let (key, choice) = match (self.place.decode, self.transfer.rails, self.transfer.way) {
            (PlaceBy::NetworkAware, ..) => ("place.decode", "network-aware"),
            (PlaceBy::Oracle, ..) => ("place.decode", "oracle"),
            (_, RailUse::LeastInflight, _) => ("transfer.rails", "least-inflight"),
            (.., TransferWay::Pull) => ("transfer.way", "pull"),
            _ => return Ok(()),
        };
        match self.r#loop {
            Loop::Closed => Ok(()),
            Loop::Open => {
                let text =
                    format!("with \"{choice}\" the network moves starts of transfers, and the loop is open");
                Err(code::CONFLICT.at(key, text).with_help("set `loop = \"closed\"`, or another choice"))
            }
        }
    }
}
