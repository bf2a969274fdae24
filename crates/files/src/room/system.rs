//! The memory that the system and its limits leave.

use super::{Limit, Room};
use nix::sys::resource::{Resource, getrlimit};
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// The memory that each limit leaves.
pub(super) fn rooms() -> Vec<Room> {
    let room = |limit| move |left| Room { left, limit };
    let rooms = [
        machine().map(room(Limit::Machine)),
        of_process(Resource::RLIMIT_AS, "VmSize:").map(room(Limit::AddressSpace)),
        of_process(Resource::RLIMIT_DATA, "VmData:").map(room(Limit::Data)),
        of_groups(&read("/proc/self/cgroup").unwrap_or_default(), read).map(room(Limit::Group)),
    ];
    rooms.into_iter().flatten().collect()
}

fn read(file: &str) -> Option<String> {
    std::fs::read_to_string(file).ok()
}

/// Available memory of the machine, bytes.
fn machine() -> Option<u64> {
    if !sysinfo::IS_SUPPORTED_SYSTEM {
        return None;
    }
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    Some(System::new_with_specifics(memory).available_memory()).filter(|&bytes| bytes > 0)
}

/// Bytes that a limit of the process leaves, if it is set; `used` is the line of Linux's `/proc/self/status` with the bytes in
/// use. Other systems do not report these bytes in a file.
fn of_process(limit: Resource, used: &str) -> Option<u64> {
    let (soft, _) = getrlimit(limit).ok()?;
    if soft == nix::libc::RLIM_INFINITY {
        return None;
    }
    Some(soft.saturating_sub(line(&read("/proc/self/status")?, used)?))
}

/// The number of a line of `/proc/self/status`, which is in KiB, as bytes.
fn line(status: &str, name: &str) -> Option<u64> {
    let text = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = text.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Directories under which Linux shows the memory controller, with its files of the limit and of the bytes in use, and the
/// prefix of the lines in `memory.stat` that include the groups below: cgroup v2, v2 beside v1, and v1.
const CONTROLLERS: [(&str, &str, &str, &str); 3] = [
    ("/sys/fs/cgroup", "memory.max", "memory.current", ""),
    ("/sys/fs/cgroup/unified", "memory.max", "memory.current", ""),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
];

/// Limits of cgroup v1 from here on mean that there is no limit; the kernel writes 2^63 less a page.
const NO_LIMIT: u64 = 1 << 62;

/// Least number of bytes that the control groups of a process leave, from its own group up to the root. `groups` is the
/// content of `/proc/self/cgroup`, and `read` reads a file. Inside a container the path may be missing, but its upper ends are
/// there. Cached files count as free, because the kernel drops them before it ends a process.
fn of_groups(groups: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let memory = match controllers {
            "" => &CONTROLLERS[..2],
            _ if controllers.split(',').any(|name| name == "memory") => &CONTROLLERS[2..],
            _ => continue,
        };
        for (folder, limit, used, prefix) in memory {
            let mut path = path.trim_end_matches('/');
            loop {
                let number = |file: &str| read(&format!("{folder}{path}/{file}"))?.trim().parse().ok();
                if let (Some(limit), Some(used)) =
                    (number(limit).filter(|&n: &u64| n < NO_LIMIT), number(used))
                {
                    let stat = read(&format!("{folder}{path}/memory.stat")).unwrap_or_default();
                    let cached = cached(&stat, prefix);
                    let left = limit.saturating_sub(used.saturating_sub(cached));
                    least = Some(least.map_or(left, |least| least.min(left)));
                }
                let Some(parent) = path.rfind('/') else { break };
                path = &path[..parent];
            }
        }
    }
    least
}

/// Bytes of cached files in a `memory.stat`.
fn cached(stat: &str, prefix: &str) -> u64 {
    let of = |name: &str| {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| key.strip_prefix(prefix) == Some(name))?.1.trim().parse::<u64>().ok()
    };
    ["inactive_file", "active_file"].into_iter().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that groups leave if only these files exist.
    fn left(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        of_groups(groups, |name| {
            files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn the_tightest_group_of_cgroup_v2_counts_and_cached_files_are_free() {
        let files = [
            ("/sys/fs/cgroup/memory.stat", "anon 9\n"),
            ("/sys/fs/cgroup/job/memory.max", "1000\n"),
            ("/sys/fs/cgroup/job/memory.current", "700\n"),
            ("/sys/fs/cgroup/job/memory.stat", "anon 500\ninactive_file 120\nactive_file 30\n"),
            ("/sys/fs/cgroup/job/step/memory.max", "max\n"),
            ("/sys/fs/cgroup/job/step/memory.current", "600\n"),
        ];
        assert_eq!(left("0::/job/step\n", &files), Some(1000 - (700 - 150)));
        // The group at the root has no limit.
        assert_eq!(left("0::/\n", &files), None);
        let tighter = [
            &files[..4],
            &[
                ("/sys/fs/cgroup/job/step/memory.max", "610\n"),
                ("/sys/fs/cgroup/job/step/memory.current", "600\n"),
            ],
        ];
        assert_eq!(left("0::/job/step\n", &tighter.concat()), Some(10));
    }

    #[test]
    fn a_container_with_its_own_limit_at_the_root_is_found() {
        let files = [("/sys/fs/cgroup/memory.max", "4096\n"), ("/sys/fs/cgroup/memory.current", "96\n")];
        assert_eq!(left("0::/docker/0123\n", &files), Some(4000));
        assert_eq!(left("0::/../other\n", &files), Some(4000));
    }

    #[test]
    fn cgroup_v1_has_other_files_and_a_huge_number_for_no_limit() {
        let groups = "5:cpu,cpuacct:/a\n4:memory:/a/b\n1:name=systemd:/a\n0::/a\n";
        let files = [
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "123456\n"),
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2000\n"),
            ("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1500\n"),
            ("/sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n"),
        ];
        assert_eq!(left(groups, &files), Some(2000 - (1500 - 400)));
        assert_eq!(left(groups, &files[..2]), None);
    }

    #[test]
    fn broken_files_leave_no_limit() {
        let files = [("/sys/fs/cgroup/memory.max", "many\n"), ("/sys/fs/cgroup/memory.current", "-1\n")];
        for groups in ["", "0", "0:", "0::", "0::/x\n\n:::\n", "memory"] {
            assert_eq!(left(groups, &files), None, "{groups:?}");
        }
        assert_eq!(line("VmSize: kB\n", "VmSize:"), None);
        assert_eq!(line("VmPeak:\t  12 kB\nVmSize:\t   10 kB\n", "VmSize:"), Some(10_240));
    }
}
