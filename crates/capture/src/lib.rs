//! Captures of simulated links for Wireshark: complete RoCEv2 frames in a pcapng file.
//!
//! | file | what it holds |
//! |---|---|
//! | [`mod@encode`] | simulated packets as the bytes of real frames |
//! | [`addresses`] | MAC and IP addresses, queue pair numbers, UDP ports |
//! | [`pcapng`] | the file format |
//!
//! The key `taps` of a scenario's table `[record]` names the ports to capture.

pub mod addresses;
pub mod encode;
pub mod pcapng;

use lab::Run;
use results::ResultsError;
use results::directory::{Staging, capture_name};

/// Writes one file for every tapped port.
///
/// # Errors
/// If the system refuses.
pub fn write(run: &Run, to: &Staging) -> Result<(), ResultsError> {
    let (checked, notes) = (&run.checked, &run.outcome.notes);
    let (name, seed) = (&checked.name, checked.scenario.seed);
    let left = match notes.more_frames {
        0 => String::new(),
        n => format!("; {n} later frames were left out ([record] most-frames)"),
    };
    let about = format!("scenario {name}, seed {seed}, digest {}{left}", run.summary.digest);
    for tap in checked.taps() {
        to.create(&capture_name(&tap.stem()), |file| {
            Ok(pcapng::write(file, &about, &checked.plan, tap.link, &notes.frames)?)
        })?;
    }
    Ok(())
}
