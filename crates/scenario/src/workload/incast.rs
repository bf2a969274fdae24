//! Incast: many hosts send to one.

use super::Generate;
use super::draft::{Draft, some_bytes};
use crate::topology::links::NamesOrCount;
use finding::{Finding, code};
use model::{Bytes, HostId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every sender sends one message to the receiver, all at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Incast {
    /// Number of senders, taken from all racks in turn, or their names. Default 8 (our choice).
    #[serde(default = "senders")]
    pub senders: NamesOrCount,
    /// Host that receives. Default: the first host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
    /// Payload of each message. Default 1 MB (our choice).
    #[serde(default = "bytes")]
    pub bytes: Bytes,
}

fn senders() -> NamesOrCount {
    NamesOrCount::Count(8)
}

fn bytes() -> Bytes {
    Bytes(1_000_000)
}

impl Generate for Incast {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let bytes = some_bytes(self.bytes, "bytes")?;
        let receiver = match &self.receiver {
            Some(name) => draft.host(name, "receiver")?,
            None => HostId(0),
        };
        let senders = match &self.senders {
            NamesOrCount::Count(n) => {
                let others = draft.fabric.hosts() - 1;
                if *n == 0 || *n > others {
                    let text = format!("expected 1 to {others} senders beside the receiver, found {n}");
                    return Err(code::FIT.at("senders", text));
                }
                in_turn(draft, receiver).take(*n).collect()
            }
            NamesOrCount::List(names) => {
                let mut senders: Vec<HostId> = Vec::new();
                for (i, name) in names.iter().enumerate() {
                    let path = format!("senders.{i}");
                    let host = draft.host(name, &path)?;
                    if host == receiver {
                        return Err(code::TO_ITSELF.at(&path, format!("`{name}` is the receiver")));
                    }
                    senders.push(host);
                }
                senders
            }
        };
        if senders.is_empty() {
            return Err(code::MISSING.at("senders", "expected at least 1 sender, found none"));
        }
        draft.reserve(senders.len() as u64, senders.len() as u64, "senders")?;
        for host in senders {
            draft.send(0, host, receiver, bytes);
        }
        Ok(1)
    }
}

/// All hosts except one: the first host of every rack, then the second host of every rack, and so on.
fn in_turn(draft: &Draft<'_>, but: HostId) -> impl Iterator<Item = HostId> + use<> {
    let fabric = draft.fabric;
    let mut seen = vec![0usize; fabric.nodes()];
    let mut order: Vec<(usize, HostId)> = (0..fabric.hosts())
        .map(|h| {
            let host = HostId(h as u32);
            let rank = &mut seen[fabric.attachment(host).index()];
            *rank += 1;
            (*rank, host)
        })
        .filter(|(_, host)| *host != but)
        .collect();
    order.sort();
    order.into_iter().map(|(_, host)| host)
}
