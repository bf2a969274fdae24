//! PFC's watchdog.

use crate::acceptance::case::{Case, Found, Part, Seen, Traffic, Values, each, less, more};
use crate::site::Site;
use crate::traffic::{Flow, job, jobs, quoted};
use lab::Run;
use model::{HostId, Time};

/// Messages of each sender during a run. Our choice: they stay within one buffer while a queue is paused.
const MESSAGES: u64 = 200;

/// A host that pauses its switch for a long and for a short time.
pub(crate) const A8: Case = Case {
    id: "a8",
    plan: "PFCWD_BASIC, PFCWD_2SENDER_2RECEIVER (sonic-mgmt)",
    about: "two senders and two receivers of a leaf; one receiver pauses its port for two polls longer than the watchdog takes, then for \
            half of the detection time; the plans send at line rate, here 200 messages come one by one",
    metrics: &[
        more("storms", "queues").plan(1.0),
        more("restored", "queues").plan(1.0),
        less("storms-if-short", "queues").plan(0.0),
        less("loss-beside", "packets").plan(0.0),
        less("loss", "packets"),
    ],
    parts: storms,
    rows: by_length,
};

fn storms(site: &Site) -> Result<Vec<Part>, String> {
    let Some(rule) = site.watchdog() else {
        return Err("the scenario has no `switch.pfc.watchdog` on the queue of data".to_owned());
    };
    let &[a, b, stormed, beside, ..] = site.leaf() else {
        return Err("a leaf has fewer than four hosts".to_owned());
    };
    let polls = |n: u64| Time(rule.poll.ps().saturating_mul(n));
    let (at, long, short) = (polls(1), polls(rule.detection + 2), Time(polls(rule.detection).ps() / 2));
    let after = Time(at.ps() + long.ps() + polls(rule.restoration + 2).ps());
    let every = Time(after.ps() / MESSAGES);
    let bytes = u64::from(site.plan.wire.payload);
    let flow = |from: HostId, to: HostId| [Flow { times: MESSAGES, every, ..Flow::new(from, to, bytes) }];
    let both = [job(site, "stormed", "", &flow(a, stormed)), job(site, "beside", "", &flow(b, beside))];
    let of = |label: &str, length: Time| {
        let until = Time(at.ps() + length.ps());
        let storm = quoted(&site.host(stormed));
        let sets = vec![
            jobs(&both),
            format!("failure=[{{ storm = [{storm}], at = \"{at}\", until = \"{until}\" }}]"),
            format!("stop={{ after = \"{after}\" }}"),
            "nic.on-retry-exceeded=never".to_owned(),
        ];
        Part::Run(Traffic { label: label.to_owned(), sets, see: Box::new(see) })
    };
    Ok(vec![of("long storm", long), of("short storm", short)])
}

fn see(run: &Run) -> Result<Values, String> {
    let links = || run.outcome.links.iter();
    let beside = crate::seen::job(run, "beside");
    let records = run.checked.plan.messages.iter().zip(&run.outcome.messages);
    let again =
        records.filter(|(message, _)| Some(message.job) == beside).map(|(_, record)| record.retransmitted);
    Ok(Values::from([
        ("storms", links().map(|link| link.storms).sum::<u64>() as f64),
        ("restored", links().map(|link| link.storms_restored).sum::<u64>() as f64),
        ("loss-beside", again.sum::<u64>() as f64),
        ("loss", run.outcome.data.dropped_watchdog as f64),
    ]))
}

/// What the long storm did, and whether the short one did anything.
fn by_length(all: &[Seen]) -> Vec<Found> {
    let [long, short] = all else { return each(all) };
    let mut found = each(std::slice::from_ref(long));
    found.extend(short.get("storms").map(|storms| Found::of(short, "storms-if-short", storms)));
    found
}
