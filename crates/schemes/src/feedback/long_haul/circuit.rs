//! The reaction point of the full version (ICNP'25): packets of flows that have had CNPs pass a loop of the switch.
//!
//! The loop is a port whose link leads back to the switch. A packet waits there for its turn, takes the wire for the time
//! of its frame, and comes back after the delay of the loop. So the loop is a ring: packets come back in the order in which
//! they went in, and a packet that goes in again is behind all others. All held packets share the rate of the loop, and a
//! full loop makes every pass longer. That, and not the delay of the loop, holds a flow back.
//!
//! Passes never become fewer, so packets of a flow stay in order. Only recovery lets packets out early. A flow's state never
//! expires (as in the artefact): each of its later packets makes at least one pass.
//!
//! Passes need no event of the engine each. A packet leaves only on its last pass, or in recovery if all packets of its flow
//! before it have left. The switch is woken for those returns alone, and catches up on the others.
//!
//! The artefact counts a flow's packets by the passes that they have left, and lets a packet out early if none has fewer. Here
//! a packet is the next one if all that came before it have left, which is the same: the loop keeps the order, and a later
//! packet never makes fewer passes.

use super::config::{Circuit, Collision, Ramp, RecoveryMode};
use super::links::{MOST, time_to_send};
use crate::flows::Flows;
use model::scheme::Handle;
use model::{Cx, HostId, Packet, PortIndex, Reroute, Site, Time, Verdict};
use std::collections::VecDeque;

/// A packet in the loop.
#[derive(Clone, Copy, Debug)]
struct Lap {
    /// Time at which it comes back.
    back: Time,
    /// Its flow is not in recovery before this time.
    recovery: Time,
    /// Index of its flow's state; [`BACKGROUND`] for a packet that circles for ever.
    state: u32,
    /// Passes left, with the one under way.
    left: u32,
    /// Number among the packets of its state, in the order of arrival.
    number: u32,
    handle: Handle,
    port: PortIndex,
    to: HostId,
    frame: u32,
}

const BACKGROUND: u32 = u32::MAX;

/// State of a flow, or of the flows that share a place.
#[derive(Clone, Debug)]
struct State {
    /// CNPs that have not made a pass yet (`sqrt`), or all CNPs (`twenty`).
    cnps: u32,
    threshold: u32,
    passes: u32,
    /// Time of the last CNP that counted.
    last: Time,
    /// Time from which packets make passes.
    acts: Time,
    /// Packets that have come, and packets that have left, both modulo 2^32.
    came: u32,
    gone: u32,
    bytes: u64,
}

/// Index of a flow's state, if it has one.
#[derive(Clone, Copy, Debug, Default)]
struct Owned(Option<u32>);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    reactions: u64,
    holds: u64,
    passes: u64,
    most_passes: u64,
    early: u64,
    collisions: u64,
    flow_peak: u64,
    peak: u64,
}

/// The loop of one switch.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    config: Circuit,
    /// Sending and receiving host of every queue pair.
    ends: Vec<(HostId, HostId)>,
    /// Frame of a background packet.
    full: u32,
    /// Time of a frame on the wire of the loop by its size, ps.
    times: Vec<u64>,
    flows: Flows<Owned>,
    states: Vec<State>,
    /// State by place, if places are limited.
    slots: Vec<Option<u32>>,
    laps: VecDeque<Lap>,
    /// Packets at the front of `laps` that cannot leave when they come back.
    staying: usize,
    /// Held packets, without background.
    held: usize,
    /// Time at which the wire of the loop is free.
    free: Time,
    bytes: u64,
    counts: Counts,
}

impl Ring {
    pub(super) fn new(config: &Circuit, site: Site<'_>) -> Self {
        let plan = site.plan;
        Ring {
            config: config.clone(),
            ends: plan.qps.iter().map(|qp| (qp.from, qp.to)).collect(),
            full: plan.wire.max_frame(),
            times: (0..=plan.wire.max_frame())
                .map(|frame| time_to_send(frame.into(), config.rate).max(1))
                .collect(),
            flows: Flows::new(),
            states: Vec::new(),
            slots: vec![None; config.slots.unwrap_or(0) as usize],
            laps: VecDeque::new(),
            staying: 0,
            held: 0,
            free: Time::ZERO,
            bytes: 0,
            counts: Counts::default(),
        }
    }

    /// Index of the state of a flow with a CNP; a new one if there is none and a place is free.
    fn state_of(&mut self, now: Time, pkt: &Packet) -> Option<u32> {
        let qp = pkt.qp();
        if let Some(Owned(Some(index))) = self.flows.get(qp) {
            return Some(*index);
        }
        let (from, to) = self.ends.get(qp.index()).copied()?;
        let place = (from.0 ^ to.0 ^ qp.0) as usize;
        let slot = (!self.slots.is_empty()).then(|| place % self.slots.len());
        let index = match slot.and_then(|slot| self.slots[slot]) {
            Some(taken) => {
                if self.flows.get(qp).is_none() {
                    self.counts.collisions += 1;
                }
                let shared = self.config.on_collision == Collision::Share;
                self.flows.insert(qp, Owned(shared.then_some(taken)));
                return shared.then_some(taken);
            }
            None => self.states.len() as u32,
        };
        self.states.push(State {
            cnps: 0,
            threshold: self.config.threshold,
            passes: 0,
            last: now,
            acts: Time(now.ps().saturating_add(self.config.cpu_delay.min(MOST).ps())),
            came: 0,
            gone: 0,
            bytes: 0,
        });
        self.flows.insert(qp, Owned(Some(index)));
        if let Some(slot) = slot {
            self.slots[slot] = Some(index);
        }
        Some(index)
    }

    /// Reacts to a CNP of a local receiver that is about to leave.
    pub(super) fn report(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let now = cx.now;
        // Packets that have come back in recovery lower the threshold first.
        if self.held > 0 {
            self.catch_up(cx, Time(now.ps().saturating_sub(1)));
        }
        let Some(index) = self.state_of(now, pkt) else { return };
        let Circuit { passes, most_passes, ramp, gap, .. } = self.config;
        let state = &mut self.states[index as usize];
        let before = state.passes;
        if before == 0 {
            state.passes = passes;
            state.cnps = u32::from(ramp == Ramp::Twenty);
        } else if now.ps() - state.last.ps() >= gap.ps() {
            state.cnps += 1;
            match ramp {
                Ramp::Sqrt => {
                    if state.cnps == 1 {
                        state.passes += 1;
                        state.threshold += 1;
                    }
                    if state.cnps >= state.threshold {
                        state.cnps -= state.threshold;
                        state.threshold += 1;
                        state.passes += 1;
                    }
                }
                Ramp::Twenty => {
                    let grows = state.cnps <= QUICK || state.cnps.is_multiple_of(SLOW);
                    state.passes += u32::from(grows && state.passes < TWENTY_MOST);
                }
            }
            state.passes = state.passes.min(most_passes);
        } else {
            return;
        }
        state.last = now;
        self.counts.reactions += u64::from(state.passes != before);
        self.counts.most_passes = self.counts.most_passes.max(state.passes.into());
    }

    /// Data from a long link; `port` leads to its receiver.
    pub(super) fn arrive(&mut self, cx: &mut Cx<'_>, pkt: &Packet, port: PortIndex) -> Verdict {
        let Some(&Owned(Some(index))) = self.flows.get(pkt.qp()) else { return Verdict::Forward(port) };
        if cx.now < self.states[index as usize].acts {
            return Verdict::Forward(port);
        }
        self.catch_up(cx, Time(cx.now.ps().saturating_sub(1)));
        let state = &mut self.states[index as usize];
        let (left, frame) = (state.passes, pkt.frame());
        state.bytes += u64::from(frame);
        self.counts.flow_peak = self.counts.flow_peak.max(state.bytes);
        self.bytes += u64::from(frame);
        self.counts.peak = self.counts.peak.max(self.bytes);
        self.counts.holds += 1;
        if self.held == 0 {
            self.fill(cx.now);
        }
        self.held += 1;
        let state = &mut self.states[index as usize];
        let number = state.came;
        state.came = state.came.wrapping_add(1);
        let recovery = recovery_of(&self.config, state);
        let (back, handle, to) = (cx.now, cx.handle(), pkt.to());
        let lap = Lap { back, recovery, state: index, left, number, handle, port, to, frame };
        self.enter(lap);
        self.alarm(cx);
        Verdict::Hold
    }

    /// Lays the background packets onto an otherwise empty loop: evenly spaced, and one behind the other on a full loop.
    fn fill(&mut self, now: Time) {
        let count = u64::from(self.config.background);
        let frame = time_to_send(self.full.into(), self.config.rate);
        let cycle = (self.config.delay.ps() + frame).max(count * frame);
        self.laps.clear();
        self.staying = 0;
        for k in 1..=count {
            let back = Time(now.ps() + cycle * k / count);
            self.laps.push_back(Lap {
                back,
                recovery: Time::NEVER,
                state: BACKGROUND,
                left: 1,
                number: 0,
                handle: Handle(0),
                port: PortIndex(0),
                to: HostId(0),
                frame: self.full,
            });
        }
        let waits = cycle.saturating_sub(self.config.delay.ps() + frame);
        self.free = self.free.max(Time(now.ps() + waits));
    }

    /// Sends a packet into the loop at the time in `back`.
    fn enter(&mut self, mut lap: Lap) {
        let starts = lap.back.max(self.free).ps();
        let sent = starts.saturating_add(self.times[lap.frame as usize]);
        self.free = Time(sent);
        lap.back = Time(sent.saturating_add(self.config.delay.min(MOST).ps()));
        self.counts.passes += u64::from(lap.state != BACKGROUND);
        self.laps.push_back(lap);
    }

    /// Handles all packets that come back by `until`.
    fn catch_up(&mut self, cx: &mut Cx<'_>, until: Time) {
        while let Some(&lap) = self.laps.front().filter(|lap| lap.back <= until) {
            self.laps.pop_front();
            self.staying = self.staying.saturating_sub(1);
            match lap.state {
                BACKGROUND if self.held == 0 => {}
                BACKGROUND => self.enter(lap),
                _ => self.come_back(cx, lap),
            }
        }
    }

    fn come_back(&mut self, cx: &mut Cx<'_>, mut lap: Lap) {
        lap.left -= 1;
        if lap.back >= lap.recovery {
            let state = &mut self.states[lap.state as usize];
            lap.recovery = recovery_of(&self.config, state);
            if lap.back >= lap.recovery {
                state.threshold /= 2;
                if lap.left > 0 && is_next(&self.config, state, &lap) {
                    self.counts.early += 1;
                    lap.left = 0;
                }
            }
        }
        if lap.left > 0 {
            return self.enter(lap);
        }
        let state = &mut self.states[lap.state as usize];
        state.gone = state.gone.wrapping_add(1);
        state.bytes -= u64::from(lap.frame);
        self.bytes -= u64::from(lap.frame);
        self.held -= 1;
        cx.release(lap.handle, lap.port);
    }

    /// True if a packet stays in the loop when it comes back. A later CNP only puts recovery off, and the packets before it
    /// in its flow leave at a return of their own, for which the switch is woken first or which is later than this one.
    fn stays(&self, lap: &Lap) -> bool {
        if lap.state == BACKGROUND {
            return true;
        }
        if lap.left <= 1 {
            return false;
        }
        if lap.back < lap.recovery {
            return true;
        }
        let state = &self.states[lap.state as usize];
        lap.back < recovery_of(&self.config, state) || !is_next(&self.config, state, lap)
    }

    pub(super) fn wake(&mut self, cx: &mut Cx<'_>) {
        self.catch_up(cx, cx.now);
        self.alarm(cx);
    }

    /// Asks to be woken when the first packet comes back that may leave.
    fn alarm(&mut self, cx: &mut Cx<'_>) {
        if self.held == 0 {
            return;
        }
        while let Some(lap) = self.laps.get(self.staying)
            && self.stays(lap)
        {
            self.staying += 1;
        }
        let next = self.laps.get(self.staying).or(self.laps.back());
        if let Some(lap) = next {
            cx.wake_at(lap.back.max(Time(cx.now.ps() + 1)));
        }
    }

    /// Redirects held packets to ports that still lead to their hosts.
    pub(super) fn reroute(&mut self, news: &Reroute<'_>) {
        let router = news.router();
        for lap in self.laps.iter_mut().filter(|lap| lap.state != BACKGROUND) {
            if news.is_dead(lap.port)
                && let Some(&port) = router.ports(lap.to).0.first()
            {
                lap.port = port;
            }
        }
    }

    pub(super) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        let Counts { reactions, holds, passes, most_passes, early, collisions, flow_peak, peak } =
            self.counts;
        for (name, count) in [
            ("reactions", reactions),
            ("holds", holds),
            ("resubmissions", passes),
            ("most_passes", most_passes),
            ("left_early", early),
            ("collisions", collisions),
            ("stash_flow_peak", flow_peak),
            ("stash_peak", peak),
            ("stash_left", self.bytes),
        ] {
            sink(name, count);
        }
    }
}

/// Time from which a flow is in recovery: so long after its last CNP.
fn recovery_of(config: &Circuit, state: &State) -> Time {
    let recovery = config.recovery;
    match recovery.mode {
        RecoveryMode::None => Time::NEVER,
        _ if recovery.after == Time::ZERO => Time::ZERO,
        _ => Time(state.last.ps().saturating_add(recovery.after.ps())),
    }
}

/// True if a packet of a flow in recovery leaves when it comes back.
fn is_next(config: &Circuit, state: &State, lap: &Lap) -> bool {
    config.recovery.mode == RecoveryMode::Direct || lap.number == state.gone
}

/// CNPs that make a pass each with `ramp = "twenty"` (ICNP'25 artefact until March 2025).
const QUICK: u32 = 10;
/// After them, every CNP with a number that this divides makes a pass.
const SLOW: u32 = 20;
/// Most passes with `ramp = "twenty"`.
const TWENTY_MOST: u32 = 400;
