//! Estimate of the memory that a run needs, made before any large allocation. A run that needs more than the machine has
//! left is refused.
//!
//! The estimate counts a fabric by its topology's settings and a job by its groups. All-to-all is the critical case: its
//! queue pairs grow with the square of the number of hosts. Packets on links much longer than 1 us are not counted.

use crate::error::KeyError;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

// Bytes of peak memory in a whole run, results included, on x86-64. Measured as the growth of the peak over runs of 256
// to 32,768 hosts and 256 to 2 million messages on leaf-spine fabrics of 400 Gb/s and 1 us, and rounded.

/// Bytes of the program itself; a run of one flow between two hosts takes 6.3 MB.
const PROGRAM: u64 = 6_000_000;
/// Bytes per direction of a link; measured: 690.
const PORT: u64 = 700;
/// Bytes per host that sends at line rate: 1.4 kB for the host, 12 to 20 kB for packets in flight or in queues.
const HOST: u64 = 16_000;
/// Additional bytes per host for packets with telemetry. Measured: a permutation of 256 hosts takes 28 to 32 MB with HPCC
/// and Swift, and 17 MB with DCQCN.
const TRACED_HOST: u64 = 50_000;
/// Bytes per switch and rack: one entry of the routing table.
const ROUTE: u64 = 4;
/// Additional bytes per switch and rack or group in a fabric of groups with dead links: an entry of 4 B and a count of
/// 1 B for each of the three legs in which a packet may arrive at a switch.
const ROUTE_BY_GROUP: u64 = 15;
/// Bytes per queue pair; measured: 620 with ECMP, 1020 with the state of Themis at both ends.
const QP: u64 = 800;
/// Bytes per message with its triggers; measured: 150 to 180.
const MESSAGE: u64 = 180;

/// Most queue pairs: a packet carries the number of its queue pair in 24 bits.
const MOST_QPS: u64 = 1 << 24;
/// Most messages (our choice): they take 12 GB, and the numbers of messages and triggers have 32 bits.
pub(crate) const MOST_MESSAGES: u64 = 1 << 26;

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

/// Memory that a run needs, counted while its plan is made.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget {
    /// Available memory of the machine, bytes; `None` if unknown.
    available: Option<u64>,
    need: u64,
    messages: u64,
    qps: u64,
    /// The largest part so far: its bytes, the path of its key, and its description.
    largest: (u64, String, String),
}

impl MemoryBudget {
    pub(crate) fn new(available: Option<u64>) -> Self {
        MemoryBudget {
            available,
            need: PROGRAM,
            messages: 0,
            qps: 0,
            largest: (0, String::new(), String::new()),
        }
    }

    /// Memory needed so far, bytes.
    pub(crate) fn need(&self) -> u64 {
        self.need
    }

    /// Counts a fabric; `path` is the path of its settings.
    pub(crate) fn add_fabric(&mut self, size: &Size, path: &str) -> Result<(), KeyError> {
        let Size { hosts, switches, links, .. } = size;
        let what = format!("a fabric of {hosts} hosts, {switches} switches and {links} links");
        self.add(size.bytes(), format!("{path}.{}", size.key), what)
    }

    /// Counts `messages` on `qps` new queue pairs; `path` is the path of the key that determines their number.
    pub(crate) fn add_messages(&mut self, messages: u64, qps: u64, path: String) -> Result<(), KeyError> {
        self.messages = self.messages.saturating_add(messages);
        self.qps = self.qps.saturating_add(qps);
        for (new, all, most, what) in
            [(qps, self.qps, MOST_QPS, "queue pairs"), (messages, self.messages, MOST_MESSAGES, "messages")]
        {
            if all > most {
                let others =
                    if all > new { format!(" and {} of other jobs", all - new) } else { String::new() };
                let text = format!("expected at most {most} {what}, found {new}{others}");
                return Err(KeyError::rooted(&path, text));
            }
        }
        let bytes = messages.saturating_mul(MESSAGE).saturating_add(qps.saturating_mul(QP));
        self.add(bytes, path, format!("{messages} messages on {qps} queue pairs"))
    }

    /// Counts the telemetry of packets in flight.
    pub(crate) fn add_telemetry(&mut self, hosts: usize) -> Result<(), KeyError> {
        let bytes = (hosts as u64).saturating_mul(TRACED_HOST);
        self.add(bytes, "nic.congestion".to_owned(), "packets with telemetry".to_owned())
    }

    /// Counts the routes around `sets` sets of dead links.
    pub(crate) fn add_routes(
        &mut self,
        sets: usize,
        switches: usize,
        (racks, groups): (usize, usize),
    ) -> Result<(), KeyError> {
        let each = if groups > 0 { ROUTE + ROUTE_BY_GROUP } else { ROUTE };
        let bytes =
            [sets, switches, racks + groups].map(|n| n as u64).into_iter().fold(each, u64::saturating_mul);
        self.add(bytes, "failure".to_owned(), format!("{sets} sets of routes around dead links"))
    }

    fn add(&mut self, bytes: u64, path: String, what: String) -> Result<(), KeyError> {
        self.need = self.need.saturating_add(bytes);
        if bytes > self.largest.0 {
            self.largest = (bytes, path, what);
        }
        match self.available {
            Some(available) if self.need > available => {
                let (most, path, what) = &self.largest;
                let text = format!(
                    "the run needs at least {} of memory, {} of it for {what}; this machine has {} left",
                    amount(self.need),
                    amount(*most),
                    amount(available)
                );
                Err(KeyError::rooted(path, text))
            }
            _ => Ok(()),
        }
    }
}

/// An amount of memory in MB or GB.
fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Memory that this process can still allocate, bytes: the free memory of the machine, or of the process's control group
/// if that is less. `None` if the system does not report it.
pub(crate) fn available() -> Option<u64> {
    if !sysinfo::IS_SUPPORTED_SYSTEM {
        return None;
    }
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(memory);
    let group = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
    Some(system.available_memory().min(group)).filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checked, Source};

    /// A fabric of 256 hosts, 32 switches and 512 links: about 3 MB.
    const FABRIC: &str =
        "[topology.leaf-spine]\nspines = 16\nleaves = 16\nhosts-per-leaf = 16\n[[workload]]\n";

    /// The estimate or the error on a machine with `available` bytes.
    fn told(text: &str, sets: &[&str], available: u64) -> String {
        let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
        match Checked::on(&Source::new("s.toml", text), &sets, Some(available)) {
            Ok(checked) => format!("{} B", checked.memory),
            Err(e) => e.located(),
        }
    }

    #[test]
    fn a_run_that_does_not_fit_is_refused_at_the_key_that_makes_it_large() {
        let all = format!("{FABRIC}all-to-all = {{ groups = \"all\" }}\n");
        let fabric = 1024 * PORT + 256 * HOST + 32 * 16 * ROUTE;
        let job = 256 * 255 * (QP + MESSAGE);
        let need = PROGRAM + fabric + job;
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
            small.contains(" for a fabric of 256 hosts, 32 switches and 512 links; this machine has 6 MB")
        );
        // The messages of a ring share 256 queue pairs, unless a `--set` gives each message its own.
        let ring = format!("{FABRIC}all-reduce = {{ groups = \"all\" }}\n");
        let need = PROGRAM + fabric + 256 * QP + 256 * 510 * MESSAGE;
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
            + permutation;
        assert_eq!(told(&jobs, &[], need), format!("{need} B"));
        let blamed = told(&jobs, &[], need - permutation);
        assert!(blamed.starts_with("s.toml:6:52: "), "{blamed}");
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
    fn this_machine_has_memory_left() {
        if cfg!(target_os = "linux") {
            assert!(available().is_some_and(|bytes| bytes > 1_000_000));
        }
    }
}
