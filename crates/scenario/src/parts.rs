//! The parts that a scenario chooses, as the engine wants them.

use model::draw::{Key, Purpose};
use model::{Parts, Plan, QpId, Site};
use rnic::Nic;
use schemes::SchemeConfig;
use std::collections::BTreeMap;

/// Schemes and NICs of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// The scheme of switches whose role says nothing else.
    pub scheme: SchemeConfig,
    /// Schemes by the role of a switch.
    pub roles: BTreeMap<String, SchemeConfig>,
    /// The NIC of every host.
    pub nic: Nic,
}

impl Parts for Chosen {
    type Scheme = schemes::AnyScheme;
    type Sender = rnic::AnySender;
    type Receiver = rnic::AnyReceiver;
    type Congestion = rnic::Reacting;

    fn scheme(&self, site: Site<'_>) -> Self::Scheme {
        let role = site.plan.fabric.role(site.node);
        self.roles.get(role).unwrap_or(&self.scheme).build(site)
    }

    fn sender(&self, plan: &Plan, qp: QpId) -> Self::Sender {
        self.nic.sender_by(Key::new(plan.seed, Purpose::Nic, qp.0.into()).draw(0))
    }

    fn receiver(&self, _: &Plan, _: QpId) -> Self::Receiver {
        self.nic.receiver()
    }

    fn congestion(&self, plan: &Plan, qp: QpId) -> Self::Congestion {
        let host = plan.qps[qp.index()].from;
        self.nic.congestion(plan.fabric.ports(host.node())[0].rate)
    }
}
