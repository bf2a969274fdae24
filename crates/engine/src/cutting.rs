//! What both engines do between two windows of a run that may be cut, see [`crate::cut`].

use crate::cut::{Cutter, Look, Made, Period, Refusal};
use crate::host::Host;
use crate::outcome::Frame;
use crate::record::Recorder;
use crate::setup::Setup;
use model::{Parts, Time};

/// Fewest periods that are cut. Our choice: it took two to find that they repeat.
const LEAST: u64 = 2;

/// Shows the cutter what has happened before `now`. Returns whether frames at taps are to be recorded from now on, if that changes.
pub(crate) fn between<'h, P: Parts + 'h>(
    setup: &Setup<'_>,
    now: u64,
    cutter: &mut dyn Cutter,
    frames: Vec<Frame>,
    (hosts, tasks_rest): (impl Iterator<Item = &'h mut Host<P>>, bool),
) -> Option<bool> {
    match cutter.look(Time(now), frames) {
        Look::Nothing => None,
        Look::Record(on) => Some(on),
        Look::Cut(period) => {
            let mut hosts: Vec<&mut Host<P>> = hosts.collect();
            cutter.made(if tasks_rest {
                cut((setup, now), &period, &mut hosts)
            } else {
                Err(Refusal::Tasks)
            });
            None
        }
    }
}

fn cut<P: Parts>(
    (setup, now): (&Setup<'_>, u64),
    period: &Period,
    hosts: &mut [&mut Host<P>],
) -> Result<Made, Refusal> {
    let mut periods = u64::MAX;
    // The run's clock must not overflow.
    let room = (u64::MAX / 4).saturating_sub(setup.by_run(now));
    for host in &*hosts {
        periods = periods.min(host.periods(setup, period)?);
    }
    let periods = if periods == u64::MAX { 0 } else { periods.min(room / period.time.ps().max(1)) };
    if periods < LEAST {
        return Err(Refusal::Short);
    }
    let mut packets = Vec::new();
    setup.jump(period.time.ps() * periods);
    for host in hosts {
        host.leave_out(setup, (period, periods), &mut packets);
    }
    Ok(Made { periods, packets })
}

/// Frames that all recorders have.
pub(crate) fn frames<'r>(recorders: impl Iterator<Item = &'r mut Recorder>) -> Vec<Frame> {
    let mut frames = Vec::new();
    recorders.for_each(|recorder| recorder.give_frames(&mut frames));
    frames
}
