//! What the director knows of exchanges, lanes, links and streams.

use crate::series::{Error, Fit, Record};
use scenario::outlined::Laid;
use std::rc::Rc;

/// How an exchange under way is done.
pub(super) enum Mode {
    /// By packets, or by copies inside servers.
    Sent(Box<Sent>),
    /// It is left out, and its events come when this record says.
    Replayed(Rc<Record>, Error),
    /// It is left out, and its events come when those of another exchange do, which is under way.
    Follows(u32),
}

/// The messages and tasks of an exchange that is sent.
pub(super) struct Sent {
    pub(super) laid: Laid,
    pub(super) messages: Vec<u32>,
    pub(super) tasks: Vec<u32>,
    /// By message: the one before it on its queue pair, whether it is ready, and whether it is posted.
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
    pub(super) ready: Vec<bool>,
    pub(super) posted: Vec<bool>,
    /// Start of tasks that an engine starts, and readiness, ps.
    pub(super) start: Vec<u64>,
    /// Events of messages and tasks that are still to come.
    pub(super) open: u32,
    pub(super) round: u32,
    pub(super) class: u32,
    /// Its class among those of its lane alone, if it has one, and its round there.
    pub(super) own: (u32, u32),
}

/// A message that was posted.
#[derive(Clone, Copy)]
pub(super) struct Posted {
    /// Where its exchange is under way.
    pub(super) slot: u32,
    /// Its number in the exchange.
    pub(super) message: u32,
    pub(super) group: u16,
    /// Its operation in the results.
    pub(super) operation: u32,
    /// By how much the engine's clock is behind in its time.
    pub(super) behind: u64,
}

/// An exchange under way.
pub(super) struct Exchange {
    pub(super) number: u32,
    pub(super) cell: u32,
    pub(super) mode: Mode,
    pub(super) series: u32,
    /// By member, ps; [`NEVER`] before.
    pub(super) entries: Vec<u64>,
    pub(super) entered: u32,
    /// By event, ps; [`NEVER`] before.
    pub(super) left: Vec<u64>,
    pub(super) gone: u32,
    pub(super) error: f64,
    /// Exchanges that follow this one.
    pub(super) followers: Vec<u32>,
    /// When its first member entered, and the meters of its lane's links then.
    pub(super) opened: u64,
    pub(super) meters: Box<[(u64, u64)]>,
    /// Time for which its own lane was left out then.
    pub(super) absent: u64,
    /// Time of the record's first entry, once all members have entered.
    pub(super) start: Option<u64>,
    /// During a leap, the entries and events of an exchange whose packets this one has taken over; else nothing.
    pub(super) taken_over: Option<Box<(Vec<u64>, Vec<u64>)>>,
}

pub(super) const NEVER: u64 = u64::MAX;
pub(super) const NONE: u32 = u32::MAX;

/// Exchanges of one kind in one lane, which begin when the lane is idle, or while the exchange before them is under way.
#[derive(Default)]
pub(super) struct Series {
    /// Its class among all lanes; if exchanges of others meet on its links, it also has one of its own.
    pub(super) class: u32,
    pub(super) own: u32,
    pub(super) rounds: u32,
    /// Rounds before there was a class of its own.
    pub(super) before_own: u32,
    /// Rounds up to this one are sent.
    pub(super) hold: u32,
    /// Whether a round has met others.
    pub(super) met: bool,
    /// The most by which members took turns to be late.
    pub(super) turns: u64,
    pub(super) known: bool,
}

impl Series {
    /// The error of an exchange whose entries fit those of its record so. Turns do not add up from round to round.
    pub(super) fn late(&mut self, fit: Fit) -> u64 {
        let more = fit.turns.saturating_sub(self.turns);
        self.turns += more;
        fit.late + more
    }
}

/// What is known of the exchanges of a track in one cell before the first of them begins.
#[derive(Clone, Copy, Default)]
pub(super) struct Learned {
    /// Packets of an exchange over NICs.
    pub(super) packets: u64,
    /// Equal numbers: paths of the same shape.
    pub(super) shape: u32,
    /// Most lanes of such exchanges that a link between switches may have.
    pub(super) load: u32,
}

/// The exchanges of the same ranks of one communicator.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) links: Rc<[u32]>,
    /// Exchanges under way over NICs, and those of them that are left out.
    pub(super) busy: u32,
    pub(super) left_out: u32,
    /// Packets of the largest exchange since it was idle.
    pub(super) packets: u64,
    /// Lanes that have used its links at the same time.
    pub(super) others: Vec<u32>,
    /// Time for which its exchanges were left out.
    pub(super) absent: Meter,
    /// Series of this lane that have been opened.
    pub(super) series: Vec<u32>,
}

/// The time for which something has had users, summed over them, ps.
#[derive(Clone, Copy, Default)]
pub(super) struct Meter {
    pub(super) users: u32,
    pub(super) since: u64,
    pub(super) sum: u64,
}

impl Meter {
    pub(super) fn at(&self, now: u64) -> u64 {
        self.sum + u64::from(self.users) * (now - self.since)
    }

    pub(super) fn set(&mut self, users: u32, now: u64) {
        *self = Meter { users, since: now, sum: self.at(now) };
    }
}

/// The lanes under way on a link.
#[derive(Default)]
pub(super) struct Usage {
    pub(super) lanes: Vec<u32>,
    pub(super) used: Meter,
    /// That of lanes whose exchanges are left out.
    pub(super) absent: Meter,
}

/// A stream or an engine: the time from which it is free, and the error of that time.
#[derive(Clone, Copy, Default)]
pub(super) struct Free {
    pub(super) at: u64,
    pub(super) error: f64,
}
