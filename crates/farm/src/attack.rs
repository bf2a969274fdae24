//! Attacks on the program: outputs that are no plain files, times near the limits of integers, names that a terminal would obey,
//! captures with gaps, files in the wrong wrapping, and sizes beyond memory. Whatever comes, the program ends soon with 0, 2 or 3,
//! and prints no control characters.

use crate::draws::Draws;
use crate::program::{Program, SOON_S, finish, start};
use crate::trial::Fault;
use flate2::{Compression, write::GzEncoder};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Command;

/// Times near the limits of 64 bits and of the end of time, as texts of TOML.
const TIMES: &[&str] = &[
    "18446744073709551615ps",
    "18446744073709551616ps",
    "9223372036854775807ps",
    "18446744073709551ns",
    "18446744073709.5us",
    "1000000s",
    "1000001s",
    "999999.999999999999s",
    "1e300s",
    "1ps",
    "0s",
];

/// Keys that take a time.
const TIMED: &[&str] = &[
    "stop.after=T",
    "workload.0.start=T",
    "topology.leaf-spine.delay=T",
    "nic.timeout={fixed=T}",
    "nic.cnp-interval=T",
    "failure=[{random=1,at=T}]",
    "failure=[{random=1,until=T}]",
    "routing.detection=T",
    "record.width=T",
];

/// Names, as texts of TOML, that a terminal, a spreadsheet or a file system would obey.
const NAMES: &[&str] = &[
    "\\u001b[31mred",
    "a\\u0007b",
    "\\u009b31m",
    "a\\nb",
    "=1+1",
    "@SUM(1)",
    "-1",
    "../x",
    "a\\u202eb",
    "\\u0000",
    "",
];

/// Small workloads in the formats of other tools, and a scenario.
const TEXTS: &[(&str, &str)] = &[
    ("w.goal", "num_ranks 2\nrank 0 {\nsend 8192b to 1 tag 0\n}\nrank 1 {\nrecv 8192b from 0 tag 0\n}\n"),
    (
        "w.txt",
        "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4\n1\nattn -1 10 ALLREDUCE 4096 9 NONE 0 8 NONE 0 1\n",
    ),
    ("w.cm", "Nodes 4\nConnections 1\n0->1 id 1 start 0 size 100000\n"),
    ("w.et", "\u{7}\n\u{5}0.0.4"),
    (
        "w.toml",
        "[topology.leaf-spine]\nleaves = 2\nspines = 1\nhosts-per-leaf = 2\n[[workload]]\npermutation = {}\n",
    ),
];

const FABRIC: &str = "[topology.leaf-spine]\nleaves = 2\nspines = 1\nhosts-per-leaf = 2\n";

impl Program<'_> {
    /// One of the attacks, and what it did in words.
    pub(crate) fn attacked(&self, draws: &mut Draws) -> io::Result<(String, Option<Fault>)> {
        let mut kilobytes = 4_000_000;
        let words = match draws.below(6) {
            0 => self.strange_output(draws)?,
            1 => format!(
                "run quickstart -q --set {}",
                draws.pick(TIMED).replace('T', draws.pick::<&str>(TIMES))
            ),
            2 => self.strange_name(draws)?,
            3 => self.gap_in_a_capture(draws)?,
            4 => self.wrong_wrapping(draws)?,
            _ => {
                kilobytes = draws.magnitude(1e5, 4e6) as u64;
                self.absurd_size(draws)?
            }
        };
        // A reader lets a FIFO be opened for writing, and holds none of the program's pipes.
        let reader = if self.kind_of_output() == Some("FIFO") {
            "timeout 60 cat strange >/dev/null 2>&1 & "
        } else {
            ""
        };
        let line = format!("{reader}ulimit -v {kilobytes}; exec \"$0\" \"$@\" >stdout");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).arg(self.path).args(words.split(' ')).current_dir(&self.folder);
        let before = self.kind_of_output();
        let ended = finish(&mut start(&mut shell)?, SOON_S)?;
        let printed = fs::read_to_string(self.folder.join("stdout"))? + &ended.errors;
        let scenario = fs::read_to_string(self.folder.join("s.toml")).unwrap_or_default();
        let what = format!("ulimit -v {kilobytes}; ropewalk {words}\n{scenario}");
        let fault = if ended.killed {
            Some(Fault::new("an attacked command ends", format!("it went on for {SOON_S} s")))
        } else if !ended.code.is_some_and(|code| [0, 2, 3].contains(&code)) {
            Some(Fault::new(
                "an attacked command is not aborted",
                format!("{:?}: {}", ended.code, ended.errors),
            ))
        } else if let Some(wrong) = printed.chars().find(|c| c.is_control() && !"\n\t".contains(*c)) {
            Some(Fault::new("control characters are escaped", format!("{wrong:?} in {printed}")))
        } else if before != self.kind_of_output() {
            Some(Fault::new(
                "an output stays what it is",
                format!("{before:?} became {:?}", self.kind_of_output()),
            ))
        } else {
            None
        };
        Ok((what, fault))
    }

    /// What the output of an attack is, if it is there.
    fn kind_of_output(&self) -> Option<&'static str> {
        let kind = fs::symlink_metadata(self.folder.join("strange")).ok()?.file_type();
        Some(if kind.is_symlink() {
            "link"
        } else if kind.is_fifo() {
            "FIFO"
        } else {
            "file"
        })
    }

    fn strange_output(&self, draws: &mut Draws) -> io::Result<String> {
        let strange = self.folder.join("strange");
        match draws.below(4) {
            0 => mkfifo(&strange, Mode::S_IRWXU)?,
            1 => symlink("/dev/null", &strange)?,
            2 => symlink("nowhere", &strange)?,
            _ => {
                fs::write(self.folder.join("plain"), "old")?;
                symlink("plain", &strange)?;
            }
        }
        let words =
            ["run quickstart -q -o out --report strange", "run quickstart -q -o strange", "new strange"];
        Ok((*draws.pick(&words)).to_owned())
    }

    fn strange_name(&self, draws: &mut Draws) -> io::Result<String> {
        let name = draws.pick(NAMES);
        let text = match draws.below(3) {
            0 => format!("{FABRIC}[[workload]]\nname = \"{name}\"\npermutation = {{}}\n"),
            1 => format!(
                "[topology.links]\nlinks = [[\"{name}\", \"s\", \"1Gbps\", \"1us\"], [\"b\", \"s\", \"1Gbps\", \"1us\"]]\n[[workload]]\npermutation = {{}}\n"
            ),
            _ => format!("{FABRIC}\"{name}\" = 1\n"),
        };
        fs::write(self.folder.join("s.toml"), text)?;
        let words = [
            "run s.toml -q",
            "check s.toml",
            "run s.toml -q --csv",
            "explain slowest s.toml -q",
            "run s.toml -q --json",
        ];
        Ok((*draws.pick(&words)).to_owned())
    }

    /// Frames whose times are up to 136 years apart.
    fn gap_in_a_capture(&self, draws: &mut Draws) -> io::Result<String> {
        let mut capture = Vec::new();
        for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1_u32] {
            capture.extend(word.to_le_bytes());
        }
        for sender in 0..draws.below(9) as u8 {
            let time = draws.magnitude(1.0, 4e9) as u32;
            for word in [time, 0, 60, 60] {
                capture.extend(word.to_le_bytes());
            }
            capture.extend([255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, sender, 8, 6]);
            capture.extend([0; 46]);
        }
        fs::write(self.folder.join("a.pcap"), capture)?;
        let port = |name| format!("[[port]]\nname = \"{name}\"\npcap = \"a.pcap\"\n");
        let text = format!("[fabric]\nspines = 4\ndelay = \"1us\"\n{}{}", port("a"), port("b"));
        fs::write(self.folder.join("lab.toml"), text)?;
        Ok("tor replay lab.toml".to_owned())
    }

    fn wrong_wrapping(&self, draws: &mut Draws) -> io::Result<String> {
        let &(name, text) = draws.pick(TEXTS);
        let utf16 = |swap: bool| {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units
                .flat_map(|unit| if swap { unit.to_be_bytes() } else { unit.to_le_bytes() })
                .collect::<Vec<u8>>()
        };
        let bytes = match draws.below(8) {
            0 => packed(text.as_bytes())?,
            1 => packed(&packed(text.as_bytes())?)?,
            2 => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            3 => utf16(false),
            4 => utf16(true),
            5 => [b"PK\x03\x04", text.as_bytes()].concat(),
            6 => text.replace('\n', "\r\n").into_bytes(),
            _ => {
                let whole = packed(text.as_bytes())?;
                whole[..draws.below(whole.len())].to_vec()
            }
        };
        // The name may be that of another format.
        let shown = if draws.chance(0.5) { name } else { draws.pick(TEXTS).0 };
        fs::write(self.folder.join(shown), bytes)?;
        fs::write(self.folder.join("fabric.toml"), FABRIC)?;
        let topology = if draws.chance(0.8) { " --topology fabric.toml" } else { "" };
        Ok(format!("{} {shown}{topology}", draws.pick(&["run -q", "check"])))
    }

    fn absurd_size(&self, draws: &mut Draws) -> io::Result<String> {
        let mut size = |most: f64| draws.magnitude(1.0, most) as u64;
        let (servers, bytes, message, channels, repeat) =
            (size(2000.0), size(1e12), size(1e9), size(64.0), size(1e5));
        let kind =
            *draws.pick(&["all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all"]);
        let algorithm =
            *draws.pick(&["ring", "tree", "nvls", "direct", "chain", "hierarchical", "pat", "nccl"]);
        let tuning = format!("{{ message = \"{message}B\", channels = {channels} }}");
        let job = match draws.chance(0.7) {
            true => format!(
                "collective = {{ kind = \"{kind}\", bytes = \"{bytes}B\", algorithm = \"{algorithm}\", repeat = {repeat}, tuning = {tuning} }}"
            ),
            false => format!(
                "training = {{ model = \"gpt-13b\", parallel = {{ tp = 8 }}, batch = {{ global = {}, sequence = 2048 }}, \
                 compute = {{ flops = \"400TFLOPS\" }}, collectives = {{ dp = {{ tuning = {tuning} }} }} }}",
                8 * servers
            ),
        };
        let text = format!(
            "[server]\ngpus = 8\n[topology.rails]\nservers = {servers}\nspines = 2\n[[workload]]\n{job}\n"
        );
        fs::write(self.folder.join("s.toml"), text)?;
        Ok("check s.toml".to_owned())
    }
}

fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes)?;
    packed.finish()
}
