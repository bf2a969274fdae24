//! The keys of a port, and ports that are open.

use super::failed;
use crate::failure::Failure;
use ports::Port;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// Where a port's frames come from and go to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Io {
    /// A unix datagram socket, one frame per datagram, as QEMU's `-netdev dgram` has it.
    Unix(Sockets),
    /// A network interface of Linux, by a packet socket.
    Packet(String),
    /// A tap device, which is created if there is none of this name.
    Tap(String),
}

/// The paths of a pair of unix sockets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Sockets {
    /// Path of the socket that is opened.
    pub bind: PathBuf,
    /// Path of the socket to which frames go.
    pub peer: PathBuf,
}

impl Io {
    fn open(&self) -> std::io::Result<Port> {
        Ok(match self {
            Io::Unix(Sockets { bind, peer }) => Port::Unix(ports::unix::Unix::open(bind, peer)?),
            Io::Packet(name) => Port::Packet(ports::packet::Packet::open(name)?),
            Io::Tap(name) => Port::Tap(ports::tap::Tap::open(name)?),
        })
    }

    fn describe(&self) -> String {
        match self {
            Io::Unix(Sockets { bind, .. }) => format!("the socket {}", bind.display()),
            Io::Packet(name) => format!("the interface {name}"),
            Io::Tap(name) => format!("the tap device {name}"),
        }
    }
}

/// A port with its counters.
#[derive(Debug)]
pub struct Open {
    /// Its name.
    pub name: String,
    /// The port.
    pub port: Port,
    /// Frames and bytes read.
    pub read: (u64, u64),
    /// Frames and bytes sent.
    pub sent: (u64, u64),
    /// Frames that could not be sent, because the receiver is absent or has no room.
    pub dropped: u64,
    /// Frames that the system has dropped, because the port was not read in time.
    pub missed: u64,
}

impl Open {
    /// Opens a port.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new(name: String, io: &Io) -> Result<Self, Failure> {
        let port = io
            .open()
            .map_err(|e| failed(&format!("{} of port {name} cannot be opened", io.describe()), &e))?;
        Ok(Open { name, port, read: (0, 0), sent: (0, 0), dropped: 0, missed: 0 })
    }

    /// Hands up to `most` frames to `take`; returns their number.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(&[u8])) -> Result<usize, Failure> {
        let read = &mut self.read;
        let done = self.port.receive(most, |frame| {
            *read = (read.0 + 1, read.1 + frame.len() as u64);
            take(frame);
        });
        done.map_err(|e| failed(&format!("port {} cannot be read", self.name), &e))
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn send(&mut self, frame: &[u8]) -> Result<(), Failure> {
        let sent = self.port.send(frame);
        match sent.map_err(|e| failed(&format!("port {} cannot send", self.name), &e))? {
            true => self.sent = (self.sent.0 + 1, self.sent.1 + frame.len() as u64),
            false => self.dropped += 1,
        }
        Ok(())
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let dropped = self.port.flush();
        self.dropped += dropped.map_err(|e| failed(&format!("port {} cannot send", self.name), &e))?;
        Ok(())
    }

    /// Calls `row` with name, meaning, labels and value of every counter. Labels are in the text format of Prometheus.
    pub fn each(&mut self, mut row: impl FnMut(&str, &str, &str, u64)) {
        self.missed += self.port.missed();
        let at = format!("port=\"{}\"", self.name);
        row("read_frames", "Frames read from the port.", &at, self.read.0);
        row("read_bytes", "Bytes read from the port.", &at, self.read.1);
        row("sent_frames", "Frames sent to the port.", &at, self.sent.0);
        row("sent_bytes", "Bytes sent to the port.", &at, self.sent.1);
        row("unsent_frames", "Frames whose receiver is absent or has no room.", &at, self.dropped);
        row("missed_frames", "Frames that the system dropped before they were read.", &at, self.missed);
    }
}
