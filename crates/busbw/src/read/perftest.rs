//! Output of perftest's bandwidth tests, such as `ib_write_bw`; and counters of NICs with their values.

use crate::log::{Log, Perftest};

/// State of the reader.
#[derive(Default)]
pub(super) struct Reader {
    test: Option<String>,
    device: Option<String>,
    qps: Option<u32>,
    gpu_memory: bool,
    /// Gb/s of the unit of the column with the average, once the header was read.
    unit: Option<f64>,
}

impl Reader {
    /// Reads a line; false if it belongs to another format.
    pub(super) fn line(&mut self, line: &str, number: usize, log: &mut Log) -> bool {
        if let Some(at) = line.find("BW average[") {
            // perftest's MB are MiB.
            self.unit =
                Some(if line[at..].starts_with("BW average[Gb/sec]") { 1.0 } else { 8.0 * 1.048_576e-3 });
            log.kinds.insert("perftest");
            return true;
        }
        if line.trim_end().ends_with(" BW Test") {
            *self = Reader {
                test: Some(line.trim().to_owned()),
                gpu_memory: self.gpu_memory,
                ..Reader::default()
            };
            return true;
        }
        // What perftest prints with `--use_cuda`, before its header.
        if line.contains("initializing CUDA")
            || line.contains("Picking GPU number")
            || line.contains("cuMemAlloc")
        {
            self.gpu_memory = true;
            return true;
        }
        if self.test.is_some() && line.contains(':') {
            let value = |name: &str| {
                let rest = line.split(name).nth(1)?.split_once(':')?.1;
                rest.split_whitespace().next().map(str::to_owned)
            };
            self.device = value("Device").or_else(|| self.device.take());
            self.qps = value("Number of qps").and_then(|qps| qps.parse().ok()).or(self.qps);
        }
        if let Some(unit) = self.unit {
            let words: Vec<&str> = line.split_whitespace().collect();
            let numbers: Vec<f64> = words.iter().map_while(|word| word.parse().ok()).collect();
            if words.first().is_some_and(|word| word.starts_with("---")) {
                return true;
            }
            if let [bytes, _, _, average, ..] = numbers[..]
                && numbers.len() == words.len()
                && numbers.len() <= 6
                && average.is_finite()
                && average > 0.0
            {
                log.perftest.push(Perftest {
                    line: number,
                    test: self.test.clone().unwrap_or_else(|| "perftest".to_owned()),
                    device: self.device.clone(),
                    qps: self.qps,
                    gpu_memory: self.gpu_memory,
                    bytes: bytes.max(0.0) as u64,
                    gbps: average * unit,
                });
                return true;
            }
        }
        counter(line, number, log)
    }
}

/// Counters that speak for a suspect, by a part of their names (Linux RDMA statistics and ethtool).
const COUNTERS: [&str; 11] = [
    "cnp_sent",
    "cnp_handled",
    "cnp_ignored",
    "ecn_marked_roce",
    "pause",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "adp_retrans",
    "timeout_err",
    "rx_discards_phy",
];

/// Reads `name: value`, `name = value` or `name value`.
fn counter(line: &str, number: usize, log: &mut Log) -> bool {
    let text = line.rsplit('/').next().unwrap_or(line).trim();
    let mut words = text.split([':', '=', ' ', '\t']).filter(|word| !word.is_empty());
    let (Some(name), Some(value), None) = (words.next(), words.next(), words.next()) else { return false };
    let Ok(value) = value.parse::<u64>() else { return false };
    if !COUNTERS.iter().any(|known| name.contains(known)) {
        return false;
    }
    log.facts.counters.extend(log.told(number, (name.to_owned(), value)));
    log.kinds.insert("counters");
    true
}
