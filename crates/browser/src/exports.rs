//! The functions that JavaScript calls. It writes a text to [`input`], calls a function, and reads [`output`].

#![allow(
    unsafe_code,
    unreachable_pub,
    reason = "JavaScript finds functions by name, and the compiler cannot see that names are unique"
)]

use crate::ask::Asked;
use crate::play::{Played, about, refused};
use model::QpId;
use scenario::Finding;
use std::cell::RefCell;
use std::sync::Once;

#[derive(Default)]
struct State {
    input: Vec<u8>,
    output: Vec<u8>,
    played: Option<Played>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
    static PANIC: RefCell<String> = RefCell::default();
}

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Tells the page how far a run is: simulated time in us, finished messages, all messages.
    safe fn progress(now_us: f64, finished: f64, messages: f64);
}

fn with<R>(call: impl FnOnce(&mut State) -> R) -> R {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| PANIC.with_borrow_mut(|text| *text = panic.to_string())));
    });
    STATE.with_borrow_mut(call)
}

impl State {
    fn asked(&self) -> Result<Asked, Finding> {
        Asked::read(&String::from_utf8_lossy(&self.input))
    }
}

/// Space for a text of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn input(length: usize) -> *mut u8 {
    with(|state| {
        state.input = vec![0; length];
        state.input.as_mut_ptr()
    })
}

/// Start of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    with(|state| state.output.as_ptr())
}

/// Length of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    with(|state| state.output.len())
}

/// Runs what the input asks for. The answer is the run, or the mistake in its scenario; after a mistake the last run stays.
#[unsafe(no_mangle)]
pub extern "C" fn run() {
    with(|state| match state.asked().and_then(|asked| asked.check()) {
        Ok(checked) => {
            // The memory of the last run is free for the next.
            (state.played, state.output) = (None, Vec::new());
            let played = Played::new(checked, &mut |now| {
                progress(now.now.as_us(), now.finished as f64, now.messages as f64);
            });
            (state.output, state.played) = (played.show(), Some(played));
        }
        Err(error) => state.output = refused(&error),
    });
}

/// The packets of a queue pair of the last run.
#[unsafe(no_mangle)]
pub extern "C" fn packets(qp: u32) {
    with(|state| {
        state.output = state.played.as_ref().map_or_else(Vec::new, |played| played.packets(QpId(qp)));
    });
}

/// What the page must know before a run.
#[unsafe(no_mangle)]
pub extern "C" fn describe() {
    with(|state| {
        state.output = match state.asked() {
            Ok(asked) => about(&asked),
            Err(error) => refused(&error),
        };
    });
}

/// Puts the message of a panic into the output. It is called after a trap, so it does not touch the state's other fields.
#[unsafe(no_mangle)]
pub extern "C" fn panic_text() -> *const u8 {
    PANIC.with_borrow(|text| text.as_ptr())
}

/// Length of that message.
#[unsafe(no_mangle)]
pub extern "C" fn panic_length() -> usize {
    PANIC.with_borrow(String::len)
}
