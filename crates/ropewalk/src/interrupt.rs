//! Ctrl-C: the first one asks the run to stop, the second one ends the process.

use lab::failure::EXIT_INTERRUPTED;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens from now on. Where the system does not let us, Ctrl-C simply ends the process.
pub fn listen() {
    let listening = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            #[expect(clippy::exit, reason = "the user asked twice")]
            std::process::exit(EXIT_INTERRUPTED.into());
        }
    });
    drop(listening);
}

/// Becomes true when the user asked to stop.
pub fn flag() -> &'static AtomicBool {
    &ASKED
}
