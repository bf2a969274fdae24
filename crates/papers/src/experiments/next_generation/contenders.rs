//! The systems that the study compares: paths, NIC, control and switches of each, as settings of a scenario.

/// A system.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    /// What decides the paths.
    pub(super) scheme: &'static str,
    pub(super) nic: Nic,
    pub(super) control: Control,
    pub(super) switch: Switch,
    /// Equipment that must change.
    pub(super) changes: &'static str,
}

/// The kind of NIC.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nic {
    /// Selective repeat with a NACK per ePSN; a NACK cuts the rate.
    Today,
    /// The same, and a NACK leaves the rate alone.
    TodayCalm,
    /// Any order, and no NACK.
    Ideal,
    /// The same with a timer of 20 us.
    IdealFast,
    Uec,
    Mrc,
    Dcp,
}

/// Congestion control.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// DCQCN of NVIDIA's NICs.
    Dcqcn,
    /// DCQCN with timers that suit the rivals of Themis: increases every 10 us, cuts at most every 50 us. One of the pairs of
    /// that paper's Fig. 5.
    Fast,
    Nscc,
    Rccc,
    /// RCCC with NSCC.
    Both,
    None,
}

/// Queues of the switches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    /// PFC over the shared buffer.
    Pfc,
    /// Shared buffer with dynamic thresholds; packets beyond them are dropped.
    Drop,
    /// Queues of one bandwidth-delay product; packets beyond it are cut.
    Cut,
    /// Queues of five bandwidth-delay products; packets beyond it are dropped.
    Caps,
}

/// Bandwidth-delay product of the longest path of the fabric, bytes, and its round trip, ns, by the rate of a port in Gb/s: four
/// links of 500 ns each way, full frames there and ACKs back.
fn product(gbps: u32) -> (u32, u32) {
    match gbps {
        100 => (67_000, 5350),
        800 => (417_000, 4170),
        _ => (217_000, 4340),
    }
}

/// Rate of ports and size of buffers and caps.
#[derive(Clone, Copy)]
pub(super) struct Speed {
    pub(super) gbps: u32,
    /// Size of buffers and caps, in halves of the usual size.
    pub(super) halves: u32,
}

/// The speed and the buffers of the scenario.
pub(super) const USUAL: Speed = Speed { gbps: 400, halves: 2 };

impl Contender {
    /// The settings at this speed.
    pub(super) fn sets(&self, speed: Speed) -> Vec<String> {
        let mut sets = vec![format!("scheme.{}", self.scheme)];
        let of_nic: &[&str] = match self.nic {
            Nic::Today => &[],
            Nic::TodayCalm => &["nic.on-nack=none"],
            Nic::Ideal => &["nic.transport.ideal={}"],
            Nic::IdealFast => &["nic.transport.ideal={}", "nic.timeout={fixed=\"20us\"}"],
            // Frames over IPv4: Ultra Ethernet Specification 1.0.3 and OCP MRC 1.0, without options.
            Nic::Uec => &["nic.transport.uec={}", "wire.header=110B", "wire.ack=82B"],
            Nic::Mrc => &["nic.transport.mrc={}", "wire.header=86B", "wire.ack=98B"],
            Nic::Dcp => &["nic.transport.dcp={}"],
        };
        sets.extend(of_nic.iter().map(|&set| set.to_owned()));
        let (bdp, rtt) = product(speed.gbps);
        let (bdp, halves) = (bdp * speed.halves / 2, speed.halves);
        match self.control {
            Control::Dcqcn => {}
            Control::Fast => {
                sets.push("nic.congestion.dcqcn.rate-increase-timer=10us".into());
                sets.push("nic.congestion.dcqcn.rate-decrease-interval=50us".into());
            }
            Control::None => sets.push("nic.congestion.none={}".into()),
            // Where switches drop, the target is a whole round trip (uet-htsim).
            Control::Nscc if self.switch == Switch::Caps => {
                sets.push(format!("nic.congestion.nscc={{target=\"{rtt}ns\"}}"));
            }
            Control::Nscc => sets.push("nic.congestion.nscc={}".into()),
            Control::Rccc => sets.push("nic.congestion.rccc={}".into()),
            Control::Both => sets.push("nic.congestion.rccc={nscc={}}".into()),
        }
        if self.switch != Switch::Pfc {
            sets.push("switch.pfc=off".into());
        }
        if speed.gbps == 400 && halves != 2 {
            sets.push(format!("switch.buffer={}MB", 10 * halves));
            sets.push(format!("switch-role.spine.buffer={}MB", 5 * halves));
        }
        if speed.gbps == 800 {
            let sizes =
                ["topology.leaf-spine.rate=800Gbps", "switch.buffer=40MB", "switch-role.spine.buffer=20MB"];
            sets.extend(sizes.map(str::to_owned));
        }
        match self.switch {
            Switch::Pfc | Switch::Drop => {}
            Switch::Cut => self.cut(bdp, speed.gbps, &mut sets),
            Switch::Caps => {
                sets.push(format!("switch.queue-cap={}B", 5 * bdp));
                sets.push(marks(speed.gbps, bdp / 5, bdp / 5 * 4, 1.0, true));
                // uet-htsim: 15 us and six full queues.
                sets.push("nic.timeout={fixed=\"147us\"}".into());
                sets.push("nic.transport.uec.infer-loss=true".into());
            }
        }
        sets
    }

    /// Switches that trim packets.
    fn cut(&self, bdp: u32, gbps: u32, sets: &mut Vec<String>) {
        sets.push(format!("switch.queue-cap={bdp}B"));
        if self.nic == Nic::Dcp {
            sets.push("switch.cut={frame=\"57B\"}".into());
            sets.push(
                "switch.classes=[{kinds=[\"trimmed\",\"control\",\"cnp\",\"nack\",\"signal\"],weight=1},\
                 {kinds=[\"data\",\"ack\"],weight=1}]"
                    .into(),
            );
        } else {
            sets.push("switch.cut=on".into());
            sets.push(format!("switch.queue-cap-to-hosts={}B", bdp * 3 / 2));
            sets.push(
                "switch.classes=[{kinds=[\"ack\",\"nack\",\"cnp\",\"control\",\"trimmed\"]},{kinds=[\"data\"]}]".into(),
            );
            sets.push("nic.timeout={fixed=\"50us\"}".into());
        }
        sets.push(match self.control {
            // Our choice, as in the scenario `dcp`: DCQCN wants marks late and seldom.
            Control::Dcqcn | Control::Fast => marks(gbps, bdp * 6 / 10, bdp, 0.2, true),
            // Ultra Ethernet turns marks to hosts off where receivers grant credit; MRC always does.
            control => {
                let to_hosts = self.nic != Nic::Mrc && !matches!(control, Control::Rccc | Control::Both);
                marks(gbps, bdp / 5, bdp / 5 * 4, 1.0, to_hosts)
            }
        });
    }
}

impl Contender {
    /// A queue for legacy flows with what today's NICs are used to: PFC and DCQCN's marks. Both queues of data have the same
    /// weight; all other settings are those of the contender.
    pub(super) fn legacy_queue(&self) -> String {
        let lossless = ",pfc=\"on\",ecn=\"on\"";
        let (control, data, settings) = match (self.switch, self.nic) {
            (Switch::Pfc | Switch::Drop, _) => (
                "{kinds=[\"cnp\"]},{kinds=[\"ack\",\"nack\",\"signal\",\"trimmed\",\"control\"]}",
                "\"data\"",
                "",
            ),
            (_, Nic::Dcp) => (
                "{kinds=[\"trimmed\",\"control\",\"cnp\",\"nack\",\"signal\"],weight=1}",
                "\"data\",\"ack\"",
                lossless,
            ),
            _ => ("{kinds=[\"ack\",\"nack\",\"cnp\",\"control\",\"trimmed\"]}", "\"data\"", lossless),
        };
        format!(
            "switch.classes=[{control},{{kinds=[{data}],weight=1}},\
             {{kinds=[{data}],of=[\"legacy\"],weight=1{settings}}}]"
        )
    }
}

/// Marking thresholds of all ports.
fn marks(gbps: u32, kmin: u32, kmax: u32, pmax: f64, to_hosts: bool) -> String {
    format!(
        "switch.ecn={{to-hosts={to_hosts},at-rate=[{{rate=\"{gbps}Gbps\",kmin=\"{kmin}B\",kmax=\"{kmax}B\",pmax={pmax:?}}}]}}"
    )
}

const fn contender(
    name: &'static str,
    scheme: &'static str,
    (nic, control, switch): (Nic, Control, Switch),
    changes: &'static str,
) -> Contender {
    Contender { name, scheme, nic, control, switch, changes }
}

const TODAY: (Nic, Control, Switch) = (Nic::Today, Control::Dcqcn, Switch::Pfc);

pub(super) const ECMP_FAST: Contender =
    Contender { name: "ECMP, fast DCQCN", control: Control::Fast, ..ECMP };
pub(super) const AR_FAST: Contender = Contender { name: "AR, fast DCQCN", control: Control::Fast, ..AR };
pub(super) const THEMIS_FAST: Contender =
    Contender { name: "Themis, fast DCQCN", control: Control::Fast, ..THEMIS };
pub(super) const PATHS_FAST: Contender =
    Contender { name: "UEC NIC, fast DCQCN, PFC", control: Control::Fast, ..PATHS_DCQCN };

pub(super) const ECMP: Contender = contender("ECMP", "ecmp={}", TODAY, "nothing");
pub(super) const CEILING: Contender = contender(
    "ideal spraying",
    "themis={filter=false}",
    (Nic::Ideal, Control::None, Switch::Pfc),
    "the upper bound: spraying in turn, any order, no control",
);
pub(super) const AR: Contender =
    contender("AR", "ar={}", TODAY, "switches with adaptive routing, a common feature");
pub(super) const AR_CALM: Contender = contender(
    "AR, calm NACKs",
    "ar={}",
    (Nic::TodayCalm, Control::Dcqcn, Switch::Pfc),
    "the same, and NICs whose rate ignores NACKs",
);
pub(super) const THEMIS: Contender =
    contender("Themis", "themis={}", TODAY, "ToRs that read PSNs and block NACKs");
pub(super) const THEMIS_LOSSY: Contender = contender(
    "Themis, lossy",
    "themis={}",
    (Nic::Today, Control::Dcqcn, Switch::Drop),
    "ToRs that read PSNs and block NACKs; no PFC",
);
pub(super) const ETHEREAL: Contender =
    contender("Ethereal", "ethereal={}", TODAY, "the collective library, and paths that it can choose");
pub(super) const REPS: Contender =
    contender("REPS", "reps={}", TODAY, "NICs that keep the source ports of good ACKs");
pub(super) const UEC_NSCC: Contender = contender(
    "UEC, NSCC",
    "entropy-mixed={}",
    (Nic::Uec, Control::Nscc, Switch::Cut),
    "NICs, switches that trim packets",
);
pub(super) const UEC_RCCC: Contender = contender(
    "UEC, RCCC",
    "entropy-mixed={}",
    (Nic::Uec, Control::Rccc, Switch::Cut),
    "NICs, switches that trim packets",
);
pub(super) const UEC_BOTH: Contender = contender(
    "UEC, both",
    "entropy-mixed={}",
    (Nic::Uec, Control::Both, Switch::Cut),
    "NICs, switches that trim packets",
);
pub(super) const UEC_DROPS: Contender =
    contender("UEC, NSCC, drops", "entropy-mixed={}", (Nic::Uec, Control::Nscc, Switch::Caps), "NICs");
pub(super) const MRC: Contender =
    contender("MRC", "mrc={}", (Nic::Mrc, Control::Nscc, Switch::Cut), "NICs, switches that trim packets");
pub(super) const DCP_DCQCN: Contender = contender(
    "DCP, fast DCQCN",
    "ar={}",
    (Nic::Dcp, Control::Fast, Switch::Cut),
    "NICs, switches that trim packets",
);
pub(super) const DCP_NSCC: Contender = contender(
    "DCP, NSCC",
    "ar={}",
    (Nic::Dcp, Control::Nscc, Switch::Cut),
    "NICs, switches that trim packets",
);
pub(super) const SPRAY_NSCC: Contender = contender(
    "PSN spraying, UEC NIC",
    "themis={filter=false}",
    (Nic::Uec, Control::Nscc, Switch::Cut),
    "NICs, switches that trim packets and spray by PSN",
);
pub(super) const PATHS_TODAY: Contender =
    contender("UEC's paths, today's NIC", "entropy-mixed={}", TODAY, "NICs that choose source ports");
pub(super) const PATHS_DCQCN: Contender =
    contender("UEC NIC, DCQCN, PFC", "entropy-mixed={}", (Nic::Uec, Control::Dcqcn, Switch::Pfc), "NICs");

/// All contenders, in the order of the tables.
pub(super) const ALL: [Contender; 21] = [
    ECMP,
    ECMP_FAST,
    AR,
    AR_FAST,
    REPS,
    PATHS_TODAY,
    THEMIS,
    THEMIS_FAST,
    THEMIS_LOSSY,
    ETHEREAL,
    PATHS_DCQCN,
    PATHS_FAST,
    SPRAY_NSCC,
    UEC_NSCC,
    UEC_RCCC,
    UEC_BOTH,
    UEC_DROPS,
    MRC,
    DCP_DCQCN,
    DCP_NSCC,
    CEILING,
];

/// The upper bound where packets are lost.
const CEILING_FAST: Contender = Contender { nic: Nic::IdealFast, ..CEILING };

/// All contenders where packets are lost.
pub(super) const UNDER_LOSS: [Contender; 21] = with_ceiling(CEILING_FAST);

const fn with_ceiling(ceiling: Contender) -> [Contender; 21] {
    let mut all = ALL;
    all[20] = ceiling;
    all
}

pub(super) const THEMIS_REMAP: Contender = contender(
    "Themis, remapped",
    "themis={on-failure=\"remap\"}",
    TODAY,
    "ToRs that read PSNs and block NACKs, and give slots of dead paths other paths",
);

/// Contenders where links die.
pub(super) const UNDER_FAILURE: [Contender; 16] = [
    ECMP_FAST,
    AR_FAST,
    REPS,
    THEMIS,
    THEMIS_REMAP,
    THEMIS_LOSSY,
    ETHEREAL,
    PATHS_FAST,
    SPRAY_NSCC,
    UEC_NSCC,
    UEC_RCCC,
    UEC_BOTH,
    UEC_DROPS,
    MRC,
    DCP_NSCC,
    CEILING_FAST,
];

/// Contenders on one port and on eight planes.
pub(super) const ON_PLANES: [Contender; 7] =
    [ECMP_FAST, AR_FAST, THEMIS, THEMIS_FAST, UEC_NSCC, UEC_BOTH, MRC];

/// Contenders whose legacy flows get a queue of their own.
pub(super) const BESIDE_LEGACY: [Contender; 8] =
    [ECMP, THEMIS, THEMIS_FAST, UEC_NSCC, UEC_BOTH, UEC_DROPS, MRC, DCP_NSCC];

/// Contenders with DCQCN over the shared buffer.
pub(super) const WITH_DCQCN: [Contender; 9] =
    [ECMP, AR, AR_CALM, REPS, PATHS_TODAY, THEMIS, THEMIS_LOSSY, ETHEREAL, PATHS_DCQCN];

/// Contenders with Ultra Ethernet's NIC.
pub(super) const OF_UEC: [Contender; 6] = [SPRAY_NSCC, UEC_NSCC, UEC_RCCC, UEC_BOTH, UEC_DROPS, PATHS_DCQCN];

impl Contender {
    /// Eight ports of 100 Gb/s per NIC, in eight planes, with the buffers of switches of that size.
    pub(super) fn planes(&self) -> Vec<String> {
        let spreads = matches!(self.nic, Nic::Uec | Nic::Mrc);
        let port_use = if spreads { "spread" } else { "own" };
        let mut sets = vec![
            format!("server={{gpus=1,ports-per-nic=8,port-use=\"{port_use}\"}}"),
            "topology.rails={kind=\"per-server\",servers=64,servers-per-segment=8,planes=8,spines=8,rate=\"100Gbps\",\
             delay=\"500ns\"}"
                .to_owned(),
            "switch.buffer=5MB".to_owned(),
            "switch-role.spine.buffer=2500kB".to_owned(),
        ];
        if !spreads {
            // Every message goes in parts over all ports.
            sets.push("workload.0.collective.tuning.ports=stripe".to_owned());
        }
        sets
    }
}
