//! The state machine.

use crate::frame;
use crate::out::{Drop, Event, Note, Out};
use crate::pool::{Frame, Pool};
use crate::stations::Stations;
use crate::units::{PortId, Time};
use std::collections::VecDeque;

/// What a [`Tor`] is built from.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number of ports.
    pub ports: u16,
}

impl Settings {
    /// A plain switch with so many ports.
    pub fn of_ports(ports: u16) -> Self {
        Settings { ports }
    }
}

/// A fabric of ToRs and spines.
#[derive(Debug)]
pub struct Tor {
    ports: u16,
    stations: Stations,
    outs: VecDeque<Out>,
}

impl Tor {
    /// A ToR that has seen nothing yet.
    pub fn new(settings: &Settings) -> Self {
        let stations = Stations::new(settings.ports.into());
        Tor { ports: settings.ports, stations, outs: VecDeque::with_capacity(256) }
    }

    /// Takes a frame that has arrived at a port. Times never run backwards: `now` is at least that of any earlier call.
    pub fn frame(&mut self, now: Time, port: PortId, frame: Frame, pool: &mut Pool) {
        self.tick(now, pool);
        let Some(link) = frame::Link::of(pool.bytes(&frame)) else {
            return self.drop_frame(now, port, frame, Drop::Runt, pool);
        };
        if !link.source_is_station() {
            return self.drop_frame(now, port, frame, Drop::Source, pool);
        }
        self.stations.learn(now, link.source, port);
        match self.stations.port(now, link.destination) {
            Some(to) if to == port => pool.put_back(frame),
            Some(to) => self.outs.push_back(Out::Send { at: now, port: to, frame }),
            None => self.flood(now, port, frame, pool),
        }
    }

    /// The next instant at which [`Tor::tick`] has something to do.
    pub fn poll_at(&self) -> Option<Time> {
        None
    }

    /// Does everything that is due by `now`.
    pub fn tick(&mut self, _now: Time, _pool: &mut Pool) {}

    /// The next thing for the surroundings to do. Call it until it returns `None`, after every [`Tor::frame`] and
    /// [`Tor::tick`].
    pub fn poll(&mut self) -> Option<Out> {
        self.outs.pop_front()
    }

    fn flood(&mut self, now: Time, from: PortId, frame: Frame, pool: &mut Pool) {
        for port in (0..self.ports).map(PortId).filter(|&port| port != from) {
            match pool.duplicate(&frame) {
                Some(frame) => self.outs.push_back(Out::Send { at: now, port, frame }),
                None => self.note(now, Event::Dropped { port: from, why: Drop::NoBuffer }),
            }
        }
        pool.put_back(frame);
    }

    fn drop_frame(&mut self, now: Time, port: PortId, frame: Frame, why: Drop, pool: &mut Pool) {
        pool.put_back(frame);
        self.note(now, Event::Dropped { port, why });
    }

    fn note(&mut self, at: Time, event: Event) {
        self.outs.push_back(Out::Note(Note { at, event }));
    }
}
