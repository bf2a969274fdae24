//! A port of any kind.

use crate::signals::Signals;
use crate::{packet, tap, unix};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A port of any kind.
#[derive(Debug)]
pub enum Port {
    /// A unix datagram socket.
    Unix(unix::Unix),
    /// A network interface.
    Packet(packet::Packet),
    /// A tap device.
    Tap(tap::Tap),
}

impl Port {
    /// Hands up to `most` frames that have arrived to `take`. Returns their number.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn receive(&mut self, most: usize, take: impl FnMut(&[u8])) -> io::Result<usize> {
        match self {
            Port::Unix(port) => port.receive(most, take),
            Port::Packet(port) => port.receive(most, take),
            Port::Tap(port) => port.receive(most, take),
        }
    }

    /// Sends a frame, at the latest at the next [`Port::flush`]. Returns false if it was dropped, because its receiver is absent
    /// or has no room.
    ///
    /// # Errors
    /// If the system refuses for another reason.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        match self {
            Port::Unix(port) => port.send(frame),
            Port::Packet(port) => port.send(frame),
            Port::Tap(port) => port.send(frame),
        }
    }

    /// Sends all frames that still wait. Returns the number of frames that were dropped.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn flush(&mut self) -> io::Result<u64> {
        match self {
            Port::Packet(port) => port.flush(),
            Port::Unix(_) | Port::Tap(_) => Ok(0),
        }
    }

    /// Frames that the system has dropped since the last call, because this port was not read in time.
    pub fn missed(&mut self) -> u64 {
        match self {
            Port::Packet(port) => port.missed(),
            Port::Unix(_) | Port::Tap(_) => 0,
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Port::Unix(port) => port.as_fd(),
            Port::Packet(port) => port.as_fd(),
            Port::Tap(port) => port.as_fd(),
        }
    }
}

/// Waits until a port has a frame or a signal has come, or for so long; without a limit if there is none.
///
/// # Errors
/// If the system refuses.
pub fn wait<'a>(
    ports: impl Iterator<Item = &'a Port>,
    signals: &'a Signals,
    limit: Option<Duration>,
) -> io::Result<()> {
    let fds = ports.map(AsFd::as_fd).chain([signals.as_fd()]);
    let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    match ppoll(&mut fds, limit.map(TimeSpec::from_duration), None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
