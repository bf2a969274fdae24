//! The last frames, for a capture file that is written at the end.

use super::failed;
use crate::failure::Failure;
use ports::pcap::{Direction, Interface, Record, Writer};
use results::whole;
use std::collections::VecDeque;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The last frames of all ports.
#[derive(Debug)]
pub struct Keep {
    path: PathBuf,
    /// Most frames.
    most: usize,
    /// Frames that had to go.
    gone: u64,
    frames: VecDeque<(u32, Duration, Direction, Vec<u8>)>,
}

impl Keep {
    /// Frames for this file, `most` of them.
    pub fn new(path: &Path, most: usize) -> Self {
        Keep { path: path.to_owned(), most, gone: 0, frames: VecDeque::new() }
    }

    /// Adds a frame of a port, in the direction that the port sees.
    pub fn add(&mut self, port: usize, at: Duration, direction: Direction, frame: &[u8]) {
        if self.frames.len() >= self.most && self.frames.pop_front().is_some() {
            self.gone += 1;
        }
        self.frames.push_back((port as u32, at, direction, frame.to_vec()));
    }

    /// Writes the file, in the order of times: a frame that leaves is added after its time on the wire.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
        let interface = |name| Interface { name, comment: None, rate: None, snap_length: 0 };
        let interfaces: Vec<_> = names.map(interface).collect();
        let about =
            format!("the last frames of all ports, {} at most; times count from the start", self.most);
        self.frames.make_contiguous().sort_by_key(|(_, at, ..)| *at);
        let program = concat!("ropewalk ", env!("CARGO_PKG_VERSION"));
        let written = whole::write_with(&self.path, |file| {
            let mut file = Writer::new(BufWriter::new(file), &about, program, &interfaces)?;
            for ((interface, at, direction, bytes), number) in self.frames.iter().zip(self.gone..) {
                let (interface, at, direction, number) = (*interface, *at, *direction, Some(number));
                file.write(&Record { interface, at, direction, bytes, fcs: 0, comment: None, number })?;
            }
            file.finish().map(drop)
        });
        written.map_err(|e| failed(&format!("{} cannot be written", self.path.display()), &e))
    }
}
