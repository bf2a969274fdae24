//! Macros that turn the two lists of the crate root into enums: a choice at run time without a box and without `dyn`.

/// Defines `TransportConfig` from the list of recovery modes.
macro_rules! transports {
    ($($(#[$doc:meta])* $file:ident: $variant:ident = $name:tt,)+) => {
        /// Loss recovery: one file per mode.
        pub mod transport {
            $(pub mod $file;)+
        }

        /// Loss recovery, the way in which lost packets are found and retransmitted: `[nic.transport.NAME]`.
        #[derive(Clone, Debug, PartialEq, schemars::JsonSchema)]
        #[schemars(transform = own::listed_transports)]
        pub enum TransportConfig {
            $($(#[$doc])* #[schemars(rename = $name)] $variant(transport::$file::Config),)+
            /// A mode that the program has added.
            #[schemars(skip)]
            Own(own::Own<dyn own::TransportParts>),
        }

        family::chosen_by_name!(TransportConfig, own::TRANSPORTS, $($variant = $name),+);

        /// Calls a macro with the modules of all modes, for tests that want a test for each.
        #[macro_export]
        macro_rules! each_transport {
            ($call:ident) => {
                $call! { $($file)+ }
            };
        }

        impl TransportConfig {
            /// Names of the modes of this crate, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Name of the mode, as in a scenario.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ Self::Own(own) => own.name() }
            }

            /// Checks whether the values are possible.
            pub fn validate(&self) -> Result<(), finding::Finding> {
                match self {
                    $(Self::$variant(config) => {
                        config.validate().map_err(|e| e.within(concat!("transport.", $name)))
                    })+
                    Self::Own(own) => own.validate().map_err(|e| e.within(&format!("transport.{}", own.name()))),
                }
            }

            /// Settings with which tests run the mode: texts that follow the head of its table, and may open other tables.
            pub fn trials(&self) -> &'static [&'static str] {
                match self { $(Self::$variant(_) => <transport::$file::Config as Recovery>::TRIALS,)+ Self::Own(own) => own.trials() }
            }

            /// Rows of the golden tables; `None` if it has none.
            pub fn golden(&self) -> Option<Golden> {
                match self { $(Self::$variant(_) => <transport::$file::Config as Recovery>::GOLDEN,)+ Self::Own(_) => None }
            }

            /// Every mode of this crate with its defaults, in the order of the list.
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$variant(Default::default())),+].into_iter()
            }

            /// Facts that other code must know of the mode.
            pub fn facts(&self) -> TransportFacts {
                match self { $(Self::$variant(config) => config.facts(),)+ Self::Own(own) => own.facts() }
            }

            /// A timeout that may apply in place of `nic.timeout`, and the path of its setting.
            pub fn other_timeout(&self) -> Option<(String, model::Time)> {
                let (key, time) = match self { $(Self::$variant(config) => config.other_timeout(),)+ Self::Own(_) => None }?;
                Some((format!("nic.transport.{}.{key}", self.name()), time))
            }

            /// Time from a change of a port of the NIC to the report that its peers get, if they get one.
            pub(crate) fn port_notice(&self) -> Option<model::Time> {
                match self { $(Self::$variant(config) => config.port_notice(),)+ Self::Own(_) => None }
            }

            /// Whether receivers ask for smaller windows.
            pub fn penalises(&self) -> bool {
                match self { $(Self::$variant(config) => config.penalises(),)+ Self::Own(_) => false }
            }

            /// Whether senders probe whether missing packets are still on their way ([`model::Kind::Probe`]).
            pub fn probes(&self) -> bool {
                match self { $(Self::$variant(config) => config.probes(),)+ Self::Own(_) => false }
            }

            /// A sender of the mode, with this retransmission timer.
            pub fn sender(&self, timing: &timeout::Timing) -> AnySender {
                self.sending(timing.clone()).sender()
            }

            /// A receiver of the mode, whose NIC answers so.
            pub fn receiver(&self, answers: &ack::Answers) -> AnyReceiver {
                self.receiving(answers.clone()).receiver(None)
            }

            /// Settings that its senders share.
            pub(crate) fn sending(&self, timing: timeout::Timing) -> ends::Sending {
                match self {
                    $(Self::$variant(config) => config.sending(timing),)+
                    Self::Own(own) => ends::Sending::Custom(own.sending(timing)),
                }
            }

            /// Settings that its receivers share.
            pub(crate) fn receiving(&self, answers: ack::Answers) -> ends::Receiving {
                match self {
                    $(Self::$variant(config) => config.receiving(answers),)+
                    Self::Own(own) => ends::Receiving::Custom(own.receiving(answers)),
                }
            }
        }
    };
}

/// Defines `CongestionConfig` and `AnyCongestion` from the list of congestion controls.
macro_rules! congestions {
    ($($(#[$doc:meta])* $file:ident: $variant:ident = $name:tt,)+) => {
        /// Rate and window: one file per control.
        pub mod congestion {
            $(pub mod $file;)+
        }

        /// Congestion control of a queue pair: `[nic.congestion.NAME]`.
        #[derive(Clone, Debug, PartialEq, schemars::JsonSchema)]
        #[schemars(transform = own::listed_controls)]
        pub enum CongestionConfig {
            $($(#[$doc])* #[schemars(rename = $name)] $variant(congestion::$file::Config),)+
            /// A control that the program has added.
            #[schemars(skip)]
            Own(own::Own<dyn own::ControlParts>),
        }

        family::chosen_by_name!(CongestionConfig, own::CONTROLS, $($variant = $name),+);

        impl CongestionConfig {
            /// Names of the controls of this crate, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Name of the control, as in a scenario.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ Self::Own(own) => own.name() }
            }

            /// Checks whether the values are possible.
            pub fn validate(&self) -> Result<(), finding::Finding> {
                match self {
                    $(Self::$variant(config) => {
                        config.validate().map_err(|e| e.within(concat!("congestion.", $name)))
                    })+
                    Self::Own(own) => own.validate().map_err(|e| e.within(&format!("congestion.{}", own.name()))),
                }
            }

            /// Settings with which tests run the control: texts that follow the head of its table, and may open other tables.
            pub fn trials(&self) -> &'static [&'static str] {
                match self { $(Self::$variant(_) => <congestion::$file::Config as Control>::TRIALS,)+ Self::Own(own) => own.trials() }
            }

            /// Rows of the golden tables; `None` if it has none.
            pub fn golden(&self) -> Option<Golden> {
                match self { $(Self::$variant(_) => <congestion::$file::Config as Control>::GOLDEN,)+ Self::Own(_) => None }
            }

            /// Dotted keys below `nic` that decide how far rates fall and how fast they recover, the most telling first.
            pub fn decisive(&self) -> Vec<String> {
                let keys = match self {
                    $(Self::$variant(_) => <congestion::$file::Config as Control>::DECISIVE,)+
                    Self::Own(own) => own.decisive(),
                };
                keys.iter().map(|key| format!("congestion.{}.{key}", self.name())).collect()
            }

            /// Other values of these keys, with the names of the changes: dotted keys below `nic`, and values.
            pub fn variations(&self) -> Vec<(&'static str, Vec<(String, &'static str)>)> {
                let all = match self {
                    $(Self::$variant(_) => <congestion::$file::Config as Control>::VARIATIONS,)+
                    Self::Own(own) => own.variations(),
                };
                let key = |key: &str| format!("congestion.{}.{key}", self.name());
                let changes = |one: &Variation| one.changes.iter().map(|(name, value)| (key(name), *value)).collect();
                all.iter().map(|one| (one.name, changes(one))).collect()
            }

            /// Every control of this crate with its defaults, in the order of the list.
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$variant(Default::default())),+].into_iter()
            }

            /// Facts that other code must know of the control.
            pub fn facts(&self) -> ControlFacts {
                match self { $(Self::$variant(config) => config.facts(),)+ Self::Own(own) => own.facts() }
            }

            /// Longest time that the control puts between two packets of `bytes` on a path with this round trip.
            pub fn longest_gap(&self, bytes: u64, rtt: model::Time) -> model::Time {
                match self { $(Self::$variant(config) => config.longest_gap(bytes, rtt),)+ Self::Own(own) => own.longest_gap(bytes, rtt) }
            }

            /// Content of CNPs that the control heeds.
            pub fn advised(&self) -> Advised {
                match self { $(Self::$variant(config) => config.advised(),)+ Self::Own(own) => own.advised() }
            }

            /// Default of `nic.cnp-interval-per`.
            pub fn cnp_scope(&self) -> notification::CnpScope {
                match self { $(Self::$variant(config) => config.cnp_scope(),)+ Self::Own(own) => own.cnp_scope() }
            }

            /// Whether the window shrinks when receivers ask for it.
            pub fn heeds_penalties(&self) -> bool {
                match self { $(Self::$variant(config) => config.heeds_penalties(),)+ Self::Own(own) => own.heeds_penalties() }
            }

            /// Fills in the values that other values of its table decide. One's own control has done so when it was read.
            pub fn resolve(&mut self) {
                match self { $(Self::$variant(config) => config.resolve(),)+ Self::Own(_) => {} }
            }

            /// A warning about a fabric whose links have these rates.
            pub fn warning(&self, rates: &[model::Rate]) -> Option<finding::Finding> {
                match self {
                    $(Self::$variant(config) => {
                        config.warning(rates).map(|w| w.within(concat!("congestion.", $name)))
                    })+
                    Self::Own(own) => own.warning(rates).map(|w| w.within(&format!("congestion.{}", own.name()))),
                }
            }

            /// Control of one queue pair of a NIC of `line_rate`, for this path if it is known.
            pub fn control(&self, line_rate: model::Rate, path: Option<&Path>) -> AnyCongestion {
                match self {
                    $(Self::$variant(config) => AnyCongestion::$variant(config.control(line_rate, path)),)+
                    Self::Own(own) => own.control(line_rate, path),
                }
            }
        }

        /// Any congestion control.
        pub enum AnyCongestion {
            $($(#[$doc])* $variant(congestion::$file::$variant),)+
            /// A control from outside this crate.
            Custom(Box<dyn model::Congestion + Send>),
        }

        impl AnyCongestion {
            /// Name of the control.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ Self::Custom(_) => "custom" }
            }

            /// Lowers the rate to `share` of line rate if it is higher. Controls without a rate ignore this.
            pub fn lower_to(&mut self, now: model::Time, share: f64) {
                match self { $(Self::$variant(c) => c.lower_to(now, share),)+ Self::Custom(c) => c.lower_to(now, share) }
            }

            /// Asks for all that [`reaction::Reacting`](crate::reaction::Reacting) keeps.
            pub(crate) fn state(&mut self, now: model::Time) -> reaction::State {
                use model::Congestion as _;
                match self {
                    $(Self::$variant(c) => reaction::State {
                        allowance: c.allowance(now),
                        steady_until: c.steady_until(),
                        is_still: c.is_still(),
                    },)+
                    Self::Custom(c) => reaction::State {
                        allowance: c.allowance(now),
                        steady_until: c.steady_until(),
                        is_still: c.is_still(),
                    },
                }
            }
        }

        /// Calls a method of any control.
        macro_rules! of_control {
            ($any:expr, $control:ident => $call:expr) => {
                match $any {
                    $(AnyCongestion::$variant($control) => $call,)+
                    AnyCongestion::Custom($control) => $call,
                }
            };
        }

        impl model::Congestion for AnyCongestion {
            #[inline]
            fn fetch(&self) {
                of_control!(self, control => control.fetch())
            }

            fn share(&mut self, other: &Self) {
                match (self, other) {
                    $((Self::$variant(control), Self::$variant(other)) => control.share(other),)+
                    _ => {}
                }
            }

            #[inline]
            fn allowance(&mut self, now: model::Time) -> model::Allowance {
                of_control!(self, control => control.allowance(now))
            }

            fn steady_until(&self) -> model::Time {
                of_control!(self, control => control.steady_until())
            }

            fn lower_to(&mut self, now: model::Time, share: f64) {
                AnyCongestion::lower_to(self, now, share);
            }

            fn is_still(&self) -> bool {
                of_control!(self, control => control.is_still())
            }

            fn is_at_rest(&self) -> bool {
                of_control!(self, control => control.is_at_rest())
            }

            fn forgets_sending(&self, now: model::Time) -> bool {
                of_control!(self, control => control.forgets_sending(now))
            }

            #[inline]
            fn on_ack(&mut self, now: model::Time, packets: u64, echo: bool) {
                of_control!(self, control => control.on_ack(now, packets, echo))
            }

            fn on_nacked(&mut self, now: model::Time, packets: u64, echo: bool) {
                of_control!(self, control => control.on_nacked(now, packets, echo))
            }

            #[inline]
            fn on_feedback(&mut self, now: model::Time, feedback: &model::Feedback) {
                of_control!(self, control => control.on_feedback(now, feedback))
            }

            #[inline]
            fn on_cnp(&mut self, now: model::Time) {
                of_control!(self, control => control.on_cnp(now))
            }

            fn on_advice(&mut self, now: model::Time, advice: model::Advice) {
                of_control!(self, control => control.on_advice(now, advice))
            }

            #[inline]
            fn on_send(&mut self, now: model::Time, frame: u32, backlog: u64, active: u64) -> model::Demand {
                of_control!(self, control => control.on_send(now, frame, backlog, active))
            }

            fn gap_ahead(&self, now: model::Time, bytes: u64) -> Option<model::Time> {
                of_control!(self, control => control.gap_ahead(now, bytes))
            }

            fn bytes_left(&self) -> u64 {
                of_control!(self, control => control.bytes_left())
            }

            fn on_sent(&mut self, now: model::Time, bytes: u64) -> bool {
                of_control!(self, control => control.on_sent(now, bytes))
            }

            fn assumed_delay(&self) -> Option<model::Time> {
                of_control!(self, control => control.assumed_delay())
            }

            fn on_grant(&mut self, now: model::Time, total: u64) {
                of_control!(self, control => control.on_grant(now, total))
            }

            #[inline]
            fn on_nack(&mut self, now: model::Time) {
                of_control!(self, control => control.on_nack(now))
            }

            #[inline]
            fn on_timeout(&mut self, now: model::Time) {
                of_control!(self, control => control.on_timeout(now))
            }
        }
    };
}

/// Reads and writes a list of parts by their names: those of this crate, and those that the program has added to the list `$own`.
macro_rules! chosen_by_name {
    ($Config:ident, $own:expr, $($variant:ident = $name:tt),+) => {
        impl $Config {
            /// Names of all: those of this crate, and those that the program has added.
            pub fn names() -> &'static [&'static str] {
                $own.names()
            }

            /// The one of that name with its defaults.
            pub fn named(name: &str) -> Option<$Config> {
                $(if name == $name {
                    return Some($Config::$variant(Default::default()));
                })+
                $own.named(name).map($Config::Own)
            }
        }

        impl serde::Serialize for $Config {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($Config::$variant(config) => serializer.collect_map([($name, config)]),)+
                    $Config::Own(own) => own.serialize(serializer),
                }
            }
        }

        const _: () = {
            use serde::de::{EnumAccess, Error as _, VariantAccess as _, Visitor};

            struct Chosen;

            impl<'de> Visitor<'de> for Chosen {
                type Value = $Config;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(concat!("enum ", stringify!($Config)))
                }

                fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<$Config, A::Error> {
                    let (name, settings) = data.variant::<String>()?;
                    $(if name == $name {
                        return settings.newtype_variant().map($Config::$variant);
                    })+
                    let Some(own) = $own.named(&name) else {
                        return Err(A::Error::unknown_variant(&name, $Config::names()));
                    };
                    own.read(settings.newtype_variant()?).map($Config::Own).map_err(A::Error::custom)
                }
            }

            impl<'de> serde::Deserialize<'de> for $Config {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserializer.deserialize_enum(stringify!($Config), $Config::NAMES, Chosen)
                }
            }
        };
    };
}

pub(crate) use {chosen_by_name, congestions, transports};
