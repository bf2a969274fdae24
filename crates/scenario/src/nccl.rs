//! NCCL's version and variables: `[nccl]`.
//!
//! `nccl.env` takes `NCCL_*` variables under their names. Some fill in settings of NICs and jobs; the others restrict NCCL's choice.

use collective::{Algorithm, CANDIDATES, Kind, Machine};
use finding::{Finding, code, suggestion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The NCCL whose choice `algorithm = "nccl"` makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct NcclConfig {
    /// Version, `"2.18"` to `"2.30"`. Default `"2.27"` (our choice: the version whose estimates are published).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether NCCL may take NVLink SHARP. Default true (NCCL).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvls: Option<bool>,
    /// Environment variables, such as `{ NCCL_ALGO = "Ring" }`. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// What a variable does.
#[derive(Clone, Copy)]
enum Use {
    /// It restricts algorithms or protocols.
    Algorithms,
    Protocols,
    /// It allows NVLS, PAT or PXN, or forbids it.
    Nvls,
    Pat,
    Pxn,
    /// It bounds the number of channels.
    LeastChannels,
    MostChannels,
    /// It sets keys of `[nic]` or of jobs.
    Timeout,
    Retries,
    QueuePairs,
    Split,
    /// It changes nothing that is modelled.
    Nothing,
}

/// The variables.
const VARIABLES: &[(&str, Use)] = &[
    ("NCCL_ALGO", Use::Algorithms),
    ("NCCL_PROTO", Use::Protocols),
    ("NCCL_NVLS_ENABLE", Use::Nvls),
    ("NCCL_PAT_ENABLE", Use::Pat),
    ("NCCL_PXN_DISABLE", Use::Pxn),
    ("NCCL_MIN_NCHANNELS", Use::LeastChannels),
    ("NCCL_MIN_CTAS", Use::LeastChannels),
    ("NCCL_MAX_NCHANNELS", Use::MostChannels),
    ("NCCL_MAX_CTAS", Use::MostChannels),
    ("NCCL_IB_TIMEOUT", Use::Timeout),
    ("NCCL_IB_RETRY_CNT", Use::Retries),
    ("NCCL_IB_QPS_PER_CONNECTION", Use::QueuePairs),
    ("NCCL_IB_SPLIT_DATA_ON_QPS", Use::Split),
    ("NCCL_DEBUG", Use::Nothing),
    ("NCCL_DEBUG_SUBSYS", Use::Nothing),
    ("NCCL_DEBUG_FILE", Use::Nothing),
    ("NCCL_SOCKET_IFNAME", Use::Nothing),
    ("NCCL_IB_GID_INDEX", Use::Nothing),
    ("NCCL_IB_ROCE_VERSION_NUM", Use::Nothing),
];

/// NCCL's names of collectives, in `NCCL_ALGO` and `NCCL_PROTO`.
const FUNCTIONS: [(&str, Kind); 5] = [
    ("broadcast", Kind::Broadcast),
    ("reduce", Kind::Reduce),
    ("allgather", Kind::AllGather),
    ("reducescatter", Kind::ReduceScatter),
    ("allreduce", Kind::AllReduce),
];

/// NCCL's names of algorithms, with ours where it is modelled.
const ALGORITHMS: [(&str, Option<Algorithm>); 7] = [
    ("tree", Some(Algorithm::Tree)),
    ("ring", Some(Algorithm::Ring)),
    ("collnetdirect", None),
    ("collnetchain", None),
    ("nvls", Some(Algorithm::Nvls)),
    ("nvlstree", Some(Algorithm::Nvls)),
    ("pat", Some(Algorithm::Pat)),
];

/// NCCL's names of protocols.
const PROTOCOLS: [&str; 3] = ["ll", "ll128", "simple"];

/// NCCL's choice, as version and variables restrict it.
#[derive(Clone, Debug)]
pub(crate) struct Nccl {
    version: u32,
    algorithms: BTreeMap<Kind, [bool; CANDIDATES.len()]>,
    protocols: BTreeMap<Kind, [bool; 3]>,
    /// Least and most channels.
    channels: (u32, u32),
    /// Whether bytes may go by the NIC of another GPU.
    pub(crate) pxn: bool,
    /// True if the scenario has `[nccl]`.
    pub(crate) given: bool,
}

impl Nccl {
    /// The choice of a scenario.
    pub(crate) fn of(config: Option<&NcclConfig>) -> Result<Self, Finding> {
        let mut nccl = Nccl {
            version: Machine::VERSION,
            algorithms: BTreeMap::new(),
            protocols: BTreeMap::new(),
            channels: (1, u32::MAX),
            pxn: true,
            given: config.is_some(),
        };
        let Some(NcclConfig { version, nvls, env }) = config else { return Ok(nccl) };
        if let Some(version) = version {
            let minor = version.strip_prefix("2.").and_then(|rest| rest.split('.').next()?.parse().ok());
            nccl.version = minor.filter(|minor| Machine::VERSIONS.contains(minor)).ok_or_else(|| {
                code::RANGE.at("version", format!("expected \"2.18\" to \"2.30\", found \"{version}\""))
            })?;
        }
        for (name, text) in env {
            nccl.set(name, text).map_err(|error| error.within("env"))?;
        }
        if *nvls == Some(false) {
            nccl.forbid(Algorithm::Nvls);
        }
        Ok(nccl)
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), Finding> {
        match variable(name)? {
            Use::Algorithms => {
                for (kind, listed) in list(name, text, &ALGORITHMS.map(|(name, _)| name))? {
                    let may = |algorithm| {
                        (0..ALGORITHMS.len()).any(|i| listed[i] && ALGORITHMS[i].1 == Some(algorithm))
                    };
                    self.algorithms.insert(kind, CANDIDATES.map(may));
                }
            }
            Use::Protocols => {
                for (kind, listed) in list(name, text, &PROTOCOLS)? {
                    self.protocols.insert(kind, [listed[0], listed[1], listed[2]]);
                }
            }
            Use::Nvls if number(name, text)? == 0 => self.forbid(Algorithm::Nvls),
            Use::Pat if number(name, text)? == 0 => self.forbid(Algorithm::Pat),
            Use::Pxn => self.pxn = number(name, text)? == 0,
            Use::LeastChannels => self.channels.0 = number(name, text)?.clamp(1, 64),
            Use::MostChannels => self.channels.1 = number(name, text)?.clamp(1, 64),
            Use::Timeout | Use::Retries | Use::QueuePairs | Use::Split => {
                number(name, text)?;
            }
            Use::Nvls | Use::Pat | Use::Nothing => {}
        }
        Ok(())
    }

    fn forbid(&mut self, algorithm: Algorithm) {
        for (_, kind) in FUNCTIONS {
            let all = self.algorithms.entry(kind).or_insert([true; CANDIDATES.len()]);
            for (may, candidate) in all.iter_mut().zip(CANDIDATES) {
                *may &= candidate != algorithm;
            }
        }
    }

    /// The machine, as far as this NCCL uses it for a collective.
    pub(crate) fn restrict(&self, kind: Kind, machine: Machine) -> Machine {
        let usual = Machine::default();
        let algorithms = self.algorithms.get(&kind).copied().unwrap_or(usual.algorithms);
        let protocols = self.protocols.get(&kind).copied().unwrap_or(usual.protocols);
        Machine { version: self.version, algorithms, protocols, ..machine }
    }

    /// Number of channels, within the bounds that are set.
    pub(crate) fn channels(&self, usual: u32) -> u32 {
        usual.min(self.channels.1).max(self.channels.0)
    }
}

fn variable(name: &str) -> Result<Use, Finding> {
    let known: Vec<&str> = VARIABLES.iter().map(|(name, _)| *name).collect();
    let found = VARIABLES.iter().find(|(known, _)| *known == name);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let text = format!("`{name}` is no variable that ropewalk knows; {}", suggestion(name, &known));
        code::UNKNOWN_NAME.at(name, text)
    })
}

fn number(name: &str, text: &str) -> Result<u32, Finding> {
    text.trim().parse().map_err(|_| code::RANGE.at(name, format!("expected a number, found \"{text}\"")))
}

/// The elements that a list allows, by collective: `Ring,Tree` or `^Tree` for all, then `;allreduce:Ring`.
fn list(name: &str, text: &str, elements: &[&str]) -> Result<Vec<(Kind, Vec<bool>)>, Finding> {
    let unknown = |word: &str, known: &[&str]| {
        code::UNKNOWN_NAME.at(name, format!("unknown word `{word}`; {}", suggestion(word, known)))
    };
    let mut found: BTreeMap<Kind, Vec<bool>> = BTreeMap::new();
    for part in text.split(';').filter(|part| !part.trim().is_empty()) {
        let (kinds, words): (Vec<Kind>, &str) = match part.split_once(':') {
            None => (FUNCTIONS.map(|(_, kind)| kind).to_vec(), part),
            Some((function, words)) => {
                let function = function.trim().to_lowercase();
                let kind = FUNCTIONS.iter().find(|(name, _)| *name == function).map(|(_, kind)| *kind);
                (vec![kind.ok_or_else(|| unknown(&function, &FUNCTIONS.map(|(name, _)| name)))?], words)
            }
        };
        let words = words.trim();
        let (others, words) = (words.starts_with('^'), words.trim_start_matches('^'));
        let mut listed = vec![others; elements.len()];
        for word in words.split(',').map(|word| word.trim().to_lowercase()) {
            let at = elements.iter().position(|element| *element == word);
            listed[at.ok_or_else(|| unknown(&word, elements))?] = !others;
        }
        found.extend(kinds.into_iter().map(|kind| (kind, listed.clone())));
    }
    Ok(found.into_iter().collect())
}

/// Fills in the settings of NICs and jobs that variables stand for, where the scenario leaves them open.
pub(crate) fn fill(scenario: &mut Table) {
    let env = scenario.get("nccl").and_then(|nccl| nccl.get("env")).and_then(Value::as_table).cloned();
    let Some(env) = env else { return };
    let value = |meaning: fn(Use) -> bool| {
        let (name, _) = VARIABLES.iter().find(|(_, of)| meaning(*of))?;
        env.get(*name)?.as_str()?.trim().parse::<i64>().ok()
    };
    let nic = scenario.entry("nic").or_insert_with(|| Table::new().into());
    if let Some(nic) = nic.as_table_mut() {
        if let Some(exponent) = value(|of| matches!(of, Use::Timeout)) {
            nic.entry("timeout")
                .or_insert_with(|| Table::from_iter([("ib".to_owned(), exponent.into())]).into());
        }
        if let Some(retries) = value(|of| matches!(of, Use::Retries)) {
            nic.entry("retries").or_insert(retries.into());
        }
    }
    let Some(pairs) = value(|of| matches!(of, Use::QueuePairs)).filter(|pairs| *pairs > 1) else { return };
    let split = value(|of| matches!(of, Use::Split)) == Some(1);
    let jobs = scenario.get_mut("workload").and_then(Value::as_array_mut);
    for job in jobs.into_iter().flatten().filter_map(Value::as_table_mut) {
        let of_nccl =
            ["collective", "training", "graph", "chakra", "simai"].iter().any(|kind| job.contains_key(*kind));
        if !of_nccl || job.contains_key("qp") || job.contains_key("split") {
            continue;
        }
        let (key, setting) = match split {
            true => ("split", vec![("subflows", pairs.into()), ("paths", Value::from("free"))]),
            false => ("qp", vec![("in-turn", pairs.into())]),
        };
        let setting: Table = setting.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        job.insert(key.to_owned(), setting.into());
    }
}

#[cfg(test)]
mod tests {
    use crate::{Checked, Source, check};
    use model::plan::Operation;

    fn lay(nccl: &str) -> Result<Checked, String> {
        let text = format!(
            "[server]\npreset = \"hgx-h100\"\ncost = \"none\"\n[topology.rails]\nservers = 2\nspines = 0\n{nccl}\n[[workload]]\n\
             collective = {{ kind = \"all-reduce\", bytes = \"64MB\" }}\n"
        );
        check(&Source::new("s.toml", text), &[]).map_err(|e| e.to_string())
    }

    fn done(nccl: &str) -> (&'static str, &'static str, u32) {
        let checked = lay(nccl).unwrap_or_else(|e| panic!("{e}"));
        let Operation { algorithm, protocol, channels, .. } = checked.plan.operations[0];
        (algorithm, protocol, channels)
    }

    #[test]
    fn variables_restrict_the_choice() {
        assert_eq!(done(""), ("ring", "simple", 8));
        assert_eq!(done("[nccl]").0, "nvls");
        assert_eq!(done("[nccl]\nnvls = false"), ("ring", "ll128", 16));
        assert_eq!(
            done("[nccl]\nenv = { NCCL_NVLS_ENABLE = \"0\", NCCL_PROTO = \"^LL128\" }"),
            ("ring", "simple", 16)
        );
        assert_eq!(done("[nccl]\nenv = { NCCL_ALGO = \"Ring;allreduce:Tree\" }").0, "tree");
        assert_eq!(done("[nccl]\nenv = { NCCL_ALGO = \"ring\", NCCL_MAX_NCHANNELS = \"4\" }").2, 4);
    }

    #[test]
    fn variables_set_queue_pairs_and_timers() {
        let checked =
            lay("[nccl]\nenv = { NCCL_IB_QPS_PER_CONNECTION = \"4\", NCCL_IB_TIMEOUT = \"22\" }").unwrap();
        assert_eq!(checked.scenario.nic.timeout, rnic::timeout::Timeout::Ib(22));
        assert_eq!(checked.plan.qps.len(), 4 * lay("[nccl]").unwrap().plan.qps.len());
    }

    #[test]
    fn an_unknown_variable_or_word_is_named_with_the_nearest() {
        let told = |nccl: &str| lay(nccl).unwrap_err();
        assert!(told("[nccl]\nenv = { NCCL_ALG = \"Ring\" }").contains("did you mean `NCCL_ALGO`?"));
        assert!(told("[nccl]\nenv = { NCCL_ALGO = \"Rong\" }").contains("did you mean `ring`?"));
        assert!(told("[nccl]\nversion = \"2.9\"").contains("expected \"2.18\" to \"2.30\""));
    }
}
