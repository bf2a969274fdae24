//! `[[links.lose]]`: single packets that are lost on purpose.

use crate::nodes::node;
use finding::{Finding, code};
use model::plan::{Job, ListedLoss, Message, Qp};
use model::{Fabric, HostId, Kind, LinkId, Psn, QpId, Wire};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets of the flows from one host to another that are lost on purpose, for tests and experiments. A queue pair
/// counts PSNs from 0 over all its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LossConfig {
    /// Host that sends the data. No default.
    pub from: String,
    /// Host that receives the data. No default.
    pub to: String,
    /// Name of the job whose packets are lost. If the job has several queue pairs from `from` to `to`, each of them
    /// loses the listed packets. Default: all jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// PSNs of the lost packets, at most 16777215. An ACK carries the last PSN that it acknowledges, a NACK the ePSN. No
    /// default.
    pub psns: Vec<u32>,
    /// Kind of the lost packets: `"data"`, `"ack"` or `"nack"`. Default `"data"` (our choice).
    #[serde(default)]
    pub kind: LossKind,
    /// Link on which the packets are lost, by its two ends in the packets' direction, such as `["leaf0", "spine1"]`. A
    /// packet that takes another link is not lost. Each of several parallel links counts by itself. Default: the link
    /// of the host that sends the packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<[String; 2]>,
    /// Number of times that each packet is lost; later copies pass. Default 1 (our choice).
    #[serde(default = "once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

/// A kind of packet that can be lost on purpose. CNPs and pause frames are never lost, as no NIC recovers from their loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// Data packets.
    #[default]
    Data,
    /// ACKs.
    Ack,
    /// NACKs.
    Nack,
}

/// Most losses in all lists (our choice): each takes some bytes of memory.
const MOST: usize = 1 << 20;

/// Turns `[[links.lose]]` entries into losses of single packets.
pub(crate) struct LossPlanner<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) wire: &'a Wire,
    pub(crate) qps: &'a [Qp],
    pub(crate) messages: &'a [Message],
    pub(crate) jobs: &'a [Job],
}

impl LossPlanner<'_> {
    /// The losses of all entries. The paths of errors start at the list.
    pub(crate) fn plan(
        &self,
        list: &[LossConfig],
        warnings: &mut Vec<Finding>,
    ) -> Result<Vec<ListedLoss>, Finding> {
        let mut losses = Vec::new();
        for (i, entry) in list.iter().enumerate() {
            let mut own = Vec::new();
            self.entry(entry, &mut losses, &mut own).map_err(|error| error.within(&i.to_string()))?;
            warnings.extend(own.into_iter().map(|warning| warning.within(&format!("links.lose.{i}"))));
        }
        Ok(losses)
    }

    fn entry(
        &self,
        entry: &LossConfig,
        losses: &mut Vec<ListedLoss>,
        warnings: &mut Vec<Finding>,
    ) -> Result<(), Finding> {
        let (from, to) = (self.host(&entry.from, "from")?, self.host(&entry.to, "to")?);
        if entry.psns.is_empty() {
            return Err(code::MISSING.at("psns", "expected at least 1 PSN, found none"));
        }
        if let Some(at) = entry.psns.iter().position(|psn| *psn > Psn::new(u32::MAX).value()) {
            let text = format!("expected a PSN of 24 bits, at most 16777215; found {}", entry.psns[at]);
            return Err(code::RANGE.at(&format!("psns.{at}"), text));
        }
        if entry.times == 0 {
            return Err(code::RANGE.at("times", "expected at least 1, found 0"));
        }
        let job = entry.job.as_deref().map(|name| self.job(name)).transpose()?;
        let of = |qp: &Qp| self.messages[qp.messages.start as usize].job;
        let mine = |qp: &Qp| qp.from == from && qp.to == to && job.is_none_or(|j| of(qp) == j);
        let qps: Vec<usize> = (0..self.qps.len()).filter(|&q| mine(&self.qps[q])).collect();
        if qps.is_empty() {
            let text = format!("no job sends from `{}` to `{}`", entry.from, entry.to);
            return Err(code::UNKNOWN_NAME.at("to", text));
        }
        let links = self.links(entry, if entry.kind == LossKind::Data { from } else { to })?;
        if losses.len() + qps.len().saturating_mul(links.len()).saturating_mul(entry.psns.len()) > MOST {
            return Err(
                code::RANGE.at("psns", format!("expected at most {MOST} losses in all lists, found more"))
            );
        }
        for &q in &qps {
            let messages =
                &self.messages[self.qps[q].messages.start as usize..self.qps[q].messages.end as usize];
            let packets: u64 = messages.iter().map(|m| self.wire.packets(m.bytes)).sum();
            let beyond = entry.psns.iter().position(|psn| u64::from(*psn) >= packets);
            if let Some(at) = beyond {
                let text = format!(
                    "`links.lose` names PSN {} from `{}` to `{}`, where a queue pair has only {packets} packets",
                    entry.psns[at], entry.from, entry.to
                );
                warnings.push(code::NO_EFFECT.at(&format!("psns.{at}"), text));
            }
            let kind = match entry.kind {
                LossKind::Data => Kind::Data,
                LossKind::Ack => Kind::Ack,
                LossKind::Nack => Kind::Nack,
            };
            for &link in &links {
                let lost = |psn: &u32| {
                    let (qp, psn) = (QpId(q as u32), Psn::new(*psn));
                    ListedLoss { link, qp, kind, psn, times: entry.times }
                };
                losses.extend(entry.psns.iter().map(lost));
            }
        }
        Ok(())
    }

    fn job(&self, name: &str) -> Result<u16, Finding> {
        let found = self.jobs.iter().position(|job| job.name == name).map(|i| i as u16);
        found.ok_or_else(|| {
            let hint = finding::suggestion(name, &self.jobs.iter().map(|j| &*j.name).collect::<Vec<_>>());
            code::UNKNOWN_NAME.at("job", format!("no workload is named `{name}`; {hint}"))
        })
    }

    fn host(&self, name: &str, path: &str) -> Result<HostId, Finding> {
        if let Some(host) = self.fabric.find_host(name) {
            return Ok(host);
        }
        let node = node(self.fabric, name, path)?;
        let text = match self.fabric.is_host(node) {
            true => format!("`{name}` has several ports; name one of them, such as `{name}p0`"),
            false => format!("expected a host; `{name}` is a switch"),
        };
        Err(code::NO_NODE.at(path, text))
    }

    /// The links of an entry; `sender` is the host that sends its packets.
    fn links(&self, entry: &LossConfig, sender: HostId) -> Result<Vec<LinkId>, Finding> {
        let Some([a, b]) = &entry.link else {
            return Ok(vec![LinkId(sender.0)]);
        };
        let (a, b) = (node(self.fabric, a, "link.0")?, node(self.fabric, b, "link.1")?);
        let to_b = self.fabric.ports(a).iter().filter(|l| l.to == b);
        let links: Vec<LinkId> = to_b.map(|l| self.fabric.link(l.from, l.port)).collect();
        if links.is_empty() {
            let name = |node| self.fabric.name(node);
            return Err(
                code::NO_NODE.at("link", format!("no link leads from `{}` to `{}`", name(a), name(b)))
            );
        }
        Ok(links)
    }
}
