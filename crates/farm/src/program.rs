//! Trials of the program as a whole: interrupted, short of memory, given results that were damaged.

use crate::damage;
use crate::draft::Drafter;
use crate::draws::Draws;
use crate::trial::{Fault, Verdict};
use lab::clock::Stopwatch;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Seconds within which an interrupted program, or one that reads small results, must end. It takes a fraction of a second; a
/// busy machine may be fifty times as slow.
pub(crate) const SOON_S: f64 = 60.0;
/// Seconds after which a program that may run for long is ended.
const ENOUGH_S: f64 = 5.0;

/// The program under trial, and a folder for its files.
pub(crate) struct Program<'a> {
    pub(crate) path: &'a Path,
    pub(crate) folder: PathBuf,
}

/// How a program ended.
pub(crate) struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// True if it ran too long and was killed.
    pub(crate) killed: bool,
    pub(crate) errors: String,
}

impl Program<'_> {
    /// One of the trials, and what it did in words.
    pub(crate) fn trial(&self, drafter: &Drafter, draws: &mut Draws) -> (String, Verdict) {
        let tried = match draws.below(16) {
            8.. => self.attacked(draws),
            0 => self.interrupted_at_a_pipe(draws),
            1..=3 => self.interrupted(draws),
            4..=5 => self.short_of_memory(draws),
            _ => self.damaged_results(drafter, draws),
        };
        match tried {
            Ok((what, None)) => (what, Verdict::Passed(Vec::new())),
            Ok((what, Some(fault))) => (what, Verdict::Failed(fault)),
            Err(e) => (
                "a folder for the trial".to_owned(),
                Verdict::Failed(Fault::new("files can be written", e.to_string())),
            ),
        }
    }

    /// The program with these arguments, separated by spaces.
    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(self.path);
        command.args(words.split(' ')).current_dir(&self.folder);
        command
    }

    /// Ctrl-C or SIGTERM at some time during a command: it ends soon, with 130 unless it was done, and leaves nothing behind.
    fn interrupted(&self, draws: &mut Draws) -> std::io::Result<(String, Option<Fault>)> {
        let words = *draws.pick(&[
            "run quickstart -o out",
            "run quickstart --record --report -o out",
            "check fat-tree-8192",
            "compare quickstart --schemes ecmp,themis --seeds 1..9",
            "explain slowest quickstart",
        ]);
        let signal = *draws.pick(&[Signal::SIGINT, Signal::SIGTERM]);
        let wait = Duration::from_micros(draws.magnitude(1000.0, 1_000_000.0) as u64);
        let what = format!("ropewalk {} and {signal} after {} us", words, wait.as_micros());
        let mut child = start(&mut self.command(words))?;
        sleep(wait);
        // Before it handles the signal, the signal itself ends the program, without a code.
        let handled = handles(&child, signal);
        send(&child, signal);
        let ended = finish(&mut child, SOON_S)?;
        let left: Vec<String> = fs::read_dir(&self.folder)?
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .filter(|name| !["out", "results"].contains(&name.as_str()))
            .collect();
        let fault = if ended.killed {
            Some(Fault::new("an interrupted command ends", format!("it went on for {SOON_S} s")))
        } else if !ended.code.map_or(!handled, |code| [0, 130].contains(&code)) {
            Some(Fault::new(
                "an interrupted command ends with 130",
                format!("{:?}: {}", ended.code, ended.errors),
            ))
        } else if !left.is_empty() {
            Some(Fault::new("an interrupted command leaves nothing behind", left.join(" ")))
        } else {
            None
        };
        Ok((what, fault))
    }

    /// Ctrl-C or SIGTERM while a command waits for a file.
    fn interrupted_at_a_pipe(&self, draws: &mut Draws) -> std::io::Result<(String, Option<Fault>)> {
        mkfifo(&self.folder.join("pipe.toml"), Mode::S_IRWXU)?;
        let words = *draws.pick(&[
            "check pipe.toml",
            "run pipe.toml",
            "sweep pipe.toml",
            "import hpcc --topology pipe.toml --flows pipe.toml -o x.toml",
        ]);
        let signal = *draws.pick(&[Signal::SIGINT, Signal::SIGTERM]);
        let mut child = start(&mut self.command(words))?;
        let watch = Stopwatch::start();
        while !handles(&child, signal) && watch.wall_s() < SOON_S {
            sleep(Duration::from_millis(5));
        }
        send(&child, signal);
        let ended = finish(&mut child, SOON_S)?;
        let fault = (ended.killed || ended.code != Some(130)).then(|| {
            Fault::new("a command that waits for a file hears signals", format!("{:?}", ended.code))
        });
        Ok((format!("ropewalk {} and {signal}", words), fault))
    }

    /// A large scenario in a process that may have little memory: refused, stopped or finished, and never aborted.
    fn short_of_memory(&self, draws: &mut Draws) -> std::io::Result<(String, Option<Fault>)> {
        let hosts = draws.magnitude(1.0, 16.0) as u64;
        let bytes = draws.magnitude(1e4, 3e10) as u64;
        let workload = match draws.below(3) {
            0 => format!("incast = {{ senders = {}, bytes = \"{bytes}B\" }}", 4 * hosts - 1),
            1 => format!("all-to-all = {{ groups = \"all\", per-pair = \"{}B\" }}", bytes / 1000 + 1),
            _ => format!("poisson = {{ count = {}, load = 0.9 }}", bytes / 10_000 + 1),
        };
        let text = format!(
            "topology = {{ leaf-spine = {{ leaves = 4, spines = 2, hosts-per-leaf = {hosts} }} }}\n\
             switch = {{ buffer = \"{}B\", pfc = \"off\" }}\nnic = {{ congestion = {{ none = {{}} }} }}\n\
             workload = [{{ {workload} }}]\n",
            draws.magnitude(1e6, 1e12) as u64
        );
        fs::write(self.folder.join("large.toml"), &text)?;
        // The program itself takes up to 80 MB of address space.
        let kilobytes = draws.magnitude(1e5, 2e6) as u64;
        let line = format!("ulimit -v {kilobytes}; exec \"$0\" run large.toml -q -o out");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).arg(self.path).current_dir(&self.folder);
        let mut child = start(&mut shell)?;
        let ended = finish(&mut child, ENOUGH_S)?;
        let what = format!("ulimit -v {kilobytes}; ropewalk run large.toml\n{text}");
        let good = ended.killed || ended.code.is_some_and(|code| [0, 2, 3].contains(&code));
        let fault = (!good).then(|| {
            Fault::new("no lack of memory aborts a command", format!("{:?}: {}", ended.code, ended.errors))
        });
        Ok((what, fault))
    }

    /// Results of which one file was damaged, or swapped with another run's: every reader refuses them and names the file.
    fn damaged_results(
        &self,
        drafter: &Drafter,
        draws: &mut Draws,
    ) -> std::io::Result<(String, Option<Fault>)> {
        let mut drafts = std::iter::from_fn(|| Some(drafter.draw(draws).accepted?.0)).take(2);
        let (Some(one), Some(other)) = (drafts.next(), drafts.next()) else {
            return Ok(("no scenarios".to_owned(), None));
        };
        drop(drafts);
        for (name, draft) in [("one", &one), ("other", &other)] {
            let file = format!("{name}.toml");
            fs::write(self.folder.join(&file), draft.text())?;
            let ended = finish(
                &mut start(&mut self.command(&format!("run {file} --record -q -o {name}")))?,
                ENOUGH_S,
            )?;
            if ended.killed || ![Some(0), Some(3)].contains(&ended.code) {
                return Ok((format!("ropewalk run {file}: {:?}", ended.code), None));
            }
        }
        let mut files: Vec<PathBuf> =
            fs::read_dir(self.folder.join("one"))?.filter_map(|e| Some(e.ok()?.path())).collect();
        files.sort_unstable();
        let file = draws.pick(&files).clone();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let old = fs::read(&file)?;
        let new = damaged(draws, &old, fs::read(self.folder.join("other").join(&name)).ok());
        if new == old || same_summary(&name, &old, &new) {
            return Ok((format!("{name} stays as it was"), None));
        }
        fs::write(&file, &new)?;
        let reader = *draws.pick(&["report one -o page.html", "explain slowest one -q"]);
        let ended = finish(&mut start(&mut self.command(reader))?, SOON_S)?;
        let what = format!("{name} damaged, ropewalk {}\n{}", reader, one.text());
        let fault = if ended.code != Some(2) {
            Some(Fault::new(
                "damaged results are refused",
                format!("{name}: {:?} {}", ended.code, ended.errors),
            ))
        } else if !ended.errors.contains(&name) {
            Some(Fault::new("damaged results are named", format!("{name}: {}", ended.errors)))
        } else {
            None
        };
        Ok((what, fault))
    }
}

/// True if both are `summary.json` of one run. Its digest covers the values but for `timing`, as that differs from run to run.
fn same_summary(name: &str, old: &[u8], new: &[u8]) -> bool {
    let values = |text: &[u8]| {
        let mut summary: serde_json::Value = serde_json::from_slice(text).ok()?;
        summary.as_object_mut()?.remove("timing")?;
        Some(summary.to_string())
    };
    name == "summary.json" && values(old).is_some_and(|old| values(new) == Some(old))
}

/// The bytes of a file with a mistake, or those of another run's file.
fn damaged(draws: &mut Draws, old: &[u8], other: Option<Vec<u8>>) -> Vec<u8> {
    let mut new = old.to_vec();
    match (draws.below(4), other) {
        (0, Some(other)) => return other,
        (1, _) => new.truncate(draws.below(old.len())),
        (2, _) => {
            if let Ok(text) = std::str::from_utf8(old) {
                return damage::spoilt(draws, text).into_bytes();
            }
        }
        _ => {}
    }
    if new.len() == old.len() && !new.is_empty() {
        let at = draws.below(new.len());
        new[at] ^= 1 << draws.below(8);
    }
    new
}

pub(crate) fn start(command: &mut Command) -> std::io::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
}

/// True once the program has a handler for this signal, as Linux tells; elsewhere false.
fn handles(child: &Child, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    caught >> (signal as i32 - 1) & 1 == 1
}

fn send(child: &Child, signal: Signal) {
    if let Ok(id) = i32::try_from(child.id()) {
        // A program that has ended hears nothing.
        let _ = kill(Pid::from_raw(id), signal);
    }
}

/// Waits for the end of a program; kills it after some seconds.
pub(crate) fn finish(child: &mut Child, seconds: f64) -> std::io::Result<Ended> {
    let pipe = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut errors = String::new();
        let read = pipe.map(|mut pipe| pipe.read_to_string(&mut errors));
        drop(read);
        errors
    });
    let watch = Stopwatch::start();
    let (status, killed) = loop {
        match child.try_wait()? {
            Some(status) => break (status, false),
            None if watch.wall_s() > seconds => {
                child.kill()?;
                break (child.wait()?, true);
            }
            None => sleep(Duration::from_millis(5)),
        }
    };
    Ok(Ended { code: status.code(), killed, errors: reader.join().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::same_summary;

    #[test]
    fn a_summary_is_another_once_a_value_differs_and_not_for_its_timing_or_spaces() {
        let old = br#"{"digest": "1", "flows": 2, "timing": {"wall_s": 0.1}}"#;
        let same = |new: &str| same_summary("summary.json", old, new.as_bytes());
        assert!(same(r#"{"digest": "1",  "flows": 2, "timing": {"wall_s": 7}}"#));
        assert!(!same(r#"{"digest": "1", "flows": 3, "timing": {"wall_s": 0.1}}"#));
        assert!(!same(r#"{"flows": 2, "digest": "1", "timing": {"wall_s": 0.1}}"#));
        assert!(!same(r#"{"digest": "1", "flows": 2"#));
        assert!(!same_summary("flows.csv", b"a", b"a "));
    }
}
