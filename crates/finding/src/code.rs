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
    error UNKNOWN_KEY "unknown-key": "No such key exists here. The text names the nearest one.";
    error UNKNOWN_NAME "unknown-name": "The value names something that does not exist, such as a scheme, a class or a job.";
    error WRONG_TYPE "wrong-type": "The value has another type or unit than the key needs.";
    error MISSING "missing": "The scenario lacks a key, an entry or a table.";
    error RANGE "out-of-range": "The value lies outside the possible range, which the text names.";
    error CONFLICT "conflict": "Two settings exclude each other. Leave out one of them.";
    error NEEDS "needs": "The setting works only with another one, which the text names.";
    error NO_NODE "no-such-node": "The fabric has no such host, port, switch, link or GPU.";
    error NO_PATH "no-path": "No path joins two hosts that exchange messages.";
    error TO_ITSELF "to-itself": "A host, GPU or link would send to itself.";
    error TWICE "duplicate": "A name or an entry stands twice.";
    error FIT "does-not-fit": "Two figures do not fit together, such as a frame and a buffer.";
    error UNSUITED "unsuited": "A part cannot work on this fabric or with these other parts.";
    error CYCLE "cycle": "Tasks or messages wait for each other, so none of them would ever start.";
    error FILE "unreadable-file": "A file is absent or cannot be read.";
    error CONTENT "bad-file": "A file of another tool has content that ropewalk cannot use.";
    error CHANGED "changed-file": "A file has changed since the scenario noted its digest. Remove the digest to take the file as it is.";
    error MEMORY "memory": "The run needs more memory than is left. Take a smaller fabric, or record less.";
    error PROGRAM "needs-program": "A program must drive this scenario; it cannot run by itself.";
    error OPTION "option": "An option of the command line is wrong, or nothing would use it.";
    error BUG "bug": "ropewalk itself is wrong; please report it.";
    warning NO_ROOM "no-room": "The scenario is right, but no whole run of its size is possible here. `run --fast` leaves out what repeats, or take a smaller share of it; if memory is short, a larger machine helps, too.";
    warning NO_EFFECT "no-effect": "The setting changes nothing here. Remove it, or change what the text names.";
    warning LEFT_OUT "left-out": "The simulation leaves out a part of another tool's file.";
    warning READ_AS "read-as": "A value is taken for another one.";
    warning UNMATCHED "unmatched": "Sends and receives of a file do not fit: one has no partner, another size, or several possible partners.";
    warning TIMEOUT "timeout": "Senders repeat packets before an ACK can come back. Raise the timeout.";
    warning FEW_ACKS "few-acks": "A window or a congestion control needs more ACKs. Ask for them, or widen the window.";
    warning PATIENCE "patience": "The run may give up while its flows wait for a timer. Raise `stop.no-progress`.";
    warning HEADROOM "headroom": "A port may lose packets despite PFC. Raise its headroom to the least one, which the text names.";
    warning XOFF "xoff": "A port has the headroom of a shorter cable. Raise `xoff`, or enter the cable's length.";
    warning LOSSY_CLASS "lossy-class": "Switches drop data of a job because of its DSCP. Give it one that is lossless, or change the map.";
    warning CAP "cap": "A cap drops packets of a class that PFC protects. Remove one of both.";
    warning CUT_OFF "cut-off": "Failures leave two hosts without a path for good. Set `until`, or spare a link.";
    warning LONG_FLAPS "long-flaps": "Flaps of a link outlast the retries of a NIC. Its queue pairs give up, or fail over.";
    warning SLOWED "slowed": "Ports that a failure slows keep the thresholds of their full rate.";
    warning SILENT "silent": "Senders learn of dropped packets from a timer alone, or take late packets for dropped ones.";
    warning HARDWARE "hardware": "The fabric asks more of a NIC or a switch than its model can do.";
    warning POOR_MATCH "poor-match": "Two parts keep each other from working. Replace the one that the text names.";
    warning NO_MARKS "no-marks": "The part reacts to marks, and no switch marks packets. Set `switch.ecn`.";
    warning TOO_SHORT "too-short": "A ring, a limit or a counter is too short for the times of this fabric.";
    warning UNEVEN "uneven": "Work or load cannot be divided evenly.";
    warning NO_END "no-end": "With these settings flows may never finish.";
    warning OVERLOAD "overload": "More load is offered than the links carry, so results depend on the duration.";
    warning SCALED "scaled": "The workload is smaller than its settings describe.";
    warning DROPPED_TOKENS "dropped-tokens": "Experts drop tokens beyond their capacity.";
}
