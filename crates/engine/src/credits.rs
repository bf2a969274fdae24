//! Credit-based flow control of links (Ultra Ethernet 1.0, section 5.2; SAI, doc/CBFC): a frame takes credits of the far end's
//! buffer when it starts, and the far end returns them when the frame leaves that buffer.
//!
//! Both ends count from the start of the run, so a word that is lost is made good by the next one. Counters of 20 bits that wrap
//! would count the same, as no more than that many credits are ever in use. Three things are our choice: a frame starts only if the
//! largest frame would have credits, a word takes no time on the wire, and the credits of a frame that the link has lost are
//! free at once.

use model::LinkId;
use model::plan::Credits;

/// Most priorities of a port: bits in a mask of pauses.
pub(crate) const PRIORITIES: usize = 8;

/// What the sender of a link may use of one priority at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    rule: Credits,
    /// Most bytes in use before a frame starts, so that the largest frame still fits.
    most: u64,
    /// Time on the wire between two words that return credits, ps.
    gap: u64,
}

/// The grants of all links, by link and group of classes; empty in a run without credits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grants {
    all: Vec<Option<Grant>>,
    groups: usize,
}

impl Grants {
    pub(crate) fn new(plan: &model::Plan) -> Self {
        if !plan.has_credits() {
            return Grants::default();
        }
        let fabric = &plan.fabric;
        let groups: Vec<_> = plan.settings_of_groups().collect();
        let ports = |group: usize| match group {
            0 => &plan.ports,
            group => &plan.own_queues.groups[group - 1].ports,
        };
        let of = |gp: usize, group: usize| {
            let link = &fabric.links()[gp];
            if fabric.is_host(link.to) {
                return None; // a host takes data at once
            }
            let rule = groups[group][fabric.switch_number(link.to)].flow_control.credits()?;
            let limit = ports(group)[fabric.reverse(LinkId(gp as u32)).index()].headroom.get();
            let most = limit.saturating_sub(rule.of(plan.wire.max_frame()));
            Some(Grant { rule, most, gap: link.rate.time_for(rule.spacing.get()).ps() })
        };
        let links = 0..fabric.links().len();
        let all = links.flat_map(|gp| (0..groups.len()).map(move |group| (gp, group)));
        Grants { all: all.map(|(gp, group)| of(gp, group)).collect(), groups: groups.len() }
    }

    /// True if some link counts credits.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.groups > 0
    }

    /// What link `gp` may use for a group of classes.
    #[inline]
    pub(crate) fn of(&self, gp: usize, group: u8) -> Option<Grant> {
        *self.all.get(gp * self.groups + usize::from(group))?
    }
}

/// What the sender of a link knows of one priority: bytes of credits since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ledger {
    consumed: u64,
    freed: u64,
}

impl Ledger {
    /// A frame starts; true if no other may follow it now.
    pub(crate) fn consume(&mut self, grant: &Grant, frame: u32) -> bool {
        self.consumed += grant.rule.of(frame);
        self.is_spent(grant)
    }

    /// A word arrives; true if a frame may start.
    pub(crate) fn free(&mut self, grant: &Grant, freed: u64) -> bool {
        self.freed = self.freed.max(freed);
        !self.is_spent(grant)
    }

    fn is_spent(&self, grant: &Grant) -> bool {
        debug_assert!(self.freed <= self.consumed, "credits come back once");
        self.consumed.saturating_sub(self.freed) > grant.most
    }
}

/// What the receiver of a link has freed of one priority.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Returned {
    /// Bytes of credits since the start of the run.
    freed: u64,
    /// Start of the last word, ps, which may lie ahead.
    word: Option<u64>,
}

impl Returned {
    /// A frame of so many bytes of credits leaves the buffer.
    pub(crate) fn free(&mut self, bytes: u64) {
        self.freed += bytes;
    }

    /// The start of the word that tells of everything freed up to `now`, and what it tells. A word that has not started yet tells the
    /// latest count.
    pub(crate) fn word(&mut self, now: u64, grant: &Grant) -> (u64, u64) {
        let start = match self.word {
            Some(start) if start >= now => start,
            Some(last) => now.max(last + grant.gap),
            None => now,
        };
        self.word = Some(start);
        (start, self.freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Bytes;

    const RULE: Credits = Credits { unit: 128, spacing: Bytes(6_400) };
    /// Credits for four frames of 1,500 B, which take 1,536 B each.
    const GRANT: Grant = Grant { rule: RULE, most: 3 * 1_536, gap: 500 };

    #[test]
    fn a_sender_stops_when_the_largest_frame_has_no_credits_and_goes_on_with_the_word() {
        let mut ledger = Ledger::default();
        let stops: Vec<bool> = (0..4).map(|_| ledger.consume(&GRANT, 1_500)).collect();
        assert_eq!(stops, [false, false, false, true]);
        assert!(ledger.free(&GRANT, 1_536), "one frame has left the buffer");
        assert!(ledger.consume(&GRANT, 64), "three frames and a credit are in use");
        assert!(!ledger.free(&GRANT, 1_536), "an old word tells nothing new");
        assert!(ledger.free(&GRANT, 2 * 1_536));
    }

    #[test]
    fn words_are_spaced_and_tell_all_that_was_freed_before_they_start() {
        let mut returned = Returned::default();
        returned.free(1_536);
        assert_eq!(returned.word(1_000, &GRANT), (1_000, 1_536), "the first one starts at once");
        returned.free(1_536);
        assert_eq!(returned.word(1_100, &GRANT), (1_500, 3_072), "the next one waits");
        returned.free(128);
        assert_eq!(returned.word(1_400, &GRANT), (1_500, 3_200), "and takes along what is freed meanwhile");
        returned.free(128);
        assert_eq!(returned.word(9_000, &GRANT), (9_000, 3_328));
    }
}
