//! Flows with Poisson arrivals.

use super::cdf::Cdf;
use super::draft::Draft;
use super::host_sample::HostSample;
use super::peers::{PeerSet, Peers};
use super::sizes::{Clamp, Sizes};
use super::{Generate, QpUse};
use crate::footprint::MOST_MESSAGES;
use crate::rounded::exponential;
use crate::values::LATEST;
use finding::{Finding, code};
use model::draw::{Key, below, scaled};
use model::{HostId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Every host starts flows as a Poisson process, with random receivers and random sizes. A flow starts whether or not
/// earlier flows have finished (an open loop).
///
/// Arrival k of a job, counted over all hosts, has the same hosts and the same size at any load. The start times at two
/// loads differ by a constant factor, so runs can be compared flow by flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Poisson {
    /// Distribution of flow sizes. By name: `"web-search"` (DCTCP), `"web-search-opera"` and `"data-mining-opera"` (as
    /// in Opera), `"data-mining"` (VL2), `"alibaba-storage"` (2019), `"facebook-hadoop"` (as in HPCC),
    /// `"facebook-hadoop-2015"` (finer), `"solar"` (2022), `"google-rpc"` (before 2008), `"enterprise-tail"` (the sizes
    /// from 16 KiB to 4 MiB of the Flowcut artefact). From a file of rows `bytes percent`: `"my.cdf"`, a path relative
    /// to the scenario's file. Or by parameters: `{ fixed = "1MB" }`, `{ uniform = { min = "1kB", max = "1MB" } }`,
    /// `{ points = [["0B", 0], ["10kB", 100]] }`. Default `"web-search"` (our choice: the most common one).
    pub sizes: Sizes,
    /// Limits of sizes, such as `{ min = "16KiB", max = "4MiB" }` (Flowcut artefact, Dragonfly). The load counts the
    /// limited sizes. Default: no limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clamp: Option<Clamp>,
    /// Average payload that each host starts to send per second, as a share of its line rate. Each host starts
    /// load x rate / (8 x mean size) flows per second, as in the flow generators of the HPCC family of ns-3 simulators.
    /// Headers add to the load. Above 1, queues at the senders grow for as long as flows arrive. Default 0.5 (our
    /// choice).
    pub load: f64,
    /// Time during which flows arrive; the run continues until they have finished. Default: not set; `count` applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// Total number of flows, instead of `duration`. Default 1000 (our choice) if `duration` is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Hosts that may be drawn as receivers. `"any"`: any other host. `"cross-rack"`: hosts in other racks.
    /// `"cross-pod"`: hosts in other pods, so that all traffic crosses the aggregation switches, or on a Dragonfly in
    /// other groups. Default `"any"` (HPCC family of ns-3 simulators).
    pub peers: Peers,
    /// Ratio of flows that stay in their pod to flows that leave it, instead of `peers`. In a fabric of two datacentres
    /// a datacentre counts as a pod. Default: not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// Hosts that send and receive: a part of a random order that all jobs share. Default: all.
    pub hosts: HostSample,
}

/// Ratio of flows that stay in their pod to flows that leave it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Mix {
    /// Part of the flows that stay. Default 5 (long-haul paper, evaluation: 5 to 1).
    pub local: u32,
    /// Part of the flows that leave. Default 1 (long-haul paper, evaluation: 5 to 1).
    pub remote: u32,
    /// Decision which flows leave. `"draw"`: every flow leaves with the probability remote / (local + remote), and its
    /// receiver is drawn from the hosts on that side. `"quota"`: the receiver is drawn from all other hosts until one
    /// kind of flow has reached its expected number; all later flows are of the other kind. With `"quota"` leaving flows
    /// are most frequent at the beginning and end early: with two equal pods and 5 to 1 after a third of the time (the
    /// flow generator of the long-haul prototype). Default `"draw"` (our choice: the usual meaning of 5 to 1).
    pub by: MixBy,
}

impl Default for Mix {
    fn default() -> Self {
        Mix { local: 5, remote: 1, by: MixBy::Draw }
    }
}

/// Decision which flows leave their pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MixBy {
    /// By a random draw for each flow.
    Draw,
    /// By a quota for each kind of flow.
    Quota,
}

impl Default for Poisson {
    fn default() -> Self {
        Poisson {
            sizes: Sizes::default(),
            clamp: None,
            load: 0.5,
            duration: None,
            count: None,
            peers: Peers::Any,
            mix: None,
            hosts: HostSample::default(),
        }
    }
}

/// Number of flows if neither `count` nor `duration` is set.
const FLOWS: u64 = 1000;

/// Random draws of an arrival.
#[derive(Clone, Copy)]
enum Draw {
    Gap,
    Sender,
    Receiver,
    Size,
    Leaves,
}

struct Arrivals<'a> {
    key: Key,
    peer_set: &'a PeerSet,
    /// Cumulative line rates of the hosts, by position, b/s.
    rates: Vec<u64>,
    cdf: &'a Cdf,
    mix: Option<&'a Mix>,
    /// Mean time between two arrivals, counted over all hosts, ps.
    gap: f64,
}

struct Arrival {
    at: Time,
    from: HostId,
    to: HostId,
    bytes: u64,
}

impl Arrivals<'_> {
    /// The times of all arrivals, without end. Several Poisson processes together are one process with the sum of their
    /// rates; an arrival belongs to one of them with a probability in proportion to its rate.
    fn times(&self) -> impl Iterator<Item = Time> + '_ {
        let mut sum = 0.0;
        (0..).map(move |k| {
            sum += exponential(self.draw(k, Draw::Gap));
            // `as` saturates at the largest time, 2^64 - 1 ps.
            Time((sum * self.gap) as u64)
        })
    }

    fn draw(&self, k: u64, what: Draw) -> u64 {
        self.key.draw2(k, what as u64)
    }

    /// The `k`-th arrival, at time `at`.
    fn arrival(&self, k: u64, at: Time, quotas: &mut Quotas) -> Arrival {
        let total = self.rates.last().copied().unwrap_or(0);
        let rate = scaled(self.draw(k, Draw::Sender), total);
        let position = self.rates.partition_point(|sum| *sum <= rate);
        Arrival {
            at,
            from: self.peer_set.hosts()[position],
            to: self.receiver(k, position, quotas),
            bytes: self.cdf.size(self.draw(k, Draw::Size)),
        }
    }

    fn receiver(&self, k: u64, position: usize, quotas: &mut Quotas) -> HostId {
        let draw = self.draw(k, Draw::Receiver);
        let Some(mix) = self.mix else { return self.peer_set.peer(position, draw) };
        let share = |share: u64, of: u64| below(self.draw(k, Draw::Leaves), of as usize) < share as usize;
        let leaves = match mix.by {
            MixBy::Draw => share(mix.remote.into(), u64::from(mix.local) + u64::from(mix.remote)),
            MixBy::Quota if quotas.remote == 0 && mix.local > 0 => false,
            MixBy::Quota if quotas.local == 0 => true,
            // While both quotas last, every other host is equally likely.
            MixBy::Quota => {
                let (near, far) = (self.peer_set.near(position) as u64, self.peer_set.far(position) as u64);
                share(far, near + far)
            }
        };
        match leaves {
            true => {
                quotas.remote = quotas.remote.saturating_sub(1);
                self.peer_set.peer(position, draw)
            }
            false => {
                quotas.local = quotas.local.saturating_sub(1);
                self.peer_set.neighbour(position, draw)
            }
        }
    }
}

/// Remaining numbers of flows of both kinds under [`MixBy::Quota`].
struct Quotas {
    local: u64,
    remote: u64,
}

impl Mix {
    /// The quotas for an expected number of flows.
    fn quotas(&self, flows: u64) -> Quotas {
        let of = u128::from(self.local) + u128::from(self.remote);
        let remote = (u128::from(flows) * u128::from(self.remote) / of.max(1)) as u64;
        Quotas { local: flows - remote, remote }
    }

    /// Checks that the pods of the hosts allow the mix.
    fn check(&self, peer_set: &PeerSet) -> Result<(), Finding> {
        if self.local == 0 && self.remote == 0 {
            return Err(code::RANGE.at("local", "expected `local` or `remote` above 0, found 0 for both"));
        }
        let alone = (0..peer_set.hosts().len()).find(|&position| peer_set.near(position) == 0);
        match alone {
            Some(_) if self.local > 0 => {
                let text = "a host has no other host in its pod to send to";
                Err(code::FIT.at("local", text).with_help("use more hosts, or set `local = 0`"))
            }
            _ => Ok(()),
        }
    }
}

impl Generate for Poisson {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let cdf = self.sizes.cdf().map_err(|error| error.within("sizes"))?;
        let cdf = match &self.clamp {
            Some(clamp) => clamp.of(&cdf).map_err(|error| error.within("clamp"))?,
            None => cdf,
        };
        if !(self.load > 0.0 && self.load.is_finite()) {
            let text = format!("expected a share of the line rate above 0, such as 0.5; found {}", self.load);
            return Err(code::RANGE.at("load", text));
        }
        let peers = match &self.mix {
            Some(_) if self.peers != Peers::Any => {
                return Err(code::CONFLICT.at("peers", "set either `mix` or `peers`, not both"));
            }
            Some(_) => Peers::CrossPod,
            None => self.peers,
        };
        let peer_set = PeerSet::new(draft, self.hosts.hosts(draft, 0)?, peers)?;
        if let Some(mix) = &self.mix {
            mix.check(&peer_set).map_err(|error| error.within("mix"))?;
        }
        let mut sum = 0;
        let rate = |host: &HostId| draft.fabric.uplink(*host).rate.bps();
        let rates: Vec<u64> = peer_set
            .hosts()
            .iter()
            .map(|host| {
                sum += rate(host);
                sum
            })
            .collect();
        let gap = cdf.mean() * 8e12 / (self.load * sum as f64);
        let mix = self.mix.as_ref();
        let arrivals = Arrivals { key: draft.key, peer_set: &peer_set, rates, cdf: &cdf, mix, gap };
        let (path, number) = match (self.duration, self.count) {
            (Some(_), Some(_)) => {
                return Err(code::CONFLICT.at("count", "set either `duration` or `count`, not both"));
            }
            (None, count) => match count.unwrap_or(FLOWS) {
                0 => return Err(code::RANGE.at("count", "expected at least 1 flow, found 0")),
                count => ("count", count),
            },
            (Some(duration), None) => {
                let expected = duration.ps() as f64 / gap;
                if expected > MOST_MESSAGES as f64 {
                    // Drawing that many arrivals would take long, so the expected number is refused.
                    ("duration", expected as u64)
                } else {
                    let number = arrivals.times().take_while(|at| *at < duration).count() as u64;
                    if number == 0 {
                        let text = format!(
                            "no flow arrives within {duration}; the load gives {expected:.2} on average"
                        );
                        return Err(code::FIT.at("duration", text));
                    }
                    ("duration", number)
                }
            }
        };
        let hosts = peer_set.hosts().len() as u64;
        draft.reserve(number, number.min(hosts * (hosts - 1)), path)?;
        let wire = draft.wire;
        let on_wire = self.load * f64::from(wire.max_frame() + wire.gap) / f64::from(wire.payload);
        if on_wire > 1.0 {
            // Huge loads are printed in scientific notation.
            let share = if on_wire < 1e6 { format!("{on_wire:.3}") } else { format!("{on_wire:.3e}") };
            let text = format!(
                "a load of {:?} takes {share} of the line rate with headers: queues at the senders grow for as long \
                 as flows arrive, so results depend on the duration",
                self.load
            );
            draft.warnings.push(code::OVERLOAD.at("load", text));
        }
        // Quotas are shares of the expected number of flows, as in the prototype.
        let expected = self.duration.map_or(number, |duration| (duration.ps() as f64 / gap) as u64);
        let mut quotas = mix.map_or(Quotas { local: 0, remote: 0 }, |mix| mix.quotas(expected));
        for (k, at) in (0..number).zip(arrivals.times()) {
            let Arrival { at, from, to, bytes } = arrivals.arrival(k, at, &mut quotas);
            let start = Time(draft.start.ps().saturating_add(at.ps()));
            if start > LATEST {
                let text = format!(
                    "flow {} of {number} would start at {start}; the latest possible start is {LATEST}",
                    k + 1
                );
                return Err(code::RANGE.at(if path == "duration" { path } else { "load" }, text));
            }
            draft.send_at(0, from, to, bytes, at);
        }
        Ok(1)
    }

    fn read_files(&mut self, folder: &Path) -> Result<(), Finding> {
        self.sizes.read_file(folder).map_err(|error| error.within("sizes"))
    }

    fn usual_qp(&self) -> QpUse {
        QpUse::PerMessage
    }
}
