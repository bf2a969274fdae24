//! The `[nic]` table of a scenario and its defaults.

use crate::ack::{AckRules, Answers};
use crate::classes::NicClass;
use crate::ingress::Ingress;
use crate::messages::Messages;
use crate::notification::{Cnp, CnpScope, MarkRules, SelfCnp};
use crate::or_off::OrOff;
use crate::receive::{Pcie, Receive};
use crate::retries::{MAX_RETRIES, OnRetryExceeded};
use crate::timeout::{Backoff, Timeout, Timing};
use crate::transport::nic_sr;
use crate::window::Window;
use crate::{CongestionConfig, Evidence, Nic, Reaction, TransportConfig, congestion};
use finding::{Finding, code};
use model::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[nic]`: the RNICs of a fabric.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct NicConfig {
    /// NIC whose published figures fill in the keys that the scenario leaves out, such as "connectx-7"; `ropewalk list nics`
    /// shows all. Default: none, so every key has its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Version of NCCL whose default `timeout` and `retries` hold where the scenario leaves them out, before those of `model`: the last
    /// one up to yours that `ropewalk list nccl` shows, such as "2.23.4". Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nccl: Option<String>,
    /// Data packets per ACK. The last packet of a message, a packet that fills a gap, and a duplicate are always
    /// acknowledged. If this number exceeds the packets that a sender may have outstanding, the sender waits for its timer.
    /// Default 1 (the habit of the HPCC family; no NIC's figure is public).
    pub ack_every: u32,
    /// Whether only the last packet of a message, a packet that fills a gap, and a duplicate are acknowledged (RDMA
    /// acknowledges operations). True overrides `ack-every`. A message of more packets than a sender may have outstanding
    /// then waits for the sender's timer, and a control that reads ACKs gets little feedback. Default false (our choice, as
    /// for `ack-every`).
    pub ack_per_message: bool,
    /// Whether a duplicate is acknowledged again. With false, as in the HPCC simulator, a message whose last ACK is lost
    /// never ends. Default true (InfiniBand Architecture, C9-110).
    pub ack_duplicates: bool,
    /// Report of marks to the sender: `frame` (a CNP), `flag` (on the reply) or `none`. Default `frame` (RoCEv2, and our
    /// choice: blocking a NACK must not block congestion feedback); `flag` with a control that counts marks, such as
    /// `congestion.mp-rdma`; `none` with a control that reads no marks, such as `congestion.hpcc`.
    pub cnp: Cnp,
    /// Shortest time between two CNP frames, NVIDIA's `min_time_between_cnps`. Default "4us" (vendor: mstconfig, ConnectX-4 Lx; also
    /// DCQCN's default `rate-decrease-interval`, so more frequent CNPs would not cut a rate more often).
    pub cnp_interval: Time,
    /// What `cnp-interval` counts for: the receiver's whole `port`, or each `queue-pair`. Default `port` (vendor: "minimum time between
    /// sending CNPs from the port", mstflint and Linux's mlx5 driver); `queue-pair` with `congestion.dcqcn-hpcc` and
    /// `congestion.annulus`, as in the HPCC simulator.
    pub cnp_interval_per: CnpScope,
    /// CNPs without marks: `{ interval = "3540us", above = "99.8Gbps" }`. A receiver whose port got more than `above` during one
    /// interval answers with a CNP per queue pair in the next. These CNPs are apart from `cnp-interval`, and need `cnp = "frame"`.
    /// "off" keeps `model` from setting them. Default: none; `nic.model = "connectx-5"` has them (measured: 283 per second and queue pair, under switches that marked
    /// nothing).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_cnp: Option<OrOff<SelfCnp>>,
    /// Time that a sender waits without progress before it retransmits: `{ fixed = "1ms" }`, `{ ib = 8 }`,
    /// `{ ib-floor = 14 }`, `{ adp = 14 }` or "none". Default `{ fixed = "1ms" }` (our choice: about a ConnectX's timeout
    /// exponent of 8 without its floor).
    pub timeout: Timeout,
    /// Growth of the timeout over consecutive timeouts: `{ factor = 2, cap = "64ms" }`. Default: no growth (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// Timeouts in a row without progress that a queue pair survives, verbs' `retry_cnt`; one more is `RETRY_EXC_ERR`. A NACK is an
    /// answer and does not count. Default: no limit (our choice; verbs allow at most 7, and NCCL asks for 7).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u8>,
    /// What follows the last of `retries`: "job-ends", and with it the run; "nccl-failover", so that the queue pair moves to the next port
    /// of its NIC, which needs `server.bond-failover = "wait"` and several ports; or "never", so that the sender goes on for ever.
    /// Default "job-ends" (NCCL without its failover, which is off by default).
    pub on_retry_exceeded: OnRetryExceeded,
    /// Effect of a NACK on the rate: "as-cnp", "none", `{ stall = "17us" }`, `{ to = 0.5 }` (of line rate) or
    /// "to-min-rate". Default "as-cnp" (ConWeave's simulator; in the Themis paper, section 1, DCQCN reacts to NACKs); "none"
    /// with `transport.irn`, which sends many NACKs, with `transport.uec`, `transport.mrc` and `transport.dcp`, which report
    /// trimmed packets, and with `transport.adaptive-routing`, which sends none.
    pub on_nack: Reaction,
    /// Effect of a timeout on the rate, with the values of `on-nack`. Default "as-cnp" (the "slow restart" counters of
    /// ConnectX NICs count one self-made CNP per retransmission by timeout).
    pub on_timeout: Reaction,
    /// Most payload that a queue pair may have outstanding, whatever its congestion control allows, rounded up to whole
    /// packets. "bdp" is line rate times the idle round trip of a full packet and its ACK between the two hosts.
    /// "longest-bdp" is that of the two hosts that are furthest apart (HPCC's simulator with HAS_WIN and GLOBAL_T).
    /// `{ bytes = "12MB" }` is a fixed size. Default: no limit (our choice: DCQCN has none).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Whether `window` shrinks with the rate, to the rate's share of line rate. Default false (our choice; VAR_WIN in
    /// HPCC's simulator).
    pub window_scales_with_rate: bool,
    /// Most messages that the NIC begins per second: `{ per-qp = "3.87M/s", per-nic = "16.7M/s" }`, where each of the two may be left
    /// out. A queue pair between two messages waits for its turn, also with a retransmission. "off" keeps `model` from setting
    /// them. Default: no limit (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<OrOff<Messages>>,
    /// Classes of queue pairs at each port, from first to last, such as `[{ of = ["ep"] }, { weight = 3 }]`. A class that may send
    /// nothing now never keeps another from sending. Replies and CNPs leave before data, in the order of `switch.classes`. Classes
    /// hold for all queue pairs of a NIC, so only the scenario's `nic` may have them. Default: none, and all queue pairs take turns
    /// with one another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<NicClass>,
    /// Most READs that a queue pair has under way: those whose data has not arrived. Default: no limit (our choice; verbs'
    /// `max_rd_atomic`, often 16).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<u8>,
    /// Losses of a receiving NIC whose port is nearly full: `{ above = "94Gbps", loss = 0.0018, burst = 73 }`. "off" keeps `model` from
    /// setting them. Default: none (our choice; these figures were measured on a ConnectX-5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<OrOff<Ingress>>,
    /// Rate at which hosts take data, and what a NIC does whose queue grows: `{ rate = "50Gbps", pause = true }`. Replies of the NIC do
    /// not wait for the host. Only in `[nic]`, for all traffic classes. Default: hosts take data as it comes (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive: Option<Receive>,
    /// PCIe between a NIC and its host, which limits data in both directions: `{ rate = "192Gbps", gdr = false }`. ACKs and other
    /// packets without data leave at this rate, too. Data that arrives waits as with `receive`. Only in `[nic]`. Default: no limit (our
    /// choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie: Option<Pcie>,
    /// DSCP of data, which `switch.dscp-map` reads. Default 0 (NCCL sets no traffic class unless NCCL_IB_TC is set, to 4 x DSCP).
    #[serde(skip_serializing_if = "is_default_dscp")]
    pub dscp: u8,
    /// DSCP of CNPs. Default 48 (vendor: NVIDIA's cnp_dscp, Linux's mlx5 driver and mlnx_qos guides).
    #[serde(skip_serializing_if = "is_default_cnp_dscp")]
    pub cnp_dscp: u8,
    /// DSCP of ACKs, NACKs and control messages. Default: that of data (they belong to its queue pair).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_dscp: Option<u8>,
    /// Largest difference between hosts' clocks: each clock is ahead of true time by a uniform draw up to this much. The
    /// spread must not influence schemes that measure one-way delays. Default "1ms" (our choice: NICs whose clocks are not
    /// synchronised may differ by any time).
    pub clock_spread: Time,
    /// Loss recovery: the way in which lost packets are found and retransmitted. Default `nic-sr` (Themis paper, section
    /// 2.2: what current NICs do).
    pub transport: TransportConfig,
    /// Congestion control of a queue pair. Default `dcqcn` (Themis paper, evaluation).
    pub congestion: CongestionConfig,
}

/// Default DSCP of CNPs. Vendor: NVIDIA's `cnp_dscp`.
pub const CNP_DSCP: u8 = 48;

fn is_default_dscp(dscp: &u8) -> bool {
    *dscp == 0
}

fn is_default_cnp_dscp(dscp: &u8) -> bool {
    *dscp == CNP_DSCP
}

impl Default for NicConfig {
    fn default() -> Self {
        NicConfig {
            model: None,
            nccl: None,
            ack_every: 1,
            ack_per_message: false,
            ack_duplicates: true,
            cnp: Cnp::Frame,
            cnp_interval: Time::from_us(4),
            cnp_interval_per: CnpScope::Port,
            self_cnp: None,
            timeout: Timeout::Fixed(Time::from_ms(1)),
            backoff: None,
            retries: None,
            on_retry_exceeded: OnRetryExceeded::JobEnds,
            on_nack: Reaction::AsCnp,
            on_timeout: Reaction::AsCnp,
            window: None,
            window_scales_with_rate: false,
            messages: None,
            reads: None,
            ingress: None,
            classes: Vec::new(),
            receive: None,
            pcie: None,
            dscp: 0,
            cnp_dscp: CNP_DSCP,
            ack_dscp: None,
            clock_spread: Time::from_ms(1),
            transport: TransportConfig::NicSr(nic_sr::Config::default()),
            congestion: CongestionConfig::Dcqcn(congestion::dcqcn::Config::default()),
        }
    }
}

impl NicConfig {
    /// Builds the parts of queue pairs with these settings.
    pub fn build(&self) -> Nic {
        Nic::new(self)
    }

    /// Timeouts in a row that a queue pair survives; `None` without a limit.
    pub fn retry_limit(&self) -> Option<u8> {
        self.retries.filter(|_| self.on_retry_exceeded != OnRetryExceeded::Never)
    }

    /// Time without progress after which a queue pair has used up its retries, the longest one if it draws its timeouts; `None` without a
    /// limit or a timer.
    pub fn gives_up_after(&self) -> Option<Time> {
        let limit = self.retry_limit()?;
        let fires = |timing: Timing| (0..=limit).fold(Time::ZERO, |at, fired| timing.deadline(at, fired));
        let longest = self.timeout.timings(self.backoff).into_iter().map(fires).max();
        longest.filter(|time| *time < Time::NEVER)
    }

    /// True if queue pairs whose retries are used up move to another port.
    pub fn fails_over(&self) -> bool {
        self.on_retry_exceeded == OnRetryExceeded::NcclFailover
    }

    /// Hops for which the telemetry area of data packets has room. `None` if the congestion control needs no
    /// [`model::Feedback`].
    pub fn telemetry(&self) -> Option<u8> {
        let facts = self.congestion.facts();
        facts.needs_feedback.then_some(match facts.evidence {
            Evidence::Telemetry { hops, .. } => hops,
            _ => 0,
        })
    }

    /// Rules for answers of its receivers.
    pub(crate) fn answers(&self) -> Answers {
        // The last packet of a message is always acknowledged.
        let every = if self.ack_per_message { u32::MAX } else { self.ack_every };
        Answers {
            acks: AckRules { every, duplicates: self.ack_duplicates },
            marks: MarkRules { cnp: self.cnp, interval: self.cnp_interval_of_queue_pair() },
        }
    }

    /// Shortest time between two CNPs of one queue pair.
    pub(crate) fn cnp_interval_of_queue_pair(&self) -> Time {
        match self.cnp_interval_per {
            CnpScope::QueuePair => self.cnp_interval,
            CnpScope::Port => Time::ZERO,
        }
    }

    /// Bytes of the congestion control's time stamp or code on packets and replies, see [`Evidence::stamp`].
    pub fn stamp(&self) -> u8 {
        self.congestion.facts().evidence.stamp()
    }

    /// Checks whether the values are possible. The parts work with any values, but impossible ones make no sense.
    pub fn validate(&self) -> Result<(), Finding> {
        if self.ack_every == 0 {
            return Err(code::RANGE.at("ack-every", "must be at least 1"));
        }
        OrOff::get(self.self_cnp).map_or(Ok(()), |own| own.validate())?;
        self.timeout.validate()?;
        self.backoff.map_or(Ok(()), |backoff| backoff.validate())?;
        if self.backoff.is_some() && self.timeout.is_schedule() {
            return Err(code::CONFLICT
                .at("backoff", "cannot be set with `timeout.adp`, which has a schedule of its own"));
        }
        if self.retries.is_some_and(|most| most > MAX_RETRIES) {
            return Err(code::RANGE.at("retries", format!("must be at most {MAX_RETRIES}")));
        }
        if self.retries.is_some() && self.timeout.span() == Time::NEVER {
            return Err(code::NEEDS.at("retries", "counts timeouts, and `timeout` sets no timer"));
        }
        if self.fails_over() && self.retries.is_none() {
            let text = "follows the last of `retries`, which has no value";
            return Err(code::NEEDS.at("on-retry-exceeded", text));
        }
        let facts = self.congestion.facts();
        if facts.evidence == Evidence::Marks && self.cnp != Cnp::Flag {
            let name = self.congestion.name();
            let text = format!("must be \"flag\" with `congestion.{name}`, which reads marks on ACKs");
            return Err(code::CONFLICT.at("cnp", text));
        }
        if matches!(facts.evidence, Evidence::Telemetry { .. } | Evidence::Digest(_))
            && self.transport.facts().sacks
        {
            let (control, mode) = (self.congestion.name(), self.transport.name());
            let text =
                format!("cannot be `{control}`: packets of `transport.{mode}` have no space for telemetry");
            return Err(code::UNSUITED.at("congestion", text));
        }
        if facts.grants.is_some() && !self.transport.facts().sacks {
            let (control, mode) = (self.congestion.name(), self.transport.name());
            let text =
                format!("cannot be `{control}`: packets of `transport.{mode}` carry no demand for credit");
            return Err(code::UNSUITED.at("congestion", text));
        }
        if let Some(window) = &self.window {
            window.validate()?;
        }
        OrOff::get(self.messages).map_or(Ok(()), Messages::validate)?;
        OrOff::get(self.ingress).map_or(Ok(()), Ingress::validate)?;
        if self.reads == Some(0) {
            return Err(code::RANGE.at("reads", "must be at least 1"));
        }
        NicClass::validate(&self.classes)?;
        self.receive.as_ref().map_or(Ok(()), Receive::validate)?;
        self.pcie.as_ref().map_or(Ok(()), Pcie::validate)?;
        if self.window_scales_with_rate && self.window.is_none() {
            return Err(code::NEEDS.at("window-scales-with-rate", "scales `window`, which is not set"));
        }
        self.on_nack.validate("on-nack", facts.has_rate)?;
        self.on_timeout.validate("on-timeout", facts.has_rate)?;
        self.transport.validate()?;
        self.congestion.validate()
    }
}

/// The parts of a NIC that a load-balancing scheme brings along for its queue pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnNic {
    /// Recovery mode.
    pub transport: TransportConfig,
    /// Congestion control.
    pub congestion: CongestionConfig,
    /// Data packets per ACK.
    pub ack_every: u32,
}

impl NicConfig {
    /// This NIC with the parts that a scheme brings along. A recovery mode and a control of the same kind keep their
    /// settings.
    #[must_use]
    pub fn with(&self, own: OwnNic) -> Self {
        let same = self.transport.name() == own.transport.name();
        let transport = if same { self.transport.clone() } else { own.transport };
        let same = self.congestion.name() == own.congestion.name();
        let congestion = if same { self.congestion.clone() } else { own.congestion };
        let facts = congestion.facts();
        let react = |reaction| match reaction {
            Reaction::To(_) | Reaction::ToMinRate if !facts.has_rate => Reaction::AsCnp,
            other => other,
        };
        NicConfig {
            ack_every: own.ack_every,
            cnp: facts.evidence.cnp().unwrap_or(self.cnp),
            on_nack: react(self.on_nack),
            on_timeout: react(self.on_timeout),
            transport,
            congestion,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> Result<NicConfig, String> {
        toml::from_str(toml).map_err(|e| e.to_string())
    }

    #[test]
    fn an_empty_table_is_the_default_and_valid() {
        assert_eq!(read("").unwrap(), NicConfig::default());
        assert_eq!(NicConfig::default().validate(), Ok(()));
    }

    #[test]
    fn a_scenario_reads_as_documented() {
        let config = read(
            r#"
            cnp = "flag"
            ack-every = 4
            timeout = { ib-floor = 14 }
            backoff = { cap = "64ms" }
            on-nack = { stall = "17us" }
            on-timeout = "none"
            [transport.go-back-n]
            renack-interval = "4us"
            [congestion.dcqcn]
            rate-increase-timer = "300us"
            gain = 1
            "#,
        )
        .unwrap();
        assert_eq!(config.validate(), Ok(()));
        assert_eq!((config.cnp, config.ack_every), (Cnp::Flag, 4));
        assert_eq!(config.timeout, Timeout::IbFloor(14));
        assert_eq!(config.backoff, Some(Backoff { factor: 2, cap: Time::from_ms(64) }));
        assert_eq!(config.on_nack, Reaction::Stall(Time::from_us(17)));
        assert_eq!(config.on_timeout, Reaction::None);
        assert_eq!((config.transport.name(), config.congestion.name()), ("go-back-n", "dcqcn"));
        let again = toml::to_string(&config).unwrap();
        assert_eq!(read(&again).unwrap(), config, "{again}");
        assert_eq!(read("[transport.ideal]\n[congestion.none]").unwrap().transport.name(), "ideal");
    }

    #[test]
    fn unknown_keys_and_names_are_refused() {
        let error = read("[transport.nic-sr]\nmax-outstandng = 4").unwrap_err();
        assert!(error.contains("max-outstandng") && error.contains("max-outstanding"), "{error}");
        let error = read("[transport.selective]").unwrap_err();
        assert!(TransportConfig::NAMES.iter().all(|name| error.contains(name)), "{error}");
        assert!(read("cnp-interval = 4").is_err());
    }

    #[test]
    fn some_controls_and_recovery_modes_exclude_each_other() {
        let config = read("cnp = \"none\"\n[transport.uec]\n[congestion.hpcc]").unwrap();
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains("`transport.uec` have no space for telemetry"), "{error}");
        let error = read("cnp = \"flag\"\n[congestion.rccc]").unwrap().validate().unwrap_err().to_string();
        assert!(error.contains("`transport.nic-sr` carry no demand for credit"), "{error}");
    }

    #[test]
    fn impossible_settings_are_refused() {
        for (toml, field) in [
            ("ack-every = 0", "ack-every"),
            ("cnp = \"frame\"\n[congestion.mp-rdma]", "cnp"),
            ("cnp = \"flag\"\n[congestion.mp-rdma]\ninitial = 0", "congestion.mp-rdma.initial"),
            ("self-cnp = { interval = \"0us\", above = \"1Gbps\" }", "self-cnp.interval"),
            ("self-cnp = { interval = \"1us\", above = \"0Gbps\" }", "self-cnp.above"),
            ("window = { bytes = \"0B\" }", "window.bytes"),
            ("messages = { per-qp = \"0/s\" }", "messages.per-qp"),
            ("ingress = { above = \"0bps\", loss = 0.1, burst = 1 }", "ingress.above"),
            ("ingress = { above = \"1Gbps\", loss = 0.0, burst = 1 }", "ingress.loss"),
            ("ingress = { above = \"1Gbps\", loss = nan, burst = 1 }", "ingress.loss"),
            ("ingress = { above = \"1Gbps\", loss = 0.1, burst = 0 }", "ingress.burst"),
            (
                "ingress = { above = \"1Gbps\", loss = 0.1, burst = 1, interval = \"0us\" }",
                "ingress.interval",
            ),
            ("reads = 0", "reads"),
            ("receive = { rate = \"0bps\" }", "receive.rate"),
            ("pcie = { rate = \"0.5Gbps\" }", "pcie.rate"),
            ("receive = { rate = \"1Gbps\", buffer = \"0B\" }", "receive.buffer"),
            ("messages.per-nic = \"0M/s\"", "messages.per-nic"),
            ("classes = [{}, {}, {}, {}, {}]", "classes"),
            ("classes = [{}, {}]", "classes"),
            ("classes = [{ of = [\"ep\"] }]", "classes"),
            ("classes = [{ of = [\"ep\"] }, {}, { of = [\"kv\", \"ep\"] }]", "classes.2.of.1"),
            ("classes = [{ weight = 0 }]", "classes.0.weight"),
            ("classes = [{ rate = \"0Gbps\" }]", "classes.0.rate"),
            ("window-scales-with-rate = true", "window-scales-with-rate"),
            (
                "cnp = \"flag\"\n[transport.uec]\n[congestion.ndp]\nfirst-window = 0",
                "congestion.ndp.first-window",
            ),
            ("cnp = \"flag\"\n[transport.uec]\n[congestion.ndp]\nshare = 2.0", "congestion.ndp.share"),
            ("cnp = \"flag\"\n[transport.uec]\n[congestion.eqds]\nwindow = 0.0", "congestion.eqds.window"),
            ("[congestion.strack]\ngain = nan", "congestion.strack.gain"),
            ("[congestion.strack]\ntarget = \"0us\"", "congestion.strack.target"),
            ("cnp = \"flag\"\n[congestion.smartt]\nfair-decrease = -1.0", "congestion.smartt.fair-decrease"),
            ("on-nack = { to = 0.5 }\n[congestion.swift]", "on-nack.to"),
            ("timeout = { fixed = \"0us\" }", "timeout.fixed"),
            ("retries = 255", "retries"),
            ("timeout = \"none\"\nretries = 7", "retries"),
            ("timeout = { ib = 32 }", "timeout.ib"),
            ("timeout = { ib-floor = 32 }", "timeout.ib-floor"),
            ("backoff = { factor = 0, cap = \"1ms\" }", "backoff.factor"),
            ("timeout = { adp = 32 }", "timeout.adp"),
            ("timeout = { adp = 14 }\nbackoff = { cap = \"1s\" }", "backoff"),
            ("on-nack = { to = 1.5 }", "on-nack.to"),
            ("on-nack = \"to-min-rate\"\n[congestion.none]", "on-nack"),
            ("on-timeout = { to = 0.5 }\n[congestion.none]", "on-timeout.to"),
            ("on-nack = { stall = \"0us\" }", "on-nack.stall"),
        ] {
            let error = read(toml).unwrap().validate().unwrap_err();
            assert_eq!(error.path(), field);
        }
    }

    #[test]
    fn every_setting_has_a_documented_default() {
        let schema = serde_json::to_value(schemars::schema_for!(NicConfig)).unwrap();
        let mut tables = vec![("nic", &schema)];
        for (name, table) in schema["$defs"].as_object().unwrap() {
            tables.push((name, table));
        }
        let (mut seen, mut compared) = (0, 0);
        for (name, table) in tables {
            let Some(fields) = table["properties"].as_object() else { continue };
            for (field, about) in fields {
                let text = about["description"].as_str().unwrap_or_default();
                assert!(text.contains("efault"), "{name}.{field}: {text}");
                seen += 1;
                // "Default 32768" or "Default \"4us\"".
                let word = text.split("Default ").nth(1).and_then(|rest| rest.split_whitespace().next());
                let documented = word.map(|word| word.trim_end_matches(['.', ',', ':', ';']));
                let value = documented.and_then(|word| serde_json::from_str::<serde_json::Value>(word).ok());
                // A default without a value is one that other settings decide; some texts give another unit.
                let default = &about["default"];
                if let Some(value) =
                    value.filter(|value| value.is_string() == default.is_string() && !default.is_null())
                {
                    assert_eq!(value.as_f64(), default.as_f64(), "{name}.{field}");
                    assert_eq!(value.as_str(), default.as_str(), "{name}.{field}");
                    compared += 1;
                }
            }
        }
        assert!(seen >= 29 && compared >= 20, "{seen}, {compared}");
    }
}
