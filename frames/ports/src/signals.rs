//! Signals as events: a program asks for them between two frames.

use nix::sys::signal::{SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: read the settings again.
    HangUp,
    /// SIGTERM or SIGINT: end.
    End,
}

/// Signals that have come and were not asked for yet.
#[derive(Debug)]
pub struct Signals {
    file: SignalFd,
}

impl Signals {
    /// Takes SIGHUP, SIGTERM and SIGINT from now on. Threads that exist already still get them in the usual way, so a program
    /// calls this first.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn listen() -> io::Result<Self> {
        let mut all = SigSet::empty();
        for number in [Number::SIGHUP, Number::SIGTERM, Number::SIGINT] {
            all.add(number);
        }
        all.thread_block()?;
        let file = SignalFd::with_flags(&all, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Signals { file })
    }

    /// The next signal, if one has come.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn take(&mut self) -> io::Result<Option<Signal>> {
        let signal = self.file.read_signal()?;
        let hang_up = Number::SIGHUP as u32;
        Ok(signal.map(|signal| if signal.ssi_signo == hang_up { Signal::HangUp } else { Signal::End }))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
