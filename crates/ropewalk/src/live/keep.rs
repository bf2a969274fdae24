//! The last frames, for a capture file that is written at the end.

use super::failed;
use lab::failure::Failure;
use ports::pcap::{Direction, Interface, Record, Writer};
use std::collections::VecDeque;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most frames. Our choice: ten seconds of a lab, 30 MB.
const MOST: usize = 20_000;

/// The last frames of all ports.
#[derive(Debug)]
pub struct Keep {
    path: PathBuf,
    frames: VecDeque<(u32, Duration, Direction, Vec<u8>)>,
}

impl Keep {
    /// Frames for this file.
    pub fn new(path: &Path) -> Self {
        Keep { path: path.to_owned(), frames: VecDeque::new() }
    }

    /// Adds a frame of a port, in the direction that the port sees.
    pub fn add(&mut self, port: usize, at: Duration, direction: Direction, frame: &[u8]) {
        if self.frames.len() == MOST {
            self.frames.pop_front();
        }
        self.frames.push_back((port as u32, at, direction, frame.to_vec()));
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
        let interfaces: Vec<_> = names.map(|name| Interface { name, comment: None, rate: None }).collect();
        let about = format!("the last frames of all ports, {MOST} at most; times count from the start");
        let program = concat!("ropewalk ", env!("CARGO_PKG_VERSION"));
        let write = || {
            let to = BufWriter::new(File::create(&self.path)?);
            let mut file = Writer::new(to, &about, program, &interfaces)?;
            for (interface, at, direction, bytes) in &self.frames {
                let (interface, at, direction) = (*interface, *at, *direction);
                file.write(&Record { interface, at, direction, bytes, fcs: 0, comment: None })?;
            }
            file.finish()
        };
        write().map_err(|e| failed(&format!("{} cannot be written", self.path.display()), &e))
    }
}
