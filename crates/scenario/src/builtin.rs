//! Built-in scenarios.

/// A built-in scenario or sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Name of the scenario.
    pub name: &'static str,
    /// TOML; comments at the top describe the scenario and its source.
    pub text: &'static str,
}

impl Builtin {
    /// Description: the first line of comment.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

macro_rules! builtins {
    ($($name:literal),+ $(,)?) => {
        /// All built-in scenarios.
        pub const ALL: &[Builtin] = &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $name, ".toml")),
        }),+];
    };
}

builtins! {
    "quickstart",
    "cluster-h100",
    "dcp",
    "dctcp-incast",
    "dlbf",
    "dlbf-motivation",
    "dragonfly",
    "ethereal",
    "fat-tree-8192",
    "flowcut-permutation",
    "gpt-13b",
    "hpcc-incast",
    "llama-3-70b",
    "long-haul",
    "long-haul-full",
    "long-haul-near-source",
    "long-haul-near-destination",
    "long-haul-sprayed",
    "loss-recovery-go-back-n",
    "loss-recovery-nic-sr",
    "loss-recovery-adaptive-routing",
    "loss-recovery-sprayed",
    "multipath",
    "ndp",
    "next-generation",
    "real-frames",
    "serving",
    "serving-checkpoint",
    "slow-link",
    "strack",
    "themis-failed-spine",
    "themis-fig1",
    "themis-fig5-allreduce",
    "themis-fig5-alltoall",
    "pint-incast",
    "timely-incast",
    "ultra-ethernet",
    "mrc",
    "web-search",
    "which-scheme",
}

/// Finds a built-in scenario by its name, with or without `.toml`.
pub fn find(name: &str) -> Option<&'static Builtin> {
    let name = name.strip_suffix(".toml").unwrap_or(name);
    ALL.iter().find(|b| b.name == name)
}
