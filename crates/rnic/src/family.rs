//! Macros that turn the two lists of the crate root into enums: a choice at run time without a box and without `dyn`.

/// Defines `TransportConfig` from the list of recovery modes.
macro_rules! transports {
    ($($(#[$doc:meta])* $file:ident: $variant:ident = $name:tt,)+) => {
        /// Loss recovery: one file per mode.
        pub mod transport {
            $(pub mod $file;)+
        }

        /// Loss recovery, the way in which lost packets are found and retransmitted: `[nic.transport.NAME]`.
        #[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        pub enum TransportConfig {
            $($(#[$doc])* #[serde(rename = $name)] $variant(transport::$file::Config),)+
        }

        /// Calls a macro with the modules of all modes, for tests that want a test for each.
        #[macro_export]
        macro_rules! each_transport {
            ($call:ident) => {
                $call! { $($file)+ }
            };
        }

        impl TransportConfig {
            /// Names of all modes, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Name of the mode, as in a scenario.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ }
            }

            /// Checks whether the values are possible.
            pub fn validate(&self) -> Result<(), finding::Finding> {
                match self {
                    $(Self::$variant(config) => {
                        config.validate().map_err(|e| e.within(concat!("transport.", $name)))
                    })+
                }
            }

            /// Settings with which tests run the mode: texts that follow the head of its table, and may open other tables.
            pub fn trials(&self) -> &'static [&'static str] {
                match self { $(Self::$variant(_) => <transport::$file::Config as Recovery>::TRIALS,)+ }
            }

            /// Rows of the golden tables; `None` if it has none.
            pub fn golden(&self) -> Option<Golden> {
                match self { $(Self::$variant(_) => <transport::$file::Config as Recovery>::GOLDEN,)+ }
            }

            /// Every mode with its defaults, in the order of the list.
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$variant(Default::default())),+].into_iter()
            }

            /// Facts that other code must know of the mode.
            pub fn facts(&self) -> TransportFacts {
                match self { $(Self::$variant(config) => config.facts(),)+ }
            }

            /// A timeout that may apply in place of `nic.timeout`, and the path of its setting.
            pub fn other_timeout(&self) -> Option<(String, model::Time)> {
                let (key, time) = match self { $(Self::$variant(config) => config.other_timeout(),)+ }?;
                Some((format!("nic.transport.{}.{key}", self.name()), time))
            }

            /// Time from a change of a port of the NIC to the report that its peers get, if they get one.
            pub(crate) fn port_notice(&self) -> Option<model::Time> {
                match self { $(Self::$variant(config) => config.port_notice(),)+ }
            }

            /// Whether receivers ask for smaller windows.
            pub fn penalises(&self) -> bool {
                match self { $(Self::$variant(config) => config.penalises(),)+ }
            }

            /// Whether senders probe whether missing packets are still on their way ([`model::Kind::Probe`]).
            pub fn probes(&self) -> bool {
                match self { $(Self::$variant(config) => config.probes(),)+ }
            }

            /// Settings that its senders share.
            pub(crate) fn sending(&self, timing: timeout::Timing) -> ends::Sending {
                match self { $(Self::$variant(config) => config.sending(timing),)+ }
            }

            /// Settings that its receivers share.
            pub(crate) fn receiving(&self, answers: ack::Answers) -> ends::Receiving {
                match self { $(Self::$variant(config) => config.receiving(answers),)+ }
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
        #[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        pub enum CongestionConfig {
            $($(#[$doc])* #[serde(rename = $name)] $variant(congestion::$file::Config),)+
        }

        impl CongestionConfig {
            /// Names of all controls, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Name of the control, as in a scenario.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ }
            }

            /// Checks whether the values are possible.
            pub fn validate(&self) -> Result<(), finding::Finding> {
                match self {
                    $(Self::$variant(config) => {
                        config.validate().map_err(|e| e.within(concat!("congestion.", $name)))
                    })+
                }
            }

            /// Settings with which tests run the control: texts that follow the head of its table, and may open other tables.
            pub fn trials(&self) -> &'static [&'static str] {
                match self { $(Self::$variant(_) => <congestion::$file::Config as Control>::TRIALS,)+ }
            }

            /// Rows of the golden tables; `None` if it has none.
            pub fn golden(&self) -> Option<Golden> {
                match self { $(Self::$variant(_) => <congestion::$file::Config as Control>::GOLDEN,)+ }
            }

            /// Dotted keys below `nic` that decide how far rates fall and how fast they recover, the most telling first.
            pub fn decisive(&self) -> Vec<String> {
                let keys = match self { $(Self::$variant(_) => <congestion::$file::Config as Control>::DECISIVE,)+ };
                keys.iter().map(|key| format!("congestion.{}.{key}", self.name())).collect()
            }

            /// Other values of these keys, with the names of the changes: dotted keys below `nic`, and values.
            pub fn variations(&self) -> Vec<(&'static str, Vec<(String, &'static str)>)> {
                let all = match self { $(Self::$variant(_) => <congestion::$file::Config as Control>::VARIATIONS,)+ };
                let key = |key: &str| format!("congestion.{}.{key}", self.name());
                let changes = |one: &Variation| one.changes.iter().map(|(name, value)| (key(name), *value)).collect();
                all.iter().map(|one| (one.name, changes(one))).collect()
            }

            /// Every control with its defaults, in the order of the list.
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$variant(Default::default())),+].into_iter()
            }

            /// Facts that other code must know of the control.
            pub fn facts(&self) -> ControlFacts {
                match self { $(Self::$variant(config) => config.facts(),)+ }
            }

            /// Longest time that the control puts between two packets of `bytes` on a path with this round trip.
            pub fn longest_gap(&self, bytes: u64, rtt: model::Time) -> model::Time {
                match self { $(Self::$variant(config) => config.longest_gap(bytes, rtt),)+ }
            }

            /// Content of CNPs that the control heeds.
            pub fn advised(&self) -> Advised {
                match self { $(Self::$variant(config) => config.advised(),)+ }
            }

            /// Default of `nic.cnp-interval-per`.
            pub fn cnp_scope(&self) -> notification::CnpScope {
                match self { $(Self::$variant(config) => config.cnp_scope(),)+ }
            }

            /// Whether the window shrinks when receivers ask for it.
            pub fn heeds_penalties(&self) -> bool {
                match self { $(Self::$variant(config) => config.heeds_penalties(),)+ }
            }

            /// Fills in the values that other values of its table decide.
            pub fn resolve(&mut self) {
                match self { $(Self::$variant(config) => config.resolve(),)+ }
            }

            /// A warning about a fabric whose links have these rates.
            pub fn warning(&self, rates: &[model::Rate]) -> Option<finding::Finding> {
                match self {
                    $(Self::$variant(config) => {
                        config.warning(rates).map(|w| w.within(concat!("congestion.", $name)))
                    })+
                }
            }

            /// Control of one queue pair of a NIC of `line_rate`, for this path if it is known.
            pub fn control(&self, line_rate: model::Rate, path: Option<&Path>) -> AnyCongestion {
                match self {
                    $(Self::$variant(config) => AnyCongestion::$variant(config.control(line_rate, path)),)+
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

            /// Lowers the rate to `share` of line rate if it is higher. Controls without a rate and custom controls ignore
            /// this.
            pub fn lower_to(&mut self, now: model::Time, share: f64) {
                match self { $(Self::$variant(c) => c.lower_to(now, share),)+ Self::Custom(_) => {} }
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
                        steady_until: model::Time::ZERO,
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
            fn allowance(&mut self, now: model::Time) -> model::Allowance {
                of_control!(self, control => control.allowance(now))
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

pub(crate) use {congestions, transports};
