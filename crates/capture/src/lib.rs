//! Captures of simulated links for Wireshark: complete RoCEv2 frames in a pcapng file.
//!
//! | file | what it holds |
//! |---|---|
//! | [`mod@encode`] | simulated packets as the bytes of real frames |
//! | [`addresses`] | MAC and IP addresses, queue pair numbers, UDP ports |
//! | [`pcapng`] | the file format |
//! | `disk` | the space that is left on the disk |
//!
//! The key `taps` of a scenario's table `[record]` names the ports to capture. Frames go to their
//! files while the run goes on, so a capture needs no memory; the disk alone limits it.

pub mod addresses;
mod disk;
pub mod encode;
pub mod pcapng;

use engine::outcome::{Frame, Passed};
use lab::Run;
use model::{Plan, Time};
use results::ResultsError;
use results::directory::{NewFile, Staging, capture_name};
use scenario::Checked;
use std::io;
use std::path::{Path, PathBuf};

/// The captures of a run in the making: a file for every tapped port.
pub struct Capture {
    files: Vec<File>,
    /// Directory of the files.
    dir: PathBuf,
    /// Bytes of a frame in a file, at most.
    most: u32,
    failed: Option<ResultsError>,
}

struct File {
    name: String,
    tape: pcapng::Tape<NewFile>,
}

impl Capture {
    /// Begins the files of all tapped ports.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn begin(checked: &Checked, to: &Staging) -> Result<Self, ResultsError> {
        let (plan, record) = (&checked.plan, &checked.scenario.record);
        let about = format!("scenario {}, seed {}", checked.name, checked.scenario.seed);
        let snap_length = record.snap_length.0.try_into().unwrap_or(u32::MAX);
        let most = if snap_length == 0 { u32::MAX } else { snap_length };
        let begin = |tap: &scenario::tap::Tap| {
            let name = capture_name(&tap.stem());
            let file = to.open(&name)?;
            let tape = pcapng::Tape::begin(file, &about, plan, tap.link, snap_length)
                .map_err(|e| ResultsError::Io(to.path(&name), e))?;
            Ok(File { name, tape })
        };
        let files = checked.taps().iter().map(begin).collect::<Result<_, ResultsError>>()?;
        Ok(Capture { files, dir: to.path(""), most, failed: None })
    }

    /// Ends the files.
    ///
    /// # Errors
    /// If a file could not be written, now or while the run went on.
    pub fn finish(self, run: &Run, to: &Staging) -> Result<(), ResultsError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let remark = format!("digest {}", run.summary.digest);
        for File { name, tape } in self.files {
            let file = tape.finish(&remark).map_err(|e| ResultsError::Io(to.path(&name), e))?;
            to.close(&name, file)?;
        }
        Ok(())
    }

    /// True if a file could not be written while the run went on.
    pub fn failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Bytes that these frames add to the files, at most. A frame is in two files if both ends of its link are tapped.
    fn at_most(&self, frames: &[Frame]) -> u64 {
        let kept = |frame: &Frame| match frame.what {
            Passed::Packet(packet, _) => packet.frame().min(self.most),
            Passed::Pause { .. } => wire::ethernet::MIN_FRAME as u32,
        };
        2 * frames.iter().map(|frame| u64::from(kept(frame)) + pcapng::AROUND).sum::<u64>()
    }

    fn write(&mut self, plan: &Plan, frames: &[Frame], until: Time) -> Result<(), ResultsError> {
        if let (Err(error), Some(file)) =
            (disk::has_room(&self.dir, self.at_most(frames)), self.files.first())
        {
            return Err(refused(file, error, &self.dir));
        }
        for file in &mut self.files {
            if let Err(error) = file.tape.add(plan, frames, until) {
                return Err(refused(file, error, &self.dir));
            }
        }
        Ok(())
    }
}

/// The error of a file, with what stands in it and with advice.
fn refused(file: &File, error: io::Error, dir: &Path) -> ResultsError {
    let (frames, reached) = file.tape.so_far();
    let text = format!(
        "{error}; the capture had {frames} frames, up to {:.3} us of the run. A shorter --snap-length, fewer --pcap or an \
         earlier `[stop] after` needs less space",
        reached.as_us()
    );
    ResultsError::Io(dir.join(&file.name), io::Error::new(error.kind(), text))
}

impl lab::Tape for Capture {
    fn add(&mut self, plan: &Plan, frames: &[Frame], until: Time) -> bool {
        if self.failed.is_none() {
            self.failed = self.write(plan, frames, until).err();
        }
        self.failed.is_none()
    }
}

/// Writes one file for every tapped port of a run whose frames are in memory.
///
/// # Errors
/// If the system refuses.
pub fn write(run: &Run, to: &Staging) -> Result<(), ResultsError> {
    let mut capture = Capture::begin(&run.checked, to)?;
    lab::Tape::add(&mut capture, &run.checked.plan, &run.outcome.notes.frames, Time::NEVER);
    capture.finish(run, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Kind;
    use engine::outcome::Ending;
    use lab::{Progress, Tape};
    use results::directory::Target;
    use std::fs;
    use std::sync::atomic::AtomicBool;

    const TAPS: [&str; 3] =
        ["record.taps=['host0','leaf0:spine1']", "nic.transport.nic-sr={}", "scheme.rps={}"];

    fn prepared(more: &[&str]) -> lab::Prepared {
        let sets: Vec<String> = TAPS.iter().chain(more).map(|s| (*s).to_owned()).collect();
        lab::load("quickstart", &sets).unwrap()
    }

    fn files(dir: &Path) -> Vec<Vec<u8>> {
        ["capture-host0.pcapng", "capture-leaf0-spine1.pcapng"]
            .map(|name| fs::read(dir.join(name)).unwrap())
            .into()
    }

    /// Counts the calls of another tape, and refuses the frames after the first ones.
    struct Counting<'c> {
        tape: &'c mut Capture,
        calls: usize,
        most: usize,
    }

    impl Tape for Counting<'_> {
        fn add(&mut self, plan: &Plan, frames: &[Frame], until: Time) -> bool {
            self.calls += 1;
            assert!(frames.is_sorted_by_key(|frame| (frame.at, frame.link)));
            self.tape.add(plan, frames, until) && self.calls <= self.most
        }
    }

    #[test]
    fn a_file_is_the_same_whether_its_frames_come_during_the_run_or_from_memory() {
        let (stop, folder) = (AtomicBool::new(false), tempfile::tempdir().unwrap());
        let target = Target::at(folder.path().join("out")).unwrap();
        let run = lab::run(prepared(&[]));
        assert!(run.outcome.notes.frames.len() > 10_000, "{}", run.outcome.notes.frames.len());
        let staging = Staging::beside(&target).unwrap();
        write(&run, &staging).unwrap();
        let from_memory = files(&staging.path(""));
        for kind in [Kind::Window, Kind::Reference] {
            let (prepared, staging) = (prepared(&[]), Staging::beside(&target).unwrap());
            let mut capture = Capture::begin(&prepared.checked, &staging).unwrap();
            let mut tape = Counting { tape: &mut capture, calls: 0, most: usize::MAX };
            let run = lab::execute_on(prepared, kind, &Progress::silent(&stop), Some(&mut tape));
            assert!(tape.calls > 10, "{kind:?}: {} calls", tape.calls);
            assert!(run.outcome.notes.frames.is_empty());
            capture.finish(&run, &staging).unwrap();
            assert!(files(&staging.path("")) == from_memory, "{kind:?}");
        }
    }

    #[test]
    fn a_run_ends_when_its_tape_takes_no_more() {
        let (stop, folder) = (AtomicBool::new(false), tempfile::tempdir().unwrap());
        let staging = Staging::beside(&Target::at(folder.path().join("out")).unwrap()).unwrap();
        let prepared = prepared(&[]);
        let mut capture = Capture::begin(&prepared.checked, &staging).unwrap();
        let mut tape = Counting { tape: &mut capture, calls: 0, most: 3 };
        let run = lab::execute_on(prepared, Kind::Window, &Progress::silent(&stop), Some(&mut tape));
        // The fourth call is refused, and the fifth has the rest.
        assert_eq!((&run.outcome.ending, tape.calls), (&Ending::Interrupted, 5));
    }

    #[test]
    fn an_error_says_how_far_the_capture_came_and_what_needs_less_space() {
        let folder = tempfile::tempdir().unwrap();
        let staging = Staging::beside(&Target::at(folder.path().join("out")).unwrap()).unwrap();
        let run = lab::run(prepared(&["workload.0.all-reduce.bytes=64kB"]));
        let mut capture = Capture::begin(&run.checked, &staging).unwrap();
        let (plan, frames) = (&run.checked.plan, &run.outcome.notes.frames);
        assert!(
            capture.add(plan, &frames[..frames.len() / 2], frames[frames.len() / 2].at) && !capture.failed()
        );
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = refused(&capture.files[0], full, Path::new("out")).to_string();
        let (count, reached) = capture.files[0].tape.so_far();
        let far = format!("the capture had {count} frames, up to {:.3} us", reached.as_us());
        assert!(count > 20 && error.starts_with("cannot write out/capture-host0.pcapng: "), "{error}");
        assert!(error.contains(&far) && error.contains("--snap-length"), "{error}");
    }
}
