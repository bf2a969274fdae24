//! A reaction point that pauses the long link: the alternative to the loop that the full version (ICNP'25) compares.
//!
//! A CNP of a local receiver pauses the long link by which it leaves, for all flows, and the pause ends some time after the
//! last such CNP. The far end hears of both half a long round trip later. The artefact has a name for this variant, but its
//! published code sends no pause; when to pause and when to resume is our choice.

use super::links::MOST;
use model::{Cx, PortIndex, Time};
use std::collections::BTreeMap;

/// Pauses of one switch's long links.
#[derive(Clone, Debug)]
pub(super) struct Pauses {
    lasts: Time,
    /// End of the pause by port.
    until: BTreeMap<PortIndex, Time>,
    reactions: u64,
}

impl Pauses {
    pub(super) fn new(lasts: Time) -> Self {
        Pauses { lasts: lasts.min(MOST), until: BTreeMap::new(), reactions: 0 }
    }

    /// Reacts to a CNP of a local receiver that is about to leave by `port`.
    pub(super) fn report(&mut self, cx: &mut Cx<'_>, port: PortIndex) {
        let end = cx.now + self.lasts;
        if self.until.insert(port, end).is_none() {
            self.reactions += 1;
            cx.pause(port, true);
            cx.wake_at(end);
        }
    }

    pub(super) fn wake(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        self.until.retain(|port, end| {
            let lasts = *end > now;
            if !lasts {
                cx.pause(*port, false);
            }
            lasts
        });
        if let Some(&end) = self.until.values().min() {
            cx.wake_at(end);
        }
    }

    pub(super) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("reactions", self.reactions);
    }
}
