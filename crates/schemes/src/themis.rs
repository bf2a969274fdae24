//! Themis: sprays packets by sequence number, and judges NACKs by it.
//!
//! Themis (APNET'25). A commodity NIC answers the first packet beyond a gap with a NACK, although under spraying the missing
//! packet is mostly late and not lost. Themis lets the PSN choose the path, so that the receiver's ToR can tell lost packets
//! from late ones. Only ToRs take part; queue pairs inside one rack bypass it. The judgement itself is the crate `themis`;
//! this file puts it into a switch:
//!
//! * *Source ToR.* Data from a local host to another rack takes uplink (PSN mod N + base) mod N, where the base is the
//!   flow's hash (Eq. 1). With more or fewer slots than uplinks: ((PSN mod N) + base) mod uplinks.
//! * *Source ToR and switches further up that also choose* (three tiers). The ToR rewrites the UDP source port by the slot
//!   PSN mod N, where N is the number of all paths. The switches' hashes are linear in the source port, so slot i takes
//!   path (base path) XOR i (`themis::path_map`). Packets here carry no source port: it is a function of the PSN.
//! * *Destination ToR.* Data that starts on the wire to a local host is recorded. If its departure proves a loss, the switch
//!   sends the NACK that it blocked before. Replies from a local host are judged (NACK) or noted (ACK).
//! * *Everything else* takes the base path. A switch between two ToRs must not reorder a slot, and neither the base path
//!   nor the steered path does.
//!
//! Our choices: the queue-pair tables are filled at the start of the run (the paper listens to handshakes). A forged NACK
//! has the size of a real one. N is counted for every pair of racks. Where only the source ToR chooses, it takes the uplink
//! directly, without rewriting.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `nacks_seen` | NACKs from local hosts to other racks |
//! | `nacks_forwarded` | NACKs that were forwarded |
//! | `nacks_blocked` | NACKs that were dropped, or forwarded as an ACK |
//! | `nacks_compensated` | NACKs that the switch sent itself |
//! | `compensations_spurious` | NACKs that the switch sent for packets that were not lost |
//! | `blocked_on_the_wire` | blocked NACKs whose packet had been seen to leave for the host |
//! | `ring_overflows` | NACKs for which the ring held no packet that could have caused them |
//!
//! Further counters in runs in which routing learns of failures:
//!
//! | name | counts |
//! |---|---|
//! | `packets_unsprayed` | data of local hosts that kept to one path because spraying was off |
//! | `packets_remapped` | data, per switch that chose, whose slot had lost its path and took another one |
//! | `nacks_unjudged` | NACKs that were forwarded because spraying was off |
//!
//! A switch cannot know that a compensation was spurious; the simulation finds out afterwards. Either the host acknowledges
//! the packet although no further copy has left since, or the packet's first copy comes by. That bookkeeping (`Pair::owed`)
//! belongs to the simulation and costs a real switch nothing. It relies on NICs that answer every packet: if answers are
//! lost or coalesced, a spurious compensation may go uncounted.

mod check;
pub mod config;
mod detour;
pub mod hashes;
mod last_hops;
mod paths;
mod spray;
#[cfg(test)]
mod tests;

pub use config::Config;
use finding::{Finding, code};

use crate::{Facts, Golden, Recipe, palette::Look};
use ::themis::{Flow, Reason, Rule};
use config::OnBlock;
use last_hops::LastHops;
use model::plan::Qp;
use model::scheme::{Acks, Arrived, forged_nack};
use model::{
    Cx, Fabric, HostId, Interest, Kind, NodeId, Packet, Plan, PortIndex, Psn, QpId, Reroute, Scheme, Site,
    Verdict,
};
use rnic::{CutReport, NicConfig};
use spray::Spray;

/// The scheme of one switch.
#[derive(Clone, Debug)]
pub struct Themis {
    spray: Spray,
    on_block: OnBlock,
    /// Spraying is off because of a failure, so every NACK passes.
    off: bool,
    /// Routes have changed in this run.
    rerouted: bool,
    watch: bool,
    interest: Interest,
    /// Frame of a NACK, bytes.
    nack: u32,
    /// Queue pairs of the host behind a port that wait for a packet, for which a NACK may become due; by port.
    waiting: Vec<Vec<QpId>>,
    /// Number of open compensations of the host behind a port (`Pair::owed`); by port.
    open_books: Vec<u32>,
    table: Table,
    counts: Counts,
}

/// Table of the queue pairs that end here.
#[derive(Clone, Debug)]
struct Table {
    /// Queue pair of the first entry of `pairs`.
    first: u32,
    /// State by queue pair; `None` for pairs inside this rack and for pairs of other switches.
    pairs: Vec<Option<Pair>>,
    /// One rule for every number of slots.
    rules: Vec<Rule>,
    /// Entries per ring.
    ring: usize,
    /// All rings, one after another. The operating system provides zeroed pages on first use, so a pair that never sends
    /// costs no memory.
    rings: Vec<u32>,
}

/// A queue pair at its destination ToR.
#[derive(Clone, Debug)]
struct Pair {
    flow: Flow,
    /// Index of its ring.
    ring: u32,
    sender: HostId,
    /// Index of its rule.
    rule: u16,
    /// Packet for which a compensation went out, until the simulation knows whether it was lost.
    owed: Option<Psn>,
}

/// Number of queue pairs whose state the first caches keep without prefetching: 24 kB, one line of ring each. Our choice.
const FEW: u32 = 256;

#[derive(Clone, Debug, Default)]
struct Counts {
    seen: u64,
    forwarded: u64,
    blocked: u64,
    compensated: u64,
    spurious: u64,
    on_the_wire: u64,
    overflows: u64,
    unjudged: u64,
}

/// Source ToR of a queue pair that leaves its rack; `None` for a pair inside a rack or without a route.
fn cross_rack(fabric: &Fabric, qp: &Qp) -> Option<NodeId> {
    let tor = fabric.attachment(qp.from);
    let leaves = !fabric.same_rack(qp.from, qp.to) && !fabric.route(tor, qp.to).is_empty();
    leaves.then_some(tor)
}

impl Recipe for Config {
    type Scheme = Themis;
    const LOOK: Option<Look> = Some(Look::new(2, 0));
    const TRIALS: &'static [&'static str] = &[
        "",
        "mode = \"literal\"",
        "psn-bits = 8\non-block = \"ack\"",
        // A PathMap hardly ever exists on random graphs.
        "path-map = false",
        "path-map = false\nmode = \"literal\"",
        "path-map = false\npsn-bits = 24\nring = 8\nage-limit = 4\non-block = \"ack\"",
    ];
    const GOLDEN: Golden =
        Golden::LeafSpine(&[("", ""), ("themis literal 8", "mode = \"literal\", psn-bits = 8")]);

    fn facts(&self) -> Facts {
        Facts { judges_nacks: self.filter, ..Facts::plain(true) }
    }

    fn build(&self, site: Site<'_>) -> Themis {
        let fabric = site.fabric();
        let incoming = site.incoming();
        let ends_here = |&id: &QpId| {
            let qp = site.qp(id);
            self.filter && fabric.attachment(qp.to) == site.node && cross_rack(fabric, qp).is_some()
        };
        let mine = || incoming.clone().map(QpId).filter(ends_here);
        let lengths = LastHops::of(self, site.plan, site.node, mine()).lengths(self);
        let (mut rules, mut rings, mut one_way_up) = (Vec::<Rule>::new(), 0, false);
        let mut pair = |id: QpId| {
            let qp = site.qp(id);
            let paths = self.paths(fabric, cross_rack(fabric, qp)?, fabric.rack(qp.to));
            let slots = self.slots.unwrap_or(u16::try_from(paths).unwrap_or(u16::MAX));
            let rule = match rules.iter().position(|rule| rule.settings().slots == slots) {
                Some(number) => number,
                None => {
                    rules.push(Rule::new(self.settings(slots, lengths)).ok()?);
                    rules.len() - 1
                }
            };
            one_way_up |= fabric.route(site.node, qp.from).len() == 1;
            rings += 1;
            Some(Pair { flow: Flow::new(), ring: rings - 1, sender: qp.from, rule: rule as u16, owed: None })
        };
        let pairs: Vec<_> = incoming.clone().map(QpId).map(|id| ends_here(&id).then(|| pair(id))?).collect();
        let ring = usize::from(lengths.0);
        Themis {
            spray: Spray::of(self, site),
            on_block: self.on_block,
            off: false,
            rerouted: false,
            watch: rules.iter().any(|rule| rule.settings().watch),
            // Where there is a choice of ports, replies on their way up are seen anyway, until a route change ends the
            // choice.
            interest: Interest {
                every_packet: one_way_up || rings > 0 && !site.plan.failures.route_changes().is_empty(),
                host_departures: rings > 0,
                makes_replies: rings > 0,
                announcements: rings > FEW,
                local: true,
                ..Interest::default()
            },
            nack: site.plan.wire.ack,
            waiting: vec![Vec::new(); fabric.ports(site.node).len()],
            open_books: vec![0; fabric.ports(site.node).len()],
            table: Table { first: incoming.start, pairs, rules, ring, rings: vec![0; rings as usize * ring] },
            counts: Counts::default(),
        }
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        self.check(plan)
    }

    fn validate_nic(&self, nic: &NicConfig, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        let (mode, facts) = (nic.transport.name(), nic.transport.facts());
        let mut warnings = Vec::new();
        if !self.filter {
            return Ok(warnings);
        }
        if !facts.keeps_out_of_order {
            warnings.push(code::POOR_MATCH.plain(format!(
                "themis over `transport.{mode}` cannot help: themis blocks NACKs that reordering alone causes, \
                 but a go-back-N receiver discards packets that arrive out of order, so they must be retransmitted; \
                 if the NACK is blocked, the sender retransmits them later"
            )));
        }
        if facts.names_packets {
            warnings.push(code::POOR_MATCH.plain(format!(
                "themis over `transport.{mode}`: a NACK that themis blocks names the missing packets; the NACK that themis \
                 sends later, if a packet is lost, names that packet alone, and the others wait for the timer"
            )));
        }
        if facts.cuts == CutReport::Nack && plan.cuts() {
            let text = format!(
                "themis over `transport.{mode}`: its NACKs report trimmed packets, and the filter may block them, so that \
                 such packets wait for the timer; set `scheme.themis.filter = false`"
            );
            warnings.push(code::POOR_MATCH.at("filter", text));
        }
        Ok(warnings)
    }
}

impl Table {
    /// State, rule and ring of a queue pair; `None` if the pair bypasses the filter here.
    #[inline]
    fn find(&mut self, qp: QpId) -> Option<(&mut Pair, &Rule, &mut [u32])> {
        let pair = self.pairs.get_mut(qp.0.wrapping_sub(self.first) as usize)?.as_mut()?;
        let rule = self.rules.get(usize::from(pair.rule))?;
        let start = pair.ring as usize * self.ring;
        let ring = self.rings.get_mut(start..start + self.ring)?;
        Some((pair, rule, ring))
    }
}

impl Themis {
    /// Judges a NACK from a local host; true if it is forwarded, possibly as an ACK.
    #[inline(never)]
    fn judge(&mut self, pkt: &mut Packet, port: PortIndex) -> bool {
        let Some((pair, rule, ring)) = self.table.find(pkt.qp()) else { return true };
        let expected = pkt.psn();
        let before = Psn::new(expected.value().wrapping_sub(1));
        let counts = &mut self.counts;
        counts.seen += 1;
        pair.close_book(before, counts, &mut self.open_books[port.index()]);
        if self.off {
            counts.forwarded += 1;
            counts.unjudged += 1;
            return true;
        }
        let waited = pair.flow.pending().is_some();
        let verdict = rule.on_nack(&mut pair.flow, ring, expected);
        note_waiting(&mut self.waiting, port, pkt.qp(), waited, &pair.flow);
        let (::themis::Verdict::Forward(reason) | ::themis::Verdict::Block(reason)) = verdict;
        counts.overflows += u64::from(reason == Reason::NoTrigger);
        counts.on_the_wire += u64::from(reason == Reason::OnTheWire);
        if matches!(verdict, ::themis::Verdict::Forward(_)) {
            counts.forwarded += 1;
            return true;
        }
        counts.blocked += 1;
        let converted = self.on_block == OnBlock::Ack || pkt.echo();
        if converted {
            *pkt = pkt.with_kind(Kind::Ack, before);
        }
        converted
    }

    /// Notes an ACK from a local host.
    #[inline]
    fn note(&mut self, pkt: &Packet, port: PortIndex) {
        let Some((pair, rule, _)) = self.table.find(pkt.qp()) else { return };
        pair.close_book(pkt.psn(), &mut self.counts, &mut self.open_books[port.index()]);
        if self.watch {
            let waited = pair.flow.pending().is_some();
            rule.on_ack(&mut pair.flow, pkt.psn());
            note_waiting(&mut self.waiting, port, pkt.qp(), waited, &pair.flow);
        }
    }

    /// Notes the departure of a packet whose queue pair waits, or whose compensation is open. Returns the NACK that the
    /// switch must now send, if any.
    #[cold]
    #[inline(never)]
    fn on_awaited(&mut self, pkt: &Packet, port: PortIndex, acks: &mut Acks<'_>) -> Option<Packet> {
        self.on_acks(port, acks);
        let (pair, rule, ring) = self.table.find(pkt.qp())?;
        if pair.owed == Some(pkt.psn()) {
            pair.owed = None;
            self.open_books[port.index()] -= 1;
            // The first copy was only late; a retransmission means that the packet was missing.
            self.counts.spurious += u64::from(!pkt.retransmission());
        }
        let waited = pair.flow.pending().is_some();
        let owed = rule.on_depart(&mut pair.flow, ring, pkt.psn());
        note_waiting(&mut self.waiting, port, pkt.qp(), waited, &pair.flow);
        let missing = owed?;
        self.counts.compensated += 1;
        self.open_books[port.index()] += u32::from(pair.owed.is_none());
        pair.owed = Some(missing);
        Some(forged_nack(pkt.qp(), pair.sender, missing, self.nack))
    }
}

/// Updates the list of waiting queue pairs at `port`, after one of them may have begun or ceased to wait.
#[inline]
fn note_waiting(lists: &mut [Vec<QpId>], port: PortIndex, qp: QpId, waited: bool, flow: &Flow) {
    let waits = flow.pending().is_some();
    if waits != waited
        && let Some(list) = lists.get_mut(port.index())
    {
        match waits {
            true => list.push(qp),
            false => list.retain(|other| *other != qp),
        }
    }
}

impl Pair {
    /// Settles an open compensation when an ACK covers its packet. Then the host had the packet all along, since a
    /// further copy would have settled it on departure.
    #[inline]
    fn close_book(&mut self, acked: Psn, counts: &mut Counts, open: &mut u32) {
        if self.owed.is_some_and(|psn| !psn.is_after(acked)) {
            self.owed = None;
            *open -= 1;
            counts.spurious += 1;
        }
    }
}

impl Scheme for Themis {
    #[inline]
    fn interest(&self) -> Interest {
        self.interest
    }

    /// Prefetches the ring entry in which data will be recorded when it departs.
    #[inline]
    fn expect(&self, pkt: &Packet) {
        if let Some(Some(pair)) = self.table.pairs.get(pkt.qp().0.wrapping_sub(self.table.first) as usize) {
            let index = pair.ring as usize * self.table.ring + pair.flow.next_index();
            if pkt.is_data() {
                std::hint::black_box(self.table.rings.get(index).copied());
            } else {
                std::hint::black_box(index);
            }
        }
    }

    #[inline(always)]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        if pkt.is_data() && !cx.to_host {
            return Verdict::Forward(self.spray.port(cx.arrived(pkt), pkt, ports));
        }
        if cx.from_host && !cx.to_host {
            match pkt.kind() {
                Kind::Nack if !self.judge(pkt, cx.ingress) => return Verdict::Drop,
                Kind::Ack => self.note(pkt, cx.ingress),
                _ => {}
            }
        }
        Verdict::Forward(cx.base_path(pkt, ports))
    }

    #[inline(always)]
    fn on_depart(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex) {
        if let Some(nack) = self.on_leave(pkt, port, &mut Acks::new(&[])) {
            cx.emit(nack);
        }
    }

    #[inline(always)]
    fn choose(&self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        match pkt.is_data() {
            true => self.spray.undisturbed(arrived, pkt, ports),
            false => arrived.base_path(ports),
        }
    }

    #[inline]
    fn on_nack(&mut self, pkt: &mut Packet, port: PortIndex, acks: &mut Acks<'_>) -> bool {
        self.on_acks(port, acks);
        self.judge(pkt, port)
    }

    /// An ACK matters only to a queue pair that waits, or whose compensation is open.
    #[inline]
    fn on_acks(&mut self, port: PortIndex, acks: &mut Acks<'_>) {
        match self.is_quiet(port) {
            true => acks.skip(),
            false => acks.for_each(|ack| self.note(&ack, port)),
        }
    }

    #[inline(always)]
    fn on_leave(&mut self, pkt: &Packet, port: PortIndex, acks: &mut Acks<'_>) -> Option<Packet> {
        let (pair, rule, ring) = self.table.find(pkt.qp())?;
        if pair.owed != Some(pkt.psn()) && rule.on_plain_depart(&mut pair.flow, ring, pkt.psn()) {
            return None;
        }
        self.on_awaited(pkt, port, acks)
    }

    /// Only a NACK makes a queue pair wait, and only a queue pair that waits gets a compensation.
    #[inline]
    fn is_quiet(&self, port: PortIndex) -> bool {
        self.waiting[port.index()].is_empty() && self.open_books[port.index()] == 0
    }

    /// Drops all evidence when spraying ends or begins, since it no longer proves anything.
    fn on_routes_change(&mut self, _: &mut Cx<'_>, news: &Reroute<'_>) {
        self.rerouted = true;
        let off = self.spray.reroute(news);
        if off != self.off {
            self.off = off;
            self.table.pairs.iter_mut().flatten().for_each(|pair| pair.flow = Flow::new());
            self.waiting.iter_mut().for_each(Vec::clear);
        }
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let Counts { seen, forwarded, blocked, compensated, spurious, on_the_wire, overflows, unjudged } =
            self.counts;
        sink("nacks_seen", seen);
        sink("nacks_forwarded", forwarded);
        sink("nacks_blocked", blocked);
        sink("nacks_compensated", compensated);
        sink("compensations_spurious", spurious);
        sink("blocked_on_the_wire", on_the_wire);
        sink("ring_overflows", overflows);
        if self.rerouted {
            sink("packets_unsprayed", self.spray.unsprayed);
            sink("packets_remapped", self.spray.remapped);
            sink("nacks_unjudged", unjudged);
        }
    }
}
