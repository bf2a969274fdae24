//! Load balancing in switches and in sending NICs: one file per scheme, and the one list of them, [`SchemeConfig`]. [`feedback`]
//! has what switches tell senders, which stands beside a scheme.
//!
//! A scheme balances data. Control packets (ACK, NACK, CNP) take the base path, the one that their flow hashes to: they are
//! few, and their order carries meaning. There are two exceptions. NICs that accept any order may give replies an entropy of
//! their own ([`model::Switched::path_entropy`]). Where queue pairs are [`pinned`] to paths, an ACK or a NACK takes the path of the
//! packet that it answers.
//!
//! # Adding a scheme
//!
//! Write `src/name.rs` with a `Config` (its table in a scenario; every field has a default and documents the source of
//! that default), a state machine `Name` that is a [`model::Scheme`], and `impl Recipe for Config`, whose [`Facts`] tell
//! what other code must know of the scheme. Add `name: Name` to the list below. Its contract is checked
//! (`contract`), and the tests of other crates run its [`Recipe::TRIALS`].
//!
//! A scheme in the sending NIC also implements [`Steers`] with a [`model::Steering`], and belongs to the second part of the
//! list; [`entropies`] is its part in switches. [`pinned`] is the part in switches of schemes whose queue pairs keep explicit
//! paths. A scheme with parts of its own in both places belongs to the third part.
//! [`Assignment`] tells which scheme stands where in a run, and [`per_class`] gives each traffic class its own scheme.
//!
//! [`look`] has the colours, dashes and markers of schemes in pictures.
//!
//! [`choice`] helps a scheme that chooses a port or a detour by load, for a packet or for a flow.
//!
//! A scheme outside this crate has the same parts, and an entry in the list of its program, see [`own`].

#![forbid(unsafe_code)]

use finding::{Finding, code};
use model::annex::NoticeRules;
use model::fabric::Detours;
use model::scheme::{Acks, Arrived};
use model::steering::{Aside, Room, Sent};
use model::{
    Cx, Interest, Packet, Plan, PortIndex, QpSite, Reroute, Scheme, Site, Stamp, Steering, Time, Verdict,
};
use own::Own;
use palette::Look;
use rnic::NicConfig;
use schemars::JsonSchema;
use serde::de::{EnumAccess, Error as _, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A module's name as a scenario spells it: `long_haul` becomes `"long-haul"`.
macro_rules! kebab {
    ($module:ident) => {
        const {
            const BYTES: [u8; stringify!($module).len()] = $crate::hyphenated(stringify!($module));
            match std::str::from_utf8(&BYTES) {
                Ok(name) => name,
                Err(_) => stringify!($module),
            }
        }
    };
}

const fn hyphenated<const N: usize>(name: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut i = 0;
    while i < N {
        let byte = name.as_bytes()[i];
        bytes[i] = if byte == b'_' { b'-' } else { byte };
        i += 1;
    }
    bytes
}

mod assignment;
#[cfg(any(test, feature = "contract"))]
#[cfg_attr(not(test), allow(dead_code))]
mod bench;
mod carried;
pub mod choice;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
pub mod entropies;
mod facts;
pub mod feedback;
pub mod flows;
mod groups;
pub mod look;
pub mod own;
mod palette;
pub mod per_class;
pub mod pinned;
mod racks;
pub mod with_feedback;

pub use assignment::Assignment;
pub use carried::Carried;
pub use facts::Facts;
pub use feedback::FeedbackConfig;

/// Refuses fabrics that have no detours.
pub(crate) fn needs_groups(plan: &Plan) -> Result<Vec<Finding>, Finding> {
    if plan.fabric.groups() == 0 {
        let text = "this scheme sends packets over groups other than their own, and the fabric has no groups: it needs a \
                    Dragonfly, `[topology.dragonfly]`; `minimal` runs on any fabric";
        return Err(code::UNSUITED.at("", text));
    }
    Ok(Vec::new())
}

/// A scheme's settings: every scheme's `Config` implements it.
pub trait Recipe {
    /// State machine of a switch.
    type Scheme: Scheme;

    /// Look in pictures. Default: one that no other scheme has.
    const LOOK: Option<Look> = None;

    /// Settings with which tests run the scheme: texts that follow `[scheme.NAME]`, and may open other tables such as `[nic]`.
    /// Small numbers make rare events happen in short runs. Default: its defaults.
    const TRIALS: &'static [&'static str] = &[""];

    /// Rows of the golden tables. Default: one for each setting of leaves and spines.
    const GOLDEN: Golden = Golden::LeafSpine(&[("", "")]);

    /// The scheme for one switch. Total: a configuration that [`Recipe::validate`] refuses still builds a scheme that
    /// forwards packets.
    fn build(&self, site: Site<'_>) -> Self::Scheme;

    /// Facts that the rest of the workspace must know of the scheme.
    fn facts(&self) -> Facts;

    /// Checks the configuration against a plan; returns warnings.
    ///
    /// # Errors
    /// The first field that cannot work.
    fn validate(&self, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        Ok(Vec::new())
    }

    /// Checks the configuration against the NIC of its queue pairs on this fabric; returns warnings.
    ///
    /// # Errors
    /// The first field that cannot work.
    fn validate_nic(&self, _nic: &NicConfig, _plan: &Plan) -> Result<Vec<Finding>, Finding> {
        Ok(Vec::new())
    }
}

/// Rows of a scheme in the golden tables, by their fabric: the name of each, and the keys of the scheme's inline table. An empty
/// name stands for the scheme's own.
#[derive(Clone, Copy, Debug)]
pub enum Golden {
    /// Leaves and spines, with every setting of the tables on which the scheme can run.
    LeafSpine(&'static [(&'static str, &'static str)]),
    /// Groups of routers.
    Dragonfly(&'static [(&'static str, &'static str)]),
    /// No rows.
    None,
}

/// Settings of a scheme in the sending NIC; [`Recipe`] is its part in switches.
pub trait Steers: Recipe {
    /// State machine of a queue pair's sender.
    type Steering: Steering<Annex = Stamp>;

    /// The steering of one queue pair.
    fn steer(&self, site: QpSite<'_>) -> Self::Steering;

    /// Rules by which receivers treat notices; `None` if senders send none.
    fn notices(&self, _plan: &Plan) -> Option<NoticeRules> {
        None
    }
}

macro_rules! schemes {
    (
        in switches { $($(#[doc = $about:literal])* $module:ident: $Variant:ident),+ $(,)? }
        in senders { $($(#[doc = $nic_about:literal])* $nic_module:ident: $NicVariant:ident),+ $(,)? }
        in both { $($(#[doc = $both_about:literal])* $both_module:ident: $BothVariant:ident),+ $(,)? }
    ) => {
        $(pub mod $module;)+
        $(pub mod $nic_module;)+
        $(pub mod $both_module;)+

        /// A scheme and its settings: the table `[scheme.NAME]` of a scenario.
        #[derive(Clone, Debug, PartialEq, JsonSchema)]
        #[schemars(rename_all = "kebab-case", transform = own::listed)]
        pub enum SchemeConfig {
            $($(#[doc = $about])* $Variant($module::Config),)+
            $($(#[doc = $nic_about])* $NicVariant($nic_module::Config),)+
            $($(#[doc = $both_about])* $BothVariant($both_module::Config),)+
            /// A scheme that the program has added.
            #[schemars(skip)]
            Own(Own),
        }

        impl SchemeConfig {
            /// Names of the schemes of this crate, as a scenario spells them.
            pub const BUILT_IN: &[&str] = &[$(kebab!($module),)+ $(kebab!($nic_module),)+ $(kebab!($both_module)),+];

            /// What each scheme of [`SchemeConfig::BUILT_IN`] is, in a sentence or two.
            const ABOUT: &[&str] = &[
                $(concat!($($about),*).trim_ascii(),)+
                $(concat!($($nic_about),*).trim_ascii(),)+
                $(concat!($($both_about),*).trim_ascii()),+
            ];

            /// The scheme of that name with its defaults.
            pub fn named(name: &str) -> Option<SchemeConfig> {
                $(if name == kebab!($module) {
                    return Some(SchemeConfig::$Variant(Default::default()));
                })+
                $(if name == kebab!($nic_module) {
                    return Some(SchemeConfig::$NicVariant(Default::default()));
                })+
                $(if name == kebab!($both_module) {
                    return Some(SchemeConfig::$BothVariant(Default::default()));
                })+
                own::named(name).map(SchemeConfig::Own)
            }

            /// Name of the scheme, as a scenario spells it.
            pub fn name(&self) -> &'static str {
                match self {
                    $(SchemeConfig::$Variant(_) => kebab!($module),)+
                    $(SchemeConfig::$NicVariant(_) => kebab!($nic_module),)+
                    $(SchemeConfig::$BothVariant(_) => kebab!($both_module),)+
                    SchemeConfig::Own(own) => own.name(),
                }
            }

            /// The scheme for one switch.
            pub fn build(&self, site: Site<'_>) -> AnyScheme {
                match self {
                    $(SchemeConfig::$Variant(config) => AnyScheme::$Variant(config.build(site)),)+
                    $(SchemeConfig::$NicVariant(config) => AnyScheme::Entropies(config.build(site)),)+
                    $(SchemeConfig::$BothVariant(config) => AnyScheme::$BothVariant(Box::new(config.build(site))),)+
                    SchemeConfig::Own(own) => own.build(site),
                }
            }

            /// The steering of one queue pair; [`AnySteering::None`] if the scheme sits in switches alone.
            pub fn steer(&self, site: QpSite<'_>) -> AnySteering {
                match self {
                    $(SchemeConfig::$NicVariant(config) => AnySteering::$NicVariant(Box::new(config.steer(site))),)+
                    $(SchemeConfig::$BothVariant(config) => AnySteering::$BothVariant(Box::new(config.steer(site))),)+
                    SchemeConfig::Own(own) => own.steer(site),
                    _ => AnySteering::None(Unsteered),
                }
            }

            /// Rules by which receivers treat notices; `None` if senders send none.
            pub fn notices(&self, plan: &Plan) -> Option<NoticeRules> {
                match self {
                    $(SchemeConfig::$NicVariant(config) => config.notices(plan),)+
                    $(SchemeConfig::$BothVariant(config) => config.notices(plan),)+
                    SchemeConfig::Own(own) => own.notices(plan),
                    _ => None,
                }
            }

            /// True if the scheme writes on packets, in the sending NIC or in switches.
            pub fn writes(&self) -> bool {
                if let SchemeConfig::Own(own) = self {
                    return own.writes();
                }
                let in_switches = matches!(self, $(SchemeConfig::$Variant(_))|+);
                !in_switches || self.facts().tags
            }
        }

        /// Evaluates an expression with the settings of any scheme.
        macro_rules! of_config {
            ($any:expr, $config:ident => $value:expr) => {
                match $any {
                    $(SchemeConfig::$Variant($config) => $value,)+
                    $(SchemeConfig::$NicVariant($config) => $value,)+
                    $(SchemeConfig::$BothVariant($config) => $value,)+
                    SchemeConfig::Own($config) => $value,
                }
            };
        }

        impl Serialize for SchemeConfig {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let name = self.name();
                match self {
                    $(SchemeConfig::$Variant(config) => serializer.collect_map([(name, config)]),)+
                    $(SchemeConfig::$NicVariant(config) => serializer.collect_map([(name, config)]),)+
                    $(SchemeConfig::$BothVariant(config) => serializer.collect_map([(name, config)]),)+
                    SchemeConfig::Own(own) => own.serialize(serializer),
                }
            }
        }

        impl<'de> Visitor<'de> for Chosen {
            type Value = SchemeConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("enum SchemeConfig")
            }

            fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<SchemeConfig, A::Error> {
                let (name, settings) = data.variant::<String>()?;
                $(if name == kebab!($module) {
                    return settings.newtype_variant().map(SchemeConfig::$Variant);
                })+
                $(if name == kebab!($nic_module) {
                    return settings.newtype_variant().map(SchemeConfig::$NicVariant);
                })+
                $(if name == kebab!($both_module) {
                    return settings.newtype_variant().map(SchemeConfig::$BothVariant);
                })+
                let Some(own) = own::named(&name) else {
                    return Err(A::Error::unknown_variant(&name, SchemeConfig::names()));
                };
                own.read(settings.newtype_variant()?).map(SchemeConfig::Own).map_err(A::Error::custom)
            }
        }

        /// Calls a macro with the modules of all schemes, for tests that want a test for each.
        #[macro_export]
        macro_rules! each_scheme {
            ($call:ident) => {
                $call! { $($module)+ $($nic_module)+ $($both_module)+ }
            };
        }

        /// Any scheme, chosen at run time without a box.
        // An explicit tag is quicker to read than one hidden in a field, and it is read for every packet.
        #[repr(u8)]
        pub enum AnyScheme {
            $($(#[doc = $about])* $Variant($module::$Variant),)+
            $($(#[doc = $both_about])* $BothVariant(Box<<$both_module::Config as Recipe>::Scheme>),)+
            /// Part in switches of a scheme that sits in the sending NIC.
            Entropies(entropies::Entropies),
            /// A scheme for each traffic class.
            PerClass(Box<per_class::PerClass>),
            /// A scheme with a feedback beside it.
            WithFeedback(Box<with_feedback::WithFeedback<AnyScheme>>),
            /// A scheme from outside this crate.
            Custom(Box<dyn Scheme + Send>),
        }

        /// Calls a method of any scheme.
        macro_rules! of_scheme {
            ($any:expr, $scheme:ident => $call:expr) => {
                match $any {
                    $(AnyScheme::$Variant($scheme) => $call,)+
                    $(AnyScheme::$BothVariant($scheme) => $call,)+
                    AnyScheme::Entropies($scheme) => $call,
                    AnyScheme::PerClass($scheme) => $call,
                    AnyScheme::WithFeedback($scheme) => $call,
                    AnyScheme::Custom($scheme) => $call,
                }
            };
        }

        /// Any steering. It is boxed, since it is used only with packets of its own queue pair.
        pub enum AnySteering {
            /// Steering of a scheme that sits in switches alone.
            None(Unsteered),
            $($(#[doc = $nic_about])* $NicVariant(Box<$nic_module::$NicVariant>),)+
            $($(#[doc = $both_about])* $BothVariant(Box<<$both_module::Config as Steers>::Steering>),)+
            /// A steering from outside this crate.
            Custom(Box<dyn Steering<Annex = Stamp> + Send>),
        }

        /// Calls a method of any steering.
        macro_rules! of_steering {
            ($any:expr, $steering:ident => $call:expr) => {
                match $any {
                    AnySteering::None($steering) => $call,
                    $(AnySteering::$NicVariant($steering) => $call,)+
                    $(AnySteering::$BothVariant($steering) => $call,)+
                    AnySteering::Custom($steering) => $call,
                }
            };
        }
    };
}

schemes! {
    in switches {
        /// Equal-cost multi-path: a flow stays on the path that its 5-tuple hashes to.
        ecmp: Ecmp,
        /// Random packet spraying: every data packet draws one of the equal-cost paths.
        rps: Rps,
        /// Adaptive routing: every data packet joins the shortest of the equal-cost queues.
        ar: Ar,
        /// ARS: adaptive routing by the rules of a vendor (DLB, ARS, Spectrum, cluster load balancing).
        ars: Ars,
        /// DRILL: every data packet joins the shortest of a few sampled and remembered queues.
        drill: Drill,
        /// Flowlet switching (LetFlow, NSDI'17): every switch draws a path for a flow after each pause.
        flowlet: Flowlet,
        /// Minimal routing: a flow stays on one minimal path of a Dragonfly; ECMP on fabrics without groups.
        minimal: Minimal,
        /// Valiant's routing: on a Dragonfly, every packet goes over a random group first.
        valiant: Valiant,
        /// UGAL-L: on a Dragonfly, every packet takes a minimal path or a random group, by local queues.
        ugal_l: UgalL,
        /// UGAL-G: UGAL with a delayed view of all queues.
        ugal_g: UgalG,
        /// CONGA: flowlets take the least congested path, by feedback from the far leaf.
        conga: Conga,
        /// ConWeave: flows leave slow paths, and the receiver's switch puts their packets back in order.
        conweave: Conweave,
        /// Themis (APNET'25): spraying by packet sequence number, and NACKs judged at the destination ToR.
        themis: Themis,
    }
    in senders {
        /// Random packet spraying by the sender: every data packet draws its UDP source port.
        rps_nic: RpsNic,
        /// Flowlet switching by the sender: a flow draws its UDP source port after each pause.
        flowlet_nic: FlowletNic,
        /// Flowcells (Presto, SIGCOMM'15): the sender takes the next path after every 64 KB.
        flowcell: Flowcell,
        /// PLB (SIGCOMM'22): a flow that meets congestion for several round trips draws another UDP source port.
        plb: Plb,
        /// REPS: the sender reuses source ports whose ACKs came without a mark.
        reps: Reps,
        /// Oblivious spraying (Ultra Ethernet): the sender takes one entropy after the other, in random rounds.
        oblivious: Oblivious,
        /// Bitmap (Ultra Ethernet): the sender passes over entropies that have caused marks or trimmed packets.
        entropy_bitmap: EntropyBitmap,
        /// Mixed (Ultra Ethernet's simulator): the sender reuses good entropies first, and else passes over bad ones.
        entropy_mixed: EntropyMixed,
        /// MRC: entropies over all planes; marks skip an entropy once, and losses replace it.
        mrc: Mrc,
        /// DLBF: a flow leaves its path when the path is congested, and the sender hides the move.
        dlbf: Dlbf,
        /// MP-RDMA (NSDI'18): ACKs clock packets onto the paths that they answer; it brings its own recovery mode and
        /// congestion control.
        mp_rdma: MpRdma,
    }
    in both {
        /// Ethereal: messages are split into subflows that fill all uplinks evenly; a subflow keeps its path until a timeout.
        ethereal: Ethereal,
        /// Flowcut switching: a flow moves only when none of its packets is in flight.
        flowcut: Flowcut,
    }
}

/// The constants of a recipe, asked of its settings.
trait Told {
    fn look(&self) -> Option<Look>;
    fn trials(&self) -> &'static [&'static str];
    fn golden(&self) -> Golden;
}

impl<R: Recipe> Told for R {
    fn look(&self) -> Option<Look> {
        R::LOOK
    }

    fn trials(&self) -> &'static [&'static str] {
        R::TRIALS
    }

    fn golden(&self) -> Golden {
        R::GOLDEN
    }
}

/// Reads the table of a scheme by its name.
struct Chosen;

impl<'de> Deserialize<'de> for SchemeConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("SchemeConfig", SchemeConfig::BUILT_IN, Chosen)
    }
}

impl SchemeConfig {
    /// Names of all schemes, as a scenario spells them: those of this crate, and those that the program has added.
    pub fn names() -> &'static [&'static str] {
        own::names()
    }

    /// What the scheme of that name is, in a sentence or two; empty if there is none.
    pub fn about(name: &str) -> &'static str {
        match Self::BUILT_IN.iter().position(|known| *known == name) {
            Some(at) => Self::ABOUT[at],
            None => own::named(name).map_or("", |own| own.about()),
        }
    }

    /// Facts that other code must know of the scheme.
    pub fn facts(&self) -> Facts {
        of_config!(self, config => config.facts())
    }

    /// Look in pictures; `None` for one that no other scheme has.
    pub(crate) fn look(&self) -> Option<Look> {
        of_config!(self, config => config.look())
    }

    /// Settings with which tests run the scheme: texts that follow `[scheme.NAME]`, and may open other tables.
    pub fn trials(&self) -> &'static [&'static str] {
        of_config!(self, config => config.trials())
    }

    /// Rows of the golden tables.
    pub fn golden(&self) -> Golden {
        of_config!(self, config => config.golden())
    }

    /// The NIC that the scheme brings to its queue pairs in a scenario with the NIC `nic`, if it brings one.
    pub fn own_nic(&self, nic: &NicConfig) -> Option<NicConfig> {
        self.facts().nic.map(|own| nic.with(own))
    }

    /// Checks the settings against a plan; returns warnings.
    ///
    /// # Errors
    /// The first field that cannot work.
    pub fn validate(&self, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        of_config!(self, config => config.validate(plan))
    }

    /// Checks the settings against the NIC of its queue pairs on this fabric; returns warnings.
    ///
    /// # Errors
    /// The first field that cannot work.
    pub fn validate_nic(&self, nic: &NicConfig, plan: &Plan) -> Result<Vec<Finding>, Finding> {
        of_config!(self, config => config.validate_nic(nic, plan))
    }
}

impl AnyScheme {
    /// This scheme with a feedback beside it, if there is one.
    #[must_use]
    pub fn telling(self, feedback: Option<feedback::AnyFeedback>) -> AnyScheme {
        match feedback {
            Some(feedback) => {
                AnyScheme::WithFeedback(Box::new(with_feedback::WithFeedback::new(self, feedback)))
            }
            None => self,
        }
    }
}

impl Scheme for AnyScheme {
    #[inline]
    fn interest(&self) -> Interest {
        of_scheme!(self, scheme => scheme.interest())
    }

    #[inline]
    fn expect(&self, pkt: &Packet) {
        of_scheme!(self, scheme => scheme.expect(pkt))
    }

    #[inline(always)]
    fn reads_queues(&self, pkt: &Packet, ports: &[PortIndex], detours: &Detours<'_>) -> bool {
        of_scheme!(self, scheme => scheme.reads_queues(pkt, ports, detours))
    }

    #[inline]
    fn queues_read(&self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex], read: &mut Vec<PortIndex>) {
        of_scheme!(self, scheme => scheme.queues_read(arrived, pkt, ports, read))
    }

    #[inline(always)]
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        of_scheme!(self, scheme => scheme.on_packet(cx, pkt, ports))
    }

    #[inline]
    fn note_reply(&mut self, now: Time, pkt: &Packet, port: PortIndex) {
        of_scheme!(self, scheme => scheme.note_reply(now, pkt, port))
    }

    #[inline(always)]
    fn on_depart(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex) {
        of_scheme!(self, scheme => scheme.on_depart(cx, pkt, port))
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, port: PortIndex) {
        of_scheme!(self, scheme => scheme.on_start(cx, pkt, port))
    }

    #[inline(always)]
    fn choose(&self, arrived: Arrived, pkt: &Packet, ports: &[PortIndex]) -> PortIndex {
        of_scheme!(self, scheme => scheme.choose(arrived, pkt, ports))
    }

    #[inline]
    fn on_pass(&mut self, now: Time, pkt: &Packet, tag: u64, port: PortIndex) -> u64 {
        of_scheme!(self, scheme => scheme.on_pass(now, pkt, tag, port))
    }

    #[inline(always)]
    fn on_nack(&mut self, pkt: &mut Packet, port: PortIndex, acks: &mut Acks<'_>) -> bool {
        of_scheme!(self, scheme => scheme.on_nack(pkt, port, acks))
    }

    #[inline(always)]
    fn on_leave(&mut self, pkt: &Packet, port: PortIndex, acks: &mut Acks<'_>) -> Option<Packet> {
        of_scheme!(self, scheme => scheme.on_leave(pkt, port, acks))
    }

    #[inline]
    fn on_acks(&mut self, port: PortIndex, acks: &mut Acks<'_>) {
        of_scheme!(self, scheme => scheme.on_acks(port, acks))
    }

    #[inline]
    fn is_quiet(&self, port: PortIndex) -> bool {
        of_scheme!(self, scheme => scheme.is_quiet(port))
    }

    #[inline]
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        of_scheme!(self, scheme => scheme.on_wake(cx))
    }

    fn on_routes_change(&mut self, cx: &mut Cx<'_>, news: &Reroute<'_>) {
        of_scheme!(self, scheme => scheme.on_routes_change(cx, news))
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        of_scheme!(self, scheme => scheme.counters(sink))
    }
}

impl Steering for AnySteering {
    type Annex = Stamp;

    #[inline]
    fn fetch(&self) {
        of_steering!(self, steering => steering.fetch())
    }

    #[inline]
    fn on_send(&mut self, now: Time, sent: Sent) -> Stamp {
        of_steering!(self, steering => steering.on_send(now, sent))
    }

    #[inline]
    fn port(&mut self, now: Time, ports: u32) -> Option<u8> {
        of_steering!(self, steering => steering.port(now, ports))
    }

    fn on_ports(&mut self, usable: u32) {
        of_steering!(self, steering => steering.on_ports(usable))
    }

    #[inline]
    fn holds(&self) -> bool {
        of_steering!(self, steering => steering.holds())
    }

    #[inline]
    fn is_passive(&self) -> bool {
        of_steering!(self, steering => steering.is_passive())
    }

    #[inline]
    fn deadline(&self) -> Time {
        of_steering!(self, steering => steering.deadline())
    }

    fn on_deadline(&mut self, now: Time) {
        of_steering!(self, steering => steering.on_deadline(now))
    }

    fn on_signal(&mut self, now: Time, tag: u64) {
        of_steering!(self, steering => steering.on_signal(now, tag))
    }

    #[inline]
    fn on_reply(&mut self, now: Time, una: u64, annex: &Stamp, room: Room<'_>) -> u32 {
        of_steering!(self, steering => steering.on_reply(now, una, annex, room))
    }

    fn on_probed(&mut self, now: Time, annex: &Stamp) {
        of_steering!(self, steering => steering.on_probed(now, annex))
    }

    fn on_timeout(&mut self, now: Time) {
        of_steering!(self, steering => steering.on_timeout(now))
    }

    fn on_lost(&mut self, now: Time, seq: u64) {
        of_steering!(self, steering => steering.on_lost(now, seq))
    }

    #[inline]
    fn has_aside(&self) -> bool {
        of_steering!(self, steering => steering.has_aside())
    }

    fn aside(&mut self, now: Time) -> Option<Aside<Stamp>> {
        of_steering!(self, steering => steering.aside(now))
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        of_steering!(self, steering => steering.counters(sink))
    }
}

/// Steering of a scheme that sits in switches alone: packets have no entropy.
pub struct Unsteered;

impl Steering for Unsteered {
    type Annex = Stamp;

    #[inline]
    fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
        Stamp::new(0, now)
    }

    #[inline]
    fn is_passive(&self) -> bool {
        true
    }
}

impl Default for SchemeConfig {
    /// ECMP, the default of switches.
    fn default() -> Self {
        SchemeConfig::Ecmp(ecmp::Config::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Bench, leaf_spine};
    use model::{Psn, QpId};

    #[test]
    fn names_tables_and_variants_agree() {
        for &name in SchemeConfig::names() {
            let config = SchemeConfig::named(name).unwrap();
            assert_eq!(config.name(), name);
            let table: SchemeConfig = toml::from_str(&format!("[{name}]")).unwrap();
            assert_eq!(table, config);
            let written = serde_json::to_value(&config).unwrap();
            assert!(written.get(name).is_some(), "{written}");
            assert_eq!(serde_json::from_value::<SchemeConfig>(written).unwrap(), config);
            assert!(toml::from_str::<SchemeConfig>(&format!("[{name}]\nno-such-key = 1")).is_err());
        }
        assert_eq!(SchemeConfig::named("themis2"), None);
        assert_eq!(SchemeConfig::default().name(), "ecmp");
        assert_eq!(hyphenated::<9>("long_haul"), *b"long-haul");
    }

    #[test]
    fn every_scheme_keeps_the_contract_of_the_engine() {
        SchemeConfig::names().iter().for_each(|name| contract::hold(name));
    }

    #[test]
    fn a_custom_scheme_runs_from_a_box() {
        struct First;
        impl Scheme for First {
            fn interest(&self) -> Interest {
                Interest::default()
            }
            fn on_packet(&mut self, _: &mut Cx<'_>, _: &mut Packet, ports: &[PortIndex]) -> Verdict {
                Verdict::Forward(ports[0])
            }
        }
        let plan = leaf_spine(2, 4, 1);
        let mut bench = Bench::with(&plan, "leaf0", AnyScheme::Custom(Box::new(First)));
        let pkt = bench.data(QpId(1), Psn::new(9));
        assert_eq!(bench.see(pkt).verdict, Verdict::Forward(PortIndex(1)));
    }

    /// [`Steering`] has default methods, so a call that [`AnySteering`] does not pass on compiles all the same.
    #[test]
    fn every_call_reaches_a_custom_steering() {
        /// Notes its calls, and answers otherwise than the default methods.
        #[derive(Default)]
        struct Noting(Vec<&'static str>);
        impl Steering for Noting {
            type Annex = Stamp;

            fn on_send(&mut self, now: Time, _: Sent) -> Stamp {
                Stamp::new(7, now)
            }
            fn port(&mut self, _: Time, _: u32) -> Option<u8> {
                Some(3)
            }
            fn on_ports(&mut self, _: u32) {
                self.0.push("on_ports");
            }
            fn holds(&self) -> bool {
                true
            }
            fn is_passive(&self) -> bool {
                true
            }
            fn deadline(&self) -> Time {
                Time::from_us(9)
            }
            fn on_deadline(&mut self, _: Time) {
                self.0.push("on_deadline");
            }
            fn on_signal(&mut self, _: Time, _: u64) {
                self.0.push("on_signal");
            }
            fn on_reply(&mut self, _: Time, _: u64, _: &Stamp, _: Room<'_>) -> u32 {
                2
            }
            fn on_probed(&mut self, _: Time, _: &Stamp) {
                self.0.push("on_probed");
            }
            fn on_timeout(&mut self, _: Time) {
                self.0.push("on_timeout");
            }
            fn on_lost(&mut self, _: Time, _: u64) {
                self.0.push("on_lost");
            }
            fn has_aside(&self) -> bool {
                true
            }
            fn aside(&mut self, now: Time) -> Option<Aside<Stamp>> {
                Some(Aside { kind: model::steering::AsideKind::Probe, annex: Stamp::new(5, now) })
            }
            fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
                self.0.iter().for_each(|call| sink(call, 1));
            }
        }
        let mut any = AnySteering::Custom(Box::new(Noting::default()));
        let (now, stamp) = (Time::ZERO, Stamp::default());
        let sent = Sent { seq: 0, again: false, left: 0, frame: 1000 };
        assert_eq!(any.on_send(now, sent).entropy(), 7);
        assert_eq!((any.port(now, 1), any.deadline()), (Some(3), Time::from_us(9)));
        assert!(any.holds() && any.is_passive() && any.has_aside());
        assert_eq!(any.on_reply(now, 0, &stamp, &mut || 0), 2);
        assert_eq!(any.aside(now).map(|aside| aside.annex.entropy()), Some(5));
        any.on_deadline(now);
        any.on_signal(now, 0);
        any.on_probed(now, &stamp);
        any.on_timeout(now);
        any.on_lost(now, 0);
        any.on_ports(1);
        let mut calls = Vec::new();
        any.counters(&mut |call, _| calls.push(call));
        assert_eq!(calls, ["on_deadline", "on_signal", "on_probed", "on_timeout", "on_lost", "on_ports"]);
    }
}
