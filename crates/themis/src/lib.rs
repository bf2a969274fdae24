//! Themis: packet spraying for RDMA, and a filter that blocks the false NACKs which spraying causes.
//!
//! Commodity RDMA NICs accept packets in any order, but they answer a gap at once: when a packet arrives ahead of the
//! expected one, the NIC sends a NACK that names the expected packet, and nothing else. If every packet of a flow
//! takes another path, packets overtake each other all the time, and nearly every NACK names a packet that is merely
//! late. The sender retransmits it in vain and slows down.
//!
//! Themis (APNET'25) repairs this in the two ToR switches, without changing the NICs:
//!
//! * **Themis-S**, at the source ToR, sprays by sequence number instead of at random. A packet with number PSN takes path
//!   (PSN + base) mod N, so all packets with the same PSN mod N, the same *slot*, follow each other on one FIFO path.
//! * **Themis-D**, at the destination ToR, remembers which PSNs it has passed to the NIC. When a NACK comes up, it looks
//!   for a later packet of the same slot. Such a packet proves a loss, since it could not overtake the named packet on
//!   their common path; the NACK goes on to the sender. Without a proof the ToR blocks the NACK.
//! * **Compensation.** A NIC never repeats a NACK. After a block the ToR therefore waits for a proof, and sends the NACK
//!   itself if one arrives.
//!
//! This crate is that mechanism and nothing else: it holds no packets, clock, ports or simulator, allocates nothing and has
//! no dependency. The caller parses headers, owns the storage and sends the NACKs that the crate asks for. The test vectors
//! in `vectors/` check any other implementation (P4, eBPF, hardware) against the same verdicts.
//!
//! | file | contents |
//! |---|---|
//! | `psn.rs` | [`Psn`]: 24-bit serial numbers |
//! | `spray.rs` | Themis-S, the source ToR: [`path`] of a PSN, [`SlotTable`] for paths that fail |
//! | `path_map.rs` | Themis-S in fabrics with more than two tiers: [`path_map::PathMap`] |
//! | `rule.rs` | [`Settings`] and [`Rule`]: what all QPs of a switch share |
//! | `filter.rs` | Themis-D, the destination ToR: the verdict on a NACK, and one [`Flow`] per QP |
//! | `memory.rs` | the switch memory that all this takes |
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | PSN | packet sequence number of a QP, 24 bits; it wraps |
//! | ePSN | expected PSN: the packet that the NIC needs next; a NACK carries it |
//! | trigger | the out-of-order packet that made the NIC send the NACK; the paper calls its number tPSN |
//! | N, slot | number of slots, usually one per path; a packet's slot is PSN mod N |
//! | ring | the PSNs that the ToR has passed to the NIC last, per QP |
//! | last hop | the link between the destination ToR and the NIC |
//! | blocked | said of a NACK that the ToR keeps from the sender; the paper calls its number BePSN |
//! | armed | the ToR has blocked a NACK and waits for a proof that its packet is lost (the paper's Valid bit) |
//! | watching | the ToR follows a packet over the last hop, because the NIC has used up its NACK for it |
//! | compensation | the NACK that the ToR sends itself, once, when the proof arrives |
//!
//! # Example: a late packet, then a lost one
//!
//! This is Fig. 4 of the paper, with two paths: even PSNs take one, odd PSNs the other.
//!
//! | packet at the ToR | what happens |
//! |---|---|
//! | 0, 1, 3 | 3 overtakes 2 on the other path; the NIC sends NACK(2) |
//! | NACK(2) comes up | blocked: only 3 is later than 2, and 3 took another path |
//! | 2 | it was late; the ToR disarms |
//! | 6 | 6 overtakes 5, and 4 is missing; the NIC sends NACK(4) |
//! | NACK(4) comes up | forwarded: 6 took the path of 4 and arrived first, so 4 is lost |
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
//! // 3 took another path than 2, so its early arrival proves nothing about 2.
//! assert_eq!(rule.on_nack(&mut flow, &ring, Psn::new(2)), Verdict::Block(Reason::OtherPath));
//!
//! for psn in [2, 6] {
//!     assert_eq!(rule.on_depart(&mut flow, &mut ring, Psn::new(psn)), None);
//! }
//! // 6 took the path of 4 and arrived before it: 4 is lost.
//! assert_eq!(rule.on_nack(&mut flow, &ring, Psn::new(4)), Verdict::Forward(Reason::SamePath));
//! # Ok::<(), themis::RuleError>(())
//! ```
//!
//! # Two modes
//!
//! [`Mode::Literal`] follows the paper to the letter. It arms on every block, also if the packet passed the ToR while its
//! NACK was coming up the last hop. The next packet of the same slot then makes the ToR send a NACK for a packet that has
//! arrived. [`Mode::Sound`] first looks for the packet itself in the ring. It never sends or forwards a NACK for a packet
//! that is merely late, under the conditions that [`filter`] states.
//!
//! Four paths; packet 202 is late and passes just before its NACK comes up:
//!
//! ```
//! use themis::{Flow, Psn, Reason, Rule, Settings, Verdict};
//!
//! let run = |settings| {
//!     let rule = Rule::new(settings)?;
//!     let (mut flow, mut ring) = (Flow::new(), [0; 16]);
//!     for psn in [200, 201, 203, 202] {
//!         rule.on_depart(&mut flow, &mut ring, Psn::new(psn));
//!     }
//!     let verdict = rule.on_nack(&mut flow, &ring, Psn::new(202));
//!     let sent = rule.on_depart(&mut flow, &mut ring, Psn::new(206)); // same slot as 202
//!     Ok::<_, themis::RuleError>((verdict, sent))
//! };
//! // Literal: 206 sets off a false NACK. Sound: 202 is known to be on its way to the NIC.
//! let (other, wire) = (Verdict::Block(Reason::OtherPath), Verdict::Block(Reason::OnTheWire));
//! assert_eq!(run(Settings::literal(4, 16))?, (other, Some(Psn::new(202))));
//! assert_eq!(run(Settings::sound(4, 16))?, (wire, None));
//! # Ok::<(), themis::RuleError>(())
//! ```
#![forbid(unsafe_code)]
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
