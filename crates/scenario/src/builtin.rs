//! The scenarios that come with ropewalk.

/// A scenario that comes with ropewalk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// What it is called.
    pub name: &'static str,
    /// TOML, with comments that say what it is and where it comes from.
    pub text: &'static str,
}

impl Builtin {
    /// Its first line of comment.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

macro_rules! builtins {
    ($($name:literal),+ $(,)?) => {
        /// All of them.
        pub const ALL: &[Builtin] = &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $name, ".toml")),
        }),+];
    };
}

builtins! {
    "quickstart",
    "dlbf",
    "dlbf-motivation",
    "dragonfly",
    "fat-tree-8192",
    "flowcut-permutation",
    "hpcc-incast",
    "long-haul",
    "long-haul-near-source",
    "long-haul-near-destination",
    "loss-recovery-go-back-n",
    "loss-recovery-nic-sr",
    "loss-recovery-adaptive-routing",
    "loss-recovery-sprayed",
    "multipath",
    "slow-link",
    "themis-failed-spine",
    "themis-fig1",
    "themis-fig5-allreduce",
    "themis-fig5-alltoall",
    "web-search",
    "which-scheme",
}

/// The built-in scenario of that name, with or without `.toml`.
pub fn find(name: &str) -> Option<&'static Builtin> {
    let name = name.strip_suffix(".toml").unwrap_or(name);
    ALL.iter().find(|b| b.name == name)
}
