//! The book: what a crate outside the repository may use, chapter by chapter. There is no code here.
//!
//! 1. [`schemes`]: load balancing in switches and in sending NICs
//! 2. [`controls`]: congestion controls
//! 3. [`recovery`]: recovery modes
//! 4. [`checks`]: the tests that hold parts to the rules
//! 5. [`changes`]: what may change between versions
//!
//! Three things hold in all chapters. *Settings* are a type with `Default`, serde's derives and [`JsonSchema`](crate::JsonSchema), with a
//! field for each key of the part's table; a comment at a field says its meaning, unit, default and source, and `check` and the schema print
//! it. *State machines are pure*: [`Time`](crate::Time) and randomness ([`draw`](crate::draw)) are arguments, so every engine gives one digest
//! on any number of threads. *Nothing reaches beyond its place*: a scheme sees one switch, a control or an end one queue pair.
//!
//! An [`Entry`](crate::Entry) gives settings a name and a sentence. [`main`](crate::main) is the command line with all entries, and
//! [`add`](crate::add) adds them in a program that has a `main` of its own. A [`Finding`](crate::Finding) tells what is wrong with a value, with
//! a [`code`](crate::code) and the key; the program finds line and column.

/// Load balancing in switches and in sending NICs.
///
/// A [`Recipe`](crate::Recipe) for the settings builds a [`Scheme`](crate::Scheme) for each switch, a [`Site`](crate::Site), and tells the
/// [`Facts`](crate::Facts) that others must know: whether it sprays, and what it writes on packets. [`Golden`](crate::Golden) and
/// [`Look`](crate::Look) are for tables and pictures; their defaults will do.
///
/// # Decisions
///
/// [`Scheme::on_packet`](crate::Scheme::on_packet) gets a [`Packet`](crate::Packet) and the [`PortIndex`](crate::PortIndex)es that lead to its
/// destination, and answers with a [`Verdict`](crate::Verdict). The [`Cx`](crate::Cx) has the time, the queues, draws and hashes.
/// [`Interest`](crate::Interest) says what it wants to see, and no run pays for more. [`choice`](crate::choice) has rules that schemes share, such
/// as the least loaded port for a packet or for a flow, and [`flows`](crate::flows) a table of flows.
///
/// | type | what it is |
/// |---|---|
/// | [`Kind`](crate::Kind), [`Psn`](crate::Psn), [`QpId`](crate::QpId), [`HostId`](crate::HostId), [`NodeId`](crate::NodeId) | a packet's kind and numbers |
/// | [`Plan`](crate::Plan), [`Fabric`](crate::Fabric) | the whole run, as a controller that configures switches knows it |
/// | [`Arrived`](crate::Arrived), [`Acks`](crate::Acks) | what a scheme sees that acts on each port by itself, [`Interest::local`](crate::Interest::local) |
/// | [`Detour`](crate::Detour), [`Detours`](crate::Detours) | longer ways in a fabric of groups |
/// | [`Emitted`](crate::Emitted), [`Reroute`](crate::Reroute) | packets that a switch makes; routes that change |
/// | [`Bytes`](crate::Bytes), [`Rate`](crate::Rate) | quantities with a unit |
///
/// # In the sending NIC
///
/// [`Steers`](crate::Steers) beside the recipe makes a [`Steering`](crate::Steering) for each queue pair, a [`QpSite`](crate::QpSite). It writes a
/// [`Stamp`](crate::Stamp) with an entropy on each packet that is [`Sent`](crate::Sent), and reads the stamps of replies; [`Room`](crate::Room)
/// asks how many packets the window lets pass. [`Aside`](crate::Aside) and [`AsideKind`](crate::AsideKind) are packets of its own. In switches,
/// [`entropies`](crate::entropies) turns entropies into paths.
pub mod schemes {}

/// Congestion controls.
///
/// [`Control`](crate::Control) for the settings makes a [`Congestion`](crate::Congestion) for each queue pair of a NIC, and tells
/// [`ControlFacts`](crate::ControlFacts): its [`Evidence`](crate::Evidence) of congestion, and the [`Unit`](crate::Unit) of its window. A
/// [`Path`](crate::Path) has round-trip time and bandwidth-delay product; [`Path::or_guess`](crate::Path::or_guess) serves where there is none.
///
/// [`Congestion::allowance`](crate::Congestion::allowance) answers with an [`Allowance`](crate::Allowance): a window, a [`Pace`](crate::Pace), and
/// the time of the next packet. Events come by `on_ack`, `on_cnp`, `on_nack` and `on_timeout`. A control with
/// [`ControlFacts::needs_feedback`](crate::ControlFacts::needs_feedback) gets a [`Feedback`](crate::Feedback) in place of an ACK, with the
/// round trip and the [`Delivery`](crate::Delivery) in bytes. [`Advice`](crate::Advice) is the content of a CNP that a switch made, and
/// [`Demand`](crate::Demand) asks a receiver for credit.
///
/// [`CongestionConfig::named`](crate::CongestionConfig::named) and [`CongestionConfig::control`](crate::CongestionConfig::control) make the
/// state of a built-in control, an [`AnyCongestion`](crate::AnyCongestion), for a control that is a variant of one.
///
/// Some facts have types of their own: credit that receivers grant ([`Grants`](crate::Grants), [`GrantDue`](crate::GrantDue)), codes of
/// telemetry ([`Digested`](crate::Digested)), content of CNPs ([`Advised`](crate::Advised)), and how often CNPs come
/// ([`CnpScope`](crate::CnpScope)). [`Variation`](crate::Variation) names other values of a key, with which a comparison tries whether its answer holds.
pub mod controls {}

/// Recovery modes.
///
/// [`Transport`](crate::Transport) for the settings makes the two ends of a queue pair and tells [`TransportFacts`](crate::TransportFacts), of
/// which [`OnNack`](crate::OnNack) (with a [`Reaction`](crate::Reaction)), [`SilentLoss`](crate::SilentLoss),
/// [`CutReport`](crate::CutReport), [`OwedAcks`](crate::OwedAcks) and [`Verb`](crate::Verb) are parts.
///
/// A [`Sender`](crate::Sender) chooses the next packet, a [`Departure`](crate::Departure), and hears of replies as
/// [`Heard`](crate::Heard), which it answers with [`Progress`](crate::Progress). Its [`Position`](crate::Position) has the deadline of its timer,
/// which a [`Timing`](crate::Timing) sets, and [`Due`](crate::Due) is what happens then. A [`Receiver`](crate::Receiver) gets an
/// [`Inbound`](crate::Inbound), mostly an [`ArrivedData`](crate::ArrivedData) with the [`Envelope`](crate::Envelope) of its message, and answers
/// with a [`Reception`](crate::Reception): the packet's [`Fate`](crate::Fate) and a [`Reply`](crate::Reply). [`Answers`](crate::Answers) are the
/// rules of the `[nic]` table for replies, such as a [`Cnp`](crate::Cnp) for a mark. Its [`Standing`](crate::Standing) counts what has arrived. [`Plain`](crate::Plain),
/// [`Telling`](crate::Telling) and [`Overdue`](crate::Overdue) belong to methods that have defaults. Modes that name single packets send a
/// [`Selective`](crate::Selective) or a [`Sack`](crate::Sack), and hear of a [`Sacked`](crate::Sacked) reply, of headers that have
/// [`Returned`](crate::Returned), or of a [`Notice`](crate::Notice).
///
/// [`TransportConfig::named`](crate::TransportConfig::named) makes the ends of a built-in mode, an [`AnySender`](crate::AnySender) and an
/// [`AnyReceiver`](crate::AnyReceiver). A mode that is a variant of one wraps the end that it changes.
pub mod recovery {}

/// The tests that hold parts to the rules.
///
/// [`hold::contract`](crate::hold::contract) hands a part random events and checks what it does with them.
/// [`hold::twins`](crate::hold::twins) runs it on every engine, with failures and small buffers, and checks that all agree and that no packet is
/// lost without a cause. [`hold::fuzz`](crate::hold::fuzz) does so with random scenarios. All three hold the parts of one name. The settings of
/// the runs are the part's `TRIALS`; small numbers in them make rare events happen.
pub mod checks {}

/// What may change between versions.
///
/// * What this crate exports by name has the version of ropewalk. Within a minor version nothing of it is renamed, removed or given another
///   meaning.
/// * Traits may gain methods and constants with defaults, and settings may gain keys.
/// * Structs and enums may gain fields and variants. So begin facts with a constructor, such as
///   [`Facts::plain`](crate::Facts::plain), [`ControlFacts::of`](crate::ControlFacts::of) or
///   [`TransportFacts::KEEPING`](crate::TransportFacts::KEEPING), and change fields by `..`; and let a `match` end with `_`.
/// * Of [`CongestionConfig`](crate::CongestionConfig) and [`TransportConfig`](crate::TransportConfig), methods are promised, and variants
///   are not. Of [`AnyCongestion`](crate::AnyCongestion), [`AnySender`](crate::AnySender) and [`AnyReceiver`](crate::AnyReceiver), only the
///   traits that they implement are.
/// * [`crate::schemars`] and [`crate::serde`] are those of ropewalk; their versions may change with a minor version.
/// * Results of a part stay the same within a minor version, as those of built-in parts do.
/// * Everything else in the repository may change at any time.
pub mod changes {}

#[cfg(test)]
mod tests {
    /// What `lib.rs` exports, by name.
    fn exported() -> Vec<String> {
        let text = include_str!("lib.rs");
        let uses = text.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
        let mut names = Vec::new();
        for list in uses {
            let inside = list.rsplit_once('{').map_or(list, |(_, inside)| inside.trim_end_matches('}'));
            for name in inside.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                let name = name.rsplit(" as ").next().unwrap_or(name).rsplit("::").next().unwrap_or(name);
                let module = list.split("::").next().unwrap_or(name).trim();
                names.push(if name == "self" { module.to_owned() } else { name.to_owned() });
            }
        }
        names
    }

    #[test]
    fn every_name_that_is_exported_is_in_the_book() {
        let (book, _) = include_str!("book.rs").split_once("#[cfg(test)]").unwrap();
        let names = exported();
        assert!(names.len() > 80, "{names:?}");
        let missing: Vec<_> = names
            .iter()
            .filter(|name| {
                ![format!("(crate::{name})"), format!("[`crate::{name}`]")]
                    .iter()
                    .any(|link| book.contains(link))
            })
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
