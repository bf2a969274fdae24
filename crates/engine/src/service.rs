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
    /// in bytes. The class whose turn comes gets all credit of the turns that pass until then in one step.
    pub(crate) fn next<S>(&mut self, services: S, first: impl Fn(usize) -> Option<u64>) -> Option<usize>
    where
        S: Iterator<Item = Service> + Clone,
    {
        let mut all = services.clone().enumerate();
        let strict = all.find(|(class, service)| *service == Service::Strict && first(*class).is_some());
        match strict {
            Some((class, _)) => Some(class),
            None => self.next_weighted(services, first),
        }
    }

    fn next_weighted(
        &mut self,
        services: impl Iterator<Item = Service> + Clone,
        first: impl Fn(usize) -> Option<u64>,
    ) -> Option<usize> {
        let count = services.clone().count() as u64;
        // Distance to the first turn that brings credit: the class whose turn it is waits for a whole round.
        let distance = |class: usize| (class as u64 + count - self.turn as u64 - 1) % count + 1;
        let mut waiting = [None; Classes::MOST];
        let mut soonest: Option<(u64, usize)> = None;
        for (class, service) in services.enumerate() {
            let Service::Weighted(weight) = service else { continue };
            let Some(frame) = first(class) else { continue };
            let quantum = u64::from(weight) * Service::QUANTUM;
            let lacks = frame.saturating_sub(self.credit[class]).div_ceil(quantum);
            let turns = match (class == self.turn, lacks) {
                (true, 0) => 0,
                _ => distance(class) + lacks.saturating_sub(1) * count,
            };
            waiting[class] = Some(quantum);
            if soonest.is_none_or(|(least, _)| turns < least) {
                soonest = Some((turns, class));
            }
        }
        let (turns, next) = soonest?;
        for (class, quantum) in waiting.into_iter().enumerate() {
            if let Some(quantum) = quantum
                && let Some(after) = turns.checked_sub(distance(class))
            {
                self.credit[class] += (after / count + 1) * quantum;
            }
        }
        self.turn = next;
        Some(next)
    }

    /// Takes the bytes of a frame from the credit of its class, or all credit if the class has no further packet.
    pub(crate) fn spend(&mut self, class: usize, frame: u64, is_last: bool) {
        self.credit[class] = if is_last { 0 } else { self.credit[class].saturating_sub(frame) };
    }
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
                let next = turns.next(services.iter().copied(), |class| firsts[class]);
                prop_assert_eq!(next, step(&services, firsts, &mut credit, &mut turn));
                if let Some(class) = next {
                    let frame = firsts[class].unwrap_or(0);
                    turns.spend(class, frame, is_last);
                    credit[class] = if is_last { 0 } else { credit[class].saturating_sub(frame) };
                }
            }
        }
    }
}
