//! How much memory a run will need, counted before anything large is made, and refused if the machine has less.
//!
//! A fabric is counted by its topology's settings and a job by its groups; what explodes is all-to-all, with the
//! square of the number of hosts. Packets on links much longer than 1 us are not counted.

use crate::error::Fault;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

// Bytes of peak memory in a whole run, results included, on x86-64: measured as the growth of the peak over runs
// of 256 to 32,768 hosts on leaf-spine fabrics of 400 Gb/s and 1 us, 256 to 2 million messages, and rounded.

/// The program itself: one flow between two hosts takes 6.3 MB.
const PROGRAM: u64 = 6_000_000;
/// One direction of a link: 690.
const PORT: u64 = 700;
/// A host that sends at line rate: 1.4 kB for itself; the rest, 12 to 20 kB, is packets on their way or in a queue.
const HOST: u64 = 16_000;
/// What packets with telemetry take beyond that, per host: a permutation of 256 hosts takes 28 to 32 MB under HPCC and Swift,
/// and 17 MB under DCQCN.
const TRACED_HOST: u64 = 50_000;
/// The route of a switch to a rack: the size of the table's entry.
const ROUTE: u64 = 4;
/// What is kept besides in a fabric of groups with dead links: an entry of 4 B and a count of 1 B for each of three ways
/// to come to a switch.
const ROUTE_BY_GROUP: u64 = 15;
/// A queue pair: 620 under ECMP, 1020 with the states of Themis at both ends.
const QP: u64 = 800;
/// A message: 150 to 180, with what sets it free.
const MESSAGE: u64 = 180;

/// Most queue pairs: a packet names its own in 24 bits.
const MOST_QPS: u64 = 1 << 24;
/// Most messages: their numbers and those of their triggers are 32 bits, and this many take 12 GB.
pub(crate) const MOST_MESSAGES: u64 = 1 << 26;

/// The size of a fabric, from its settings alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) hosts: usize,
    pub(crate) switches: usize,
    /// Cables: links with both directions.
    pub(crate) links: usize,
    /// Switches with hosts.
    pub(crate) racks: usize,
    /// The key, seen from the topology's settings, that makes it as large as it is.
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

/// Memory that a run needs, as far as its scenario has been laid out.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    /// What the machine has left, bytes; `None` if it does not tell.
    available: Option<u64>,
    need: u64,
    messages: u64,
    qps: u64,
    /// The largest part so far: its bytes, where it stands, and what it is.
    largest: (u64, String, String),
}

impl Room {
    pub(crate) fn new(available: Option<u64>) -> Self {
        Room { available, need: PROGRAM, messages: 0, qps: 0, largest: (0, String::new(), String::new()) }
    }

    /// What is needed so far, bytes.
    pub(crate) fn need(&self) -> u64 {
        self.need
    }

    /// Makes room for a fabric; `path` leads to its settings.
    pub(crate) fn for_fabric(&mut self, size: &Size, path: &str) -> Result<(), Fault> {
        let Size { hosts, switches, links, .. } = size;
        let what = format!("a fabric of {hosts} hosts, {switches} switches and {links} links");
        self.add(size.bytes(), format!("{path}.{}", size.key), what)
    }

    /// Makes room for `messages` on `qps` new queue pairs; `path` leads to what says how many.
    pub(crate) fn for_messages(&mut self, messages: u64, qps: u64, path: String) -> Result<(), Fault> {
        self.messages = self.messages.saturating_add(messages);
        self.qps = self.qps.saturating_add(qps);
        for (new, all, most, what) in
            [(qps, self.qps, MOST_QPS, "queue pairs"), (messages, self.messages, MOST_MESSAGES, "messages")]
        {
            if all > most {
                let before =
                    if all > new { format!(" beside {} of other jobs", all - new) } else { String::new() };
                let text = format!("{new} {what}{before} are too many; at most {most} are possible");
                return Err(Fault::rooted(&path, text));
            }
        }
        let bytes = messages.saturating_mul(MESSAGE).saturating_add(qps.saturating_mul(QP));
        self.add(bytes, path, format!("{messages} messages on {qps} queue pairs"))
    }

    /// Makes room for the telemetry of packets under way.
    pub(crate) fn for_telemetry(&mut self, hosts: usize) -> Result<(), Fault> {
        let bytes = (hosts as u64).saturating_mul(TRACED_HOST);
        self.add(bytes, "nic.congestion".to_owned(), "packets with telemetry".to_owned())
    }

    /// Makes room for the routes around as many sets of dead links in a fabric of so many groups.
    pub(crate) fn for_routes(
        &mut self,
        sets: usize,
        switches: usize,
        (racks, groups): (usize, usize),
    ) -> Result<(), Fault> {
        let each = if groups > 0 { ROUTE + ROUTE_BY_GROUP } else { ROUTE };
        let bytes =
            [sets, switches, racks + groups].map(|n| n as u64).into_iter().fold(each, u64::saturating_mul);
        self.add(bytes, "failure".to_owned(), format!("{sets} sets of routes around dead links"))
    }

    fn add(&mut self, bytes: u64, path: String, what: String) -> Result<(), Fault> {
        self.need = self.need.saturating_add(bytes);
        if bytes > self.largest.0 {
            self.largest = (bytes, path, what);
        }
        match self.available {
            Some(available) if self.need > available => {
                let (most, path, what) = &self.largest;
                let text = format!(
                    "the run would need at least {} of memory, {} of it for {what}; this machine has {} left",
                    amount(self.need),
                    amount(*most),
                    amount(available)
                );
                Err(Fault::rooted(path, text))
            }
            _ => Ok(()),
        }
    }
}

/// Memory for people.
fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Memory that this process may still take, bytes: what the machine has left, or its control group if that is
/// less. `None` where the system does not tell.
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

    /// 256 hosts, 32 switches, 512 links: about 3 MB.
    const FABRIC: &str =
        "[topology.leaf-spine]\nspines = 16\nleaves = 16\nhosts-per-leaf = 16\n[[workload]]\n";

    /// What a user is told whose machine has so much memory.
    fn told(text: &str, sets: &[&str], available: u64) -> String {
        let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
        match Checked::on(&Source::new("s.toml", text), &sets, Some(available)) {
            Ok(checked) => format!("{} B", checked.memory),
            Err(e) => e.located(),
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_at_the_number_that_makes_it_large() {
        let all = format!("{FABRIC}all-to-all = {{ groups = \"all\" }}\n");
        let fabric = 1024 * PORT + 256 * HOST + 32 * 16 * ROUTE;
        let job = 256 * 255 * (QP + MESSAGE);
        let need = PROGRAM + fabric + job;
        assert_eq!(told(&all, &[], need), format!("{need} B"));
        assert_eq!(
            told(&all, &[], need - 1),
            format!(
                "s.toml:6:25: the run would need at least {} of memory, {} of it for 65280 messages on 65280 queue \
                 pairs; this machine has {} left",
                amount(need),
                amount(job),
                amount(need - 1)
            )
        );
        let small = told(&all, &[], PROGRAM);
        assert!(small.starts_with("s.toml:4:18: the run would need at least "), "{small}");
        assert!(
            small.contains(" for a fabric of 256 hosts, 32 switches and 512 links; this machine has 6 MB")
        );
        // The messages of a ring share 256 queue pairs, unless a `--set` gives each its own.
        let ring = format!("{FABRIC}all-reduce = {{ groups = \"all\" }}\n");
        let need = PROGRAM + fabric + 256 * QP + 256 * 510 * MESSAGE;
        assert_eq!(told(&ring, &[], need), format!("{need} B"));
        let large = told(&ring, &["workload.0.qp=per-message", "workload.0.groups=all"], need);
        assert!(large.starts_with("--set:1:19: the run would need at least "), "{large}");
    }

    #[test]
    fn the_largest_part_is_blamed_even_if_another_one_breaks_the_limit() {
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
    fn limits_of_the_packet_are_refused_before_anything_is_made() {
        let all = |fabric: &str| {
            format!("[topology.leaf-spine]\n{fabric}\n[[workload]]\nall-to-all = {{ groups = \"all\" }}\n")
        };
        let most = told(&all("leaves = 100\nspines = 2\nhosts-per-leaf = 42"), &[], u64::MAX);
        assert!(most.contains("17635800 queue pairs are too many; at most 16777216 are possible"), "{most}");
        let hosts = told(&all("leaves = 1000\nhosts-per-leaf = 100"), &[], u64::MAX);
        assert!(hosts.contains("s.toml:2:10: 100000 hosts; at most 65536 are possible"), "{hosts}");
        let named = "[topology.links]\nhosts = 999999999999\nlinks = []\n[[workload]]\npermutation = {}\n";
        assert!(
            told(named, &[], 1).contains("s.toml:2:9: 999999999999 hosts; between 1 and 65536 are possible")
        );
    }

    #[test]
    fn this_machine_has_memory_left() {
        if cfg!(target_os = "linux") {
            assert!(available().is_some_and(|bytes| bytes > 1_000_000));
        }
    }
}
