//! Themis on packet sequence numbers alone.
//!
//! RDMA NICs with selective repeat accept packets out of order, but answer the first one beyond a gap with
//! a NACK that names only the packet they expect. Under packet spraying nearly all such NACKs are wrong.
//! Themis (APNET'25) sprays by sequence number instead of at random, so the last switch before the
//! receiver can tell a lost packet from a late one, lets the NACKs for the lost through and blocks the rest.
//! This crate is that mechanism:
//!
//! | file | part |
//! |---|---|
//! | `psn.rs` | [`Psn`]: 24-bit serial numbers |
//! | `spray.rs` | Themis-S, the source ToR: [`path`] of a PSN, [`SlotTable`] for remapping |
//! | `path_map.rs` | Themis-S beyond the ToR: [`path_map::PathMap`], source ports that steer the hashes further up |
//! | `rule.rs` | [`Settings`] and [`Rule`]: what all QPs of a switch share |
//! | `filter.rs` | Themis-D, the destination ToR: the judgement, one [`Flow`] per QP |
//! | `memory.rs` | what it costs in switch memory |
//!
//! It holds no packets, no clock, no ports and no simulator, allocates nothing and depends on nothing: the
//! caller parses headers, owns the storage and sends what is owed. The test vectors in `vectors/` hold any
//! other implementation to the same verdicts.
//!
//! # Example: Fig. 4 of the paper
//!
//! Two paths. Packet 3 overtakes packet 2; later packet 4 is lost.
//!
//! ```
//! use themis::{Flow, Psn, Reason, Rule, Settings, Verdict};
//!
//! let rule = Rule::new(Settings::sound(2, 16))?;
//! let mut ring = [0; 16]; // the switch's storage: one slice per QP
//! let mut flow = Flow::new();
//!
//! for psn in [0, 1, 3] {
//!     assert_eq!(rule.on_depart(&mut flow, &mut ring, Psn::new(psn)), None);
//! }
//! // 3 does not travel 2's path, so its early arrival says nothing about 2.
//! assert_eq!(rule.on_nack(&mut flow, &ring, Psn::new(2)), Verdict::Block(Reason::OtherPath));
//!
//! for psn in [2, 6] {
//!     assert_eq!(rule.on_depart(&mut flow, &mut ring, Psn::new(psn)), None);
//! }
//! // 6 travels 4's path and came before it: 4 is lost.
//! assert_eq!(rule.on_nack(&mut flow, &ring, Psn::new(4)), Verdict::Forward(Reason::SamePath));
//! # Ok::<(), themis::RuleError>(())
//! ```
#![no_std]

pub mod filter;
pub mod memory;
pub mod path_map;
pub mod psn;
pub mod rule;
pub mod spray;

pub use filter::{Flow, Reason, Verdict};
pub use psn::{PSN_SPACE, Psn};
pub use rule::{Mode, Rule, RuleError, Settings, Width};
pub use spray::{SlotTable, Slots, path};
