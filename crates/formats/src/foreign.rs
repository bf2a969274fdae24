//! Files of other tools that are given in place of a scenario.

/// The kind of file that a text looks like, and what can read it; `None` if it may be a scenario.
pub fn help(text: &str) -> Option<&'static str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let first = lines.next()?;
    let words: Vec<&str> = first.split_whitespace().collect();
    let numbers = words.iter().all(|word| word.parse::<u64>().is_ok());
    let word = words.first().copied().unwrap_or_default();
    let is_json = |line: &str| {
        let inside = line.trim_start_matches(['[', '{', ' ']);
        line.starts_with('{')
            || line.starts_with('[') && (inside.is_empty() || inside.starts_with(['"', ']']))
    };
    Some(match word {
        "num_ranks" => {
            "this looks like a GOAL schedule of LogGOPSim; `--topology SCENARIO` runs it on that scenario's fabric"
        }
        "Nodes" => {
            "this looks like a connection matrix of htsim; `--topology SCENARIO` runs it on that scenario's fabric"
        }
        _ if is_json(first) => {
            "this looks like JSON, but a scenario is TOML; `ropewalk report` and `ropewalk explain` read the directories of \
             results"
        }
        _ if numbers && words.len() == 3 => {
            "this looks like a topology of the HPCC simulator, which `ropewalk import hpcc --topology` reads"
        }
        _ if numbers && words.len() == 1 => {
            "this looks like a list of flows of the HPCC simulator, which `ropewalk import hpcc --flows` reads"
        }
        _ if !first.contains('=') && HPCC_KEYS.contains(&word) => {
            "this looks like a configuration of the HPCC simulator, which `ropewalk import hpcc --config` reads"
        }
        _ => return None,
    })
}

/// Keys with which configurations of the HPCC simulator begin.
const HPCC_KEYS: &[&str] = &[
    "ENABLE_QCN",
    "USE_DYNAMIC_PFC_THRESHOLD",
    "PACKET_PAYLOAD_SIZE",
    "TOPOLOGY_FILE",
    "FLOW_FILE",
    "CC_MODE",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_tools_are_recognised() {
        for (text, what) in [
            ("num_ranks 2\n\nrank 0 {\n", "a GOAL schedule"),
            ("Nodes 16\nConnections 4\n", "a connection matrix of htsim"),
            ("{\"schema\": \"1.1.1\"}", "JSON"),
            ("\n[\n  {\"a\": 1}]", "JSON"),
            ("[{\"a\": 1}]", "JSON"),
            ("320 64 1280\n0 1\n", "a topology of the HPCC simulator"),
            ("2\n0 1 3 100 1000 2.0\n", "a list of flows of the HPCC simulator"),
            ("ENABLE_QCN 1\nUSE_DYNAMIC_PFC_THRESHOLD 1\n", "a configuration of the HPCC simulator"),
        ] {
            assert!(help(text).is_some_and(|help| help.contains(what)), "{text}: {:?}", help(text));
        }
        for scenario in
            ["", "seed = 1\n", "# one\n[topology.leaf-spine]\n", "[[workload]]\n", "[wire]\n", "CC_MODE = 1"]
        {
            assert_eq!(help(scenario), None, "{scenario}");
        }
    }
}
