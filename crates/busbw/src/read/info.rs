//! Lines of NCCL's own log (`NCCL_DEBUG=INFO`), of RCCL's too.

use super::words::{behind, leading, number_before, number_behind};
use crate::log::Log;

/// Reads a line; false if it is none of NCCL's.
pub(super) fn line(line: &str, number: usize, log: &mut Log) -> bool {
    if let Some(version) =
        behind(line, "NCCL version ").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        version_text(version, number, log);
        return true;
    }
    let Some(at) = ["NCCL INFO ", "NCCL WARN ", "NCCL TRACE "]
        .iter()
        .find_map(|mark| line.find(mark).map(|at| at + mark.len()))
    else {
        return false;
    };
    log.kinds.insert("NCCL");
    // Output of nccl-tests may continue the line; such a line is torn.
    let text = &line[at..];
    communicator(text, number, log);
    network(text, number, log);
    connection(text, number, log);
    channels(text, number, log);
    environment(text, number, log);
    tuning(text, number, log);
    errors(text, number, log);
    true
}

fn version_text(text: &str, line: usize, log: &mut Log) {
    let mut parts = text.split('.');
    let (Some(major), Some(minor)) = (parts.next(), parts.next()) else { return };
    if let (Some((major, _)), Some((minor, _))) = (leading(major), leading(minor))
        && log.facts.version.is_none()
    {
        log.facts.version = log.told(line, format!("{major}.{minor}"));
    }
}

/// Numbers of ranks and nodes that are plausible; a damaged log may have any.
const MOST: u64 = 1 << 20;

fn communicator(text: &str, line: usize, log: &mut Log) {
    let number = |word| number_behind(text, word).filter(|&n| n > 0 && n <= MOST).map(|n| n as u32);
    // A program may have several communicators; the largest is the test's.
    let ranks = number("nRanks ").or_else(|| number("nranks "));
    if let Some(ranks) = ranks.filter(|ranks| log.facts.ranks.as_ref().is_none_or(|told| told.value < *ranks))
    {
        log.facts.ranks = log.told(line, ranks);
    }
    if let Some(nodes) =
        number("nNodes ").filter(|n| log.facts.nodes.as_ref().is_none_or(|told| told.value < *n))
    {
        log.facts.nodes = log.told(line, nodes);
    }
    if let Some(local) = number("localRanks ").filter(|_| log.facts.local_ranks.is_none()) {
        log.facts.local_ranks = log.told(line, local);
    }
}

fn network(text: &str, line: usize, log: &mut Log) {
    let socket = text.contains("Using network Socket") || text.contains("via NET/Socket");
    if socket && log.facts.socket.is_none() {
        log.facts.socket = log.told(line, ());
    }
    let Some(listed) = behind(text, "NET/IB : Using ").filter(|_| log.facts.devices.is_none()) else {
        return;
    };
    let mut devices = Vec::new();
    for word in
        listed.split_whitespace().take_while(|word| word.starts_with('[') && !word.starts_with("[RO]"))
    {
        let Some((name, link)) = word.split_once(']').map_or(word, |(_, name)| name).rsplit_once('/') else {
            continue;
        };
        // A suffix such as `/SHARP` follows the link layer.
        let (name, link) = match name.rsplit_once('/') {
            Some((name, layer)) => (name, layer),
            None => (name, link),
        };
        devices.push((name.to_owned(), link.trim_end_matches([';', ',']).to_owned()));
    }
    if !devices.is_empty() {
        log.facts.devices = log.told(line, devices);
    }
}

fn connection(text: &str, line: usize, log: &mut Log) {
    if let Some(gdr) = number_behind(text, " GDR ").filter(|_| text.contains("Connected all")) {
        set_gdr(gdr > 0, line, log);
    }
    if let Some(rest) = behind(text, "GPU Direct RDMA ") {
        match rest.split_whitespace().next() {
            Some("Enabled") => set_gdr(true, line, log),
            Some("Disabled") => set_gdr(false, line, log),
            _ => {}
        }
    }
    let Some(via) = behind(text, " via ") else { return };
    if via.starts_with("SHM") {
        match &mut log.facts.shm {
            Some(told) => told.value = told.value.saturating_add(1),
            none => *none = Some(crate::log::Told { value: 1, at: format!("{}:{line}", log.name) }),
        }
    }
    let Some(net) = via.strip_prefix("NET/").filter(|net| !net.starts_with("Socket")) else { return };
    // `NET/IB/1(3)/GDRDMA`, or a plugin's name with blanks, such as `NET/AWS Libfabric/0/GDRDMA`.
    let nic = net.split('/').nth(1).and_then(leading).map(|(nic, _)| nic);
    if let Some(nic) = nic.filter(|&nic| nic <= MOST) {
        log.facts.nics_used.insert(nic as u32);
    }
    if net.contains("GDRDMA") {
        log.facts.gdr_links = log.facts.gdr_links.saturating_add(1);
    } else {
        match &mut log.facts.plain_links {
            Some(told) => told.value = told.value.saturating_add(1),
            none => *none = Some(crate::log::Told { value: 1, at: format!("{}:{line}", log.name) }),
        }
    }
}

/// One device without GPUDirect RDMA decides.
fn set_gdr(works: bool, line: usize, log: &mut Log) {
    if log.facts.gdr.as_ref().is_none_or(|told| told.value && !works) {
        log.facts.gdr = log.told(line, works);
    }
}

fn channels(text: &str, line: usize, log: &mut Log) {
    let before = |word| number_before(text, word).filter(|&n| n <= MOST).map(|n| n as u32);
    if let Some(channels) = before(" coll channels").filter(|&n| n > 0 && log.facts.channels.is_none()) {
        log.facts.channels = log.told(line, channels);
    }
    if let Some(channels) = before(" nvls channels").filter(|_| log.facts.nvls_channels.is_none()) {
        log.facts.nvls_channels = log.told(line, channels);
    }
    if text.contains("NVLS multicast support is not available") && log.facts.nvls_channels.is_none() {
        log.facts.nvls_channels = log.told(line, 0);
    }
    if let Some(rest) = behind(text, "Channel 00/").and_then(leading)
        && rest.1.trim_start().starts_with(':')
        // A ring lists its ranks; a connection has an arrow.
        && !text.contains("->")
        && rest.0 > 0
        && log.facts.channels.is_none()
        && rest.0 <= MOST
    {
        log.facts.channels = log.told(line, rest.0 as u32);
    }
    // `type NVL/PHB`: inside the server, and between NIC and GPU.
    if let Some(pattern) = behind(text, "Pattern ")
        && let Some(kind) = behind(pattern, "type ").and_then(|rest| rest.split([',', ' ']).next())
        && let Some((_, path)) = kind.split_once('/')
        && PATHS.contains(&path)
    {
        let rank = |path: &str| PATHS.iter().position(|known| *known == path);
        if log.facts.path.as_ref().is_none_or(|told| rank(&told.value) < rank(path)) {
            log.facts.path = log.told(line, path.to_owned());
        }
    }
}

/// Paths between a NIC and a GPU, from near to far (NCCL, `topo.h`).
const PATHS: [&str; 8] = ["LOC", "NVL", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"];

fn environment(text: &str, line: usize, log: &mut Log) {
    let Some((name, value)) = text.split_once(" set by environment to ") else { return };
    let name = name.split_whitespace().next_back().unwrap_or_default();
    if name.starts_with("NCCL_") {
        let value = value.trim().trim_end_matches('.').to_owned();
        if let Some(told) = log.told(line, value) {
            log.facts.env.entry(name.to_owned()).or_insert(told);
        }
    }
}

/// NCCL's numbers of algorithms and protocols (`nccl_common.h`).
const ALGORITHMS: [&str; 7] = ["tree", "ring", "collnet-direct", "collnet-chain", "nvls", "nvls-tree", "pat"];
const PROTOCOLS: [&str; 3] = ["ll", "ll128", "simple"];

fn tuning(text: &str, _: usize, log: &mut Log) {
    let Some((before, rest)) = text.split_once(" Bytes -> Algo ") else { return };
    let Some(bytes) = before.rsplit([' ', ':']).next().and_then(|bytes| bytes.parse().ok()) else { return };
    let mut words = rest.split_whitespace();
    let (algorithm, protocol) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
    let name = |word: &str, names: &[&str]| match word.parse::<usize>() {
        Ok(number) => names.get(number).map(|name| (*name).to_owned()),
        Err(_) => Some(word.to_lowercase().replace('_', "-")),
    };
    if let (Some(algorithm), Some(protocol)) = (name(algorithm, &ALGORITHMS), name(protocol, &PROTOCOLS)) {
        log.facts.tuned.insert(bytes, (algorithm, protocol));
    }
}

fn errors(text: &str, line: usize, log: &mut Log) {
    let exceeded = text.contains("RETRY_EXC")
        || text.contains("transport retry counter exceeded")
        || (text.contains("Got completion") && (text.contains("status=12") || text.contains("error 12")));
    if exceeded {
        match &mut log.facts.retry_exceeded {
            Some(told) => told.value = told.value.saturating_add(1),
            none => *none = Some(crate::log::Told { value: 1, at: format!("{}:{line}", log.name) }),
        }
    }
}
