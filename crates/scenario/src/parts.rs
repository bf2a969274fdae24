//! The parts of a scenario: the schemes of classes and switches, and the NICs and paths of queue pairs.

use crate::Scenario;
use crate::ideal::{Ideals, bdp};
use model::{Plan, QpId};
use rnic::{Nics, Path};
use schemes::{Assignment, SchemeConfig};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The schemes of all traffic classes, and the schemes and feedbacks of switches with a role.
pub(crate) fn schemes(scenario: &Scenario, plan: &Plan) -> Assignment {
    let by_class = plan.traffic_classes.iter().map(|class| scenario.scheme_of(class).clone()).collect();
    let roles = scenario.switch_role.iter();
    let by_role = roles.filter_map(|(name, role)| Some((name.clone(), role.scheme.clone()?))).collect();
    let roles = scenario.switch_role.iter();
    let telling = roles.filter_map(|(name, role)| Some((name.clone(), role.feedback.clone()?))).collect();
    Assignment::new(plan, by_class, by_role).telling(scenario.feedback.clone(), telling)
}

/// The NICs of all queue pairs: the NIC that their scheme brings, else that of their traffic class, else the scenario's.
pub(crate) fn nics(scenario: &Scenario, plan: &Plan, schemes: &Assignment) -> Nics {
    let under = |scheme: &SchemeConfig| scheme.own_nic(&scenario.nic).unwrap_or_else(|| scenario.nic.clone());
    let nics = match scenario.class.values().all(|class| class.nic.is_none()) {
        true => {
            let kinds = schemes.by_class().iter().map(|scheme| under(scheme).build()).collect();
            Nics::new(kinds, Arc::clone(schemes.class_of()))
        }
        false => {
            let kinds = plan.traffic_classes.iter().map(|class| scenario.nic_of(class).build()).collect();
            Nics::new(kinds, (0..plan.qps.len() as u32).map(|qp| plan.class_of(QpId(qp))).collect())
        }
    };
    if !nics.wants_paths() {
        return nics;
    }
    let (paths, path_of) = paths_of(plan);
    nics.over(paths, path_of)
}

/// The kinds of paths of a plan, and the index of the kind for each queue pair.
pub(crate) fn paths_of(plan: &Plan) -> (Vec<Path>, Vec<u32>) {
    let mut ideals = Ideals::new(plan);
    let (longest_rtt, rates) = (ideals.longest_rtt(), Arc::from(plan.rates()));
    let oversubscription = plan.fabric.oversubscription();
    let mut kinds = BTreeMap::new();
    let mut paths = Vec::new();
    let of = |qp: &model::plan::Qp| {
        let (base_rtt, bdp) = (ideals.base_rtt(qp.from, qp.to), bdp(&mut ideals, qp.from, qp.to));
        let hops = ideals.switches(qp.from, qp.to).map_or(u8::MAX, |n| n.min(u8::MAX.into()) as u8);
        *kinds.entry((base_rtt, bdp, hops)).or_insert_with(|| {
            let (payload, mtu) = (plan.wire.payload, plan.wire.max_frame());
            let frame = mtu + plan.wire.gap;
            let rates = Arc::clone(&rates);
            let path =
                Path { base_rtt, longest_rtt, oversubscription, bdp, hops, payload, mtu, frame, rates };
            paths.push(path);
            paths.len() as u32 - 1
        })
    };
    let path_of = plan.qps.iter().map(of).collect();
    (paths, path_of)
}
