//! A replay: frames that were captured pass a ToR at the times of their capture.

use crate::counters::Counters;
use crate::out::{Note, Out};
use crate::pool::Pool;
use crate::settings::Settings;
use crate::tor::Tor;
use crate::units::{PortId, Span, Time};

/// Buffers of a replay. Our choice: more than a fabric with delays of milliseconds holds at 10 Gbit/s.
const BUFFERS: u32 = 1 << 14;

/// Time after the last frame in which the others leave. Our choice: longer than any path that a user would emulate.
const REST: Span = Span::from_secs(10);

/// What a replay tells.
pub enum Told<'a> {
    /// An entry of the decision log.
    Note(&'a Note),
    /// A frame leaves.
    Sent {
        /// Instant at which it leaves.
        at: Time,
        /// Instant at which its transmission started.
        started: Time,
        /// The port.
        port: PortId,
        /// The frame.
        bytes: &'a [u8],
    },
}

/// Lets frames pass a new ToR, in the order given; their times do not run backwards. Frames longer than
/// [`crate::frame::LONGEST`] are left out. Returns the counters after the last frame has left.
pub fn replay<B: AsRef<[u8]>>(
    settings: &Settings,
    frames: impl IntoIterator<Item = (Time, PortId, B)>,
    mut tell: impl FnMut(Told<'_>),
) -> Counters {
    let (mut tor, mut pool) = (Tor::new(settings), Pool::new(BUFFERS, crate::frame::LONGEST));
    let mut drain = |tor: &mut Tor, pool: &mut Pool| {
        while let Some(out) = tor.poll() {
            match out {
                Out::Note(note) => tell(Told::Note(&note)),
                Out::Send { at, started, port, frame } => {
                    tell(Told::Sent { at, started, port, bytes: pool.bytes(&frame) });
                    pool.put_back(frame);
                }
            }
        }
    };
    let mut end = Time::ZERO;
    for (at, port, bytes) in frames {
        end = at + REST;
        tor.tick(at, &mut pool);
        drain(&mut tor, &mut pool);
        if let Some(frame) = pool.copy_of(bytes.as_ref()) {
            tor.frame(at, port, frame, &mut pool);
            drain(&mut tor, &mut pool);
        }
    }
    while pool.free() < pool.count()
        && let Some(at) = tor.poll_at().filter(|at| *at < end)
    {
        tor.tick(at, &mut pool);
        drain(&mut tor, &mut pool);
    }
    tor.counters().clone()
}
