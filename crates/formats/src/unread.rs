//! Formats of other tools that ropewalk knows by their content and does not read: what they are, and the way out.

use files::file::{self, without_mark};
use finding::{Finding, code};
use std::path::Path;

/// A format that ropewalk does not read.
#[derive(Debug, PartialEq, Eq)]
pub struct Unread {
    /// What a file of the format is.
    pub name: &'static str,
    /// What the user can do instead.
    pub way_out: &'static str,
    signs: &'static [Sign],
}

/// A sign of a format in the content of a file.
#[derive(Debug, PartialEq, Eq)]
enum Sign {
    /// The outermost table of JSON or YAML has all of these keys.
    Keys(&'static [&'static str]),
    /// The outermost table of JSON has only keys of capital letters, such as `BUFFER_POOL`.
    Capitals,
    /// The outermost element of XML has this name.
    Root(&'static str),
    /// The file has these bytes at this place.
    Bytes(usize, &'static [u8]),
}
use Sign::{Bytes, Capitals, Keys, Root};

/// What makes a Chakra trace of the two traces that PyTorch records.
const CONVERT: &str = "chakra_trace_link joins the traces of PyTorch's execution-trace observer and of its profiler, and \
                       chakra_converter makes a Chakra trace (.et) of the result, which ropewalk reads";

/// How a fabric can be described.
const FABRIC: &str =
    "describe the fabric by [topology.rails] with [server], or link by link by [topology.links]";

/// What reads a site's files.
const SITE: &str = "`ropewalk import site FILE -o SCENARIO` makes a scenario of it";

/// What to do with archives.
const UNPACK: &str = "unpack it, and name the file in it; ropewalk itself unpacks gzip only";

/// The formats. The first one whose sign fits counts.
const FORMATS: &[Unread] = &[
    Unread {
        name: "a Chakra trace as JSON",
        way_out: "chakra_converter writes Chakra traces as .et files, which ropewalk reads",
        signs: &[Keys(&["workload_graph"])],
    },
    Unread {
        name: "JSON of PyTorch's profiler (Kineto)",
        way_out: CONVERT,
        signs: &[
            Keys(&["traceEvents"]),
            Keys(&["schemaVersion", "deviceProperties"]),
            Keys(&["ph", "ts", "pid"]),
        ],
    },
    Unread {
        name: "JSON of PyTorch's execution-trace observer",
        way_out: CONVERT,
        signs: &[Keys(&["schema", "nodes"]), Keys(&["schema", "pid", "start_ts"])],
    },
    Unread {
        name: "a graph of InfraGraph",
        way_out: SITE,
        signs: &[
            Keys(&["infrastructure"]),
            Keys(&["devices"]),
            Keys(&["device"]),
            Keys(&["instances", "edges"]),
        ],
    },
    Unread {
        name: "a topology of NCCL (XML)",
        way_out: "[server] has the GPUs, the NICs and the NVLink of a server, and [topology.rails] joins servers",
        signs: &[Root("system")],
    },
    Unread {
        name: "the graphs of NCCL (XML)",
        way_out: "`collective.algorithm` and `collective.tuning` choose algorithms and channels",
        signs: &[Root("graphs")],
    },
    Unread {
        name: "a topology of hwloc (XML)",
        way_out: "[server] has the GPUs, the NICs and the NVLink of a server, and [topology.rails] joins servers",
        signs: &[Root("topology")],
    },
    Unread {
        name: "a collective algorithm of MSCCL (XML)",
        way_out: "`collective.algorithm` chooses among the algorithms that ropewalk has",
        signs: &[Root("algo")],
    },
    Unread { name: "config_db.json of SONiC", way_out: SITE, signs: &[Capitals] },
    Unread {
        name: "a network of ASTRA-sim",
        way_out: FABRIC,
        signs: &[
            Keys(&["topology", "npus_count"]),
            Keys(&["npus_count", "bandwidth"]),
            Keys(&["topology-name"]),
            Keys(&["logical-dims"]),
        ],
    },
    Unread {
        name: "a system of ASTRA-sim",
        way_out: "`collectives` of the workload `chakra` chooses the algorithms, and the fabric takes the place of dimensions",
        signs: &[
            Keys(&["scheduling-policy"]),
            Keys(&["all-reduce-implementation"]),
            Keys(&["all-reduce-implementation-custom"]),
        ],
    },
    Unread {
        name: "a remote memory of ASTRA-sim",
        way_out: "`remote-memory` of the workload `chakra` is the rate of such a memory",
        signs: &[Keys(&["memory-type"])],
    },
    Unread {
        name: "a database of SQLite, such as an export of Nsight Systems",
        way_out: "ATLAHS makes GOAL schedules of such exports, which ropewalk reads",
        signs: &[Bytes(0, b"SQLite format 3\0")],
    },
    Unread {
        name: "a capture of frames",
        way_out: "`ropewalk tor check FILE` checks the frames of a capture",
        signs: &[
            Bytes(0, b"\x0a\x0d\x0d\x0a"),
            Bytes(0, b"\xd4\xc3\xb2\xa1"),
            Bytes(0, b"\x4d\x3c\xb2\xa1"),
            Bytes(0, b"\xa1\xb2\xc3\xd4"),
            Bytes(0, b"\xa1\xb2\x3c\x4d"),
        ],
    },
    Unread {
        name: "an archive of files",
        way_out: UNPACK,
        signs: &[Bytes(257, b"ustar"), Bytes(0, b"PK\x03\x04"), Bytes(0, b"7z\xbc\xaf\x27\x1c")],
    },
    Unread {
        name: "a packed file",
        way_out: UNPACK,
        signs: &[Bytes(0, b"\x28\xb5\x2f\xfd"), Bytes(0, b"\xfd7zXZ\0"), Bytes(0, b"BZh")],
    },
];

/// Bytes from the start of a file that tell its format. Our choice: JSON may have long values before its second key.
const START: u64 = 64 << 10;

/// Most keys that are compared. Our choice: beyond the keys of any of the formats.
const MOST_KEYS: usize = 200;

/// The format that the content of a file has, if it is one of those that ropewalk does not read.
pub fn of(content: &[u8]) -> Option<&'static Unread> {
    let content = &content[..content.len().min(START as usize)];
    let text = String::from_utf8_lossy(content);
    let text = without_mark(&text).trim_start();
    let root = root(text);
    let keys = match text.starts_with(['{', '[']) {
        true => json_keys(text),
        false => yaml_keys(text),
    };
    let fits = |sign: &Sign| match sign {
        Keys(all) => all.iter().all(|key| keys.contains(key)),
        Capitals => text.starts_with('{') && !keys.is_empty() && keys.iter().all(|key| is_capital(key)),
        Root(name) => root == Some(*name),
        Bytes(at, bytes) => content.get(*at..).is_some_and(|rest| rest.starts_with(bytes)),
    };
    FORMATS.iter().find(|format| format.signs.iter().any(fits))
}

/// The same of a file.
pub fn of_file(path: &Path) -> Option<&'static Unread> {
    of(&file::start(path, START).ok()?)
}

impl Unread {
    /// The message about a file of the format.
    pub fn message(&self, file: &str) -> String {
        format!("{file}: this looks like {}, which ropewalk does not read", self.name)
    }

    /// The error about a file of the format.
    pub fn error(&self, file: &str) -> Finding {
        code::CONTENT.plain(self.message(file)).with_help(self.way_out)
    }

    /// The error about a file that a key of a scenario names.
    pub fn key_error(&self, key: &str, file: &str) -> Finding {
        code::CONTENT.at(key, self.message(file)).with_help(self.way_out)
    }
}

/// True for a name of several capital letters, with digits and underscores.
fn is_capital(key: &str) -> bool {
    let mut letters = key.bytes();
    letters.next().is_some_and(|first| first.is_ascii_uppercase())
        && key.len() > 3
        && letters.all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// The name of the outermost element of an XML text.
fn root(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start().strip_prefix('<')?;
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = &comment[comment.find("-->")? + 3..];
        } else if rest.starts_with(['?', '!']) {
            rest = &rest[rest.find('>')? + 1..];
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || "/>".contains(c))?;
            return Some(&rest[..end]);
        }
    }
}

/// The keys of the outermost table of JSON, which may be cut off; of an array, those of its tables.
fn json_keys(text: &str) -> Vec<&str> {
    let outermost = if text.starts_with('[') { 2 } else { 1 };
    let (bytes, mut keys) = (text.as_bytes(), Vec::new());
    let (mut depth, mut at) = (0usize, 0);
    while let Some(byte) = bytes.get(at).filter(|_| keys.len() < MOST_KEYS) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at + 1;
                at = start;
                while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                let after = text.get(at + 1..).unwrap_or_default();
                if depth == outermost && after.trim_start().starts_with(':') {
                    keys.extend(text.get(start..at));
                }
            }
            _ => {}
        }
        at += 1;
    }
    keys
}

/// The keys of the outermost table of YAML: words at the start of a line before a colon.
fn yaml_keys(text: &str) -> Vec<&str> {
    let key = |line: &'_ str| -> Option<usize> {
        let end = line.find(':')?;
        let word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let value = &line[end + 1..];
        (end > 0
            && line[..end].chars().all(word)
            && (value.is_empty() || value.starts_with([' ', '\t', '\r'])))
        .then_some(end)
    };
    text.lines().filter_map(|line| Some(&line[..key(line)?])).take(MOST_KEYS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_content() {
        for (content, name) in [
            ("{\"schema\": \"1.1.0\", \"nodes\": [{\"id\": 1}]}", "observer"),
            (
                "\u{feff}{\n \"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 7, \"time\": \"{\\\"\", \"start_ts\": 9,\n",
                "observer",
            ),
            ("\n{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"GPU\"", "Kineto"),
            ("{\"traceEvents\": []}", "Kineto"),
            ("[{\"ph\": \"X\", \"name\": \"a\", \"ts\": 1, \"pid\": 2}]", "Kineto"),
            ("{\"workload_graph\": [{\"Id\": 1}]}", "a Chakra trace as JSON"),
            ("{\"name\": \"a\", \"devices\": [], \"instances\": []}", "InfraGraph"),
            ("# a fabric\ninfrastructure:\n  devices:\n    - name: x\n", "InfraGraph"),
            ("---\ndevices:\r\n- name: x\r\nedges:\r\n- a: b\r\n", "InfraGraph"),
            ("<system version=\"1\">\n<cpu numaid=\"0\">", "NCCL"),
            ("<?xml version=\"1.0\"?>\n<!-- made <here> -->\n<graphs version=\"1\">", "the graphs of NCCL"),
            (
                "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">",
                "hwloc",
            ),
            ("<algo name=\"ring\" proto=\"LL\">", "MSCCL"),
            ("{\"ACL_RULE\": {}, \"ACL_TABLE\": {\"a\": {}}}", "SONiC"),
            ("{\"GNMI\": {\"certs\": {}}, \"VLAN_SUB_INTERFACE\":", "SONiC"),
            ("devices:\n  - name: dgx\n", "InfraGraph"),
            (
                "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]  # GB/s\n",
                "a network of ASTRA-sim",
            ),
            ("{\"logical-dims\": [\"8\"]}", "a network of ASTRA-sim"),
            ("{\"scheduling-policy\": \"LIFO\"}", "a system of ASTRA-sim"),
            ("{\"memory-type\": \"NO_MEMORY_EXPANSION\"}", "a remote memory of ASTRA-sim"),
            ("SQLite format 3\0", "Nsight"),
            ("\n\r\r\n\x1c\0\0\0", "a capture"),
            ("PK\u{3}\u{4}", "an archive"),
            ("BZh91AY", "a packed file"),
        ] {
            let found = of(content.as_bytes()).unwrap_or_else(|| panic!("{content}"));
            assert!(found.name.contains(name), "{content}: {}", found.name);
        }
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(of(&tar).map(|found| found.name), Some("an archive of files"));
    }

    #[test]
    fn files_that_ropewalk_reads_are_none_of_them() {
        for content in [
            "",
            "seed = 1\n[topology.leaf-spine]\nleaves = 2\n",
            "num_ranks 2\nrank 0 {\n l1: send 1b to 1\n}\n",
            "MICRO ep: 1\n1\n",
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1\n",
            "Nodes 16\nConnections 4\n",
            "CC_MODE 1\nPORT 3\n",
            "{\"1\": [0, 1], \"2\": [2, 3]}",
            "{\"a\": {\"traceEvents\": 1}, \"b\": \"schema\"}",
            "{\"a\\\": \"traceEvents\"",
            "{\"PORT\": {}, \"other\": {}}",
            "{\"a\\",
            "[",
            "<",
            "<!",
            ":\n",
            "\x07\x0a\x050.0.4",
        ] {
            assert_eq!(of(content.as_bytes()), None, "{content}");
        }
    }

    #[test]
    fn every_format_has_signs_and_a_way_out() {
        for format in FORMATS {
            assert!(!format.signs.is_empty() && !format.way_out.is_empty(), "{}", format.name);
            assert!(!format.way_out.ends_with('.') && !format.name.ends_with('.'), "{}", format.name);
        }
    }
}
