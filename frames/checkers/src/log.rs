//! The decision log of `ropewalk tor --record`, as far as the checkers need it.

use std::collections::BTreeMap;
use wire::Psn;

/// A NACK's end in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the switch did: `blocked`, `forwarded` or `sent`.
    pub what: String,
    /// PSN that the NACK names.
    pub psn: Psn,
    /// The reason; empty if there is none.
    pub why: String,
}

/// What the log says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Decisions on NACKs by the responder's queue pair.
    pub decisions: BTreeMap<u32, Vec<Decision>>,
    /// NACKs that passed unjudged: the requester's queue pair and PSN, with their number.
    pub passed: BTreeMap<(u32, u32), u64>,
    /// RoCEv2 packets that a path lost or an event removed, by queue pair, opcode and PSN.
    pub lost: BTreeMap<(u32, u8, u32), u64>,
    /// Frames that were dropped for other reasons.
    pub dropped: u64,
    /// Frames that an event corrupted, by queue pair, opcode and PSN.
    pub corrupted: BTreeMap<(u32, u8, u32), u64>,
    /// Frames that an event duplicated, by queue pair, opcode and PSN.
    pub duplicated: BTreeMap<(u32, u8, u32), u64>,
}

impl Log {
    /// Reads a log. Lines that tell of something else are skipped.
    pub fn parse(text: &str) -> Self {
        let mut log = Log::default();
        for line in text.lines() {
            // A time, then the event.
            let words: Vec<&str> = line.split_whitespace().skip(1).collect();
            let value = |key: &str| {
                words.iter().find_map(|word| word.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')))
            };
            let number = |key: &str| number(value(key)?);
            let packet = || {
                let opcode = u8::try_from(number("opcode")?).ok()?;
                Some((number("qp")?, opcode, number("psn")?))
            };
            let add = |to: &mut BTreeMap<_, u64>| {
                if let Some(packet) = packet() {
                    *to.entry(packet).or_default() += 1;
                }
            };
            match words.first().copied().zip(words.get(1).copied()) {
                Some(("lost", _)) | Some(("injected", "drop" | "stop")) => add(&mut log.lost),
                Some(("injected", "corrupt")) => add(&mut log.corrupted),
                Some(("injected", "duplicate")) => add(&mut log.duplicated),
                // An injected drop has told its packet already.
                Some(("dropped", _)) if value("why") != Some("injected") => log.dropped += 1,
                Some(("nack", "passed")) => {
                    if let (Some(qp), Some(psn)) = (number("requester"), number("psn")) {
                        *log.passed.entry((qp, psn)).or_default() += 1;
                    }
                }
                Some(("nack", what @ ("blocked" | "forwarded" | "sent"))) => {
                    if let (Some(qp), Some(psn)) = (number("qp"), number("psn")) {
                        let (what, why) = (what.to_owned(), value("why").unwrap_or_default().to_owned());
                        let of_qp = log.decisions.entry(qp).or_default();
                        of_qp.push(Decision { what, psn: Psn::new(psn), why });
                    }
                }
                _ => {}
            }
        }
        log
    }
}

/// Queue pairs and opcodes are hexadecimal in the log, PSNs are decimal.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
