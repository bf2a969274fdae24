//! Unix datagram sockets, one frame per datagram, as QEMU's network backend `dgram` has them.
//!
//! Linux lets a socket's queue hold `net.unix.max_dgram_qlen` datagrams, 10 by default. A guest then loses frames in bursts;
//! 4096 is enough.

use crate::frame::{LONGEST, is_drop};
use nix::sys::socket::{setsockopt, sockopt};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

/// Room for datagrams that have not been read, bytes. Our choice: thousands of frames with the system's bookkeeping.
const ROOM: usize = 8 << 20;

/// A socket and the path of its peer.
#[derive(Debug)]
pub struct Unix {
    socket: UnixDatagram,
    path: PathBuf,
    peer: SocketAddr,
    buffer: Box<[u8]>,
}

impl Unix {
    /// Opens a socket at the path `bind`, in place of one that is left from another program. The peer may open its own later,
    /// and again.
    ///
    /// # Errors
    /// If the system refuses, or `bind` is another kind of file.
    pub fn open(bind: &Path, peer: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(bind) {
            Ok(there) if there.file_type().is_socket() => fs::remove_file(bind)?,
            Ok(_) => return Err(io::Error::other("the path belongs to a file that is no socket")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let socket = UnixDatagram::bind(bind)?;
        socket.set_nonblocking(true)?;
        // Root may exceed the system's limit; others get as much as it allows.
        if setsockopt(&socket, sockopt::SndBufForce, &ROOM).is_err() {
            setsockopt(&socket, sockopt::SndBuf, &ROOM)?;
        }
        let peer = SocketAddr::from_pathname(peer)?;
        Ok(Unix { socket, path: bind.to_owned(), peer, buffer: vec![0; LONGEST].into() })
    }

    /// [`crate::Port::receive`].
    ///
    /// # Errors
    /// If the system refuses.
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        for n in 0..most {
            match self.socket.recv(&mut self.buffer) {
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
    /// If the system refuses.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        match self.socket.send_to_addr(frame, &self.peer) {
            Ok(_) => Ok(true),
            Err(error) if is_drop(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Unix {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The socket's path goes with it.
impl Drop for Unix {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_pass_between_two_sockets_and_an_absent_peer_drops_them() {
        let folder = std::env::temp_dir().join(format!("ropewalk-ports-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (a, b) = (folder.join("a"), folder.join("b"));
        let mut first = Unix::open(&a, &b).unwrap();
        assert!(!first.send(b"lost").unwrap());
        let mut second = Unix::open(&b, &a).unwrap();
        assert!(first.send(b"one").unwrap() && first.send(b"two").unwrap());
        let mut frames = vec![];
        assert_eq!(second.receive(1, |frame| frames.push(frame.to_vec())).unwrap(), 1);
        assert_eq!(second.receive(9, |frame| frames.push(frame.to_vec())).unwrap(), 1);
        assert_eq!(frames, [b"one", b"two"]);
        // A socket that is opened again takes the place of the old one.
        drop(second);
        assert!(!b.exists() && !first.send(b"lost").unwrap());
        fs::write(&b, "a file").unwrap();
        assert!(Unix::open(&b, &a).is_err());
        drop(first);
        fs::remove_dir_all(folder).unwrap();
    }
}
