//! The way in which a visit of a switch is computed. All ways give the same result, and [`way`] takes the cheapest one that is
//! exact.

use super::line;
use super::setup::Setup;
use crate::buffer::Caps;
use crate::switch::Switch;
use model::{Kind, Parts};

/// The way of a visit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// Two visits, because the state of the buffer at the middle of this one is unknown.
    Split,
    /// One port after the other, see [`super::local`].
    ByPort(Bound),
    /// Each port by itself, event by event, as the caps of queues are all that bounds them, see [`super::classed_switch`]. The
    /// scheme acts on every port by itself if `by_port`.
    Capped { by_port: bool, caps: Caps },
    /// All arrivals in order of time, see [`super::switch`].
    InOrder { heavy: bool },
}

impl Way {
    /// True if the visit keeps exact account of the buffer.
    #[inline(always)]
    pub(super) fn is_heavy(self) -> bool {
        matches!(self, Way::ByPort(Bound::Buffer) | Way::InOrder { heavy: true })
    }
}

/// What bounds the queues of data in a visit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// No queue can reach a bound: the visit is light.
    Nothing,
    /// The cap of each queue.
    Caps(Caps),
    /// The buffer, by the bytes of all ports: the visit is heavy.
    Buffer,
}

/// What no visit of a switch changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Static {
    /// The scheme acts on every port by itself, or decides by the arrivals alone, and times fit the keys of lines.
    by_port: bool,
    /// The buffer may be shown the charges of a heavy visit when it ends, see [`super::ledger`].
    charges_later: bool,
    /// The buffer's charges go by ingress alone, and the queues of data have nothing but arrivals.
    only_arrivals: bool,
    /// Arrivals do not bound the queues: a queue that may drop gets packets of the scheme, or classes are not plain.
    unbounded: bool,
    /// Classes are not plain, and nothing acts on a port but packets that arrive, and pauses.
    classed: bool,
    /// The scheme decides at every port by itself, and needs not to see what passes.
    chooses_by_port: bool,
    /// Data without room is cut.
    cuts: bool,
    /// The headers of cut packets wait with data.
    headers_with_data: bool,
}

/// The state of a switch when a visit opens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Now {
    /// The first routes apply, no link fails or recovers in the visit, and the run does not end in it.
    pub(super) calm: bool,
    /// No pause frame comes in the visit.
    pub(super) quiet: bool,
    /// The scheme holds packets, or the buffer has not charged some.
    pub(super) has_others: bool,
    /// The visit spans two windows, so the buffer is sampled at its middle.
    pub(super) has_middle: bool,
    /// The caps of queues, if they are all that bounds them; read if [`Static::asks_for_caps`].
    pub(super) caps: Option<Caps>,
    /// No account can reach its threshold; read if [`Static::asks_for_thresholds`].
    pub(super) stays_below: bool,
}

impl Static {
    pub(super) fn new<P: Parts>(setup: &Setup<'_>, switch: &Switch<P>) -> Self {
        let (interest, with_data, fabric) = (&switch.interest, setup.with_data, setup.fabric());
        // With link-level retry, a frame may take several round trips on its wire.
        let exact_keys = setup.window <= line::LONGEST
            && setup.longest_time < line::LONGEST
            && setup.plan.noise.llr.is_none();
        let plain = setup.plain_queues;
        let replies = with_data.has(Kind::Ack) || with_data.has(Kind::Signal);
        let makes = interest.makes_data || replies && interest.makes_replies;
        let unbounded = !plain || makes && !switch.buffer.lossless();
        let others_act = interest.watches()
            || interest.makes_data
            || interest.makes_replies
            || switch.watchdog.is_some()
            || setup.grants.any()
            || setup.follows_any();
        let makes_beside = makes && interest.by_arrivals && !interest.local;
        let data = &setup.plan.classes.all()[setup.data_class];
        Static {
            charges_later: exact_keys
                && plain
                && fabric.channels() == 1
                && fabric.groups() == 0
                && !setup.follows_any()
                && !setup.has_loops()
                && switch.watchdog.is_none()
                && data.charged
                && data.cap.is_none(),
            by_port: exact_keys
                && (interest.local || interest.by_arrivals)
                && fabric.groups() == 0
                && !setup.follows_any()
                && !setup.has_loops(),
            only_arrivals: !unbounded && !makes_beside && fabric.channels() == 1 && !interest.watches(),
            unbounded,
            classed: !plain && !others_act,
            chooses_by_port: interest.local && !interest.passes,
            cuts: switch.buffer.cuts(),
            headers_with_data: with_data.has(Kind::Trimmed),
        }
    }

    /// True if most visits know the bytes in the buffer at their middle: they go by port, and queues have nothing but arrivals.
    pub(super) fn knows_middle(&self) -> bool {
        self.by_port && self.only_arrivals
    }

    /// True if the buffer may be shown the charges of a heavy visit when it ends, unless it may drop.
    pub(super) fn may_charge_later(&self, now: &Now) -> bool {
        self.charges_later && now.calm
    }

    /// True if caps may be all that bounds the queues. The headers of cut packets must then be replies.
    pub(super) fn asks_for_caps(&self, now: &Now) -> bool {
        let by_port = self.by_port && self.only_arrivals && !(self.cuts && self.headers_with_data);
        now.calm && !now.has_others && (by_port || self.classed && now.quiet)
    }

    /// True if the thresholds of the buffer decide whether the visit is light.
    pub(super) fn asks_for_thresholds(&self, now: &Now) -> bool {
        now.caps.is_none() && !self.unbounded && !(now.has_middle && now.has_others)
    }
}

/// The way of a visit.
pub(super) fn way(fixed: &Static, now: &Now) -> Way {
    match now.caps {
        Some(caps) if fixed.classed => {
            return Way::Capped { by_port: fixed.by_port && fixed.chooses_by_port, caps };
        }
        Some(caps) => return Way::ByPort(Bound::Caps(caps)),
        None => {}
    }
    let (by_port, light) = (fixed.by_port && now.calm, !fixed.unbounded && now.stays_below);
    let only_arrivals = fixed.only_arrivals && !now.has_others;
    match by_port {
        true if light && (only_arrivals || !now.has_middle) => Way::ByPort(Bound::Nothing),
        // In a heavy visit ports can take turns if refused packets are dropped.
        true if only_arrivals && !fixed.cuts => Way::ByPort(Bound::Buffer),
        _ if now.has_middle => Way::Split,
        _ => Way::InOrder { heavy: !light },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::Overflow;

    fn name(way: Way) -> &'static str {
        match way {
            Way::Split => "split",
            Way::ByPort(Bound::Nothing) => "light by port",
            Way::ByPort(Bound::Caps(_)) => "caps by port",
            Way::ByPort(Bound::Buffer) => "heavy by port",
            Way::Capped { by_port: true, .. } => "classes by port",
            Way::Capped { by_port: false, .. } => "classes in order",
            Way::InOrder { heavy: false } => "light in order",
            Way::InOrder { heavy: true } => "heavy in order",
        }
    }

    #[test]
    fn each_visit_takes_the_cheapest_exact_way() {
        let local = Static { by_port: true, only_arrivals: true, ..Static::default() };
        let cuts = Static { cuts: true, ..local };
        let makes = Static { only_arrivals: false, unbounded: true, ..local };
        let watches = Static { only_arrivals: false, ..local };
        let global = Static { by_port: false, ..local };
        let full = Now { calm: true, ..Now::default() };
        let calm = Now { stays_below: true, ..full };
        let capped = Now { caps: Some(Caps { overflow: Overflow::Drop, least: 0 }), ..full };
        let classes =
            Static { classed: true, chooses_by_port: true, only_arrivals: false, unbounded: true, ..local };
        let table = [
            (classes, full, "heavy in order"),
            (classes, capped, "classes by port"),
            (Static { by_port: false, ..classes }, capped, "classes in order"),
            (Static { chooses_by_port: false, ..classes }, capped, "classes in order"),
            (local, calm, "light by port"),
            (local, full, "heavy by port"),
            (local, capped, "caps by port"),
            (local, Now { calm: false, ..calm }, "light in order"),
            (local, Now { calm: false, ..full }, "heavy in order"),
            (local, Now { has_others: true, ..calm }, "light by port"),
            (local, Now { has_others: true, ..full }, "heavy in order"),
            (local, Now { has_middle: true, ..calm }, "light by port"),
            (local, Now { has_middle: true, ..full }, "heavy by port"),
            (local, Now { has_middle: true, has_others: true, ..calm }, "split"),
            (cuts, Now { has_middle: true, ..full }, "split"),
            (watches, Now { has_middle: true, ..calm }, "split"),
            (local, Now { has_middle: true, ..capped }, "caps by port"),
            (cuts, calm, "light by port"),
            (cuts, full, "heavy in order"),
            (cuts, capped, "caps by port"),
            (makes, calm, "heavy in order"),
            (watches, calm, "light by port"),
            (watches, full, "heavy in order"),
            (global, calm, "light in order"),
            (global, full, "heavy in order"),
        ];
        for (fixed, now, expected) in table {
            let way = way(&fixed, &now);
            assert_eq!(
                (name(way), way.is_heavy()),
                (expected, expected.starts_with("heavy")),
                "{fixed:?} {now:?}"
            );
        }
    }

    #[test]
    fn the_buffer_is_asked_only_where_its_answer_counts() {
        let local = Static { by_port: true, only_arrivals: true, ..Static::default() };
        let calm = Now { calm: true, ..Now::default() };
        assert!(local.asks_for_caps(&calm) && local.asks_for_thresholds(&calm));
        assert!(!local.asks_for_caps(&Now { has_others: true, ..calm }), "held packets may fill a queue");
        let classes = Static { classed: true, unbounded: true, ..Static::default() };
        assert!(classes.asks_for_caps(&Now { quiet: true, ..calm }));
        assert!(!classes.asks_for_caps(&calm), "a pause frame comes");
        let mixed = Static { cuts: true, headers_with_data: true, ..local };
        assert!(!mixed.asks_for_caps(&calm), "headers would join the queues of data");
        let held = Now { has_middle: true, has_others: true, ..calm };
        assert!(!local.asks_for_thresholds(&held), "the visit is split");
    }
}
