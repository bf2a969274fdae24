//! Ctrl-C: the first one stops the run, the second one ends the process.

use lab::failure::EXIT_INTERRUPTED;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Installs the handler. If the system refuses, the first Ctrl-C ends the process.
pub fn listen() {
    let listening = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            #[expect(clippy::exit, reason = "the user pressed Ctrl-C twice")]
            std::process::exit(EXIT_INTERRUPTED.into());
        }
    });
    drop(listening);
}

/// A flag that becomes true at the first Ctrl-C.
pub fn flag() -> &'static AtomicBool {
    &ASKED
}
