//! Panics as verdicts.

use crate::trial::{Fault, Verdict};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};

thread_local! {
    /// Place of the last panic of this thread.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Keeps panics of the whole process from being printed while it lives; their places become part of verdicts.
pub struct Silence(Option<Hook>);

impl Silence {
    /// From now on.
    pub fn begin() -> Self {
        let before = take_hook();
        set_hook(Box::new(|info: &PanicHookInfo<'_>| {
            let place = info.location().map(|place| format!("{}:{}", place.file(), place.line()));
            PLACE.with(|last| *last.borrow_mut() = place);
        }));
        Silence(Some(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(set_hook);
    }
}

/// The verdict of a trial; a panic is a fault.
pub(crate) fn caught(trial: impl FnOnce() -> Verdict) -> Verdict {
    fault(trial).unwrap_or_else(Verdict::Failed)
}

/// The result of an action, or its panic as a fault.
pub(crate) fn fault<T>(action: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(action)).map_err(|payload| {
        let place = PLACE.with(|last| last.borrow_mut().take()).unwrap_or_else(|| "a thread".to_owned());
        Fault::new(&format!("nothing panics: {place}"), text_of(&*payload))
    })
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}
