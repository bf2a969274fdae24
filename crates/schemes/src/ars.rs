//! ARS: adaptive routing by the rules of a vendor (DLB, ARS, Spectrum, cluster load balancing).
//!
//! A switch grades its ports. Every `interval` it samples all of them at one instant: the bytes that a port has sent since the
//! last sample, and the bytes that wait there. Both go into averages, and the averages into a band from 0 to 7, where 7 is the
//! best. Flows hash to the entries of a table, and a pause longer than `idle` lets an entry move to a port of the best band; or
//! each packet draws such a port. Bands change only at samples, so flows that choose between two samples herd to the same ports.
//!
//! Sources: the Switch Abstraction Interface (`doc/ARS`, `inc/saiars.h`, `inc/saiarsprofile.h` in opencomputeproject/SAI),
//! SONiC's `doc/ARS/Local_ARS_HLD.md`, Juniper's pages on dynamic load balancing in Apstra 6.0, and tests of facebook/fboss,
//! cited below as FBOSS.
//!
//! Our choices, where they leave it open:
//!
//! * Each switch samples at a phase of its own, drawn from the seed. The clock rests while no data passes and all averages are 0.
//! * Bytes sent are frames that started on the wire: those that joined the port, and what the queue has lost since. No more than
//!   the link can carry counts, because a lossy switch may have dropped some. Links that a failure slows keep their limits.
//! * A port is graded linearly between its limits, and a switch weighs the grades of the two averages by `past-weight` and
//!   `future-weight`. SAI describes these weights as those of a moving average; FBOSS uses them as here.
//! * ACKs, NACKs and CNPs stay on ECMP.
//! * A dead port leaves its groups at once, before routing learns of it (SAI 12.4). Entries that had it are empty.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `ars_choices` | choices of a port for an entry, including the first |
//! | `ars_moves` | choices that took another port than before |
//! | `ars_rebalanced` | moves without a pause, by `quality-delta` |
//! | `ars_backup` | packets of groups beyond the tables |
//! | `ars_detours` | choices of an alternate path |
//! | `ars_samples` | samples of a switch |
//! | `ars_reports` | reports of spines to leaves, with `global` |

mod check;
mod config;
mod global;
mod profile;
mod quality;
mod table;
#[cfg(test)]
mod tests;

use crate::groups::Groups;
use crate::{Facts, Recipe, choice};
pub use config::{Alternates, Backup, Config, Mode};
use finding::Finding;
use global::{Reporter, Reports};
use model::draw::{Key, Purpose};
use model::fabric::Detours;
use model::{Cx, Interest, Kind, Packet, Plan, PortIndex, Scheme, Site, Time, Verdict};
pub use profile::Profile;
use profile::Settings;
use quality::{BEST, Load, Rules};
use table::{Entry, Tables};

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    choices: u64,
    moves: u64,
    rebalanced: u64,
    backup: u64,
    detours: u64,
    samples: u64,
}

/// The scheme of one switch. A box keeps the schemes of other switches small.
#[derive(Clone, Debug)]
pub struct Ars(Box<State>);

#[derive(Clone, Debug)]
struct State {
    settings: Settings,
    rules: Rules,
    groups: Groups,
    tables: Tables,
    /// Loads of all ports.
    loads: Vec<Load>,
    /// Ports that are sampled.
    sampled: Vec<PortIndex>,
    /// First sample, and the next one; [`Time::NEVER`] while the clock rests.
    phase: Time,
    next: Time,
    /// Changes of every port: the time, and whether the link is up from then on. Empty without failures.
    links: Vec<Vec<(Time, bool)>>,
    /// Live ports of the current packet, kept to reuse the allocation.
    live: Vec<PortIndex>,
    /// Reports of spines about their downlinks, in a leaf.
    reports: Option<Reports>,
    /// What this switch reports.
    reporter: Option<Reporter>,
    counts: Counts,
}

impl Recipe for Config {
    type Scheme = Ars;
    const TRIALS: &'static [&'static str] = &[
        "interval = \"2us\"\nidle = \"1us\"\ntable = 8",
        "profile = \"fboss\"\nidle = \"500ns\"\nquality-delta = 2\nprobability = 0.5",
        "profile = \"spectrum\"\ncongested-above = 0.7",
        "profile = \"nx-os\"\nmode = \"packet-quality\"\nglobal = true\ninterval = \"1us\"",
        "profile = \"arista-clb\"\nidle = \"20us\"",
        "interval = \"0us\"\nexponent = 0\npast-weight = 0\nmode = \"packet-quality\"",
    ];

    fn facts(&self) -> Facts {
        let settings = self.settings();
        Facts {
            // Towards a rack with one shortest path, packets choose among it and the alternates one by one.
            sprays: settings.alternates.is_some()
                || matches!(settings.mode, Mode::PacketQuality | Mode::PacketRandom),
            judges_nacks: false,
            tags: settings.global,
            signal: if settings.global { global::SIGNAL } else { 0 },
            view: None,
            nic: None,
            pinned: false,
        }
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        self.check(plan)
    }

    fn build(&self, site: Site<'_>) -> Ars {
        let (settings, fabric) = (self.settings(), site.fabric());
        let groups = Groups::of(site);
        let reports = settings.global.then(|| Reports::of(site)).flatten();
        let reporter = settings.global.then(|| Reporter::of(site)).flatten();
        let ports = fabric.ports(site.node);
        let member = |port: &PortIndex| {
            let link = &ports[port.index()];
            let detours = settings.alternates.is_some() && fabric.groups() > 0 && !fabric.is_host(link.to);
            detours
                || groups.members().iter().any(|members| members.contains(port))
                || reporter.as_ref().is_some_and(|reporter| reporter.watches(*port))
        };
        let sampled = ports.iter().map(|link| link.port).filter(member).collect();
        let failures = &site.plan.failures;
        let changes = |link: &model::fabric::Link| {
            let changes = failures.of(fabric.link(site.node, link.port));
            changes.iter().map(|change| (change.at, change.rate.is_some())).collect()
        };
        let links = if failures.is_empty() { Vec::new() } else { ports.iter().map(changes).collect() };
        let key = Key::new(site.plan.seed, Purpose::Salt, site.node.0.into());
        let share = alpha_share(site);
        Ars(Box::new(State {
            rules: Rules::new(&settings, share),
            tables: Tables::new(groups.members().len(), settings.table, settings.entries),
            loads: ports
                .iter()
                .map(|link| Load::new(&settings, link.rate, site.plan.wire.max_frame()))
                .collect(),
            phase: Time(key.draw2(PHASE, 0) % settings.interval.ps().max(1)),
            next: Time::NEVER,
            live: Vec::new(),
            counts: Counts::default(),
            settings,
            groups,
            sampled,
            links,
            reports,
            reporter,
        }))
    }
}

/// Ordinal of the draw of a switch's phase.
const PHASE: u64 = 0x6172_7370;

/// Bytes that `alpha` allows to one queue of a switch whose other queues are empty.
fn alpha_share(site: Site<'_>) -> u64 {
    use model::plan::FlowControl;
    let switch = &site.plan.switches[site.fabric().switch_number(site.node)];
    let of = |(part, whole): (u32, u32)| {
        let buffer = u128::from(switch.buffer.get());
        (buffer * u128::from(part) / (u128::from(part) + u128::from(whole)).max(1)) as u64
    };
    match switch.flow_control {
        FlowControl::Lossless(pfc) => of(pfc.alpha),
        FlowControl::Lossy { alpha } => of(alpha),
        FlowControl::Capped { least } => least.get(),
        // All ports may fill one queue.
        FlowControl::Credits(_) => {
            let ports = &site.plan.ports[site.fabric().base(site.node) as usize..];
            let ports = &ports[..site.fabric().ports(site.node).len()];
            ports.iter().map(|port| port.headroom.get()).sum()
        }
    }
}

impl State {
    /// The next sample after `now`.
    fn sample_after(&self, now: Time) -> Time {
        let (phase, interval) = (self.phase.ps(), self.settings.interval.ps().max(1));
        match now.ps().checked_sub(phase) {
            Some(since) => Time(phase + (since / interval + 1) * interval),
            None => self.phase,
        }
    }

    /// Starts the clock for a packet that joins a sampled port.
    fn start(&mut self, cx: &mut Cx<'_>) {
        if self.next == Time::NEVER && self.settings.interval > Time::ZERO {
            self.sampled.iter().for_each(|port| self.loads[port.index()].rest());
            self.next = self.sample_after(cx.now);
            cx.wake_at(self.next);
        }
    }

    /// Samples all ports; true if all averages are 0.
    fn sample(&mut self, queued: &[u32]) -> bool {
        self.counts.samples += 1;
        let mut quiet = true;
        for port in &self.sampled {
            let queued = crate::ar::load(queued, *port);
            quiet &= self.loads[port.index()].sample(&self.rules, queued);
        }
        quiet
    }

    /// Band of the path by a port to the rack of a host.
    #[inline]
    fn band(&self, port: PortIndex, rack: Option<usize>) -> u8 {
        let own = self.loads[port.index()].band();
        match (&self.reports, rack) {
            (Some(reports), Some(rack)) => own.min(reports.band(port, rack)),
            _ => own,
        }
    }

    /// One of the best ports, drawn uniformly, and its band.
    fn best(&self, cx: &mut Cx<'_>, rack: Option<usize>, ports: &[PortIndex]) -> (PortIndex, u8) {
        let (port, worse) = choice::least(cx, ports, |_, port| (BEST - self.band(port, rack)).into());
        (port, BEST - worse as u8)
    }

    /// Draws one of the best ports: of the shortest paths, or of the alternates if their rule prefers these.
    fn draw(&mut self, cx: &mut Cx<'_>, rack: Option<usize>, ports: &[PortIndex]) -> Entry {
        let (port, primary) = self.best(cx, rack, ports);
        let direct = Entry { port, via: None, last: cx.now };
        let Some(rule) =
            self.settings.alternates.filter(|rule| !cx.detours.is_empty() && primary < rule.threshold)
        else {
            return direct;
        };
        let detours = cx.detours;
        let all = (0..detours.len()).filter_map(|i| detours.get(i));
        let all = all.flat_map(|(detour, ports)| ports.iter().map(move |&port| (detour, port)));
        let now = cx.now;
        let all = all.filter(|(_, port)| self.is_up(now, *port));
        let band = |port: PortIndex| self.loads[port.index()].band();
        let Some(alternate) = all.clone().map(|(_, port)| band(port)).max() else { return direct };
        if primary + rule.cost > alternate + rule.bias {
            return direct;
        }
        let best = all.filter(|(_, port)| band(*port) == alternate);
        let lot = cx.pick(best.clone().count());
        let Some((detour, port)) = best.into_iter().nth(lot) else { return direct };
        self.counts.detours += 1;
        Entry { port, via: Some(detour), last: cx.now }
    }

    /// Port and detour of data with a choice among live ports.
    fn choose(&mut self, cx: &mut Cx<'_>, pkt: &Packet, ports: &[PortIndex]) -> Entry {
        let now = cx.now;
        let any = |port| Entry { port, via: None, last: now };
        let Some(group) = self.groups.to(pkt.to()) else {
            return match self.settings.alternates {
                Some(_) if !cx.detours.is_empty() => self.draw(cx, None, ports),
                _ => any(cx.base_path(pkt, ports)),
            };
        };
        let rack = self.groups.rack(pkt.to());
        match self.settings.mode {
            Mode::PacketQuality => return self.draw(cx, rack, ports),
            Mode::PacketRandom => return any(ports[cx.pick(ports.len())]),
            _ if !self.tables.has(group) => {
                self.counts.backup += 1;
                return any(match self.settings.backup {
                    Backup::Fixed => cx.base_path(pkt, ports),
                    Backup::PacketRandom => ports[cx.pick(ports.len())],
                });
            }
            _ => {}
        }
        let slot = cx.hash(pkt, self.tables.size());
        let before = self.tables.get(group, slot);
        let alive = match before.via {
            None => ports.contains(&before.port),
            Some(detour) => {
                cx.detours.toward(detour).contains(&before.port) && self.is_up(cx.now, before.port)
            }
        };
        let idle = cx.now.since(before.last) > self.settings.idle;
        let new = match self.settings.mode {
            Mode::Fixed if alive => None,
            _ if alive && !idle => self.rebalance(cx, rack, before, ports),
            Mode::FlowletRandom => Some(any(ports[cx.pick(ports.len())])),
            Mode::InTurn => Some(any(ports[self.tables.turn(group) % ports.len()])),
            Mode::FlowletQuality if alive && before.via.is_none() => {
                let best = ports.iter().map(|&port| self.band(port, rack)).max();
                let stays = Some(self.band(before.port, rack)) == best;
                Some(if stays { before } else { self.draw(cx, rack, ports) })
            }
            _ => Some(self.draw(cx, rack, ports)),
        };
        if let Some(new) = new {
            self.counts.choices += 1;
            self.counts.moves += u64::from(before.is_taken() && new.port != before.port);
        }
        let entry = Entry { last: cx.now, ..new.unwrap_or(before) };
        self.tables.set(group, slot, entry);
        entry
    }

    /// Reactive rebalancing: the new port of an entry that moves without a pause.
    fn rebalance(
        &mut self,
        cx: &mut Cx<'_>,
        rack: Option<usize>,
        entry: Entry,
        ports: &[PortIndex],
    ) -> Option<Entry> {
        let delta = self.settings.quality_delta;
        if delta == 0 || self.settings.mode != Mode::FlowletQuality || entry.via.is_some() {
            return None;
        }
        let best = ports.iter().map(|&port| self.band(port, rack)).max()?;
        if best < self.band(entry.port, rack) + delta || !self.settings.probability.hits(cx.draw()) {
            return None;
        }
        self.counts.rebalanced += 1;
        Some(self.draw(cx, rack, ports))
    }

    /// True if the link of a port is up.
    fn is_up(&self, now: Time, port: PortIndex) -> bool {
        let changes = self.links.get(port.index()).map_or(&[][..], Vec::as_slice);
        changes.iter().rev().find(|(at, _)| *at <= now).is_none_or(|(_, up)| *up)
    }

    /// Counts a packet that joins a port.
    #[inline]
    fn count(&mut self, pkt: &Packet, port: PortIndex) {
        if let Some(load) = self.loads.get_mut(port.index()) {
            load.join(pkt.frame());
        }
    }

    /// Forwards a packet.
    fn forward(&mut self, cx: &mut Cx<'_>, pkt: &Packet, ports: &[PortIndex]) -> Verdict {
        if let (Kind::Signal, true, Some(reports)) = (pkt.kind(), cx.to_host, &mut self.reports) {
            reports.hear(cx.ingress, cx.tag);
            return Verdict::Drop;
        }
        if !pkt.is_data() || ports.len() == 1 && cx.detours.is_empty() {
            let port = cx.base_path(pkt, ports);
            if pkt.is_data() && self.sampled.contains(&port) {
                self.start(cx);
            }
            self.count(pkt, port);
            return Verdict::Forward(port);
        }
        self.start(cx);
        if self.settings.interval == Time::ZERO {
            let (rules, loads) = (&self.rules, &mut self.loads);
            let read = if cx.detours.is_empty() { ports } else { &self.sampled };
            for port in read {
                loads[port.index()].sample(rules, crate::ar::load(cx.queued, *port));
            }
        }
        let chosen = if self.links.is_empty() {
            self.choose(cx, pkt, ports)
        } else {
            let mut live = std::mem::take(&mut self.live);
            live.clear();
            live.extend(ports.iter().filter(|port| self.is_up(cx.now, **port)));
            let chosen = self.choose(cx, pkt, if live.is_empty() { ports } else { &live });
            self.live = live;
            chosen
        };
        cx.via = chosen.via;
        self.count(pkt, chosen.port);
        Verdict::Forward(chosen.port)
    }

    /// Samples the ports if it is time.
    fn wake(&mut self, cx: &mut Cx<'_>) {
        if self.next == Time::NEVER {
            return;
        }
        if cx.now >= self.next {
            let quiet = self.sample(cx.queued);
            if let Some(reporter) = &mut self.reporter {
                reporter.report(cx, &self.loads);
            }
            self.next = if quiet { Time::NEVER } else { self.sample_after(cx.now) };
        }
        if self.next != Time::NEVER {
            cx.wake_at(self.next);
        }
    }
}

impl Scheme for Ars {
    fn interest(&self) -> Interest {
        let state = &self.0;
        let samples = !state.sampled.is_empty();
        Interest {
            queues: samples,
            every_packet: samples || state.reports.is_some(),
            plain_replies: true,
            makes_replies: state.reporter.is_some(),
            detours: state.settings.alternates.is_some(),
            ..Interest::default()
        }
    }

    #[inline]
    fn reads_queues(&self, pkt: &Packet, ports: &[PortIndex], detours: &Detours<'_>) -> bool {
        self.0.settings.interval == Time::ZERO && pkt.is_data() && (ports.len() > 1 || !detours.is_empty())
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        self.0.forward(cx, pkt, ports)
    }

    #[inline]
    fn note_reply(&mut self, _: Time, pkt: &Packet, port: PortIndex) {
        self.0.count(pkt, port);
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.0.wake(cx);
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let counts = self.0.counts;
        sink("ars_choices", counts.choices);
        sink("ars_moves", counts.moves);
        sink("ars_rebalanced", counts.rebalanced);
        sink("ars_backup", counts.backup);
        sink("ars_detours", counts.detours);
        sink("ars_samples", counts.samples);
        sink("ars_reports", self.0.reporter.as_ref().map_or(0, Reporter::sent));
    }
}
