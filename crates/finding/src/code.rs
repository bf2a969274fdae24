//! The codes of findings: one for each kind of cause. Rules with a cause of their own have their own codes.

use crate::Severity;

/// A kind of cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Name, such as `unknown-key`; scripts may rely on it.
    pub name: &'static str,
    /// Whether the input can be used.
    pub severity: Severity,
    /// The cause and the way out, for the documentation.
    pub about: &'static str,
}

impl Code {
    /// The code of an error.
    pub const fn error(name: &'static str, about: &'static str) -> Self {
        Code { name, severity: Severity::Error, about }
    }

    /// The code of a warning.
    pub const fn warning(name: &'static str, about: &'static str) -> Self {
        Code { name, severity: Severity::Warning, about }
    }
}

macro_rules! codes {
    ($($kind:ident $id:ident $name:literal: $about:literal;)+) => {
        $(#[doc = $about] pub const $id: Code = Code::$kind($name, $about);)+

        /// All codes of this module, in the order of the documentation.
        pub const ALL: &[Code] = &[$($id),+];
    };
}

codes! {
    error SYNTAX "syntax": "The text is not TOML, or a name in it has control characters.";
    error UNKNOWN_KEY "unknown-key": "No such key exists here. The text names the nearest right key.";
    error UNKNOWN_NAME "unknown-name": "The value names something that does not exist, such as a scheme, a class, a role or a job.";
    error WRONG_TYPE "wrong-type": "The value has another type or unit than the key needs.";
    error MISSING "missing": "A key, an entry or a table that the scenario needs is not there.";
    error RANGE "out-of-range": "The value lies outside the possible range, which the text names.";
    error CONFLICT "conflict": "Two settings exclude each other. Leave out one of them.";
    error NEEDS "needs": "The setting works only with another one, which the text names.";
    error NO_NODE "no-such-node": "The fabric has no such host, port, switch, link or GPU.";
    error NO_PATH "no-path": "No path joins two hosts that exchange messages.";
    error TO_ITSELF "to-itself": "A host, GPU or link would send to itself.";
    error TWICE "duplicate": "A name or an entry stands twice.";
    error FIT "does-not-fit": "Two figures do not fit together, such as the size of a group and the number of hosts, or a frame and a buffer.";
    error UNSUITED "unsuited": "A scheme, transport or congestion control cannot work on this fabric or with these other parts.";
    error CYCLE "cycle": "Tasks or messages wait for each other, so none of them would ever start.";
    error FILE "unreadable-file": "A file is absent or cannot be read.";
    error CONTENT "bad-file": "A file of another tool has content that ropewalk cannot use.";
    error CHANGED "changed-file": "A file has changed since the scenario noted its digest.";
    error MEMORY "memory": "The run needs more memory than is left.";
    error PROGRAM "needs-program": "A program must drive this scenario; it cannot run by itself.";
    error OPTION "option": "An option of the command line is wrong, or nothing would use it.";
    error BUG "bug": "ropewalk itself is wrong; please report it.";
}
