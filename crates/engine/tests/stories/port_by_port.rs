//! Claim: a light visit that computes a switch port by port gives the outcome of the order of time, also where ports meet:
//! packets that departures make at one picosecond join one uplink in the order of the ports, and after the uplink's own
//! departure of that instant. A scheme that counts what joins a port sees all classes of its packets in one order of time.
//!
//! The schemes are the test's own, in a box ([`schemes::AnyScheme::Custom`]).

use crate::lab::{agreed, lay, leaf_spine};
use engine::outcome::Outcome;
use model::scheme::Acks;
use model::{
    Cx, HostId, Interest, Kind, Packet, Parts, Plan, PortIndex, Psn, QpId, Scheme, Site, Time, Verdict,
};
use rnic::Nic;
use schemes::AnyScheme;

/// Makes a reply of its own size at every departure to a host, if the sender is in another rack.
struct Echo {
    /// By queue pair: its sender, if it is in another rack.
    senders: Vec<Option<HostId>>,
    kind: Kind,
}

impl Echo {
    fn echo(&self, pkt: &Packet, port: PortIndex) -> Option<Packet> {
        let sender = self.senders[pkt.qp().index()]?;
        // The size tells the port, so that an exchange of two replies changes times.
        Some(Packet::new(self.kind, pkt.qp(), sender, Psn::new(0), 66 + 40 * u32::from(port.0)))
    }
}

impl Scheme for Echo {
    fn interest(&self) -> Interest {
        Interest { host_departures: true, makes_replies: true, local: true, ..Interest::default() }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        Verdict::Forward(cx.base_path(pkt, ports))
    }

    fn on_depart(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex) {
        if let Some(reply) = self.echo(pkt, port) {
            cx.emit(reply);
        }
    }

    fn on_leave(&mut self, pkt: &Packet, port: PortIndex, _: &mut Acks<'_>) -> Option<Packet> {
        self.echo(pkt, port)
    }
}

/// Chains the time and the kind of all packets that join a port, so that any exchange of two packets changes its counter.
struct Witness {
    chains: Vec<u64>,
}

impl Witness {
    fn note(&mut self, now: Time, pkt: &Packet, port: PortIndex) {
        let chain = &mut self.chains[port.index()];
        *chain =
            (*chain ^ now.ps() << 8 ^ pkt.kind() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
}

impl Scheme for Witness {
    fn interest(&self) -> Interest {
        Interest { every_packet: true, local: true, passes: true, ..Interest::default() }
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &mut Packet, ports: &[PortIndex]) -> Verdict {
        let port = cx.base_path(pkt, ports);
        self.note(cx.now, pkt, port);
        Verdict::Forward(port)
    }

    fn on_pass(&mut self, now: Time, pkt: &Packet, tag: u64, port: PortIndex) -> u64 {
        self.note(now, pkt, port);
        tag
    }

    fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("chains", self.chains.iter().map(|chain| chain >> 32).sum());
    }
}

/// A test's scheme.
#[derive(Clone, Copy, Debug)]
enum Tested {
    /// [`Echo`] with replies of this kind.
    Echo(Kind),
    Witness,
}

/// The NIC of a scenario, with the test's scheme in every switch.
struct Echoing {
    nic: Nic,
    scheme: Tested,
}

impl Parts for Echoing {
    type Scheme = AnyScheme;
    type Sender = rnic::AnySender;
    type Receiver = rnic::AnyReceiver;
    type Congestion = rnic::Reacting;
    type Annex = ();
    type Steering = ();
    type Granter = ();

    fn scheme(&self, site: Site<'_>) -> AnyScheme {
        let fabric = site.fabric();
        let Tested::Echo(kind) = self.scheme else {
            return AnyScheme::Custom(Box::new(Witness { chains: vec![0; fabric.ports(site.node).len()] }));
        };
        let other = |qp: &model::plan::Qp| fabric.attachment(qp.from) != fabric.attachment(qp.to);
        let senders = site.plan.qps.iter().map(|qp| other(qp).then_some(qp.from)).collect();
        AnyScheme::Custom(Box::new(Echo { senders, kind }))
    }

    fn sender(&self, _: &Plan, _: QpId) -> rnic::AnySender {
        self.nic.sender()
    }

    fn receiver(&self, _: &Plan, _: QpId) -> rnic::AnyReceiver {
        self.nic.receiver()
    }

    fn congestion(&self, plan: &Plan, qp: QpId) -> rnic::Reacting {
        self.nic.congestion(plan.fabric.uplink(plan.qps[qp.index()].from).rate)
    }

    fn steering(&self, _: model::QpSite<'_>) {}

    fn granter(&self, _: &Plan, _: HostId) {}
}

/// Runs a fabric whose ToRs have one uplink, with these switch settings, on all engines.
fn echo(switch: &str, fabric: &str, kind: Kind) -> Outcome {
    let text = format!(
        "{}\n[switch]\nbuffer = \"10MB\"\n{switch}\n[nic.transport.ideal]\n[[workload]]\n\
         permutation = {{ kind = \"shift\", shift = 4, bytes = \"60kB\" }}\n[[workload]]\n\
         permutation = {{ kind = \"shift\", shift = 8, bytes = \"60kB\" }}\n",
        leaf_spine(3, 1, 4, fabric)
    );
    let checked = lay(&text);
    let parts = Echoing { nic: checked.nics.of(QpId(0)).clone(), scheme: Tested::Echo(kind) };
    agreed(&checked.plan, &parts, &format!("{kind:?}\n{text}"))
}

const CLASSES: [&str; 3] = ["classes = \"strict\"", "classes = \"one\"", "classes = \"cnp-first\""];

#[test]
fn replies_made_at_one_picosecond_join_one_uplink_in_the_order_of_the_ports() {
    // The link from the spine is four times as fast as those to the hosts, so that hosts' queues never run dry and all
    // ports to hosts start their packets in step.
    for classes in CLASSES {
        for kind in [Kind::Ack, Kind::Cnp] {
            let run = echo(classes, "rate = \"100Gbps\"\nuplink-rate = \"400Gbps\"\ndelay = \"200ns\"", kind);
            assert!(run.control.forged > 500, "{classes}: {}", run.control.forged);
        }
    }
}

#[test]
fn a_reply_joins_after_the_departure_of_its_uplink_at_that_picosecond() {
    // All frames take whole multiples of one time at these rates, so that departures at different ports coincide.
    for classes in CLASSES {
        for delay in ["1ns", "100ns", "1us"] {
            let fabric = format!("rate = \"100Gbps\"\nuplink-rate = \"100Gbps\"\ndelay = \"{delay}\"");
            let run = echo(classes, &fabric, Kind::Ack);
            assert!(run.control.forged > 500, "{classes}: {}", run.control.forged);
        }
    }
}

#[test]
fn a_scheme_sees_all_classes_of_the_packets_that_join_a_port_in_order() {
    for classes in CLASSES {
        // The second buffer pauses the senders, so that visits know every charge.
        for (buffer, pauses) in [("10MB", false), ("100kB", true)] {
            let text = format!(
                "{}\n[switch]\nbuffer = \"{buffer}\"\n{classes}\n[switch.ecn]\nkmin = \"3kB\"\nkmax = \"12kB\"\n\
                 [nic.transport.ideal]\n[[workload]]\nincast = {{ receiver = \"host0\", senders = 11, bytes = \"60kB\" }}\n\
                 [[workload]]\npermutation = {{ kind = \"shift\", shift = 4, bytes = \"60kB\" }}\n",
                leaf_spine(3, 2, 4, "rate = \"100Gbps\"\ndelay = \"200ns\"")
            );
            let checked = lay(&text);
            let parts = Echoing { nic: checked.nics.of(QpId(0)).clone(), scheme: Tested::Witness };
            let run = agreed(&checked.plan, &parts, &text);
            assert!(run.control.cnp > 10, "{classes}: {}", run.control.cnp);
            assert_eq!(run.control.pause > 0, pauses, "{classes}: {}", run.control.pause);
        }
    }
}
