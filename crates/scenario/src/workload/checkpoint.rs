//! Checkpoints: hosts write to storage nodes, which keep copies of each other's data.

use super::Generate;
use super::draft::{Draft, StartOn, some_bytes};
use finding::{Finding, code};
use model::{Bytes, HostId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Writers share a checkpoint in equal parts, and write them to storage nodes in chunks. A chunk is written when its reply has come back
/// from all copies. Nothing waits for a checkpoint: a training job beside it goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Checkpoint {
    /// Payload of a checkpoint, of all writers together. A model has 14 B per parameter: weights in BF16, and FP32 master weights with two
    /// moments (ZeRO, SC 2020; 12 B without the weights in BF16). No default.
    pub bytes: Bytes,
    /// Hosts that store. No default.
    pub storage: Vec<String>,
    /// Hosts that write. Default: all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writers: Option<Vec<String>>,
    /// Storage nodes over which a writer spreads its chunks in turn. Default: all, at most 8 (our choice).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe: Option<usize>,
    /// Largest payload of a write. Default 4 MB (our choice; storage systems write 64 kB to 4 MB).
    #[serde(default = "chunk")]
    pub chunk: Bytes,
    /// Nodes that keep each chunk. Default 1 (our choice).
    #[serde(default = "one")]
    pub replicas: usize,
    /// The way of copies. `"chain"`: each node sends the chunk to the next one, and replies run back (3FS; there the successor reads).
    /// `"primary"`: the first node sends it to all others and waits for them (Ceph). Default `"chain"` (our choice).
    #[serde(default)]
    pub replication: Replication,
    /// Chunks of a writer under way at once. Default 8 (our choice).
    #[serde(default = "window")]
    pub window: usize,
    /// Number of checkpoints. Default 1 (our choice).
    #[serde(default = "one")]
    pub times: usize,
    /// Time from the start of one checkpoint to the next. No default if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Time>,
}

/// The way of copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replication {
    /// From node to node.
    #[default]
    Chain,
    /// From the first node to all others.
    Primary,
}

/// Payload of a reply. Our choice: storage systems' replies are small.
const REPLY: u64 = 64;

/// Storage nodes of a stripe by default, at most.
const STRIPE: usize = 8;

fn chunk() -> Bytes {
    Bytes(4_000_000)
}

fn one() -> usize {
    1
}

fn window() -> usize {
    8
}

/// What a checkpoint is, checked.
struct Layout {
    writers: Vec<HostId>,
    storage: Vec<HostId>,
    stripe: usize,
    /// Payload of a writer, and of its chunks but the last one.
    part: u64,
    chunk: u64,
}

impl Generate for Checkpoint {
    fn generate(&self, draft: &mut Draft<'_>) -> Result<usize, Finding> {
        let Layout { writers, storage, stripe, part, chunk } = self.layout(draft)?;
        let every = match self.every {
            None if self.times > 1 => {
                return Err(code::NEEDS.at("every", "several checkpoints need the time from one to the next"));
            }
            every => every.unwrap_or_default(),
        };
        let chunks = part.div_ceil(chunk);
        let all = (writers.len() as u64).saturating_mul(chunks).saturating_mul(self.times as u64);
        let pairs = (writers.len() * stripe + storage.len() * self.replicas) as u64;
        draft.reserve(all.saturating_mul(2 * self.replicas as u64), 2 * pairs, "bytes")?;
        for n in 0..self.times as u64 {
            let start = Time(every.ps().saturating_mul(n));
            // Writers begin at nodes of their own, so that each node has equally many.
            for (w, &writer) in writers.iter().enumerate() {
                let mut replies: Vec<u32> = Vec::with_capacity(chunks as usize);
                for c in 0..chunks as usize {
                    let bytes = chunk.min(part - c as u64 * chunk);
                    let first = w * stripe + (w + c) % stripe;
                    let nodes: Vec<HostId> =
                        (0..self.replicas).map(|r| storage[(first + r) % storage.len()]).collect();
                    // Writers have queue pairs of their own between nodes, so that no writer's data waits for another's.
                    let lane = 2 * w as u32;
                    let write = draft.send_at(0, writer, nodes[0], bytes, start);
                    // The reply of an earlier chunk makes room in the window.
                    if let Some(earlier) = c.checked_sub(self.window) {
                        draft.after(replies[earlier], StartOn::Received, write);
                    }
                    replies.push(self.copy(draft, write, (writer, &nodes), (bytes, lane)));
                }
            }
        }
        Ok(1)
    }
}

impl Checkpoint {
    fn layout(&self, draft: &Draft<'_>) -> Result<Layout, Finding> {
        let bytes = some_bytes(self.bytes, "bytes")?;
        let chunk = some_bytes(self.chunk, "chunk")?;
        for (key, count) in [("replicas", self.replicas), ("window", self.window), ("times", self.times)] {
            if count == 0 {
                return Err(code::RANGE.at(key, "expected at least 1, found 0"));
            }
        }
        let storage = hosts(draft, &self.storage, "storage")?;
        let stores: BTreeSet<HostId> = storage.iter().copied().collect();
        let writers = match &self.writers {
            Some(names) => hosts(draft, names, "writers")?,
            None => {
                (0..draft.fabric.hosts() as u32).map(HostId).filter(|host| !stores.contains(host)).collect()
            }
        };
        if let Some(i) = writers.iter().position(|host| stores.contains(host)) {
            let text =
                format!("`{}` stores, so it cannot write to others", draft.fabric.host_name(writers[i]));
            return Err(code::TO_ITSELF.at(&format!("writers.{i}"), text));
        }
        if writers.is_empty() {
            return Err(code::MISSING.at("storage", "all hosts store, and none is left to write"));
        }
        let stripe = self.stripe.unwrap_or(storage.len().min(STRIPE));
        for (key, count) in [("stripe", stripe), ("replicas", self.replicas)] {
            if count == 0 || count > storage.len() {
                let text = format!("expected 1 to {} storage nodes, found {count}", storage.len());
                return Err(code::FIT.at(key, text));
            }
        }
        let part = bytes.div_ceil(writers.len() as u64);
        Ok(Layout { writers, storage, stripe, part, chunk })
    }

    /// Copies a chunk that arrives at the first of its nodes. Returns the reply to the writer.
    fn copy(
        &self,
        draft: &mut Draft<'_>,
        write: u32,
        (writer, nodes): (HostId, &[HostId]),
        (bytes, lane): (u64, u32),
    ) -> u32 {
        let mut send = |causes: &[u32], (from, to): (HostId, HostId), (bytes, lane): (u64, u32)| {
            let message = draft.send(0, from, to, bytes);
            draft.outline.messages[message as usize].lane = lane;
            causes.iter().for_each(|&cause| draft.after(cause, StartOn::Received, message));
            message
        };
        let (data, reply) = ((bytes, lane), (REPLY, lane + 1));
        let causes = match self.replication {
            Replication::Chain => {
                let mut last = write;
                nodes.windows(2).for_each(|pair| last = send(&[last], (pair[0], pair[1]), data));
                nodes.windows(2).rev().for_each(|pair| last = send(&[last], (pair[1], pair[0]), reply));
                vec![last]
            }
            Replication::Primary => {
                let copies: Vec<u32> =
                    nodes[1..].iter().map(|&node| send(&[write], (nodes[0], node), data)).collect();
                let replies = copies.iter().zip(&nodes[1..]);
                let mut causes: Vec<u32> =
                    replies.map(|(&copy, &node)| send(&[copy], (node, nodes[0]), reply)).collect();
                causes.push(write);
                causes
            }
        };
        send(&causes, (nodes[0], writer), reply)
    }
}

/// Hosts by their names, each once.
fn hosts(draft: &Draft<'_>, names: &[String], key: &str) -> Result<Vec<HostId>, Finding> {
    if names.is_empty() {
        return Err(code::MISSING.at(key, "expected at least 1 host, found none"));
    }
    let mut seen = BTreeSet::new();
    let one = |(i, name): (usize, &String)| {
        let path = format!("{key}.{i}");
        let host = draft.host(name, &path)?;
        match seen.insert(host) {
            true => Ok(host),
            false => Err(code::TWICE.at(&path, format!("`{name}` stands twice"))),
        }
    };
    names.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, check};
    use model::Plan;

    fn plan(keys: &str) -> Result<Plan, String> {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 4\n[[workload]]\n[workload.checkpoint]\n\
             storage = [\"host4\", \"host5\", \"host6\", \"host7\"]\n{keys}\n"
        );
        check(&Source::new("c.toml", text), &[])
            .map(|checked| checked.plan)
            .map_err(|error| format!("{}: {error}", error.key.join(".")))
    }

    /// Payload that each host sends and receives.
    fn loads(plan: &Plan) -> (Vec<u64>, Vec<u64>) {
        let (mut sent, mut received) = (vec![0; 8], vec![0; 8]);
        for message in &plan.messages {
            let qp = &plan.qps[message.qp.index()];
            sent[qp.from.index()] += message.bytes;
            received[qp.to.index()] += message.bytes;
        }
        (sent, received)
    }

    #[test]
    fn every_copy_crosses_the_fabric_and_nodes_are_loaded_alike() {
        let replies = 4 * 10 * 64;
        for replication in ["chain", "primary"] {
            let keys =
                format!("bytes = \"40MB\"\nchunk = \"1MB\"\nreplicas = 3\nreplication = \"{replication}\"");
            let (sent, received) = loads(&plan(&keys).unwrap());
            // Four writers of ten chunks each, over four nodes.
            assert_eq!(sent[..4], [10_000_000; 4], "{replication}");
            assert_eq!(received[..4], [640; 4], "{replication}");
            // Each chunk arrives at three nodes, and leaves two of them.
            assert_eq!(received[4..].iter().sum::<u64>(), 120_000_000 + 2 * replies, "{replication}");
            assert_eq!(sent[4..].iter().sum::<u64>(), 80_000_000 + 3 * replies, "{replication}");
            let even =
                |load: &[u64]| load.iter().max().unwrap() - load.iter().min().unwrap() <= 2_000_000 + 512;
            assert!(even(&received[4..]) && even(&sent[4..]), "{received:?} {sent:?}");
        }
    }

    #[test]
    fn a_writer_has_a_window_of_chunks_under_way() {
        let plan = plan("bytes = \"40MB\"\nchunk = \"1MB\"\nwindow = 2\nwriters = [\"host0\"]\ntimes = 2\nevery = \"1ms\"").unwrap();
        let writes: Vec<_> = plan.messages.iter().filter(|message| message.bytes == 1_000_000).collect();
        assert_eq!(writes.len(), 80);
        assert_eq!(writes.iter().filter(|message| message.needs == 0).count(), 4, "two of each checkpoint");
        assert_eq!(writes.iter().map(|message| message.start).max(), Some(Time::from_ms(1)));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        for (keys, key, text) in [
            ("bytes = \"0B\"", "bytes", "0"),
            ("bytes = \"1MB\"\nreplicas = 5", "replicas", "expected 1 to 4 storage nodes, found 5"),
            ("bytes = \"1MB\"\nstripe = 0", "stripe", "expected 1 to 4"),
            ("bytes = \"1MB\"\nwindow = 0", "window", "at least 1"),
            ("bytes = \"1MB\"\ntimes = 2", "every", "from one to the next"),
            ("bytes = \"1MB\"\nwriters = [\"host5\"]", "writers", "`host5` stores"),
            ("bytes = \"1MB\"\nwriters = [\"host1\", \"host1\"]", "writers", "twice"),
            ("bytes = \"1MB\"\nwriters = [\"hots1\"]", "writers", "did you mean"),
            ("bytes = \"900TB\"\nchunk = \"1B\"", "bytes", "messages"),
        ] {
            let error = plan(keys).unwrap_err();
            assert!(error.contains(key) && error.contains(text), "{keys}: {error}");
        }
    }
}
