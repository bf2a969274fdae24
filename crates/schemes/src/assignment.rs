//! Assignment of schemes to traffic classes and to switches, and of feedbacks to switches.

use crate::per_class::PerClass;
use crate::{AnyScheme, AnySteering, FeedbackConfig, SchemeConfig};
use model::annex::NoticeRules;
use model::{Plan, QpId, QpSite, Site};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Schemes of a run: one for each traffic class, and others in switches of some roles. Beside them stand the feedbacks of
/// switches, which serve all classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// Schemes by traffic class; only one if all classes with messages have the same.
    by_class: Vec<SchemeConfig>,
    /// Traffic class of every queue pair; empty if there is one scheme.
    class_of: Arc<[u8]>,
    /// Schemes by the role of a switch; such a scheme meets the packets of all classes.
    by_role: BTreeMap<String, SchemeConfig>,
    /// Feedback of switches whose role has none of its own.
    feedback: FeedbackConfig,
    /// Feedbacks by the role of a switch.
    feedback_by_role: BTreeMap<String, FeedbackConfig>,
}

impl Assignment {
    /// An assignment; `by_class` holds a scheme for each of the plan's traffic classes.
    ///
    /// # Panics
    /// If `by_class` is empty.
    pub fn new(
        plan: &Plan,
        mut by_class: Vec<SchemeConfig>,
        by_role: BTreeMap<String, SchemeConfig>,
    ) -> Self {
        let used = |class: usize| plan.jobs.iter().any(|job| usize::from(job.class) == class);
        let first = (0..by_class.len()).find(|&class| used(class)).unwrap_or_default();
        // No packet meets the scheme of a class without messages, so switches need not build it.
        for class in (0..by_class.len()).filter(|&class| !used(class)) {
            by_class[class] = by_class[first].clone();
        }
        let mut class_of = Vec::new();
        if by_class.iter().any(|scheme| *scheme != by_class[first]) {
            class_of = (0..plan.qps.len() as u32).map(|qp| plan.class_of(QpId(qp))).collect();
        } else {
            by_class = vec![by_class.swap_remove(first)];
        }
        let (feedback, feedback_by_role) = Default::default();
        Assignment { by_class, class_of: class_of.into(), by_role, feedback, feedback_by_role }
    }

    /// This assignment with a feedback for all switches that it fits, and others in switches of some roles.
    #[must_use]
    pub fn telling(self, feedback: FeedbackConfig, by_role: BTreeMap<String, FeedbackConfig>) -> Self {
        Assignment { feedback, feedback_by_role: by_role, ..self }
    }

    /// Schemes by traffic class; only one if all classes with messages have the same.
    pub fn by_class(&self) -> &[SchemeConfig] {
        &self.by_class
    }

    /// Position in [`Assignment::by_class`] of every queue pair's scheme; empty if there is only one scheme.
    pub fn class_of(&self) -> &Arc<[u8]> {
        &self.class_of
    }

    /// Scheme of a queue pair.
    pub fn of(&self, qp: QpId) -> &SchemeConfig {
        let class = self.class_of.get(qp.index()).copied().unwrap_or_default();
        &self.by_class[usize::from(class)]
    }

    /// Scheme and feedback for one switch.
    pub fn build(&self, site: Site<'_>) -> AnyScheme {
        let role = site.plan.fabric.role(site.node);
        let scheme = match (self.by_role.get(role), &*self.by_class) {
            (Some(scheme), _) | (None, [scheme]) => scheme.build(site),
            (None, by_class) => {
                let built = by_class.iter().map(|scheme| scheme.build(site)).collect();
                AnyScheme::PerClass(Box::new(PerClass::new(self.class_of.clone(), built)))
            }
        };
        let feedback = self.feedback_by_role.get(role).unwrap_or(&self.feedback);
        scheme.telling(feedback.build(site))
    }

    /// Steering of one queue pair.
    pub fn steer(&self, site: QpSite<'_>) -> AnySteering {
        self.of(site.qp).steer(site)
    }

    /// Rules by which the receiver of a queue pair treats notices; `None` if the scheme sends none.
    pub fn notices(&self, plan: &Plan, qp: QpId) -> Option<NoticeRules> {
        self.of(qp).notices(plan)
    }

    /// True if a scheme writes on packets, see [`SchemeConfig::writes`].
    pub fn writes(&self) -> bool {
        self.all().any(SchemeConfig::writes)
    }

    /// Frame of the smallest signal that a scheme sends, bytes; 0 if no scheme sends signals.
    pub fn signal(&self) -> u32 {
        self.all().map(|scheme| scheme.facts().signal).filter(|frame| *frame > 0).min().unwrap_or(0)
    }

    fn all(&self) -> impl Iterator<Item = &SchemeConfig> {
        self.by_class.iter().chain(self.by_role.values())
    }
}
