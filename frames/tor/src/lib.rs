//! A software ToR for RoCEv2 frames, without I/O.
//!
//! One [`Tor`] stands for a whole two-tier fabric: host ports, a ToR for each group of them, and emulated spines between
//! the ToRs. The crate opens no socket, reads no clock, starts no thread and draws no random number that its seed does
//! not determine. Its surroundings tell it what happens and when; it answers with frames to send and with notes about
//! its decisions. The same state machine therefore runs in tests on virtual time, in replays of captures, and between
//! real ports, and decides the same for the same frames at the same times.
//!
//! ```
//! use tor::{Out, Pool, PortId, Settings, Time, Tor};
//!
//! let mut tor = Tor::new(&Settings::of_ports(2));
//! let mut pool = Pool::new(64, 2048);
//!
//! // A port's reader fills a buffer of the pool, and gives the frame to the ToR.
//! let broadcast = [[0xFF; 6], [2, 0, 0, 0, 0, 1]].concat();
//! let mut frame = pool.take().expect("a free buffer");
//! pool.buffer(&mut frame)[..12].copy_from_slice(&broadcast);
//! pool.set_len(&mut frame, 60);
//! tor.frame(Time::ZERO, PortId(0), frame, &mut pool);
//!
//! // The ToR says when it wants to be called again, and which frames leave.
//! while let Some(at) = tor.poll_at() {
//!     tor.tick(at, &mut pool);
//! }
//! while let Some(out) = tor.poll() {
//!     if let Out::Send { port, frame, .. } = out {
//!         assert_eq!((port, pool.bytes(&frame).len()), (PortId(1), 60));
//!         pool.put_back(frame); // after the port has written it
//!     }
//! }
//! ```
#![forbid(unsafe_code)]

pub mod config;
pub mod counters;
mod draw;
pub mod events;
pub mod frame;
mod guard;
pub mod out;
mod paths;
pub mod pool;
mod qp;
mod queues;
mod recent;
pub mod replay;
pub mod settings;
mod spray;
pub mod stations;
mod table;
pub mod tor;
pub mod units;

pub use counters::{Counters, FailOpen};
pub use draw::Chance;
pub use guard::{FlowView, Judged, OnBlock};
pub use out::{Event, Note, Out};
pub use paths::{Loss, Spine};
pub use pool::{Frame, Pool};
pub use qp::{Connection, End, Evidence, Unknown, fold};
pub use queues::{Buffer, CLASSES, Classes, MarkAt, Marking, Trust, WIRE_OVERHEAD};
pub use replay::{Told, replay};
pub use settings::{Mode, Port, Settings, Themis};
pub use spray::{Spray, Steer};
pub use tor::Tor;
pub use units::{PortId, Rate, Span, Time};
