//! The engine, joined with real parts: the one crate in which the generic engine is compiled with the schemes and NICs of
//! a scenario.
//!
//! What packets carry beside their labels decides which of four engines runs: most runs carry nothing, and such packets
//! take a third of the room of those with telemetry.

#![forbid(unsafe_code)]

use engine::live::Live;
use engine::{Kind, Observer, Outcome};
use model::annex::{SackStamp, Stamp, TelemetryStamp};
use model::steering::{WithSacks, WithTelemetry};
use model::{
    Annex, Granter, HostId, IngressLosses, MessageGaps, Parts, Plan, QpId, QpSite, Rate, Receiver, Scheme,
    Sender, Site, Steering, Time,
};
use rnic::pacer::AnyGranter;
use rnic::{AnyReceiver, AnySender, Nics, Reacting, SackingReceiver, SackingSender};
use schemes::{AnyScheme, AnySteering, Assignment, Carried};
use std::marker::PhantomData;

/// Runs a plan with these schemes and NICs to its end, see [`engine::run`].
pub fn run(
    plan: &Plan,
    schemes: &Assignment,
    nics: &Nics,
    kind: Kind,
    observer: &mut dyn Observer,
) -> Outcome {
    match Carried::by(plan, schemes, nics) {
        Carried::Nothing => engine::run(plan, &RealParts::<()>::new(schemes, nics), kind, observer),
        Carried::Stamp => engine::run(plan, &RealParts::<Stamp>::new(schemes, nics), kind, observer),
        Carried::Telemetry => {
            engine::run(plan, &RealParts::<TelemetryStamp>::new(schemes, nics), kind, observer)
        }
        Carried::Sacks => engine::run(plan, &RealParts::<SackStamp>::new(schemes, nics), kind, observer),
    }
}

/// Starts a run that a program drives, see [`engine::live`].
pub fn live<'p>(plan: &'p Plan, schemes: &'p Assignment, nics: &'p Nics, kind: Kind) -> Box<dyn Live + 'p> {
    match Carried::by(plan, schemes, nics) {
        Carried::Nothing => engine::live(plan, &RealParts::<()>::new(schemes, nics), kind),
        Carried::Stamp => engine::live(plan, &RealParts::<Stamp>::new(schemes, nics), kind),
        Carried::Telemetry => engine::live(plan, &RealParts::<TelemetryStamp>::new(schemes, nics), kind),
        Carried::Sacks => engine::live(plan, &RealParts::<SackStamp>::new(schemes, nics), kind),
    }
}

/// Whether every queue pair's data takes one path, the base path of all switches (see [`model::Interest::by_flow`]).
pub fn goes_by_flow(plan: &Plan, schemes: &Assignment, nics: &Nics) -> bool {
    let by_flow = |node| schemes.build(Site { plan, node }).interest().by_flow;
    matches!(Carried::by(plan, schemes, nics), Carried::Nothing) && plan.fabric.switches().all(by_flow)
}

/// Whether switches only hash flows ([`goes_by_flow`]): they keep nothing of packets, and make none.
pub fn only_hashes(plan: &Plan, schemes: &Assignment, nics: &Nics) -> bool {
    let keeps_nothing = |node| {
        let interest = schemes.build(Site { plan, node }).interest();
        interest.local
            && !interest.watches()
            && !interest.passes
            && !interest.makes_replies
            && !interest.makes_data
    };
    goes_by_flow(plan, schemes, nics) && plan.fabric.switches().all(keeps_nothing)
}

/// The schemes and NICs of a run whose packets carry the annex `A`.
#[derive(Clone, Copy, Debug)]
pub struct RealParts<'a, A> {
    schemes: &'a Assignment,
    nics: &'a Nics,
    annex: PhantomData<A>,
}

impl<'a, A> RealParts<'a, A> {
    /// These schemes and NICs. [`run`] chooses the annex; with a smaller one, parts that write on packets write nothing.
    pub fn new(schemes: &'a Assignment, nics: &'a Nics) -> Self {
        RealParts { schemes, nics, annex: PhantomData }
    }
}

impl<A: Steered> Parts for RealParts<'_, A> {
    type Scheme = AnyScheme;
    type Sender = A::Sender;
    type Receiver = A::Receiver;
    type Congestion = Reacting;
    type Annex = A;
    type Steering = A::Steering;
    type Granter = A::Granter;

    fn scheme(&self, site: Site<'_>) -> AnyScheme {
        self.schemes.build(site)
    }

    fn sender(&self, plan: &Plan, qp: QpId) -> A::Sender {
        self.nics.sender(plan, qp).into()
    }

    fn receiver(&self, plan: &Plan, qp: QpId) -> A::Receiver {
        self.nics.receiver(qp, self.schemes.notices(plan, qp)).into()
    }

    fn cnp_interval_of_port(&self, qp: QpId) -> Option<Time> {
        self.nics.of(qp).cnp_interval_of_port()
    }

    fn message_gaps(&self, qp: QpId) -> Option<MessageGaps> {
        self.nics.of(qp).message_gaps()
    }

    fn self_cnp(&self, qp: QpId) -> Option<(Time, Rate)> {
        self.nics.of(qp).self_cnp().map(|own| (own.interval, own.above))
    }

    fn ingress_losses(&self, qp: QpId) -> Option<IngressLosses> {
        self.nics.of(qp).ingress_losses()
    }

    fn port_notice(&self, qp: QpId) -> Option<Time> {
        self.nics.of(qp).port_notice()
    }

    fn congestion(&self, plan: &Plan, qp: QpId) -> Reacting {
        self.nics.congestion(plan, qp)
    }

    fn steering(&self, site: QpSite<'_>) -> A::Steering {
        A::steering(self.schemes, site)
    }

    fn granter(&self, plan: &Plan, host: HostId) -> A::Granter {
        A::granter(self.nics, plan, host)
    }
}

/// An annex, and the kind of steering that writes it.
pub trait Steered: Annex {
    /// What steers a queue pair's packets.
    type Steering: Steering<Annex = Self> + Send;

    /// The sending end of a queue pair.
    type Sender: Sender + From<AnySender> + Send;

    /// The receiving end of a queue pair.
    type Receiver: Receiver + From<AnyReceiver> + Send;

    /// Credit that hosts grant; only packets with SACKs have space for it.
    type Granter: Granter + Send;

    /// The steering of one queue pair.
    fn steering(schemes: &Assignment, site: QpSite<'_>) -> Self::Steering;

    /// The granter of one host.
    fn granter(nics: &Nics, plan: &Plan, host: HostId) -> Self::Granter;
}

impl Steered for () {
    type Steering = ();
    type Sender = AnySender;
    type Receiver = AnyReceiver;
    type Granter = ();

    fn steering(_: &Assignment, _: QpSite<'_>) {}

    fn granter(_: &Nics, _: &Plan, _: HostId) {}
}

impl Steered for Stamp {
    type Steering = AnySteering;
    type Sender = AnySender;
    type Receiver = AnyReceiver;
    type Granter = ();

    fn steering(schemes: &Assignment, site: QpSite<'_>) -> AnySteering {
        schemes.steer(site)
    }

    fn granter(_: &Nics, _: &Plan, _: HostId) {}
}

impl Steered for SackStamp {
    type Steering = WithSacks<AnySteering>;
    type Sender = SackingSender;
    type Receiver = SackingReceiver;
    type Granter = AnyGranter;

    fn steering(schemes: &Assignment, site: QpSite<'_>) -> Self::Steering {
        WithSacks(schemes.steer(site))
    }

    fn granter(nics: &Nics, plan: &Plan, host: HostId) -> AnyGranter {
        nics.granter(plan, host)
    }
}

impl Steered for TelemetryStamp {
    type Steering = WithTelemetry<AnySteering>;
    type Sender = AnySender;
    type Receiver = AnyReceiver;
    type Granter = ();

    fn steering(schemes: &Assignment, site: QpSite<'_>) -> Self::Steering {
        WithTelemetry(schemes.steer(site))
    }

    fn granter(_: &Nics, _: &Plan, _: HostId) {}
}
