//! When the port of a flow's sender stood paused, or lacked credits.

use crate::history::History;
use engine::outcome::EventKind;
use model::Time;

/// Pauses of the sender's port, in order: start and end. A pause without an end lasts until [`Time::NEVER`].
pub(crate) fn pauses(history: &History<'_>) -> Vec<(Time, Time)> {
    let changes = history.steps.iter().filter_map(|step| match step.what {
        EventKind::Paused => Some((step.at, true)),
        EventKind::Resumed => Some((step.at, false)),
        _ => None,
    });
    spans(changes)
}

/// Pauses from their starts and ends. Records of one instant come in an order of their own: a port whose credits suffice for one frame
/// resumes, sends it and pauses again at once. Starts and ends take turns, so the number of both tells how the instant ends.
fn spans(changes: impl Iterator<Item = (Time, bool)>) -> Vec<(Time, Time)> {
    let (mut spans, mut since) = (Vec::new(), None);
    let mut changes = changes.peekable();
    while let Some((at, first)) = changes.next() {
        let (mut starts, mut ends) = (u32::from(first), u32::from(!first));
        while let Some((_, start)) = changes.next_if(|(other, _)| *other == at) {
            starts += u32::from(start);
            ends += u32::from(!start);
        }
        let paused = if since.is_some() { starts >= ends } else { starts > ends };
        if ends > 0 {
            spans.extend(since.take().map(|since| (since, at)));
        }
        if paused && since.is_none() {
            since = Some(at);
        }
    }
    spans.extend(since.map(|since| (since, Time::NEVER)));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(changes: &[(u64, bool)]) -> Vec<(u64, u64)> {
        let spans = spans(changes.iter().map(|(at, start)| (Time(*at), *start)));
        spans.into_iter().map(|(from, to)| (from.ps(), to.ps())).collect()
    }

    #[test]
    fn a_port_that_resumes_for_one_frame_is_paused_again_from_that_instant() {
        assert_eq!(of(&[(5, true), (9, true), (9, false), (12, false)]), [(5, 9), (9, 12)]);
        assert_eq!(of(&[(5, true), (5, false), (9, true), (12, false)]), [(9, 12)], "a pause of no time");
        assert_eq!(of(&[(5, true)]), [(5, Time::NEVER.ps())]);
        assert_eq!(of(&[(3, false), (5, true), (7, false)]), [(5, 7)]);
    }
}
