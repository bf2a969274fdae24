//! What tools print: `ethtool -S`, `rdma statistic`, SONiC's tables such as `show pfc counters`, and `show interfaces` of Junos. No counter
//! is known here.

use crate::lines::Lines;
use std::collections::BTreeMap;

/// The values of a counter in order of the readings, by device or row of a table and by name.
#[derive(Debug, Default)]
pub(crate) struct Dump {
    values: BTreeMap<(String, String), Vec<u64>>,
}

/// A counter over all devices of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// Growth between the first reading and the last, or the value if there is one reading.
    pub(crate) grown: f64,
    /// Largest value of a device in the last reading.
    pub(crate) most: f64,
    /// Number of devices that have the counter. Tools name one device differently, so that two tools may show two.
    pub(crate) devices: usize,
    /// True if a counter went backwards: it was reset, or it wrapped.
    pub(crate) reset: bool,
}

impl Dump {
    pub(crate) fn read(text: &str) -> Self {
        let mut lines = Lines::default();
        text.lines().for_each(|line| lines.read(line));
        lines.dump
    }

    pub(crate) fn add(&mut self, device: &str, name: &str, value: &str) {
        // A cell of two counts, such as 2/1 under STORM DETECTED/RESTORED.
        if let (Some((one, two)), Some((first, second))) = (value.split_once('/'), name.rsplit_once('/')) {
            let shared = first.rsplit_once(' ').map_or("", |(shared, _)| shared);
            self.add(device, first, one);
            return self.add(device, &format!("{shared} {second}"), two);
        }
        let digits: String = value.chars().filter(|c| *c != ',').collect();
        if let Ok(value) = digits.parse() {
            self.values.entry((device.to_owned(), name.to_owned())).or_default().push(value);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Forgets all counters but those of which `is_known` holds: tools print other names twice in one reading.
    pub(crate) fn keep(&mut self, is_known: impl Fn(&str) -> bool) {
        self.values.retain(|(_, name), _| is_known(name));
    }

    /// Number of readings.
    pub(crate) fn readings(&self) -> usize {
        self.values.values().map(Vec::len).max().unwrap_or(0)
    }

    /// A counter, summed over devices and priorities.
    pub(crate) fn counter(&self, pattern: &str) -> Option<Seen> {
        let mut sum: Option<Seen> = None;
        let single = self.readings() < 2;
        let of_name = self.values.iter().filter(|((_, name), _)| fits(pattern, name));
        for (first, last) in of_name.filter_map(|(_, all)| Some((*all.first()?, *all.last()?))) {
            let seen = sum.get_or_insert_default();
            seen.reset |= !single && last < first;
            seen.grown += if single { first as f64 } else { last.saturating_sub(first) as f64 };
            seen.most = seen.most.max(last as f64);
        }
        sum.map(|seen| Seen { devices: self.devices(pattern), ..seen })
    }

    /// Number of devices or rows with a counter.
    fn devices(&self, pattern: &str) -> usize {
        let mut all: Vec<&str> = self
            .values
            .keys()
            .filter(|(_, name)| fits(pattern, name))
            .map(|(device, _)| device.split([' ', ':']).next().unwrap_or(device))
            .collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    }
}

/// True if a name fits a pattern, in which `#` stands for a number.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('#') {
        None => pattern == name,
        Some((start, end)) => {
            let inside = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
            inside.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_print_is_read() {
        let ethtool = "NIC statistics:\n     rx_prio3_pause: 5\n     rx_prio4_pause: 2\n     rx_prio3_pause_duration: 90\n";
        let dump = Dump::read(&format!("{ethtool}{}", ethtool.replace(": 5", ": 9")));
        assert_eq!(
            dump.counter("rx_prio#_pause"),
            Some(Seen { grown: 4.0, most: 9.0, devices: 1, reset: false })
        );
        assert_eq!(dump.readings(), 2);
        let rdma =
            "link mlx5_0/1 out_of_sequence 7 np_cnp_sent 3\nlink mlx5_1/1 out_of_sequence 1 np_cnp_sent 0\n";
        assert_eq!(Dump::read(rdma).counter("out_of_sequence").unwrap().grown, 8.0);
        let pfc = "  Port Rx    PFC0    PFC3\n---------  ------  ------\nEthernet0       0   1,024\n\n  Port Tx    PFC0    PFC3\n---------  ------  ------\nEthernet0       0       5\n";
        let dump = Dump::read(pfc);
        assert_eq!(
            (dump.counter("Rx PFC#").unwrap().grown, dump.counter("Tx PFC#").unwrap().grown),
            (1024.0, 5.0)
        );
        let queues = "     Port    TxQ    Counter/pkts    Counter/bytes    Drop/pkts    Drop/bytes\n---------  -----  --------------  ---------------  -----------  ------------\nEthernet0    UC3           2,000              N/A           40             0\n";
        let dump = Dump::read(queues);
        assert_eq!((dump.counter("Drop/pkts").unwrap().grown, dump.counter("Counter/bytes")), (40.0, None));
        let reset = Dump::read("a: 5\nb: 1\na: 3\nb: 2\n");
        assert_eq!(reset.counter("a"), Some(Seen { grown: 0.0, most: 3.0, devices: 1, reset: true }));
    }

    #[test]
    fn two_ports_and_two_tools_are_told_apart() {
        let port = "NIC statistics:\n     rx_vport_rdma_unicast_packets: 500\n";
        let both = Dump::read(&format!("eth0:\n{port}eth1:\n{port}"));
        let seen = both.counter("rx_vport_rdma_unicast_packets").unwrap();
        assert_eq!((both.readings(), seen.devices, seen.grown), (1, 2, 1000.0));
        let pasted =
            Dump::read(&format!("root@h1:~# ethtool -S eth0\n{port}root@h1:~# ethtool -S eth1\n{port}"));
        assert_eq!((pasted.readings(), pasted.counter("rx_vport_rdma_unicast_packets")), (1, Some(seen)));
        // One port under the names of two tools: each counter has one device.
        let tools = Dump::read(&format!("{port}link mlx5_0/1 np_cnp_sent 3 out_of_sequence 0\n"));
        let devices = |name: &str| tools.counter(name).unwrap().devices;
        assert_eq!([devices("rx_vport_rdma_unicast_packets"), devices("np_cnp_sent")], [1, 1]);
    }

    #[test]
    fn tables_of_the_watchdog_and_of_watermarks_are_read() {
        let watchdog = "      QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP\n-----------  -----------  -------------------------  ------------  ------------\nEthernet0:3  operational                        2/1       100/300         100/10\nEthernet8:4      stormed                        1/0           0/9            0/0\n";
        let dump = Dump::read(watchdog);
        let grown = |name: &str| dump.counter(name).unwrap().grown;
        assert_eq!(
            ["STORM DETECTED", "STORM RESTORED", "TX DROP", "RX DROP"].map(grown),
            [3.0, 1.0, 309.0, 10.0]
        );
        assert_eq!(dump.counter("TX DROP").unwrap().devices, 2);
        let marks = "Egress shared pool occupancy per unicast queue:\n     Port    UC0     UC3\n---------  -----  ------\nEthernet0      0  412000\nEthernet8      0   10000\n";
        assert_eq!(Dump::read(marks).counter("UC#").unwrap().most, 412_000.0);
        let groups = "Ingress shared pool occupancy per PG:\n     Port    PG0    PG3\n---------  -----  -----\nEthernet0      0   9000\n\nIngress headroom per PG: (Namespace asic0)\n     Port    PG0    PG3\n---------  -----  -----\nEthernet0      0    700\n\nShared pool maximum occupancy:\n                 Pool    Bytes\n---------------------  -------\ningress_lossless_pool    12000\n\nHeadroom pool maximum occupancy:\n                 Pool    Bytes\n---------------------  -------\ningress_lossless_pool      800\n";
        let dump = Dump::read(groups);
        let most = |name: &str| dump.counter(name).unwrap().most;
        assert_eq!([most("shared PG#"), most("headroom PG#")], [9000.0, 700.0]);
        let pool = |room: &str| most(&format!("{room} ingress_lossless_pool"));
        assert_eq!([pool("shared"), pool("headroom")], [12_000.0, 800.0]);
    }

    /// `show interfaces queue`, `show interfaces queue buffer-occupancy` and the frames of PFC in `show interfaces extensive`.
    #[test]
    fn what_junos_prints_is_read() {
        let queue = |number: u32, sent: u64| {
            format!(
                "Queue: {number}, Forwarding classes: no-loss\n  Queued:\n    Packets              :                   999                     0 pps\n    Bytes                :                999000                     0 bps\n  Transmitted:\n    Packets              :{sent:>22}                88 pps\n    Bytes                :                 44000                     0 bps\n    Tail-dropped packets :                     3                     0 pps\n    ECN-CE packets       :                     7                     0 pps\n  Queue-depth bytes      : \n    Average              :                     1\n    Peak                 :                 46716\n"
            )
        };
        let port = |name: &str| {
            format!(
                "Physical interface: {name}, Enabled, Physical link is Up\n  Interface index: 653, SNMP ifIndex: 543\n  MAC Priority Flow Control Statistics:\n    Priority :  3                            20               11\n    Priority :  4                             1                0\n{}{}",
                queue(3, 40),
                queue(4, 2)
            )
        };
        let dump = Dump::read(&format!("{}\n{}", port("et-0/0/2:0"), port("et-0/0/2:1")));
        let grown = |name: &str| dump.counter(name).map(|seen| seen.grown);
        assert_eq!(
            ["Transmitted packets", "Tail-dropped packets", "ECN-CE packets"].map(grown),
            [Some(84.0), Some(12.0), Some(28.0)]
        );
        assert_eq!(["PFC priority # rx", "PFC priority # tx"].map(grown), [Some(42.0), Some(22.0)]);
        assert_eq!(dump.counter("Queue-depth bytes peak").map(|seen| seen.most), Some(46_716.0));
        assert_eq!((dump.readings(), dump.counter("ECN-CE packets").map(|seen| seen.devices)), (1, Some(2)));
    }
}
