//! ConWeave: a flow leaves a slow path at once, and the receiver's ToR puts its packets back in order.
//!
//! Song et al., "Network Load Balancing with In-network Reordering Support for RDMA", SIGCOMM'23. The sender's ToR
//! divides every flow into *epochs*. The first packet of an epoch asks the receiver's ToR for a reply. If no reply
//! comes within `theta-reply`, the flow leaves its path: the last packet on the old path carries the flag TAIL, and
//! every packet on the new path carries the flag REROUTED. The receiver's ToR holds REROUTED packets until the TAIL
//! has passed, and then sends CLEAR. The flow may move again only after CLEAR. So packets are in flight on at most
//! two paths, and the receiver sees them in order.
//!
//! | packet | from | effect |
//! |---|---|---|
//! | RTT_REQUEST | a flag on the first packet of an epoch | asks for RTT_REPLY |
//! | RTT_REPLY | the receiver's ToR | if in time, the next packet begins a new epoch on the same path |
//! | TAIL | a flag on the last packet of the old path | releases the held packets |
//! | CLEAR | the receiver's ToR, when the TAIL has come | the next packet begins a new epoch on the new path |
//! | NOTIFY | the receiver's ToR, for a packet with an ECN mark | its path counts as busy for `theta-path-busy` |
//!
//! The sender's ToR samples two paths and takes the first one that is not busy; if both are busy, the flow stays. If
//! the TAIL does not come, a timer releases the held packets. The newest packet of the old path predicts when the TAIL
//! should follow: by the time between the two departures, plus `resume-extra`. If no packet of the old path has come
//! in this epoch, the timer runs for `resume-default`.
//!
//! A path is an uplink of the sender's ToR and, on three tiers, also a port of the switch above it. The ToR writes both
//! choices on the packet, for up to 1024 paths. (The authors' simulator also uses source routing.)
//!
//! Our choices, where the paper and the authors' simulator leave it open:
//!
//! * A flow asks for another path once per epoch. If both sampled paths are busy, the late reply begins the next epoch.
//! * Sampling excludes the flow's current path. Between racks with a single path ConWeave does nothing.
//! * If CLEAR does not come, a new epoch begins `theta-inactive` after the TAIL, even if the flow never pauses. The
//!   authors' simulator would leave that flow on its path.
//! * For each pair of path and sender's ToR, at most two NOTIFY are sent per `theta-path-busy`: more would carry no news.
//! * If every reorder queue of a port is taken, a packet passes out of order and is counted.
//! * Times on packets have 16 bits in units of 64 ns: they wrap after 4.2 ms.
//! * When routing changes, a flow whose uplink no longer leads to the receiver begins a new epoch on another uplink.
//!   Switches further up divide the paths among their remaining ports.
//! * A table entry lasts to the end of the run, and entries never collide.
//!
//! # Counters
//!
//! | name | counts |
//! |---|---|
//! | `epochs` | epochs begun |
//! | `reroutes` | moves to another path with packets in flight |
//! | `reroutes_aborted` | late replies after which both sampled paths were busy |
//! | `idle_moves` | new paths of flows that had been silent for `theta-inactive` |
//! | `failed_paths` | new paths of flows whose uplink had failed |
//! | `holds` | packets held |
//! | `resume_timers` | times that a timer released held packets because the TAIL had not come |
//! | `reorder_queues_full` | packets that passed out of order because every reorder queue of their port was taken |
//! | `held_over` | times that a packet of a newer epoch released held packets |
//! | `path_notices` | NOTIFY packets |
//! | `held_peak` | most packets held at one time, summed over switches |
//! | `held_bytes_peak` | most bytes held at one time, summed over switches |
//! | `reorder_queues_peak` | most reorder queues in use at one time, summed over switches |

mod distance;
mod far;
mod near;
mod tags;
#[cfg(test)]
mod tests;

use crate::racks::Racks;
use crate::{Facts, Recipe, palette::Look};
use distance::Distance;
use far::Far;
use finding::{Finding, code};
use model::{Bytes, Cx, Interest, Kind, Packet, Plan, PortIndex, Scheme, Site, Time, Verdict};
use near::Near;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tags::{Header, TorSignal};

/// `[scheme.conweave]`.
///
/// Defaults of times are those of the authors' simulator for 100 Gb/s and links of 1 us. Where the simulator has one
/// value for two tiers and one for three, the fabric decides. On longer links, timers that must outlast packets in
/// flight grow with the longest round trip between two ToRs (our choice).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "SchemeConweave")]
pub struct Config {
    /// Time within which the reply of the receiver's ToR must come; a later reply makes the flow leave its path. Default:
    /// the round trip to that ToR on an idle fabric, plus 4 us (the authors' simulator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theta_reply: Option<Time>,
    /// Time for which a path counts as busy after one of its packets arrived with an ECN mark. Default 16 us (the
    /// authors' simulator, which has 8 us where marking begins at short queues).
    pub theta_path_busy: Time,
    /// Silence after which a flow counts as having no packets in flight, and longest wait for a CLEAR. Default 300 us on
    /// two tiers and 1 ms on three (the authors' simulator); at least eight round trips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theta_inactive: Option<Time>,
    /// Longest wait for a TAIL if no packet of the old path has come. Default 200 us on two tiers; on three tiers 600 us
    /// in lossless fabrics and 300 us in others (the authors' simulator); at least four round trips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_default: Option<Time>,
    /// Margin added to the time at which a TAIL is expected. Default 16 us, but 64 us on three tiers in lossless
    /// fabrics (the authors' simulator).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_extra: Option<Time>,
    /// Reorder queues at each port to a host, 1 to 1024; each puts one flow at a time back in order. Default 31 (our
    /// choice: a port with 32 queues needs one for all other packets, and the authors' switch is reported to be similar).
    pub reorder_queues: u16,
    /// Size of RTT_REPLY, CLEAR and NOTIFY on the wire, without preamble and gap. Default 64 B (Ethernet's smallest
    /// frame, and the authors' simulator).
    pub signal_size: Bytes,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            theta_reply: None,
            theta_path_busy: Time::from_us(16),
            theta_inactive: None,
            resume_default: None,
            resume_extra: None,
            reorder_queues: 31,
            signal_size: Bytes(64),
        }
    }
}

/// Margin that the default of `theta-reply` adds to the round trip of an idle fabric (the authors' simulator).
const REPLY_MARGIN: Time = Time::from_us(4);
/// Longest time that any timer runs, so that sums of times stay in range: ten days.
const MOST: Time = Time::from_ms(864_000_000);
/// Most reorder queues at a port.
const MOST_QUEUES: u16 = 1024;

/// Times that a configuration yields on a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thetas {
    busy: Time,
    inactive: Time,
    resume_default: Time,
    resume_extra: Time,
}

impl Config {
    /// Longest time for a reply over this distance.
    fn reply(&self, distance: Distance) -> Time {
        let idle = distance.round_trip.ps().saturating_add(REPLY_MARGIN.ps());
        self.theta_reply.unwrap_or(Time(idle))
    }

    /// Times on a fabric whose longest distance between two ToRs is `longest`.
    fn thetas(&self, longest: Distance, lossless: bool) -> Thetas {
        // Two links between two ToRs are two tiers: up to a spine and down.
        let (inactive, default, extra) = match (longest.links > 2, lossless) {
            (false, _) => (300, 200, 16),
            (true, true) => (1000, 600, 64),
            (true, false) => (1000, 300, 16),
        };
        let trips = |n: u64| Time(longest.round_trip.ps().saturating_mul(n));
        Thetas {
            busy: self.theta_path_busy.min(MOST),
            inactive: self.theta_inactive.unwrap_or(Time::from_us(inactive).max(trips(8))).min(MOST),
            resume_default: self.resume_default.unwrap_or(Time::from_us(default).max(trips(4))).min(MOST),
            resume_extra: self.resume_extra.unwrap_or(Time::from_us(extra)).min(MOST),
        }
    }
}

fn lossless(plan: &Plan) -> bool {
    plan.switches.iter().all(|switch| switch.flow_control.is_lossless())
}

/// The scheme of one switch.
#[derive(Clone, Debug)]
pub struct Conweave {
    racks: Racks,
    near: Near,
    far: Far,
}

impl Recipe for Config {
    type Scheme = Conweave;
    const LOOK: Option<Look> = Some(Look::new(4, 0));
    const TRIALS: &'static [&'static str] = &[
        "theta-path-busy = \"2us\"\nresume-extra = \"1us\"\nreorder-queues = 2",
        "resume-default = \"3us\"\nresume-extra = \"0us\"\ntheta-inactive = \"200ms\"",
    ];

    fn facts(&self) -> Facts {
        Facts { tags: true, signal: self.signal_size.get() as u32, ..Facts::plain(false) }
    }

    fn build(&self, site: Site<'_>) -> Conweave {
        let signal = self.signal_size.get() as u32;
        let distances =
            if site.is_tor() { distance::from_tor(site.plan, site.node, signal) } else { Vec::new() };
        let longest = distance::longest(&distances);
        let thetas = self.thetas(longest, lossless(site.plan));
        let reply = |distance: &Distance| self.reply(*distance).min(MOST);
        let limit = |(rack, distance): (usize, &Distance)| near::Limit {
            reply: reply(distance),
            paths: distance.paths,
            uplinks: match distance.paths {
                0 => Vec::new(),
                _ => site.fabric().route_to_rack(site.node, rack).to_vec(),
            },
        };
        let limits = distances.iter().enumerate().map(limit).collect();
        let queues = u32::from(self.reorder_queues.clamp(1, MOST_QUEUES));
        Conweave {
            racks: Racks::of(site),
            near: Near::new(limits, thetas),
            far: Far::new(site.fabric().ports(site.node).len(), queues, signal, thetas),
        }
    }

    fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        let fail = |field, text: String| Err(code::RANGE.at(field, text));
        for (field, time) in [
            ("theta-reply", self.theta_reply),
            ("theta-path-busy", Some(self.theta_path_busy)),
            ("theta-inactive", self.theta_inactive),
            ("resume-default", self.resume_default),
        ] {
            if time == Some(Time::ZERO) {
                return fail(field, "it must be longer than 0".to_owned());
            }
        }
        if !(1..=MOST_QUEUES).contains(&self.reorder_queues) {
            let text = format!("{} queues; 1 to {MOST_QUEUES} are possible", self.reorder_queues);
            return fail("reorder-queues", text);
        }
        if self.signal_size == Bytes(0) || self.signal_size.get() > u64::from(plan.wire.max_frame()) {
            let text = format!("{}; it must be above 0 and no larger than a frame of data", self.signal_size);
            return fail("signal-size", text);
        }
        let longest = distance::longest_in(plan, self.signal_size.get() as u32);
        let thetas = self.thetas(longest, lossless(plan));
        if let Some(reply) = self.theta_reply.filter(|reply| *reply <= longest.round_trip) {
            let text = format!(
                "{reply}; replies take up to {} on this fabric when it is idle, so flows would leave idle paths",
                longest.round_trip
            );
            return fail("theta-reply", text);
        }
        let reply = self.reply(longest);
        if thetas.inactive <= thetas.resume_default {
            let field = if self.theta_inactive.is_some() { "theta-inactive" } else { "resume-default" };
            let text = format!(
                "`theta-inactive` ({}) must be longer than `resume-default` ({}): a flow may begin a new epoch \
                 only when none of its packets is held",
                thetas.inactive, thetas.resume_default
            );
            return fail(field, text);
        }
        if thetas.inactive <= reply {
            let field = if self.theta_inactive.is_some() { "theta-inactive" } else { "theta-reply" };
            let text = format!(
                "`theta-inactive` ({}) must be longer than `theta-reply` ({reply}), or no reply would ever be late",
                thetas.inactive
            );
            return fail(field, text);
        }
        let mut warnings = Vec::new();
        if plan.ports.iter().all(|port| port.marking.is_none()) {
            let text = "no switch marks packets (`ecn = \"off\"`), so no path ever counts as busy";
            warnings.push(code::NO_MARKS.plain(text));
        }
        if thetas.inactive > tags::WRAP {
            let text = format!(
                "`theta-inactive` is {}, but times on packets wrap after {}: held packets may be released too early",
                thetas.inactive,
                tags::WRAP
            );
            warnings.push(code::TOO_SHORT.at("theta-inactive", text));
        }
        Ok(warnings)
    }
}

impl Scheme for Conweave {
    fn interest(&self) -> Interest {
        // A switch without hosts reads the path that a packet carries, and keeps nothing.
        let alone = self.racks.count() == 0;
        Interest {
            every_packet: true,
            plain_replies: true,
            makes_replies: !alone,
            by_arrivals: alone,
            ..Interest::default()
        }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        let port = match pkt.kind() {
            Kind::Data if cx.from_host && cx.to_host => ports[0],
            Kind::Data if cx.from_host => match self.racks.rack(pkt.to()) {
                Some(rack) => self.near.send(cx, pkt, rack, ports),
                None => cx.base_path(pkt, ports),
            },
            Kind::Data if cx.to_host => return self.far.arrive(cx, pkt, ports[0], &self.racks),
            Kind::Data => {
                let (choice, tag) = Header::onward(cx.tag, ports.len());
                cx.tag = tag;
                ports[choice]
            }
            Kind::Signal if cx.to_host => {
                if let Some(signal) = TorSignal::read(cx.tag) {
                    self.near.hear(cx.now, pkt.qp(), signal);
                }
                return Verdict::Drop;
            }
            _ => cx.base_path(pkt, ports),
        };
        Verdict::Forward(port)
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.far.wake(cx);
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.near.counters(sink);
        self.far.counters(sink);
    }
}
