//! The two lists of the crate root become enums here: a choice at run time without a box and without `dyn`.

/// From the list of recovery modes: `TransportConfig`.
macro_rules! transports {
    ($($(#[$doc:meta])* $file:ident: $variant:ident = $name:tt,)+) => {
        /// Loss recovery: one file per mode.
        pub mod transport {
            $(pub mod $file;)+
        }

        /// How lost packets are found and sent again: `[nic.transport.NAME]`.
        #[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        pub enum TransportConfig {
            $($(#[$doc])* #[serde(rename = $name)] $variant(transport::$file::Config),)+
        }

        impl TransportConfig {
            /// All names, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name, as in a scenario.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ }
            }

            /// Whether its values are possible.
            pub fn validate(&self) -> Result<(), Invalid> {
                match self {
                    $(Self::$variant(config) => {
                        config.validate().map_err(|e| e.within(concat!("transport.", $name)))
                    })+
                }
            }

            /// Every mode with its defaults, in the order of the list.
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$variant(Default::default())),+].into_iter()
            }

            /// What others must know of it.
            pub fn facts(&self) -> TransportFacts {
                match self { $(Self::$variant(config) => config.facts(),)+ }
            }

            /// What its senders have in common.
            pub(crate) fn sending(&self, timing: timeout::Timing) -> ends::Sending {
                match self { $(Self::$variant(config) => config.sending(timing),)+ }
            }

            /// What its receivers have in common.
            pub(crate) fn receiving(&self, answers: receiver::Answers) -> ends::Receiving {
                match self { $(Self::$variant(config) => config.receiving(answers),)+ }
            }
        }
    };
}

/// From the list of congestion controls: `CongestionConfig`, `AnyCongestion`.
macro_rules! congestions {
    ($($(#[$doc:meta])* $file:ident: $variant:ident = $name:tt,)+) => {
        /// Rate and window: one file per control.
        pub mod congestion {
            $(pub mod $file;)+
        }

        /// How fast a queue pair may send: `[nic.congestion.NAME]`.
        #[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        pub enum CongestionConfig {
            $($(#[$doc])* #[serde(rename = $name)] $variant(congestion::$file::Config),)+
        }

        impl CongestionConfig {
            /// All names, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name, as in a scenario.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ }
            }

            /// Whether its values are possible.
            pub fn validate(&self) -> Result<(), Invalid> {
                match self {
                    $(Self::$variant(config) => {
                        config.validate().map_err(|e| e.within(concat!("congestion.", $name)))
                    })+
                }
            }

            /// Every control with its defaults, in the order of the list.
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$variant(Default::default())),+].into_iter()
            }

            /// What others must know of it.
            pub fn facts(&self) -> ControlFacts {
                match self { $(Self::$variant(config) => config.facts(),)+ }
            }

            /// Fills in the values that other values of its table decide.
            pub fn resolve(&mut self) {
                match self { $(Self::$variant(config) => config.resolve(),)+ }
            }

            /// Warnings about a fabric whose links have these rates, one sentence each.
            pub fn warnings(&self, rates: &[model::Rate]) -> Vec<String> {
                match self { $(Self::$variant(config) => config.warnings(rates),)+ }
            }

            /// The control of one queue pair of a NIC of `line_rate`, over this path if it is known.
            pub fn control(&self, line_rate: model::Rate, path: Option<&Path>) -> AnyCongestion {
                match self {
                    $(Self::$variant(config) => AnyCongestion::$variant(config.control(line_rate, path)),)+
                }
            }
        }

        /// Any congestion control.
        pub enum AnyCongestion {
            $($(#[$doc])* $variant(congestion::$file::$variant),)+
            /// One from elsewhere.
            Custom(Box<dyn model::Congestion + Send>),
        }

        impl AnyCongestion {
            /// Its name.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ Self::Custom(_) => "custom" }
            }

            /// Lowers the rate to `share` of line rate if it is above. A control without a rate and a custom
            /// one ignore it.
            pub fn lower_to(&mut self, now: model::Time, share: f64) {
                match self { $(Self::$variant(c) => c.lower_to(now, share),)+ Self::Custom(_) => {} }
            }

            /// Until when it allows the same window (any) and pace if it hears of nothing but ACKs without a
            /// mark, which it ignores. Zero if nothing is known.
            pub(crate) fn steady_until(&self) -> model::Time {
                match self {
                    $(Self::$variant(c) => c.steady_until(),)+
                    Self::Custom(_) => model::Time::ZERO,
                }
            }
        }

        /// Calls a method of whichever control it is.
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
            fn allowance(&mut self, now: model::Time) -> model::Allowance {
                of_control!(self, control => control.allowance(now))
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

            #[inline]
            fn on_nack(&mut self, now: model::Time) {
                of_control!(self, control => control.on_nack(now))
            }

            #[inline]
            fn on_timeout(&mut self, now: model::Time) {
                of_control!(self, control => control.on_timeout(now))
            }

            fn on_path_given_up(&mut self, now: model::Time) {
                of_control!(self, control => control.on_path_given_up(now))
            }
        }
    };
}

pub(crate) use {congestions, transports};
