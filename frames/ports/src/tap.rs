//! Tap devices: Ethernet frames between Linux's network stack and a program.
#![expect(unsafe_code, reason = "no library has a safe face for the ioctl that names a tap device")]

use crate::frame::{LONGEST, is_drop};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// A tap device.
#[derive(Debug)]
pub struct Tap {
    file: File,
    buffer: Box<[u8]>,
}

impl Tap {
    /// Opens the tap device with this name, and creates it if there is none. It exists as long as this value does, and somebody
    /// must bring it up.
    ///
    /// # Errors
    /// If the system refuses, or the name is longer than 15 bytes.
    pub fn open(name: &str) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        if name.len() >= libc::IFNAMSIZ || name.is_empty() {
            return Err(io::Error::other("the name of an interface has 1 to 15 bytes"));
        }
        // SAFETY: all fields are integers or arrays of them, for which zero is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the descriptor is open, and the call reads and writes one `ifreq`, which lives until it returns.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Tap { file, buffer: vec![0; LONGEST].into() })
    }

    /// [`crate::Port::receive`].
    ///
    /// # Errors
    /// If the system refuses.
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        for n in 0..most {
            match self.file.read(&mut self.buffer) {
                Ok(len) => take(&self.buffer[..len]),
                Err(error) if is_drop(&error) => return Ok(n),
                Err(error) => return Err(error),
            }
        }
        Ok(most)
    }

    /// [`crate::Port::send`].
    ///
    /// # Errors
    /// If the system refuses, for example while the device is down.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        match self.file.write(frame) {
            Ok(_) => Ok(true),
            Err(error) if is_drop(&error) || error.raw_os_error() == Some(libc::EIO) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
