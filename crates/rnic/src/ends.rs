//! The two ends of a queue pair: the kinds of sender and receiver that recovery modes choose from.

use crate::limits::PSN_LIMIT;
use crate::psn::{in_order, receiver, sender};
use crate::selective::in_flight;
use crate::{counted, sack, selective};
use model::annex::NoticeRules;
use model::transport::{
    Departure, Due, Heard, Inbound, Overdue, Plain, Position, Progress, Reception, Standing, Telling,
};
use model::{Delivery, PortIndex, Psn, Time};
use std::fmt;
use std::sync::Arc;

/// Tells the compiler that the path to this call is rare.
#[cold]
fn rare() {}

/// Makes a rare call out of line.
#[cold]
#[inline(never)]
fn rarely<T>(call: impl FnOnce() -> T) -> T {
    call()
}

/// A call to the end of most modes.
macro_rules! often {
    ($call:expr) => {
        $call
    };
}

/// A call to another end.
macro_rules! seldom {
    ($call:expr) => {{
        rare();
        $call
    }};
}

/// A call to an end of runs with SACKs, in other runs.
macro_rules! afar {
    ($call:expr) => {
        rarely(|| $call)
    };
}

/// Makes the ends of a recovery mode from outside this crate.
pub(crate) struct Makes<End: ?Sized> {
    /// The mode, its settings, and what ends of a NIC share.
    pub(crate) what: Arc<str>,
    /// The end of one queue pair.
    pub(crate) end: Arc<dyn Fn() -> Box<End> + Send + Sync>,
    /// Most packets that a sender has outstanding.
    pub(crate) most_outstanding: u32,
}

impl<End: ?Sized> Clone for Makes<End> {
    fn clone(&self) -> Self {
        let Makes { what, end, most_outstanding } = self;
        Makes { what: what.clone(), end: end.clone(), most_outstanding: *most_outstanding }
    }
}

impl<End: ?Sized> PartialEq for Makes<End> {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what
    }
}

impl<End: ?Sized> fmt::Debug for Makes<End> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Defines the kinds of an end from their list: the settings that all ends of a NIC share, the state of one queue pair, and a macro
/// that calls a method of any of them. The end of most modes comes first: a jump table for all takes more instructions.
macro_rules! ends {
    (
        $(#[$settings_doc:meta])* $settings:ident,
        $(#[$state_doc:meta])* $state:ident: $trait:ident,
        $of_any:ident,
        $($(#[$doc:meta])* $kind:ident = $($module:ident)::+, $held:ty, $how:ident;)+
    ) => {
        $(#[$settings_doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum $settings {
            $($kind(Arc<$($module)::+::Rules>),)+
            /// One from outside this crate.
            Custom(Makes<dyn model::$trait + Send>),
        }

        impl $settings {
            /// The end of one queue pair.
            fn end(&self) -> $state {
                match self {
                    $(Self::$kind(rules) => $state::$kind($($module)::+::$trait::new(rules.clone()).into()),)+
                    Self::Custom(makes) => $state::Custom((makes.end)()),
                }
            }
        }

        $(#[$state_doc])*
        pub enum $state {
            $($(#[$doc])* $kind($held),)+
            /// One from outside this crate.
            Custom(Box<dyn model::$trait + Send>),
        }

        macro_rules! $of_any {
            ($any:expr, $end:ident => $call:expr) => {
                match $any {
                    $($state::$kind($end) => $how!($call),)+
                    $state::Custom($end) => seldom!($call),
                }
            };
        }
    };
}

ends! {
    /// Kind of sender, with the settings that all senders of a NIC share.
    Sending,
    /// Sender of any recovery mode.
    AnySender: Sender,
    of_sender,
    /// Counts sent packets; the sender of most modes.
    Counting = sender, sender::Sender, often;
    /// Tracks single packets.
    Scoreboard = selective::sender, Box<selective::sender::Sender>, seldom;
    /// Bounds the packets in flight; the sender of `mp-rdma`.
    InFlight = in_flight, Box<in_flight::Sender>, seldom;
    /// Knows the fate of every packet, and counts bytes; the sender of `uec`.
    Sack = sack::sender, Box<sack::sender::Sender>, afar;
    /// Repeats packets whose headers come back, and whole messages; the sender of `dcp`.
    Counted = counted::sender, Box<counted::sender::Sender>, afar;
}

ends! {
    /// Kind of receiver, with the settings that all receivers of a NIC share.
    Receiving,
    /// Receiver of any recovery mode.
    AnyReceiver: Receiver,
    of_receiver,
    /// Keeps packets that arrive out of order.
    Keeping = receiver, receiver::Receiver, often;
    /// Drops packets that arrive out of order.
    InOrder = in_order, in_order::Receiver, seldom;
    /// Names single packets in replies.
    Selective = selective::receiver, Box<selective::receiver::Receiver>, seldom;
    /// Reports the packets that have arrived in a map.
    Sack = sack::receiver, Box<sack::receiver::Receiver>, afar;
    /// Counts the packets of each message.
    Counted = counted::receiver, Box<counted::receiver::Receiver>, afar;
}

impl Sending {
    /// Most packets that a sender has outstanding.
    pub(crate) fn most_outstanding(&self) -> u32 {
        match self {
            Self::Counting(rules) => rules.limit,
            Self::Scoreboard(rules) => rules.limit,
            Self::InFlight(_) | Self::Counted(_) => PSN_LIMIT,
            Self::Sack(rules) => rules.reach,
            Self::Custom(makes) => makes.most_outstanding,
        }
    }

    /// Sender of one queue pair.
    pub(crate) fn sender(&self) -> AnySender {
        self.end()
    }
}

impl Receiving {
    /// Receiver of one queue pair; only [`Receiving::Selective`] uses `notices`.
    pub(crate) fn receiver(&self, notices: Option<NoticeRules>) -> AnyReceiver {
        let Self::Selective(rules) = self else { return self.end() };
        let mut rules = rules.clone();
        if notices.is_some() {
            Arc::make_mut(&mut rules).notices = notices;
        }
        Self::Selective(rules).end()
    }
}

/// An end of any recovery mode in a run with SACKs: calls reach those ends most quickly that most of these runs have, and an end takes
/// as little room beside other state as a pointer and its kind.
pub enum WithSacks<Sack, End> {
    /// An end of a mode with maps.
    Sack(Box<Sack>),
    /// Any other end.
    Other(Box<End>),
}

/// Sender of any recovery mode in a run with SACKs.
pub type SackingSender = WithSacks<sack::sender::Sender, AnySender>;

/// Receiver of any recovery mode in a run with SACKs.
pub type SackingReceiver = WithSacks<sack::receiver::Receiver, AnyReceiver>;

impl From<AnySender> for SackingSender {
    fn from(sender: AnySender) -> Self {
        match sender {
            AnySender::Sack(sender) => WithSacks::Sack(sender),
            other => WithSacks::Other(Box::new(other)),
        }
    }
}

impl From<AnyReceiver> for SackingReceiver {
    fn from(receiver: AnyReceiver) -> Self {
        match receiver {
            AnyReceiver::Sack(receiver) => WithSacks::Sack(receiver),
            other => WithSacks::Other(Box::new(other)),
        }
    }
}

/// [`of_sender`] in runs with SACKs.
macro_rules! of_sack_sender {
    ($any:expr, $sender:ident => $call:expr) => {
        match $any {
            WithSacks::Sack($sender) => $call,
            WithSacks::Other($sender) => rarely(|| $call),
        }
    };
}

/// Implements the sending end by a macro that calls a method of any sender.
macro_rules! calls_any_sender {
    ($any:ty, $of:ident) => {
        impl model::Sender for $any {
            #[inline]
            fn fetch(&self) {
                $of!(self, sender => sender.fetch())
            }

            #[inline]
            fn post_message(&mut self, packets: u64, full: u32, last: u32) {
                $of!(self, sender => sender.post_message(packets, full, last))
            }

            #[inline(always)]
            fn send(&mut self, now: Time, window: u64) -> Option<Departure> {
                $of!(self, sender => sender.send(now, window))
            }

            #[inline]
            fn ready(&self, window: u64) -> bool {
                $of!(self, sender => sender.ready(window))
            }

            fn room(&self, window: u64) -> u64 {
                $of!(self, sender => sender.room(window))
            }

            #[inline(always)]
            fn hear(&mut self, now: Time, heard: &Heard) -> (Progress, Delivery) {
                $of!(self, sender => sender.hear(now, heard))
            }

            #[inline(always)]
            fn position(&self) -> Position {
                $of!(self, sender => sender.position())
            }

            fn on_deadline(&mut self, now: Time) -> Due {
                $of!(self, sender => sender.on_deadline(now))
            }

            #[inline(always)]
            fn row(&self) -> u64 {
                $of!(self, sender => sender.row())
            }

            #[inline(always)]
            fn send_row(&mut self, packets: u64) {
                $of!(self, sender => sender.send_row(packets))
            }

            #[inline(always)]
            fn on_free_ack(&mut self, now: Time, psn: Psn, burst: u32) -> bool {
                $of!(self, sender => sender.on_free_ack(now, psn, burst))
            }

            #[inline]
            fn on_held(&mut self, now: Time, window: u64) -> bool {
                $of!(self, sender => sender.on_held(now, window))
            }

            fn restart(&mut self) {
                $of!(self, sender => sender.restart())
            }

            fn may_shorten(&self) -> bool {
                $of!(self, sender => sender.may_shorten())
            }

            fn shorten(&mut self, packets: u64) {
                $of!(self, sender => sender.shorten(packets))
            }

            #[inline(always)]
            fn take_lost(&mut self) -> Option<u64> {
                $of!(self, sender => sender.take_lost())
            }
        }
    };
}

calls_any_sender!(AnySender, of_sender);
calls_any_sender!(SackingSender, of_sack_sender);

/// [`of_receiver`] in runs with SACKs.
macro_rules! of_sack_receiver {
    ($any:expr, $receiver:ident => $call:expr) => {
        match $any {
            WithSacks::Sack($receiver) => $call,
            WithSacks::Other($receiver) => rarely(|| $call),
        }
    };
}

/// Implements the receiving end by a macro that calls a method of any receiver.
macro_rules! calls_any_receiver {
    ($any:ty, $of:ident) => {
        impl model::Receiver for $any {
            #[inline]
            fn fetch(&self) {
                $of!(self, receiver => receiver.fetch())
            }

            #[inline(always)]
            fn on_plain(&mut self, psn: Psn) -> Option<Plain> {
                $of!(self, receiver => receiver.on_plain(psn))
            }

            #[inline(always)]
            fn on_arrival(&mut self, now: Time, inbound: Inbound) -> (Reception, Standing) {
                $of!(self, receiver => receiver.on_arrival(now, inbound))
            }

            #[inline]
            fn standing(&self) -> Standing {
                $of!(self, receiver => receiver.standing())
            }

            #[inline]
            fn kept(&self) -> u64 {
                $of!(self, receiver => receiver.kept())
            }

            #[inline(always)]
            fn telling(&self, of_packet: u16, port: PortIndex) -> Telling {
                $of!(self, receiver => receiver.telling(of_packet, port))
            }

            fn on_deadline(&mut self, now: Time) -> Overdue {
                $of!(self, receiver => receiver.on_deadline(now))
            }

            fn on_probed(&mut self, entropy: u16, round_trip: Time, port: PortIndex) {
                $of!(self, receiver => receiver.on_probed(entropy, round_trip, port))
            }

            #[inline]
            fn returns_headers(&self) -> bool {
                $of!(self, receiver => receiver.returns_headers())
            }
        }
    };
}

calls_any_receiver!(AnyReceiver, of_receiver);
calls_any_receiver!(SackingReceiver, of_sack_receiver);
