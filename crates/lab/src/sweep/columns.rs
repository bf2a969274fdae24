//! What the keys of a summary mean, for the columns of a sweep that are made of them.

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// Its unit.
    pub unit: &'static str,
    /// What it is.
    pub about: String,
}

/// Keys below which a spread stands, or nothing.
pub(super) const SPREADS: [&str; 2] = ["fct_us", "slowdown"];

/// Key by key: a pattern, in which `*` is any name and `**` any names that lead there; unit; what it is.
const MEANINGS: &[(&str, &str, &str)] = &[
    ("sim_time_us", "us", "simulated time at the end"),
    ("packet_hops data", "packets", "link crossings of data packets"),
    ("packet_hops control", "packets", "link crossings of ACKs, NACKs and CNPs"),
    ("** fct_us *", "us", "flow completion time of those that finished"),
    ("** slowdown *", "-", "FCT / ideal FCT of those that finished"),
    ("** unfairness", "-", "mean slowdown of near flows to that of far ones"),
    ("** over_bytes", "B", "flows in this bucket are larger than this"),
    ("** up_to_bytes", "B", "flows in this bucket are no larger than this"),
    ("jobs ** groups count", "-", "groups (communicators) of the job"),
    (
        "jobs ** completion_us slowest",
        "us",
        "from the job's start until its last group has received its last byte; missing if one did not",
    ),
    ("jobs ** completion_us mean", "us", "the same, mean over the job's groups"),
    ("jobs ** completion_us fastest", "us", "the same, of its first group"),
    ("** count", "flows", "all flows"),
    ("** finished", "flows", "flows that finished"),
    ("** bytes", "B", "payload of all flows"),
    ("goodput_gbps mean", "Gb/s", "payload bits / FCT, mean over foreground flows"),
    ("goodput_gbps min", "Gb/s", "payload bits / FCT of the slowest foreground flow"),
    (
        "sending_rate_fraction mean",
        "-",
        "wire bytes sent / (NIC rate x time until the last), mean over foreground flows",
    ),
    ("packets sent", "packets", "data packets put on the wire, retransmissions and copies included"),
    ("packets accepted", "packets", "data packets that their receiver took"),
    ("packets retransmitted", "packets", "data packets sent again"),
    ("packets spurious", "packets", "retransmissions of packets that were neither lost nor discarded"),
    ("packets duplicated", "packets", "copies that a scheme sent on purpose"),
    ("packets duplicate", "packets", "arrivals of packets that had arrived before"),
    ("packets discarded", "packets", "arrivals that the receiver threw away"),
    ("packets out_of_order", "packets", "arrivals with a PSN above the expected one"),
    ("packets out_of_order_by_class *", "packets", "the same in one traffic class"),
    ("packets dropped_buffer", "packets", "data packets dropped for lack of buffer"),
    ("packets dropped_link", "packets", "data packets lost on a link"),
    ("packets dropped_scheme", "packets", "data packets dropped by a scheme"),
    ("packets held", "packets", "data packets that schemes still hold at the end"),
    ("packets in_flight", "packets", "data packets on a wire or in a queue at the end"),
    ("packets noticed", "packets", "notices that arrived: packets without payload in the class of data"),
    (
        "packets reorder_buffer mean",
        "packets",
        "waiting at a receiver for a gap to be filled, mean over arrivals",
    ),
    (
        "packets reorder_buffer max",
        "packets",
        "waiting at one queue pair for a gap to be filled, most at once",
    ),
    ("control ack", "packets", "ACKs sent by receivers"),
    ("control nack", "packets", "NACKs sent by receivers"),
    ("control cnp", "packets", "CNPs sent by receivers"),
    ("control pause", "packets", "PFC pause frames"),
    ("control resume", "packets", "PFC resume frames"),
    ("control timeout", "-", "retransmission timers that fired"),
    ("control blocked", "packets", "control packets ended by a scheme"),
    ("control signals", "packets", "signals made by schemes"),
    ("control created", "packets", "ACKs, NACKs and CNPs made, and signals"),
    ("control dropped", "packets", "control packets lost on a link or for lack of buffer"),
    ("counters *", "-", "counter of the scheme"),
    ("timing wall_s", "s", "wall time in the engine"),
    ("timing cpu_s", "s", "CPU time in the engine, all threads of the run"),
    ("timing setup_s", "s", "CPU time to read, check and lay out the scenario"),
    ("timing threads", "-", "threads that the run was split over"),
    ("timing engine", "-", "window or reference"),
    ("timing hops_per_cpu_s", "packets/s", "link crossings per CPU second"),
    ("timing peak_rss_mb", "MB", "most memory that the process held; runs side by side share it"),
];

/// How a number of a spread came about.
const OF_SPREAD: &[(&str, &str)] = &[
    ("mean", "mean"),
    ("p50", "median, nearest rank"),
    ("p99", "99th percentile, nearest rank"),
    ("max", "largest"),
    ("tail_mean", "mean of what ranks above the 99th percentile"),
];

/// The meaning of a key of a summary, if it is known.
pub(super) fn known(key: &[String]) -> Option<Meaning> {
    let (_, unit, about) = MEANINGS.iter().find(|(pattern, ..)| {
        let pattern: Vec<&str> = pattern.split(' ').collect();
        matches(&pattern, key)
    })?;
    let mut about = (*about).to_owned();
    if let [.., spread, last] = key
        && SPREADS.contains(&spread.as_str())
    {
        about += &format!(": {}", OF_SPREAD.iter().find(|(name, _)| name == last)?.1);
    }
    match key {
        [first, name, ..] if first == "classes" => about += &format!("; traffic class {name}"),
        [first, name, ..] if first == "jobs" => about += &format!("; job {name}"),
        [first, name] if first == "counters" => about += &format!(": {}", name.replace('_', " ")),
        _ => {}
    }
    for part in key {
        match part.as_str() {
            "near" => about += "; over short paths",
            "far" => about += "; over paths more than ten times as long",
            _ => {}
        }
        if let Some(bytes) = part.strip_prefix("up_to_").filter(|bytes| *bytes != "bytes") {
            about += &format!("; flows of at most {bytes} B");
        }
    }
    Some(Meaning { unit, about })
}

/// The meaning of a key of a summary.
pub(super) fn meaning(key: &[String]) -> Meaning {
    known(key).unwrap_or_else(|| Meaning { unit: "-", about: format!("{} of summary.json", key.join(".")) })
}

fn matches(pattern: &[&str], key: &[String]) -> bool {
    match (pattern, key) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=key.len()).any(|n| matches(rest, &key[n..])),
        ([first, rest @ ..], [name, names @ ..]) => (*first == "*" || first == name) && matches(rest, names),
        _ => false,
    }
}
