//! The parts that a scenario chooses, as the engine wants them.

use crate::ideal::{Ideals, bdp};
use crate::{Scenario, whole};
use model::draw::{Key, Purpose};
use model::{Parts, Plan, QpId, Seat, Site, Stamp};
use rnic::Nic;
use schemes::per_class::PerClass;
use schemes::{AnyScheme, AnySteering, SchemeConfig};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Schemes and NICs of a scenario. Nothing is written on packets; for scenarios in which that is needed
/// ([`Chosen::writes`]) there is [`Chosen::writing`].
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Schemes by traffic class; one alone if all have the same.
    schemes: Vec<SchemeConfig>,
    /// The class of every queue pair, if there are several schemes.
    class_of: Arc<[u8]>,
    /// Schemes by the role of a switch; they hold for all classes.
    roles: BTreeMap<String, SchemeConfig>,
    /// The NIC of every host.
    pub nic: Nic,
    /// By class: the NIC of queue pairs whose scheme brings one along.
    own: Vec<Option<Nic>>,
    /// Packets that the path of every queue pair holds, if a congestion control wants to know.
    bdp: Arc<[u32]>,
    writes: bool,
}

impl Chosen {
    pub(crate) fn new(scenario: &Scenario, plan: &Plan) -> Self {
        let mut schemes: Vec<SchemeConfig> =
            plan.traffic_classes.iter().map(|class| scenario.scheme_of(class).clone()).collect();
        let used = |class: usize| plan.jobs.iter().any(|job| usize::from(job.class) == class);
        let first = (0..schemes.len()).find(|&class| used(class)).unwrap_or_default();
        let several = (0..schemes.len()).any(|class| used(class) && schemes[class] != schemes[first]);
        let mut class_of = Vec::new();
        for class in 0..schemes.len() {
            if !used(class) {
                schemes[class] = schemes[first].clone(); // nobody meets it
            }
        }
        if several {
            class_of = (0..plan.qps.len() as u32).map(|qp| plan.class_of(QpId(qp))).collect();
        } else {
            schemes = vec![schemes.swap_remove(first)];
        }
        let role =
            |(name, role): (&String, &crate::switch::RoleConfig)| Some((name.clone(), role.scheme.clone()?));
        let nic = scenario.nic.build();
        let own: Vec<Option<Nic>> =
            schemes.iter().map(|s| Some(whole::nic_under(s, &scenario.nic)?.build())).collect();
        let mut nics = own.iter().map(|own| own.as_ref().unwrap_or(&nic));
        let mut packets = Vec::new();
        if nics.clone().any(Nic::wants_bdp) {
            let mut ideals = Ideals::new(plan);
            packets = plan.qps.iter().map(|qp| bdp(&mut ideals, qp.from, qp.to)).collect();
        }
        Chosen {
            writes: schemes.iter().any(SchemeConfig::writes)
                || nics.any(Nic::is_selective)
                || plan.fabric.groups() > 0,
            own,
            bdp: packets.into(),
            schemes,
            class_of: class_of.into(),
            roles: scenario.switch_role.iter().filter_map(role).collect(),
            nic,
        }
    }

    /// Whether something is written on packets: the ends of queue pairs choose paths or acknowledge single packets, or
    /// switches note a packet's way over groups.
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// Frame of the smallest signal that a scheme sends, bytes; 0 if none sends any.
    pub(crate) fn signal(&self) -> u32 {
        let all = self.schemes.iter().chain(self.roles.values()).map(SchemeConfig::signal);
        all.filter(|frame| *frame > 0).min().unwrap_or(0)
    }

    /// The same parts with ends that write on packets.
    pub fn writing(&self) -> Writing<'_> {
        Writing(self)
    }

    fn scheme_of(&self, qp: QpId) -> &SchemeConfig {
        &self.schemes[self.class(qp)]
    }

    /// The place of a queue pair's class among the schemes.
    fn class(&self, qp: QpId) -> usize {
        usize::from(self.class_of.get(qp.index()).copied().unwrap_or_default())
    }

    fn nic_of(&self, qp: QpId) -> &Nic {
        self.own[self.class(qp)].as_ref().unwrap_or(&self.nic)
    }

    fn scheme_at(&self, site: Site<'_>) -> AnyScheme {
        let role = site.plan.fabric.role(site.node);
        match (self.roles.get(role), &*self.schemes) {
            (Some(scheme), _) | (None, [scheme]) => scheme.build(site),
            (None, schemes) => {
                let built = schemes.iter().map(|scheme| scheme.build(site)).collect();
                AnyScheme::PerClass(Box::new(PerClass::new(self.class_of.clone(), built)))
            }
        }
    }

    fn sender_of(&self, plan: &Plan, qp: QpId) -> rnic::AnySender {
        self.nic_of(qp).sender_by(Key::new(plan.seed, Purpose::Nic, qp.0.into()).draw(0))
    }

    fn congestion_of(&self, plan: &Plan, qp: QpId) -> rnic::Reacting {
        let host = plan.qps[qp.index()].from;
        let rate = plan.fabric.ports(host.node())[0].rate;
        match self.bdp.get(qp.index()) {
            Some(&bdp) => self.nic_of(qp).congestion_over(rate, bdp),
            None => self.nic_of(qp).congestion(rate),
        }
    }
}

impl Parts for Chosen {
    type Scheme = AnyScheme;
    type Sender = rnic::AnySender;
    type Receiver = rnic::AnyReceiver;
    type Congestion = rnic::Reacting;
    type Annex = ();
    type Steering = ();

    fn scheme(&self, site: Site<'_>) -> Self::Scheme {
        self.scheme_at(site)
    }

    fn sender(&self, plan: &Plan, qp: QpId) -> Self::Sender {
        self.sender_of(plan, qp)
    }

    fn receiver(&self, _: &Plan, qp: QpId) -> Self::Receiver {
        self.nic_of(qp).receiver()
    }

    fn congestion(&self, plan: &Plan, qp: QpId) -> Self::Congestion {
        self.congestion_of(plan, qp)
    }

    fn steering(&self, _: Seat<'_>) {}
}

/// The parts of a scenario whose ends write on packets.
#[derive(Clone, Copy, Debug)]
pub struct Writing<'a>(&'a Chosen);

impl Parts for Writing<'_> {
    type Scheme = AnyScheme;
    type Sender = rnic::AnySender;
    type Receiver = rnic::AnyReceiver;
    type Congestion = rnic::Reacting;
    type Annex = Stamp;
    type Steering = AnySteering;

    fn scheme(&self, site: Site<'_>) -> Self::Scheme {
        self.0.scheme_at(site)
    }

    fn sender(&self, plan: &Plan, qp: QpId) -> Self::Sender {
        self.0.sender_of(plan, qp)
    }

    fn receiver(&self, plan: &Plan, qp: QpId) -> Self::Receiver {
        self.0.nic_of(qp).receiver_with(self.0.scheme_of(qp).notices(plan))
    }

    fn congestion(&self, plan: &Plan, qp: QpId) -> Self::Congestion {
        self.0.congestion_of(plan, qp)
    }

    fn steering(&self, seat: Seat<'_>) -> AnySteering {
        self.0.scheme_of(seat.qp).steer(seat)
    }
}
