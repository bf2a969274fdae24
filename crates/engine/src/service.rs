//! The service of classes at a port: strict priority, and deficit round robin among the weighted ones.

use model::plan::{Classes, Service};

/// State of the round robin of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turns {
    /// Credit of every weighted class, bytes.
    credit: [u64; Classes::MOST],
    /// The class whose turn it is.
    turn: usize,
}

impl Turns {
    /// The class that sends next, out of all classes in their order. `first` is the size of the first frame of a class that may start,
    /// in bytes.
    pub(crate) fn next(
        &mut self,
        services: impl Iterator<Item = Service>,
        first: impl Fn(usize) -> Option<u64>,
    ) -> Option<usize> {
        let (mut waiting, mut firsts, mut count) = (Waiting::default(), [0; Classes::MOST], 0);
        for (class, service) in services.enumerate() {
            count = class + 1;
            let Some(frame) = first(class) else { continue };
            match service {
                Service::Strict => return Some(class),
                Service::Weighted(weight) => waiting.add(class, weight),
            }
            firsts[class] = frame;
        }
        self.next_weighted(&waiting, count, |class| firsts[class])
    }

    /// [`Turns::next`] among these weighted classes out of `count` classes. The class whose turn comes gets all credit of the turns
    /// that pass until then in one step.
    #[inline(always)]
    pub(crate) fn next_weighted(
        &mut self,
        waiting: &Waiting,
        count: usize,
        first: impl Fn(usize) -> u64,
    ) -> Option<usize> {
        let turn = self.turn;
        if waiting.has(turn) && first(turn) <= self.credit[turn] {
            return Some(turn);
        }
        // Distance to the first turn that brings credit: the class whose turn it is waits for a whole round.
        let distance = |class: usize| (if class > turn { class - turn } else { class + count - turn }) as u64;
        let count = count as u64;
        let mut soonest: Option<(u64, usize)> = None;
        for class in waiting.classes() {
            let lacks = rounds(first(class).saturating_sub(self.credit[class]), waiting.quantum(class));
            let turns = distance(class) + lacks.saturating_sub(1) * count;
            if soonest.is_none_or(|(least, _)| turns < least) {
                soonest = Some((turns, class));
            }
        }
        let (turns, next) = soonest?;
        for class in waiting.classes() {
            if let Some(after) = turns.checked_sub(distance(class)) {
                let passed = if after < count { 1 } else { after / count + 1 };
                self.credit[class] += passed * waiting.quantum(class);
            }
        }
        self.turn = next;
        Some(next)
    }

    /// [`Turns::next`] and [`Turns::spend`] for a frame of the only class that has packets.
    #[inline]
    pub(crate) fn serve_alone(&mut self, class: usize, service: Service, frame: u64, is_last: bool) {
        let Service::Weighted(weight) = service else { return };
        let credit = &mut self.credit[class];
        if is_last {
            *credit = 0;
        } else {
            let quantum = u64::from(weight) * Service::QUANTUM;
            let turns = rounds(frame.saturating_sub(*credit), quantum);
            // Another class's turn ends, and its own begins.
            *credit += turns.max(u64::from(class != self.turn)) * quantum;
            *credit -= frame;
        }
        self.turn = class;
    }

    /// Takes the bytes of a frame from the credit of its class, or all credit if the class has no further packet.
    pub(crate) fn spend(&mut self, class: usize, frame: u64, is_last: bool) {
        self.credit[class] = if is_last { 0 } else { self.credit[class].saturating_sub(frame) };
    }
}

/// Weighted classes with packets that may start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    /// A bit for each of them, and the credit of its turn, bytes.
    classes: u8,
    quanta: [u64; Classes::MOST],
}

impl Waiting {
    /// All weighted classes of the plan's table.
    pub(crate) fn all(services: impl Iterator<Item = Service>) -> Self {
        let mut all = Waiting::default();
        for (class, service) in services.enumerate() {
            if let Service::Weighted(weight) = service {
                all.add(class, weight);
            }
        }
        all
    }

    fn add(&mut self, class: usize, weight: u32) {
        self.classes |= 1 << class;
        self.quanta[class] = u64::from(weight) * Service::QUANTUM;
    }

    /// Those among the classes of a mask.
    #[inline(always)]
    pub(crate) fn among(&self, mask: u8) -> Self {
        Waiting { classes: self.classes & mask, ..*self }
    }

    #[inline(always)]
    fn has(&self, class: usize) -> bool {
        self.classes >> class & 1 != 0
    }

    #[inline(always)]
    fn quantum(&self, class: usize) -> u64 {
        self.quanta[class]
    }

    #[inline(always)]
    fn classes(&self) -> impl Iterator<Item = usize> {
        let classes = self.classes;
        (0..Classes::MOST).filter(move |class| classes >> class & 1 != 0)
    }
}

/// Number of rounds until a class that lacks so many bytes has them. Mostly it is one, and a division takes long.
#[inline(always)]
fn rounds(lacks: u64, quantum: u64) -> u64 {
    if lacks <= quantum { u64::from(lacks > 0) } else { lacks.div_ceil(quantum) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule as [`Service::Weighted`] states it, turn by turn.
    fn step(
        services: &[Service],
        firsts: &[Option<u64>],
        credit: &mut [u64],
        turn: &mut usize,
    ) -> Option<usize> {
        let strict = (0..services.len()).find(|i| services[*i] == Service::Strict && firsts[*i].is_some());
        if strict.is_some() || firsts.iter().all(Option::is_none) {
            return strict;
        }
        let quantum = |class: usize| match services[class] {
            Service::Weighted(weight) => u64::from(weight) * Service::QUANTUM,
            Service::Strict => 0,
        };
        loop {
            if quantum(*turn) > 0 && firsts[*turn].is_some_and(|frame| credit[*turn] >= frame) {
                return Some(*turn);
            }
            *turn = (*turn + 1) % services.len();
            if firsts[*turn].is_some() {
                credit[*turn] += quantum(*turn);
            }
        }
    }

    fn service() -> impl Strategy<Value = Service> {
        prop_oneof![Just(Service::Strict), (1..40_u32).prop_map(Service::Weighted)]
    }

    proptest! {
        /// Skipping turns in one step gives the order of single turns.
        #[test]
        fn classes_send_in_the_order_of_single_turns(
            services in prop::collection::vec(service(), 1..=Classes::MOST),
            steps in prop::collection::vec((prop::collection::vec(prop::option::of(64..9000_u64), 4), any::<bool>()), 1..60),
        ) {
            let mut turns = Turns::default();
            let (mut credit, mut turn) = ([0; Classes::MOST], 0);
            for (firsts, is_last) in steps {
                let firsts = &firsts[..services.len()];
                let mut before = turns;
                let next = turns.next(services.iter().copied(), |class| firsts[class]);
                prop_assert_eq!(next, step(&services, firsts, &mut credit, &mut turn));
                if let Some(class) = next {
                    let frame = firsts[class].unwrap_or(0);
                    turns.spend(class, frame, is_last);
                    if firsts.iter().flatten().count() == 1 {
                        before.serve_alone(class, services[class], frame, is_last);
                        prop_assert_eq!(before, turns);
                    }
                    credit[class] = if is_last { 0 } else { credit[class].saturating_sub(frame) };
                }
            }
        }
    }
}
