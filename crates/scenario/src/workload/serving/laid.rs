//! A serving workload on its fabric: instances, requests, the queue pairs that transfers need, and what is assumed.

use super::instances::instances;
use super::limit::fastest;
use super::{Copies, FirstToken, Loop, Place, PlaceBy, Serving, Transfer, TransferWay};
use crate::placement::Servers;
use crate::workload::program::{Pairs, Program};
use crate::workload::ranks::Ranks;
use finding::{Finding, code};
use model::draw::Key;
use model::{Bytes, Fabric, Time, Wire};
use serving::kv::{Keeps, Kv, pairs};
use serving::models::Model;
use serving::spec::{self, Rails, Spec, Way};
use std::collections::BTreeSet;

/// Most bytes of an instance, and so of a message (our choice: as in all workloads).
const MOST_BYTES: u64 = 1 << 50;
/// Most pairs of NICs between which KV may go (our choice: their queue pairs take tens of gigabytes).
const MOST_PAIRS: u64 = 20_000_000;

/// A serving workload on its fabric.
#[derive(Clone, Debug)]
pub struct Laid {
    /// What is served, by whom and how.
    pub spec: Spec,
    /// Start of the job.
    pub start: Time,
    /// What is assumed and decides the answer, in sentences.
    pub assumed: Vec<String>,
    /// What was doubtful.
    pub(crate) findings: Vec<Finding>,
}

impl Serving {
    /// Lays the workload on a fabric, for a job with this key and start.
    pub(crate) fn lay(
        &self,
        ranks: &Ranks,
        fabric: &Fabric,
        (key, start): (Key, Time),
    ) -> Result<Laid, Finding> {
        let coming = match (&self.trace, &self.arrivals) {
            (Some(trace), None) => trace.coming(key, start).map_err(|error| error.within("trace"))?,
            (None, Some(arrivals)) => {
                arrivals.coming(key, start).map_err(|error| error.within("arrivals"))?
            }
            (Some(_), Some(_)) => {
                return Err(code::CONFLICT.at("arrivals", "set either `trace` or `arrivals`, not both"));
            }
            (None, None) => return Err(code::MISSING.at("", "expected `trace` or `arrivals`, found neither")),
        };
        let model = self.model.model().map_err(|error| error.within("model"))?;
        let kv = self.kv(&model)?;
        let of = |servers: &Servers, gpus: Option<&Servers>, tp: Option<u64>, key: &str| {
            instances((servers, gpus), tp, ranks, fabric, &kv).map_err(|error| error.within(key))
        };
        let prefills = of(&self.prefill.servers, self.prefill.gpus.as_ref(), self.prefill.tp, "prefill")?;
        let decodes = of(&self.decode.servers, self.decode.gpus.as_ref(), self.decode.tp, "decode")?;
        self.apart(ranks, fabric)?;
        self.need_caches()?;
        self.open_loop()?;
        let (tp_prefill, tp_decode) = (prefills[0].nics.len() as u64, decodes[0].nics.len() as u64);
        let ports = ranks.ports(prefills[0].nics[0]).len();
        let transfer = self.transfer.plan(kv.layers, ports).map_err(|error| error.within("transfer"))?;
        let (prefill, decode) = (&self.prefill.compute, &self.decode.compute);
        let prefill = prefill.model(&model, tp_prefill).map_err(|error| error.within("prefill.compute"))?;
        let decode = decode.model(&model, &kv, tp_decode).map_err(|error| error.within("decode.compute"))?;
        let spec = Spec {
            requests: coming.requests,
            kv,
            prefix_block: coming.prefix_block,
            prefills,
            decodes,
            prefill,
            decode,
            batch_tokens: at_least_1(self.prefill.batch_tokens, "prefill.batch-tokens")?,
            memory: self.decode.memory.get(),
            slots: at_least_1(self.decode.slots.into(), "decode.slots")? as usize,
            caches: (self.prefill.cache_tokens, self.decode.cache_tokens),
            transfer,
            open: self.r#loop == Loop::Open,
            place_prefill: self.place.by(self.place.prefill)?,
            place_decode: self.place.by(self.place.decode)?,
            first_token: match self.first_token {
                FirstToken::Decode => spec::FirstToken::Decode,
                FirstToken::Prefill => spec::FirstToken::Prefill,
            },
            slo: spec::Slo { ttft: self.slo.ttft, tpot: self.slo.tpot },
        };
        if self.decode.memory.get() > MOST_BYTES {
            let text = format!("expected at most 1 PiB, found {}", self.decode.memory);
            return Err(code::RANGE.at("decode.memory", text));
        }
        if spec.pairs() > MOST_PAIRS {
            let text = format!("expected at most {MOST_PAIRS} pairs of NICs, found {}", spec.pairs());
            return Err(code::RANGE.at("decode.servers", text));
        }
        if !spec.open
            && let Some(large) = spec.requests.iter().max_by_key(|request| spec.need(request))
            && spec.need(large) > spec.memory
        {
            let text = format!(
                "a request of {} + {} tokens takes {} of KV, and an instance has {}",
                large.input,
                large.output,
                Bytes(spec.need(large)),
                self.decode.memory
            );
            return Err(code::FIT.at("decode.memory", text));
        }
        let mut findings: Vec<Finding> =
            coming.findings.into_iter().map(|finding| finding.within("trace")).collect();
        findings.extend(self.other_nics(fabric));
        let assumed = self.assumed(&spec, &model);
        Ok(Laid { spec, start, assumed, findings })
    }

    fn kv(&self, model: &Model) -> Result<Kv, Finding> {
        let value = self.kv.value.get();
        // Our choice: no number format has more bytes.
        if !(1..=16).contains(&value) {
            return Err(code::RANGE.at("kv.value", format!("expected 1 B to 16 B, found {}", self.kv.value)));
        }
        if !(1..=1 << 20).contains(&self.kv.block) {
            return Err(
                code::RANGE.at("kv.block", format!("expected 1 to 1048576 tokens, found {}", self.kv.block))
            );
        }
        let copies = match self.kv.copies {
            Copies::One => serving::kv::Copies::One,
            Copies::Tp => serving::kv::Copies::Tp,
        };
        Ok(model.kv(value, self.kv.block, copies))
    }

    /// What the choice of decode instances counts, if that is not what its name says.
    fn known_to_placement(&self) -> Option<String> {
        (self.place.decode == PlaceBy::Oracle).then(|| {
            "\"oracle\" counts the KV that has started at NICs, and knows nothing of links inside the fabric".to_owned()
        })
    }

    /// A warning if a preset was measured on NICs of another rate.
    fn other_nics(&self, fabric: &Fabric) -> Option<Finding> {
        let (rate, measured) = (self.transfer.preset.costs().rate?, self.transfer.preset.costs().line?);
        let line = fastest(fabric);
        (self.transfer.rate.is_none() && line != measured).then(|| {
            let text = format!(
                "\"{}\" was measured on NICs of {measured}, and these have {line}: {rate} per NIC is taken as it is",
                self.transfer.preset.name(),
            );
            code::READ_AS.at("transfer.preset", text).with_help("set `transfer.rate` to what your hosts attain")
        })
    }

    /// What is assumed and decides the answer.
    fn assumed(&self, spec: &Spec, model: &Model) -> Vec<String> {
        let by = match (self.prefill.compute.is_measured(), self.decode.compute.is_measured()) {
            (true, true) => "your tables",
            (false, false) => "formulas of operations and bytes",
            _ => "a formula and a table",
        };
        let mut all = vec![
            format!("computation follows {by}, without chunks, preemption or speculation"),
            "the length of an answer is known when its memory is reserved".to_owned(),
        ];
        if spec.open {
            all.push(
                "the loop is open: memory of decode instances is without end, so no transfer waits for others"
                    .to_owned(),
            );
        }
        all.extend(self.known_to_placement());
        let (_, tp) = spec.tp();
        if let (Keeps::Latent(_), true) = (model.keeps, tp > 1) {
            all.push(match self.kv.copies {
                Copies::One => format!(
                    "a latent crosses once and not to each of {tp} ranks; `kv.copies = \"tp\"` sends and stores {tp} times the bytes"
                ),
                Copies::Tp => format!(
                    "a latent crosses to each of {tp} ranks and takes memory of each; `kv.copies = \"one\"` sends and stores 1/{tp} of the bytes"
                ),
            });
        }
        if self.transfer.rate().is_none() && spec.transfer.host == Time::ZERO {
            all.push("host software costs nothing (`transfer.preset` has measured costs)".to_owned());
        }
        if let Transfer { way: TransferWay::Pull, .. } = self.transfer {
            all.push("READs are bounded by nothing but the fabric".to_owned());
        }
        if let Transfer { way: TransferWay::Layers, .. } = self.transfer {
            all.push(
                "times of transfers count from the end of the prefill, which hides what crosses before"
                    .to_owned(),
            );
        }
        all
    }
}

impl Place {
    fn by(&self, by: PlaceBy) -> Result<spec::Place, Finding> {
        if !(self.weight >= 0.0 && self.weight.is_finite()) {
            let text = format!("expected a weight of at least 0, found {}", self.weight);
            return Err(code::RANGE.at("place.weight", text));
        }
        if self.refresh == Time::ZERO {
            return Err(code::RANGE.at("place.refresh", "expected a time above 0"));
        }
        Ok(match by {
            PlaceBy::RoundRobin => spec::Place::RoundRobin,
            PlaceBy::LeastLoaded => spec::Place::LeastLoaded,
            PlaceBy::CacheAware => spec::Place::CacheAware(self.weight),
            PlaceBy::NetworkAware => spec::Place::NetworkAware(self.refresh),
            PlaceBy::Oracle => spec::Place::Oracle,
            PlaceBy::SameTier => spec::Place::SameTier,
        })
    }
}

fn at_least_1(number: u64, key: &str) -> Result<u64, Finding> {
    match number {
        0 => Err(code::RANGE.at(key, "expected at least 1, found 0")),
        number => Ok(number),
    }
}

impl Laid {
    /// The pairs of ranks between which messages go, and their queue pairs.
    pub(crate) fn program(&self) -> Program {
        let Spec { transfer, prefills, decodes, .. } = &self.spec;
        let mut all: BTreeSet<[u32; 2]> = BTreeSet::new();
        for (from, to) in prefills.iter().flat_map(|from| decodes.iter().map(move |to| (from, to))) {
            match transfer.rails {
                Rails::Own => all.extend(
                    pairs(from.nics.len() as u64, to.nics.len() as u64)
                        .map(|(i, j)| [from.nics[i as usize], to.nics[j as usize]])
                        .filter(|[from, to]| from != to),
                ),
                Rails::RoundRobin | Rails::LeastInflight => {
                    let rails = from.server_nics.iter().zip(&to.server_nics).map(|(&from, &to)| [from, to]);
                    all.extend(rails.filter(|[from, to]| from != to));
                }
            }
        }
        if transfer.way == Way::Pull {
            all.extend(all.clone().into_iter().map(|[from, to]| [to, from]));
        }
        Program { pairs: Pairs::List(all.into_iter().collect()), qps: transfer.qps as u32 }
    }

    /// Number of messages of all requests, at most.
    pub(crate) fn expected_messages(&self) -> u64 {
        let Spec { transfer, prefills, decodes, requests, .. } = &self.spec;
        let pairs = match transfer.rails {
            Rails::Own => prefills[0].nics.len().max(decodes[0].nics.len()),
            Rails::RoundRobin | Rails::LeastInflight => prefills[0].server_nics.len(),
        };
        let times = match transfer.way {
            Way::Push => 1,
            Way::Pull => 2,
            Way::Layers(groups) => groups,
        };
        (requests.len() as u64)
            .saturating_mul(pairs as u64)
            .saturating_mul(transfer.qps)
            .saturating_mul(times)
    }

    /// Messages and data packets of all requests, without caches.
    pub(crate) fn expected(&self, wire: &Wire) -> (u64, u64) {
        (self.expected_messages(), self.bytes().div_ceil(u64::from(wire.payload.max(1))))
    }

    /// Queue pairs of all pairs of instances.
    pub(crate) fn queue_pairs(&self) -> u64 {
        let Program { pairs, qps } = self.program();
        let Pairs::List(list) = pairs else { return 0 };
        list.len() as u64 * u64::from(qps)
    }

    /// Bytes of KV of all prompts, without caches.
    pub fn bytes(&self) -> u64 {
        let (kv, (_, tp)) = (&self.spec.kv, self.spec.tp());
        let of = |request: &spec::Request| kv.bytes(kv.blocks(request.input), tp);
        self.spec.requests.iter().map(of).fold(0, u64::saturating_add)
    }
}
