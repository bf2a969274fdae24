//! Names of events in `events.parquet`, for writing and for reading.

use engine::outcome::EventKind;
use model::Kind;

/// Defines the names of an enum's variants in both directions. The compiler reports a variant without a name.
macro_rules! names {
    ($of:ident, $parse:ident, $all:ident: $type:ident { $($variant:ident = $name:literal,)* }) => {
        fn $of(value: $type) -> &'static str {
            match value {
                $($type::$variant => $name,)*
            }
        }

        fn $parse(name: &str) -> Option<$type> {
            match name {
                $($name => Some($type::$variant),)*
                _ => None,
            }
        }

        #[cfg(test)]
        const $all: &[$type] = &[$($type::$variant,)*];
    };
}

names!(packet, parse_packet, PACKETS: Kind {
    Data = "data",
    Ack = "ack",
    Nack = "nack",
    Cnp = "cnp",
    Signal = "signal",
    Trimmed = "trimmed",
    Control = "control",
    Probe = "probe",
});

// `KIND` stands for the kind of packet. Names without it belong to data packets and their queue pairs.
names!(event, parse_event, EVENTS: EventKind {
    Sent = "sent",
    Resent = "resent",
    Arrived = "arrived",
    Ahead = "ahead",
    Duplicate = "duplicate",
    Discarded = "discarded",
    TimedOut = "timeout",
    Paused = "paused",
    Resumed = "resumed",
    FeedbackSent = "KIND-sent",
    FeedbackReceived = "KIND-received",
    Blocked = "KIND-blocked",
    Made = "KIND-made",
    Dropped = "KIND-dropped",
    Lost = "KIND-lost",
    Cut = "cut",
});

/// Name of a kind of packets.
pub fn kind(kind: Kind) -> &'static str {
    packet(kind)
}

/// Name of an event of a packet of kind `kind`.
pub fn name(what: EventKind, kind: Kind) -> String {
    event(what).replace("KIND", packet(kind))
}

/// The event of this name and the kind of its packet; `None` if this version of ropewalk does not write the name.
pub fn parse(name: &str) -> Option<(EventKind, Kind)> {
    match name.split_once('-') {
        Some((kind, what)) => Some((parse_event(&format!("KIND-{what}"))?, parse_packet(kind)?)),
        None => Some((parse_event(name)?, Kind::Data)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_as_its_event() {
        for &what in EVENTS {
            for &kind in PACKETS {
                let written = name(what, kind);
                let named = if event(what).contains("KIND") { kind } else { Kind::Data };
                assert_eq!(parse(&written), Some((what, named)), "{written}");
            }
        }
    }

    #[test]
    fn unknown_names_are_not_read() {
        for unknown in ["", "seen", "KIND-sent", "nack", "nack-", "nack-seen", "frame-sent", "data-resent"] {
            assert_eq!(parse(unknown), None, "{unknown}");
        }
    }
}
