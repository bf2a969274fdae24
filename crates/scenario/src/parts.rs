//! The parts that a scenario chooses, as the engine wants them.

use crate::ideal::{Ideals, bdp};
use crate::{Scenario, whole};
use model::draw::{Key, Purpose};
use model::steering::Traces;
use model::{Parts, Plan, QpId, QpSite, Site, Stamp, Traced};
use rnic::{Nic, Path};
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
    /// The kinds of paths of queue pairs, if a congestion control wants to know.
    paths: Vec<Path>,
    /// That of every queue pair.
    path_of: Arc<[u32]>,
    writes: bool,
    traces: bool,
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
        let (mut paths, mut path_of) = (Vec::new(), Vec::new());
        if nics.clone().any(Nic::wants_path) {
            (paths, path_of) = paths_of(plan);
        }
        Chosen {
            traces: nics.clone().any(|nic| nic.telemetry().is_some()),
            writes: schemes.iter().any(SchemeConfig::writes)
                || nics.any(Nic::is_selective)
                || plan.fabric.groups() > 0,
            own,
            paths,
            path_of: path_of.into(),
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

    /// Whether a congestion control reads what switches write on packets. Then there is [`Chosen::tracing`].
    pub fn traces(&self) -> bool {
        self.traces
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

    /// The same parts with ends and switches that write on packets, telemetry as well.
    pub fn tracing(&self) -> Tracing<'_> {
        Tracing(self)
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
        let path = self.path_of.get(qp.index()).and_then(|&path| self.paths.get(path as usize));
        match path {
            Some(path) => self.nic_of(qp).congestion_over(rate, path),
            None => self.nic_of(qp).congestion(rate),
        }
    }
}

/// The kinds of paths of a plan's queue pairs, and that of each.
fn paths_of(plan: &Plan) -> (Vec<Path>, Vec<u32>) {
    let mut ideals = Ideals::new(plan);
    let (longest_rtt, rates) = (ideals.longest_rtt(), Arc::from(plan.rates()));
    let mut kinds = BTreeMap::new();
    let mut paths = Vec::new();
    let of = |qp: &model::plan::Qp| {
        let (base_rtt, bdp) = (ideals.base_rtt(qp.from, qp.to), bdp(&mut ideals, qp.from, qp.to));
        let hops = ideals.switches(qp.from, qp.to).map_or(u8::MAX, |n| n.min(u8::MAX.into()) as u8);
        *kinds.entry((base_rtt, bdp, hops)).or_insert_with(|| {
            let (payload, frame) = (plan.wire.payload, plan.wire.max_frame() + plan.wire.gap);
            paths.push(Path { base_rtt, longest_rtt, bdp, hops, payload, frame, rates: Arc::clone(&rates) });
            paths.len() as u32 - 1
        })
    };
    let path_of = plan.qps.iter().map(of).collect();
    (paths, path_of)
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

    fn steering(&self, _: QpSite<'_>) {}
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

    fn steering(&self, site: QpSite<'_>) -> AnySteering {
        self.0.scheme_of(site.qp).steer(site)
    }
}

/// The parts of a scenario in which switches write telemetry.
#[derive(Clone, Copy, Debug)]
pub struct Tracing<'a>(&'a Chosen);

impl Parts for Tracing<'_> {
    type Scheme = AnyScheme;
    type Sender = rnic::AnySender;
    type Receiver = rnic::AnyReceiver;
    type Congestion = rnic::Reacting;
    type Annex = Traced;
    type Steering = Traces<AnySteering>;

    fn scheme(&self, site: Site<'_>) -> Self::Scheme {
        self.0.scheme_at(site)
    }

    fn sender(&self, plan: &Plan, qp: QpId) -> Self::Sender {
        self.0.sender_of(plan, qp)
    }

    fn receiver(&self, plan: &Plan, qp: QpId) -> Self::Receiver {
        self.0.writing().receiver(plan, qp)
    }

    fn congestion(&self, plan: &Plan, qp: QpId) -> Self::Congestion {
        self.0.congestion_of(plan, qp)
    }

    fn steering(&self, site: QpSite<'_>) -> Self::Steering {
        Traces(self.0.writing().steering(site))
    }
}
