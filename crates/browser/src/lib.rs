//! A fabric in the browser: the engine as a WebAssembly module for the page in `page/`.
//!
//! JavaScript asks for a run with a line of JSON and gets [packed](pack) bytes: a header in JSON and columns of numbers.
//! A scenario passes through the same code as in `ropewalk run`, so its digest is the same. What the page draws is recorded
//! beside the results, and recording never changes a result.
//!
//! A spine that dies while the page plays a run is a failure in the scenario: the page runs the scenario again with it. Up to
//! the failure both runs are equal.
//!
//! | file | task |
//! |---|---|
//! | [`ask`] | what the page asks for |
//! | [`watch`] | what is recorded for the page |
//! | [`tape`] | the frames that the page draws |
//! | [`play`] | the last run, and what the page learns of it |
//! | [`pack`] | a header and columns as bytes |
//! | `exports` | the functions that JavaScript calls; only on WebAssembly |

pub mod ask;
#[cfg(target_family = "wasm")]
mod exports;
pub mod pack;
pub mod play;
pub mod tape;
pub mod watch;

pub use ask::Asked;
pub use play::{Played, about};
