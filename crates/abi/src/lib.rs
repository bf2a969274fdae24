//! The C interface, which `include/ropewalk.h` describes: a program drives a run and pulls its events.
//!
//! A panic never crosses into C: every function catches it and returns an error. A run that has panicked refuses all
//! later calls.

use lab::Session;
use lab::session::{Kind, Next};
use model::Time;
use results::directory::Target;
use scenario::Source;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

const ERROR: c_int = -1;
const UNTIL: c_int = 0;
const EVENT: c_int = 1;
const IDLE: c_int = 2;
const ENDED: c_int = 3;

/// A run: `rw_run` in C.
pub struct Run {
    stage: Stage,
    ranks: u32,
    /// The command that the results name.
    command: Vec<String>,
    error: CString,
    digest: CString,
}

enum Stage {
    Going(Box<Session>),
    Finished(Time),
    /// A function has panicked.
    Broken(Time),
}

/// No bound for `rw_next`: `RW_NEVER` in C.
const NEVER: u64 = u64::MAX;

/// An event: `rw_event` in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    ps: u64,
    rank: u32,
    kind: u32,
    id: u64,
}

impl From<lab::session::Event> for Event {
    fn from(event: lab::session::Event) -> Self {
        let kind = match event.kind {
            Kind::Timer => 0,
            Kind::Sent => 1,
            Kind::Received => 2,
            Kind::Transferred => 3,
        };
        Event { ps: event.at.ps(), rank: event.rank, kind, id: event.id }
    }
}

impl Run {
    fn now(&self) -> Time {
        match &self.stage {
            Stage::Going(session) => session.now(),
            Stage::Finished(at) | Stage::Broken(at) => *at,
        }
    }

    fn session(&mut self) -> Result<&mut Session, String> {
        match &mut self.stage {
            Stage::Going(session) => Ok(session),
            Stage::Finished(_) => Err("the run is finished".to_owned()),
            Stage::Broken(_) => Err("the run is broken by an earlier error".to_owned()),
        }
    }

    fn finish(&mut self, directory: Option<&str>) -> Result<c_int, String> {
        self.session()?;
        let target = directory.map(Target::at).transpose().map_err(|e| e.to_string())?;
        let now = self.now();
        let Stage::Going(session) = std::mem::replace(&mut self.stage, Stage::Broken(now)) else {
            return Err("the run is finished".to_owned());
        };
        let run = session.finish();
        self.stage = Stage::Finished(run.outcome.end);
        self.digest = text(&run.summary.digest);
        run.ran_to_its_end().map_err(|e| e.to_string())?;
        if let Some(target) = target {
            run.results(self.command.clone()).write(&target, false).map_err(|e| e.to_string())?;
        }
        let faults = run.faults();
        if faults.is_empty() { Ok(0) } else { Err(faults.join("\n")) }
    }
}

/// A text for C. Zeros, which no text of ours has, are left out.
fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Calls `body` with the run. Returns `ERROR` and keeps the reason if it fails or panics.
///
/// # Safety
/// `run` is null or from `open`, and no other thread uses it.
unsafe fn with(run: *mut Run, body: impl FnOnce(&mut Run) -> Result<c_int, String>) -> c_int {
    // SAFETY: the caller's promise.
    let Some(run) = (unsafe { run.as_mut() }) else { return ERROR };
    let done = catch_unwind(AssertUnwindSafe(|| body(run))).unwrap_or_else(|_| {
        run.stage = Stage::Broken(Time::ZERO);
        Err("a bug of ropewalk: it panicked, see standard error".to_owned())
    });
    match done {
        Ok(result) => {
            run.error = CString::default();
            result
        }
        Err(error) => {
            run.error = text(&error);
            ERROR
        }
    }
}

/// A text of the program.
///
/// # Safety
/// `text` is null or ends with a zero.
unsafe fn read<'a>(text: *const c_char, what: &str) -> Result<&'a str, String> {
    if text.is_null() {
        return Err(format!("{what} is NULL"));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| format!("{what} is not UTF-8"))
}

/// The texts of a list with a null at its end.
///
/// # Safety
/// `list` is null, or has texts with a zero at their end, and a null behind the last.
unsafe fn read_all(list: *const *const c_char) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    if list.is_null() {
        return Ok(all);
    }
    loop {
        // SAFETY: the caller's promise; the entries before this one were not null.
        let entry = unsafe { *list.add(all.len()) };
        if entry.is_null() {
            return Ok(all);
        }
        // SAFETY: the caller's promise.
        all.push(unsafe { read(entry, "a change") }?.to_owned());
    }
}

/// Opens a run, or writes the reason why it cannot.
///
/// # Safety
/// As `ropewalk.h` says: texts end with a zero, and `error` has `size` bytes or is null.
unsafe fn open(
    scenario: *const c_char,
    changes: *const *const c_char,
    (error, size): (*mut c_char, usize),
    start: impl FnOnce(&str, &[String]) -> Result<Session, lab::Failure>,
) -> *mut Run {
    let opened = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller's promise.
        let (scenario, changes) = unsafe { (read(scenario, "the scenario")?, read_all(changes)?) };
        let session = start(scenario, &changes).map_err(|e| e.text())?;
        Ok((session, changes))
    }));
    let opened =
        opened.unwrap_or_else(|_| Err("a bug of ropewalk: it panicked, see standard error".to_owned()));
    let (session, changes) = match opened {
        Ok(opened) => opened,
        Err(reason) => {
            // SAFETY: the caller's promise.
            unsafe { write(&reason, error, size) };
            return ptr::null_mut();
        }
    };
    let mut command = vec!["rw_open".to_owned(), session.checked().name.clone()];
    command.extend(changes);
    let (ranks, stage) = (session.ranks(), Stage::Going(Box::new(session)));
    Box::into_raw(Box::new(Run {
        stage,
        ranks,
        command,
        error: CString::default(),
        digest: CString::default(),
    }))
}

/// Copies as much of a text as has room, with a zero at the end.
///
/// # Safety
/// `to` has `size` bytes or is null.
unsafe fn write(from: &str, to: *mut c_char, size: usize) {
    if to.is_null() || size == 0 {
        return;
    }
    let room = (0..size.min(from.len() + 1)).rev().find(|&end| from.is_char_boundary(end)).unwrap_or(0);
    let from = text(&from[..room]);
    let bytes = from.as_bytes_with_nul();
    // SAFETY: `bytes` has at most `size` bytes, and the two places are different.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, bytes.len()) };
}

/// Version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn rw_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Opens a scenario: a path, or the name of a built-in one.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_open(
    scenario: *const c_char,
    changes: *const *const c_char,
    error: *mut c_char,
    size: usize,
) -> *mut Run {
    // SAFETY: the caller's promise.
    unsafe { open(scenario, changes, (error, size), Session::open) }
}

/// Opens a scenario from its text.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_open_text(
    toml: *const c_char,
    changes: *const *const c_char,
    error: *mut c_char,
    size: usize,
) -> *mut Run {
    let start =
        |toml: &str, changes: &[String]| Session::open_source(&Source::new("scenario.toml", toml), changes);
    // SAFETY: the caller's promise.
    unsafe { open(toml, changes, (error, size), start) }
}

/// Number of ranks.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_ranks(run: *const Run) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { run.as_ref() }.map_or(0, |run| run.ranks)
}

/// Time of the last event, ps.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_now_ps(run: *const Run) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { run.as_ref() }.map_or(0, |run| run.now().ps())
}

/// Sends a message now.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_send(run: *mut Run, id: u64, from: u32, to: u32, bytes: u64, tag: u32) -> c_int {
    let send = |run: &mut Run| {
        run.session()?.send(id, (from, to), bytes, tag).map(|()| 0).map_err(|e| e.to_string())
    };
    // SAFETY: the caller's promise.
    unsafe { with(run, send) }
}

/// Sends a message at a later time.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_send_at(
    run: *mut Run,
    at_ps: u64,
    id: u64,
    from: u32,
    to: u32,
    bytes: u64,
    tag: u32,
) -> c_int {
    let send = |run: &mut Run| {
        let sent = run.session()?.send_at(Time(at_ps), id, (from, to), bytes, tag);
        sent.map(|()| 0).map_err(|e| e.to_string())
    };
    // SAFETY: the caller's promise.
    unsafe { with(run, send) }
}

/// Sends bytes from the ranks of one instance to those of another.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_transfer(
    run: *mut Run,
    id: u64,
    from: *const u32,
    from_count: usize,
    to: *const u32,
    to_count: usize,
    bytes: u64,
) -> c_int {
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (ranks(from, from_count), ranks(to, to_count)) };
    let send =
        |run: &mut Run| run.session()?.transfer(id, (from, to), bytes).map(|()| 0).map_err(|e| e.to_string());
    // SAFETY: the caller's promise.
    unsafe { with(run, send) }
}

/// The ranks of an instance; none if the list is null.
///
/// # Safety
/// `list` has `count` numbers or is null.
unsafe fn ranks<'a>(list: *const u32, count: usize) -> &'a [u32] {
    match list.is_null() {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { std::slice::from_raw_parts(list, count) },
    }
}

/// Sets a timer of a rank.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_timer(run: *mut Run, id: u64, rank: u32, after_ps: u64) -> c_int {
    let set =
        |run: &mut Run| run.session()?.timer(id, rank, Time(after_ps)).map(|()| 0).map_err(|e| e.to_string());
    // SAFETY: the caller's promise.
    unsafe { with(run, set) }
}

/// Plays up to the next event.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_next(run: *mut Run, until_ps: u64, event: *mut Event) -> c_int {
    let next = |run: &mut Run| {
        let session = run.session()?;
        if event.is_null() {
            return Err("the place of the event is NULL".to_owned());
        }
        let until = Some(until_ps).filter(|until| *until != NEVER).map(Time);
        Ok(match session.next(until).map_err(|e| e.to_string())? {
            Next::Event(next) => {
                // SAFETY: the place is not null; the caller promises that it can be written.
                unsafe { event.write(next.into()) };
                EVENT
            }
            Next::Until => UNTIL,
            Next::Idle => IDLE,
            Next::Ended => ENDED,
        })
    };
    // SAFETY: the caller's promise.
    unsafe { with(run, next) }
}

/// Plays all messages to their end and writes the results.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_finish(run: *mut Run, directory: *const c_char) -> c_int {
    let finish = |run: &mut Run| {
        if directory.is_null() {
            return run.finish(None);
        }
        // SAFETY: the caller's promise.
        let directory = unsafe { read(directory, "the directory") }?;
        run.finish(Some(directory))
    };
    // SAFETY: the caller's promise.
    unsafe { with(run, finish) }
}

/// The digest of a finished run.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_digest(run: *const Run) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { run.as_ref() }.map_or(c"".as_ptr(), |run| run.digest.as_ptr())
}

/// The reason of the last error.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_error(run: *const Run) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { run.as_ref() }.map_or(c"the run is NULL".as_ptr(), |run| run.error.as_ptr())
}

/// Frees a run.
///
/// # Safety
/// See `ropewalk.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rw_close(run: *mut Run) {
    if !run.is_null() {
        // SAFETY: the run is from `open`, and the caller uses it no more. A panic of its destructor stays here.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unsafe { Box::from_raw(run) })));
    }
}
