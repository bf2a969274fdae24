//! Ctrl-C and SIGTERM. While runs are watched, the first one stops them, and the command reports what is complete. At any
//! other time, and at the second one, the process ends at once.

use crate::print;
use lab::failure::EXIT_INTERRUPTED;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);
/// Number of [`Watched`] values.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

/// Installs the handler. If the system refuses, the first Ctrl-C ends the process.
pub fn listen() {
    let listening = ctrlc::set_handler(|| {
        let again = ASKED.swap(true, Ordering::SeqCst);
        if again || WATCHED.load(Ordering::SeqCst) == 0 {
            results::directory::remove_unpublished();
            print::note("interrupted");
            #[expect(clippy::exit, reason = "nothing else watches the flag")]
            std::process::exit(EXIT_INTERRUPTED.into());
        }
    });
    drop(listening);
}

/// A stretch of a command that looks at the flag and ends early if it is set.
#[derive(Debug)]
pub struct Watched(());

impl Watched {
    /// Begins the stretch.
    pub fn begin() -> Self {
        WATCHED.fetch_add(1, Ordering::SeqCst);
        Watched(())
    }

    /// A flag that becomes true at the first Ctrl-C.
    pub fn flag(&self) -> &'static AtomicBool {
        &ASKED
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        WATCHED.fetch_sub(1, Ordering::SeqCst);
    }
}
