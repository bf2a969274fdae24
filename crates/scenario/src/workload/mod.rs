//! Workloads: `[[workload]]` entries, one file per kind.
//!
//! To add one: a file with its settings and `impl Generate`, and its line in the list below.

pub mod cdf;
pub(crate) mod draft;
pub mod groups;
pub mod host_sample;
pub mod peers;
pub mod sizes;

use crate::error::Fault;
use draft::Draft;
use model::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Lays out messages.
pub(crate) trait Generate {
    /// Adds the messages of one job; returns how many groups (communicators) it has. Paths of faults start at
    /// the settings.
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Fault>;

    /// Puts what files hold in the place of their names; `folder` is where the scenario stands.
    fn read_files(&mut self, _folder: &Path) -> Result<(), Fault> {
        Ok(())
    }

    /// Which messages share a queue pair where the scenario does not say.
    fn usual_qp(&self) -> QpUse {
        QpUse::Persistent
    }
}

/// Which messages share a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QpUse {
    /// One queue pair per (source, destination, job): rates and sequence numbers live on from message to
    /// message.
    #[default]
    Persistent,
    /// A fresh queue pair for every message.
    PerMessage,
}

macro_rules! workloads {
    ($($(#[$doc:meta])* $file:ident: $kind:ident = $name:tt,)+) => {
        $(pub mod $file;)+

        /// A job: one kind of traffic, with its settings.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct Workload {
            /// Its name in the results and for `--set`. Default: the name of its kind, numbered if there are
            /// several.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// When it starts. Default 0.
            #[serde(default)]
            pub start: Time,
            /// Background traffic ends with the other jobs and does not count for completeness. Default false.
            #[serde(default)]
            pub background: bool,
            /// Its traffic class: one of the `[class.NAME]`, or one of those that need no table. Default
            /// `"background"` for background traffic, else `"foreground"`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub class: Option<String>,
            /// `"persistent"`: one queue pair per (source, destination, job); `"per-message"`: one per message.
            /// Default `"persistent"` (collective libraries keep their connections); for `poisson` `"per-message"` (a
            /// flow has a queue pair of its own in the HPCC family of ns-3 simulators, and none waits for another).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub qp: Option<QpUse>,
            $(
                $(#[$doc])*
                #[serde(rename = $name, default, skip_serializing_if = "Option::is_none")]
                pub $file: Option<$file::$kind>,
            )+
        }

        impl Workload {
            /// The names of all kinds.
            pub const KINDS: &'static [&'static str] = &[$($name),+];

            /// The kinds that are set; a checked entry has exactly one.
            pub fn kinds(&self) -> Vec<&'static str> {
                let mut kinds = Vec::new();
                $(if self.$file.is_some() { kinds.push($name); })+
                kinds
            }

            pub(crate) fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Fault> {
                $(if let Some(settings) = &self.$file {
                    return settings.generate(draft).map_err(|fault| fault.within($name));
                })+
                Ok(0)
            }

            pub(crate) fn read_files(&mut self, folder: &Path) -> Result<(), Fault> {
                $(if let Some(settings) = &mut self.$file {
                    return settings.read_files(folder).map_err(|fault| fault.within($name));
                })+
                Ok(())
            }

            pub(crate) fn usual_qp(&self) -> QpUse {
                $(if let Some(settings) = &self.$file {
                    return settings.usual_qp();
                })+
                QpUse::Persistent
            }
        }
    };
}

workloads! {
    /// Every rank of a ring sends one message to the next rank.
    neighbour_ring: NeighbourRing = "neighbour-ring",
    /// All ranks of a group reduce a buffer and share the result.
    all_reduce: AllReduce = "all-reduce",
    /// Every rank of a group sends a part of its buffer to every other rank.
    all_to_all: AllToAll = "all-to-all",
    /// Every host sends one message, and every host receives one.
    permutation: Permutation = "permutation",
    /// Many hosts send to one.
    incast: Incast = "incast",
    /// Several hosts receive, each from many senders of its own.
    fan_in: FanIn = "fan-in",
    /// Pairs of hosts that are drawn: one sends to the other.
    pairs: Pairs = "pairs",
    /// One host sends messages to another, one after another.
    back_to_back: BackToBack = "back-to-back",
    /// Flows of random sizes that arrive at random times between random hosts.
    poisson: Poisson = "poisson",
    /// Every host sends messages to one random host after another.
    random_partner: RandomPartner = "random-partner",
    /// Messages one by one.
    flows: Flows = "flows",
}

impl Workload {
    /// The keys that entries of every kind have.
    pub(crate) const COMMON_KEYS: &'static [&'static str] = &["name", "start", "background", "class", "qp"];

    /// True for keys of an entry itself: those that every kind has, and the kinds.
    pub(crate) fn has_key(key: &str) -> bool {
        Workload::COMMON_KEYS.contains(&key) || Workload::KINDS.contains(&key)
    }

    /// The name of its traffic class.
    pub(crate) fn class(&self) -> &str {
        let default = if self.background { "background" } else { "foreground" };
        self.class.as_deref().unwrap_or(default)
    }

    /// Checks that exactly one kind is chosen.
    pub(crate) fn one_kind(&self) -> Result<&'static str, Fault> {
        match *self.kinds() {
            [kind] => Ok(kind),
            [] => Err(Fault::new("", "this workload says nothing to send")
                .with_help(format!("add one of {}", Workload::KINDS.join(", ")))),
            [first, second, ..] => {
                let text = format!("a workload is of one kind; this one has `{first}` and `{second}`");
                let mut fault = Fault::new(second, text)
                    .with_help("jobs run side by side: give each its own [[workload]]");
                fault.key = true;
                Err(fault)
            }
        }
    }
}

#[cfg(test)]
mod tests;
