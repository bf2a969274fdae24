//! The NICs of one process.

use crate::counters::Counters;
use crate::nic::{Nic, Outs, Starts};
use crate::out::{Face, Out, Side};
use crate::personality::Personality;
use model::{Rate, Time};
use std::collections::BTreeMap;

/// What a [`Bump`] is built from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The NICs: the rate of each one's line. Without a rate, a NIC sends at once; a congestion control that has a rate takes
    /// the line for one of 100 Gb/s.
    pub nics: Vec<Option<Rate>>,
    /// The kind of all NICs.
    pub personality: Personality,
}

/// The NICs of one process.
pub struct Bump {
    nics: Vec<Nic>,
    starts: Starts,
    outs: Outs,
    now: Time,
}

impl Bump {
    /// NICs that have seen nothing yet.
    pub fn new(settings: &Settings) -> Self {
        let nics = settings.nics.iter().enumerate();
        let nics = nics.map(|(place, line)| Nic::new(place, *line, &settings.personality)).collect();
        Bump { nics, starts: BTreeMap::new(), outs: Outs::new(), now: Time::ZERO }
    }

    /// Changes the kind of all NICs for connections that begin from now on.
    pub fn set_personality(&mut self, personality: &Personality) {
        for nic in &mut self.nics {
            nic.set_personality(personality);
        }
    }

    /// Takes a frame, from destination address to the last byte before the FCS. Times never run backwards. A frame for a NIC
    /// that does not exist is dropped.
    pub fn frame(&mut self, now: Time, face: Face, frame: Vec<u8>) {
        self.tick(now);
        let Some(nic) = self.nics.get_mut(face.nic) else { return };
        match face.side {
            Side::Host => nic.take_from_host(now, frame, &mut self.starts, &mut self.outs),
            Side::Network => nic.take_from_network(now, frame, &self.starts, &mut self.outs),
        }
    }

    /// The next time at which [`Bump::tick`] has something to do.
    pub fn poll_at(&mut self) -> Option<Time> {
        let now = self.now;
        self.nics.iter_mut().filter_map(|nic| nic.poll_at(now)).min()
    }

    /// Does everything that is due by `now`.
    pub fn tick(&mut self, now: Time) {
        self.now = now;
        for nic in &mut self.nics {
            nic.tick(now, &mut self.outs);
        }
    }

    /// The next thing for the surroundings to do. Call it until it returns `None`, after every [`Bump::frame`] and
    /// [`Bump::tick`].
    pub fn poll(&mut self) -> Option<Out> {
        self.outs.pop_front()
    }

    /// Counters of a NIC.
    pub fn counters(&self, nic: usize) -> Option<&Counters> {
        self.nics.get(nic).map(|nic| &nic.counters)
    }
}
