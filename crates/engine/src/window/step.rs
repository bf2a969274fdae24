//! The computation of a host's ports in steps, which the visits of all kinds of hosts share.

use super::out::LinkEvents;
use model::{MessageId, Parcel, QpId};

/// A step in the computation of one port.
pub(super) enum Step<'s, A> {
    /// A packet arrives.
    Arrival(&'s Parcel<A>),
    /// Packets arrive one after the other, and end no message.
    Arrivals(&'s [Parcel<A>]),
    /// A trigger, collected by a task or at another port at this time in ps, fires for a message that leaves by this port.
    Trigger(u64, MessageId),
    /// A program has posted the newest message of this queue pair at this time in ps.
    Post(u64, QpId),
    /// All own events of the port up to this time in ps, timers included, come before what follows.
    Settle(u64),
    /// The window ends.
    End,
    /// The whole window, with its arrivals.
    Whole(&'s [Parcel<A>]),
}

/// Events and far packets of one port.
#[derive(Debug, Default)]
pub(super) struct PortEvents {
    pub(super) links: LinkEvents,
    /// The port's bit in [`Out::far`](super::out::Out::far), as if it was the only port.
    pub(super) far: [u64; 1],
    /// At the first port of a shared NIC: start of the next packet of the NIC, ps, unless something happens before; 0 if it is unknown.
    pub(super) due: u64,
    /// There, too: time of the next link event of the NIC, ps, if `due` is known.
    pub(super) event: u64,
}
