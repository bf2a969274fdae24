//! Estimate of the memory that a run needs, made before any large allocation. A run that needs more than the machine has
//! left is refused.
//!
//! The estimate counts a fabric by its topology's settings and a job by its groups. All-to-all is the critical case: its
//! queue pairs grow with the square of the number of hosts.
//!
//! A run surely needs memory for its fabric, messages and recorded events, and for the packets that short queues hold. Long
//! queues, long links and series may need more ([`Possible`]): the congestion control decides. `check` shows this memory, and a
//! run that grows too large is stopped.

use crate::traffic::Load;
use files::room::{Room, amount};
use finding::{Finding, code};
use model::fabric::Link;
use model::plan::{FlowControl, PortSettings, SwitchSettings};
use model::{NodeId, Plan, QpId};
use rnic::Nics;
use schemes::Carried;

// Bytes of peak memory (VmHWM) in a whole run, results included, on x86-64 in November 2026, rounded up. The fabrics had
// links of 400 Gb/s and 1 us: fat trees with k = 16, 32 and 64, and leaf-spine fabrics of 192 to 8192 hosts.

/// Bytes of the program itself. Measured: 21.2 MB in a run of one flow between two hosts.
const PROGRAM: u64 = 22_000_000;
/// Bytes per direction of a link. Measured with [`HOST`] in runs of one flow, less [`PROGRAM`] and routes: 47.4 MB for 49,152
/// directions and 8192 hosts (k = 32), 24.3 MB for 18,432 directions and 8192 hosts (leaf-spine), 388 MB for 393,216
/// directions and 65,536 hosts (k = 64).
const PORT: u64 = 780;
/// Bytes per host without packets; see [`PORT`].
const HOST: u64 = 1_300;

/// Bytes per host for packets in flight and in queues. Each bound comes from permutations across racks with messages of
/// 10 kB to 16 MB and DCQCN, under the most demanding scheme.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketRoom {
    /// For any number of packets.
    fixed: u64,
    /// For every packet of the host's messages.
    packet: u64,
    /// Most bytes for packets, however long the messages are.
    most: u64,
    /// Bytes for a packet in a long queue or on a long link. A packet takes 16 B with its annex of 0, 16 or 88 B, its time of
    /// arrival 8 B on a long link, and a buffer has up to a quarter of free slots. The memory allocator's own share is unknown.
    /// Measured without annex: 20 B per packet of an incast of 21,557,741 packets.
    waiting: u64,
}

impl PacketRoom {
    /// Packets without an annex. Measured: 59 to 80 B per packet of messages of 50 kB and 100 kB, and for long messages
    /// 13 kB (Themis) to 29 kB (ECMP) per host.
    pub(crate) const BARE: PacketRoom = PacketRoom { fixed: 0, packet: 80, most: 30_000, waiting: 30 };
    /// Packets that carry a stamp. Measured: up to 7.6 kB per host for messages of 10 kB (CONGA), 180 B per packet, and
    /// 60 to 75 kB for long messages.
    pub(crate) const STAMPED: PacketRoom =
        PacketRoom { fixed: 6_000, packet: 220, most: 80_000, waiting: 50 };
    /// Packets that carry telemetry or maps of arrived packets, too. Measured: 4.3 kB per host for messages of 10 kB, 360 to 490 B per packet, and
    /// 78 to 106 kB for long messages (Swift).
    pub(crate) const TRACED: PacketRoom =
        PacketRoom { fixed: 2_000, packet: 450, most: 110_000, waiting: 140 };

    /// The room of packets that carry this.
    pub(crate) fn of(carried: Carried) -> PacketRoom {
        match carried {
            Carried::Nothing => Self::BARE,
            Carried::Stamp => Self::STAMPED,
            Carried::Telemetry | Carried::Sacks => Self::TRACED,
        }
    }

    /// Bytes for a host that sends `packets` packets.
    fn bytes(self, packets: u64) -> u64 {
        self.fixed + packets.saturating_mul(self.packet).min(self.most)
    }
}

/// Bytes per switch and rack: one entry of the routing table.
const ROUTE: u64 = 4;
/// Additional bytes per switch and rack or group in a fabric of groups with dead links: an entry of 4 B and a count of
/// 1 B for each of the three legs in which a packet may arrive at a switch.
const ROUTE_BY_GROUP: u64 = 15;
/// Bytes per queue pair. Measured in all-to-all jobs with 1 kB per pair, less [`MESSAGE`]: 420 with ECMP, 840 with the state
/// of Themis at both ends.
const QP: u64 = 850;
/// Bytes per message with its triggers and its row in the results; measured in rings of 73,344 and 130,560 messages: 349 to
/// 370.
const MESSAGE: u64 = 370;

/// Bytes per task with its triggers. Our estimate from the sizes of the types: 72 for the task, 24 for its record, and 16 for each of
/// three causes while the plan is made.
const TASK: u64 = 200;

/// Bytes per step of a schedule while the plan is made. Our estimate from the sizes of the types: 80 for the step, in a list that
/// may double, and 48 for what the step waits for, with the allocator's share.
pub(crate) const STEP: u64 = 250;

/// Bytes per trigger of a split message. Our estimate from the sizes of the types: 16 for the cause while the plan is made, 8 for
/// the trigger.
const TRIGGER: u64 = 24;

/// Bytes per recorded event, with its copies that are sorted and written to `events.parquet`. Measured in permutations of 16 hosts
/// with messages of 20 MB and 60 MB: 107 to 109 per event of a sender or a receiver.
const EVENT: u64 = 110;
/// Bytes per row of a series. Our choice: a row of a queue pair takes 80 B in the engine, and as much again in a table.
const ROW: u64 = 200;

/// Most queue pairs: a packet carries the number of its queue pair in 24 bits.
const MOST_QPS: u64 = 1 << 24;
/// Most messages (our choice): they take 12 GB, and the numbers of messages and triggers have 32 bits.
pub(crate) const MOST_MESSAGES: u64 = 1 << 26;

/// Most triggers between subflows (our choice): their numbers have 32 bits.
const MOST_TRIGGERS: u64 = 1 << 30;

/// The size of a fabric, computed from its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) hosts: usize,
    pub(crate) switches: usize,
    /// Links, each with both directions.
    pub(crate) links: usize,
    /// Switches with hosts.
    pub(crate) racks: usize,
    /// The key within the topology's settings that contributes most to the size.
    pub(crate) key: &'static str,
}

impl Size {
    fn bytes(&self) -> u64 {
        let [hosts, switches, links, racks] =
            [self.hosts, self.switches, self.links, self.racks].map(|n| n as u64);
        let routes = switches.saturating_mul(racks).saturating_mul(ROUTE);
        (links.saturating_mul(2 * PORT)).saturating_add(hosts.saturating_mul(HOST)).saturating_add(routes)
    }
}

/// Memory beyond the estimate that a run needs if its queues, links or records fill, bytes. The parts are upper bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Possible {
    /// Packets in queues: as many as the buffers of all switches hold, at most as many as senders may have outstanding.
    pub queues: u64,
    /// Packets on links: rate times delay, with the same bound.
    pub in_flight: u64,
    /// Series and frames.
    pub records: u64,
    /// All together. A packet is either in a queue or on a link.
    pub total: u64,
}

impl Possible {
    /// The upper bounds of a plan.
    pub(crate) fn new(plan: &Plan, load: &Load, nics: &Nics, room: PacketRoom) -> Self {
        let wire = &plan.wire;
        let packets = || load.by_qp.iter().copied();
        let most = |qp: usize| nics.of(QpId(qp as u32)).most_outstanding(wire.payload);
        let outstanding: u64 = packets().enumerate().map(|(qp, all)| all.min(most(qp))).sum();
        let all: u64 = packets().sum();
        let frame = (load.bytes / all.max(1) + u64::from(wire.header)).max(wire.min_frame.into()).max(1);
        let queued = plan.switches.iter().zip(plan.fabric.switches());
        let queued = queued.map(|(switch, node)| most_queued(plan, switch, node) / frame);
        let queued = queued.fold(0, u64::saturating_add).min(outstanding);
        let on_wire = plan.fabric.links().iter().map(|link| on_wire(link) / frame);
        let on_wire = on_wire.fold(0, u64::saturating_add).min(outstanding);
        let [queues, in_flight, both] = [queued, on_wire, (queued + on_wire).min(outstanding)]
            .map(|packets| packets.saturating_mul(room.waiting));
        let record = &plan.record;
        let switches = if record.switches { plan.switches.len() } else { 0 };
        let rows = (record.qps.len() + record.links.len() + switches) * record.bins;
        // Captured frames go to their files while the run goes on.
        let records = rows as u64 * ROW;
        Possible { queues, in_flight, records, total: both + records }
    }
}

/// Most bytes in the queues of a switch.
fn most_queued(plan: &Plan, switch: &SwitchSettings, node: NodeId) -> u64 {
    let buffer = switch.buffer.get();
    let base = plan.fabric.base(node) as usize;
    let of_group = |switch: &SwitchSettings, ports: &[PortSettings]| match switch.flow_control {
        FlowControl::Lossless(_) | FlowControl::Credits(_) | FlowControl::Lossy { .. } => buffer,
        FlowControl::Capped { .. } => {
            let ports = &ports[base..base + plan.fabric.ports(node).len()];
            ports.iter().map(|port| port.cap.get()).fold(0, u64::saturating_add)
        }
    };
    let own = plan.own_queues.groups.iter();
    let own = own.map(|group| of_group(&group.switches[plan.fabric.switch_number(node)], &group.ports));
    own.fold(of_group(switch, &plan.ports), u64::saturating_add).min(buffer)
}

/// Bytes that a link carries at once.
fn on_wire(link: &Link) -> u64 {
    let bits = u128::from(link.rate.bps()) * u128::from(link.delay.ps()) / 1_000_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// When something takes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exists {
    /// As soon as the workload is read.
    Now,
    /// Only in a run: the messages and tasks of exchanges.
    InRuns,
}

/// Memory that a run needs, counted while its plan is made.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget {
    /// Memory that is left for the run; `None` if unknown.
    room: Option<Room>,
    /// True if nothing runs: messages and tasks of exchanges are only counted, so any number of them is possible.
    counts: bool,
    /// Memory for what is only counted, bytes.
    counted: u64,
    /// The first error that a run would meet.
    refusal: Option<Finding>,
    /// Memory of outlines and of schedules that stay, bytes. Runs need it while their plan is made.
    outlined: u64,
    need: u64,
    messages: u64,
    tasks: u64,
    qps: u64,
    /// Path of the key that contributes most to the size of the fabric.
    fabric: String,
    /// The largest part so far: its bytes, the path of its key, and its description.
    largest: (u64, String, String),
}

impl MemoryBudget {
    pub(crate) fn new(room: Option<Room>) -> Self {
        MemoryBudget {
            room,
            counts: false,
            counted: 0,
            refusal: None,
            outlined: 0,
            need: PROGRAM,
            messages: 0,
            tasks: 0,
            qps: 0,
            fabric: String::new(),
            largest: (0, String::new(), String::new()),
        }
    }

    /// A budget for messages and tasks that are only counted.
    pub(crate) fn counting(self) -> Self {
        MemoryBudget { counts: true, ..self }
    }

    /// Refuses what will exist; of what is only counted, notes that a run would be refused.
    fn refuse(&mut self, error: Finding, exists: Exists) -> Result<(), Finding> {
        if exists == Exists::Now || !self.counts {
            return Err(error);
        }
        self.refusal.get_or_insert(error);
        Ok(())
    }

    /// Refuses what was only counted so far, before it is laid out.
    pub(crate) fn lays_out(&mut self) -> Result<(), Finding> {
        self.refusal.take().map_or(Ok(()), Err)
    }

    /// Refuses an outline or schedules that do not fit by themselves; `path` is the path of their settings.
    pub(crate) fn outline(&mut self, bytes: u64, path: &str) -> Result<(), Finding> {
        self.outlined = self.outlined.saturating_add(bytes);
        match self.room {
            Some(Room { left, limit }) if self.outlined > left => {
                let (need, left) = (amount(self.outlined), amount(left));
                let text = format!(
                    "the workload takes at least {need} of memory before it is laid out; {limit} has {left} left"
                );
                Err(code::MEMORY.at(path, text).rooted())
            }
            _ => Ok(()),
        }
    }

    /// A warning, if no whole run is possible although the scenario is right.
    pub(crate) fn refusal(&mut self) -> Option<Finding> {
        let error = self.refusal.take()?;
        let text = format!("no whole run is possible: {}; `run --fast` leaves out what repeats", error.text);
        Some(code::NO_ROOM.at(&error.path(), text).rooted())
    }

    /// Memory needed so far, bytes.
    pub(crate) fn need(&self) -> u64 {
        self.need
    }

    /// Counts a fabric; `path` is the path of its settings.
    pub(crate) fn add_fabric(&mut self, size: &Size, path: &str) -> Result<(), Finding> {
        let Size { hosts, switches, links, .. } = size;
        let what = format!("a fabric of {hosts} hosts, {switches} switches and {links} links");
        self.fabric = format!("{path}.{}", size.key);
        self.add(size.bytes(), self.fabric.clone(), what)
    }

    /// Counts `messages` on `qps` new queue pairs; `path` is the path of the key that determines their number.
    pub(crate) fn add_messages(
        &mut self,
        messages: u64,
        qps: u64,
        path: String,
        exists: Exists,
    ) -> Result<(), Finding> {
        self.messages = self.messages.saturating_add(messages);
        self.qps = self.qps.saturating_add(qps);
        for (new, all, most, what) in
            [(qps, self.qps, MOST_QPS, "queue pairs"), (messages, self.messages, MOST_MESSAGES, "messages")]
        {
            if all > most {
                let others =
                    if all > new { format!(" and {} of other jobs", all - new) } else { String::new() };
                let text = format!("expected at most {most} {what}, found {new}{others}");
                let error = code::RANGE.at(&path, text).rooted();
                // A packet cannot number more queue pairs.
                if what == "queue pairs" {
                    return Err(error);
                }
                self.refuse(error, exists)?;
            }
        }
        let bytes = messages.saturating_mul(MESSAGE).saturating_add(qps.saturating_mul(QP));
        self.add_as(bytes, path, format!("{messages} messages on {qps} queue pairs"), exists)
    }

    /// Counts tasks.
    pub(crate) fn add_tasks(&mut self, tasks: u64, path: String, exists: Exists) -> Result<(), Finding> {
        if tasks > MOST_MESSAGES {
            let text = format!("expected at most {MOST_MESSAGES} tasks, found {tasks}");
            self.refuse(code::RANGE.at(&path, text).rooted(), exists)?;
        }
        self.tasks = self.tasks.saturating_add(tasks);
        self.add_as(tasks.saturating_mul(TASK), path, format!("{tasks} tasks"), exists)
    }

    /// Refuses a schedule of so many steps if they do not fit. Each becomes a task or a message.
    pub(crate) fn steps_fit(&self, steps: u64) -> Result<(), String> {
        let bytes = steps.saturating_mul(STEP + TASK);
        let need = self.need - self.counted.min(self.need);
        let left = self.room.map_or(u64::MAX, |room| room.left.saturating_sub(need));
        if steps <= MOST_MESSAGES && bytes <= left {
            return Ok(());
        }
        Err(format!(
            "the collective has at least {steps} steps, which take {} of memory; longer messages (`tuning.message`) and \
             fewer ranks or channels make fewer steps",
            amount(bytes)
        ))
    }

    /// Refuses more messages and tasks than were counted if they do not fit; `items` is their number so far.
    pub(crate) fn laid(&mut self, items: u64, path: String) -> Result<(), Finding> {
        let more = items.saturating_sub(self.messages.saturating_add(self.tasks));
        let (need, counted) = (self.need, self.counted);
        let what = format!("{items} messages and tasks");
        let fits = self.add_as(more.saturating_mul(TASK), path, what, Exists::InRuns);
        (self.need, self.counted) = (need, counted);
        fits
    }

    /// Counts the triggers by which subflows wait for each other.
    pub(crate) fn add_triggers(&mut self, triggers: u64, path: String) -> Result<(), Finding> {
        if triggers > MOST_TRIGGERS {
            let text =
                format!("expected at most {MOST_TRIGGERS} triggers between subflows, found {triggers}");
            return Err(code::RANGE.at(&path, text).rooted());
        }
        self.add(triggers.saturating_mul(TRIGGER), path, format!("{triggers} triggers"))
    }

    /// Counts the packets in flight and in queues.
    pub(crate) fn add_packets(&mut self, load: &Load, room: PacketRoom) -> Result<(), Finding> {
        let packets = &load.by_host;
        let bytes = packets.iter().map(|&packets| room.bytes(packets)).sum();
        self.add(bytes, self.fabric.clone(), format!("packets of {} hosts", packets.len()))
    }

    /// Counts the events of followed queue pairs: at least one of the sender and one of the receiver for every packet, up to
    /// the limits.
    pub(crate) fn add_events(&mut self, plan: &Plan, load: &Load) -> Result<(), Finding> {
        let (record, mut events) = (&plan.record, 0u64);
        for qp in &record.follow {
            events += 2 * load.by_qp[qp.index()].min(record.events as u64);
        }
        let what = format!("{events} events of {} queue pairs", record.follow.len());
        self.add(events.saturating_mul(EVENT), "record".to_owned(), what)
    }

    /// Counts the routes around `sets` sets of dead links.
    pub(crate) fn add_routes(
        &mut self,
        sets: usize,
        switches: usize,
        (racks, groups): (usize, usize),
    ) -> Result<(), Finding> {
        let each = if groups > 0 { ROUTE + ROUTE_BY_GROUP } else { ROUTE };
        let bytes =
            [sets, switches, racks + groups].map(|n| n as u64).into_iter().fold(each, u64::saturating_mul);
        self.add(bytes, "failure".to_owned(), format!("{sets} sets of routes around dead links"))
    }

    fn add(&mut self, bytes: u64, path: String, what: String) -> Result<(), Finding> {
        self.add_as(bytes, path, what, Exists::Now)
    }

    fn add_as(&mut self, bytes: u64, path: String, what: String, exists: Exists) -> Result<(), Finding> {
        self.need = self.need.saturating_add(bytes);
        if self.counts && exists == Exists::InRuns {
            self.counted = self.counted.saturating_add(bytes);
        }
        if bytes > self.largest.0 {
            self.largest = (bytes, path, what);
        }
        match self.room {
            Some(Room { left, limit }) if self.need > left => {
                let (most, path, what) = &self.largest;
                let text = format!(
                    "the run needs at least {} of memory, {} of it for {what}; {limit} has {} left",
                    amount(self.need),
                    amount(*most),
                    amount(left)
                );
                let error = code::MEMORY.at(path, text).rooted();
                let fits = self.need - self.counted.min(self.need) <= left;
                self.refuse(error, if fits { Exists::InRuns } else { Exists::Now })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checked, Source};
    use files::room::Limit;

    /// The packets of 256 hosts that send as long as the run lasts.
    const PACKETS: u64 = 256 * PacketRoom::BARE.most;

    /// A fabric of 256 hosts, 32 switches and 512 links: about 1 MB.
    const FABRIC: &str =
        "[topology.leaf-spine]\nspines = 16\nleaves = 16\nhosts-per-leaf = 16\n[[workload]]\n";

    /// The estimate or the error on a machine with `available` bytes.
    fn told(text: &str, sets: &[&str], available: u64) -> String {
        let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
        let room = Room { left: available, limit: Limit::Machine };
        match Checked::on(&Source::new("s.toml", text), &sets, Some(room)) {
            Ok(checked) => format!("{} B", checked.memory),
            Err(e) => e.located(),
        }
    }

    #[test]
    fn a_run_that_does_not_fit_is_refused_at_the_key_that_makes_it_large() {
        let all = format!("{FABRIC}all-to-all = {{ groups = \"all\" }}\n");
        let fabric = 1024 * PORT + 256 * HOST + 32 * 16 * ROUTE;
        let job = 256 * 255 * (QP + MESSAGE);
        let need = PROGRAM + fabric + job + PACKETS;
        assert_eq!(told(&all, &[], need), format!("{need} B"));
        assert_eq!(
            told(&all, &[], need - 1),
            format!(
                "s.toml:6:25: the run needs at least {} of memory, {} of it for 65280 messages on 65280 queue \
                 pairs; this machine has {} left",
                amount(need),
                amount(job),
                amount(need - 1)
            )
        );
        let small = told(&all, &[], PROGRAM);
        assert!(small.starts_with("s.toml:4:18: the run needs at least "), "{small}");
        assert!(
            small.contains(" for a fabric of 256 hosts, 32 switches and 512 links; this machine has 22 MB")
        );
        // The messages of a ring share 256 queue pairs, unless a `--set` gives each message its own.
        let ring = format!("{FABRIC}all-reduce = {{ groups = \"all\" }}\n");
        let need = PROGRAM + fabric + 256 * QP + 256 * 510 * MESSAGE + PACKETS;
        assert_eq!(told(&ring, &[], need), format!("{need} B"));
        let large = told(&ring, &["workload.0.qp=per-message", "workload.0.groups=all"], need);
        assert!(large.starts_with("--set:1:19: the run needs at least "), "{large}");
    }

    #[test]
    fn the_error_points_at_the_largest_part_even_if_a_smaller_one_exceeds_the_limit() {
        let jobs = format!(
            "{FABRIC}all-to-all = {{ groups = \"contiguous\", group-size = 128 }}\n[[workload]]\npermutation = {{}}\n"
        );
        let permutation = 256 * (QP + MESSAGE);
        let need = PROGRAM
            + 1024 * PORT
            + 256 * HOST
            + 32 * 16 * ROUTE
            + 2 * 128 * 127 * (QP + MESSAGE)
            + permutation
            + PACKETS;
        assert_eq!(told(&jobs, &[], need), format!("{need} B"));
        let blamed = told(&jobs, &[], need - permutation);
        assert!(blamed.starts_with("s.toml:6:52: "), "{blamed}");
    }

    #[test]
    fn packets_take_room_up_to_a_bound_and_more_room_with_stamps_and_telemetry() {
        let job = |keys: &str| format!("{FABRIC}permutation = {{ bytes = \"1MB\" }}\n{keys}");
        let rest = PROGRAM + 1024 * PORT + 256 * HOST + 32 * 16 * ROUTE + 256 * (QP + MESSAGE);
        for (keys, room) in [
            ("", PacketRoom::BARE),
            ("[scheme.conga]\n", PacketRoom::STAMPED),
            ("[nic.congestion.swift]\n", PacketRoom::TRACED),
        ] {
            let few = told(&job(keys), &["workload.0.bytes=10kB"], u64::MAX);
            assert_eq!(few, format!("{} B", rest + 256 * (room.fixed + 7 * room.packet)), "{keys}");
            let many = told(&job(keys), &[], u64::MAX);
            assert_eq!(many, format!("{} B", rest + 256 * (room.fixed + room.most)), "{keys}");
        }
    }

    #[test]
    fn counts_beyond_the_fields_of_a_packet_are_refused_before_any_allocation() {
        let all = |fabric: &str| {
            format!("[topology.leaf-spine]\n{fabric}\n[[workload]]\nall-to-all = {{ groups = \"all\" }}\n")
        };
        let most = told(&all("leaves = 100\nspines = 2\nhosts-per-leaf = 42"), &[], u64::MAX);
        assert!(most.contains("expected at most 16777216 queue pairs, found 17635800"), "{most}");
        let hosts = told("[topology.fat-tree]\nk = 162\n[[workload]]\npermutation = {}\n", &[], u64::MAX);
        assert!(hosts.contains("s.toml:2:5: expected at most 1048576 hosts, found 1062882 "), "{hosts}");
        let named = "[topology.links]\nhosts = 999999999999\nlinks = []\n[[workload]]\npermutation = {}\n";
        assert!(told(named, &[], 1).contains("s.toml:2:9: expected 1 to 1048576 hosts, found 999999999999"));
    }

    #[test]
    fn full_queues_and_links_hold_what_buffers_hold_and_senders_may_send() {
        let possible = |fabric: &str, keys: &str| {
            let text = format!(
                "[topology.leaf-spine]\nspines = 16\nleaves = 16\nhosts-per-leaf = 16\n{fabric}\n{keys}\n\
                 [[workload]]\npermutation = {{ bytes = \"1MB\" }}\n"
            );
            Checked::on(&Source::new("s.toml", text), &[], None).unwrap().possible
        };
        // 1 MB are 696 packets. Links of 1 us and 400 Gb/s hold 50 kB, 33 packets.
        let (each, waiting) = (256 * PacketRoom::BARE.waiting, PacketRoom::BARE.waiting);
        let ample = possible("", "");
        assert_eq!((ample.queues, ample.in_flight), (696 * each, 1024 * 33 * waiting));
        assert_eq!(ample.total, 696 * each + ample.records, "a packet is either in a queue or on a link");
        let long = possible("delay = \"10ms\"", "[switch]\npfc = \"off\"");
        assert_eq!(long.in_flight, 696 * each);
        let window = possible("", "[nic]\nwindow = { bytes = \"14kB\" }");
        assert_eq!((window.queues, window.in_flight), (10 * each, 10 * each));
        let small = possible("", "[switch]\nbuffer = \"100kB\"\npfc = \"off\"");
        assert!((32 * 60..32 * 70).contains(&(small.queues / waiting)), "{small:?}");
        // Switches have 768 ports.
        let capped = possible("", "[switch]\npfc = \"off\"\nqueue-cap = \"15kB\"");
        assert!((768 * 9..768 * 11).contains(&(capped.queues / waiting)), "{capped:?}");
        let traced = possible("", "[nic.congestion.swift]\n");
        assert_eq!(traced.queues / PacketRoom::TRACED.waiting / 256, 696);
    }
}
