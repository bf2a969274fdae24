//! Headroom of PFC.

use crate::acceptance::case::{Case, Found, Part, Seen, Traffic, each, less, more};
use crate::seen::{counts, only};
use crate::site::Site;
use crate::traffic::{Flow, job, jobs, of_switches, without_control, without_marks};
use lab::Run;

/// Eighths of the headroom by which senders react late. Our choice.
const EIGHTHS: u64 = 8;

/// Senders that react late to a pause.
pub(crate) const A7: Case = Case {
    id: "a7",
    plan: "PFC_PAUSE_RESPONSE_HEADROOM (sonic-mgmt)",
    about: "N:1 at line rate; a sender that reacts late by d sends d x rate more into the headroom, so the headroom is made \
            smaller by that, in eighths; what leaves room for one frame must lose",
    metrics: &[
        less("loss", "packets").plan(0.0),
        more("loss-beyond", "packets").plan(1.0),
        more("latest-reaction", "ns"),
    ],
    parts: late_reactions,
    rows: latest,
};

fn late_reactions(site: &Site) -> Result<Vec<Part>, String> {
    if !site.lossless() {
        return Err("data is in a lossy queue, so no port has headroom for it".to_owned());
    }
    let (receiver, senders) = site.rack_incast()?;
    let xoff = senders.iter().map(|host| site.headroom(*host)).max().unwrap_or(0);
    let each = site.flood(senders.len(), site.rate(receiver)) / senders.len() as u64;
    let flows: Vec<Flow> = senders.iter().map(|from| Flow::new(*from, receiver, each)).collect();
    let mut base = without_marks(site);
    base.extend([without_control(), jobs(&[job(site, "incast", "", &flows)])]);
    let rate = site.rate(senders[0]);
    let frame = u64::from(site.plan.wire.payload + site.plan.wire.header);
    let of = |eighths: u64| {
        // The engine needs room for one frame.
        let left = (xoff - xoff * eighths / EIGHTHS).max(frame.min(xoff));
        let late = (xoff - left) as f64 * 8e9 / rate.bps() as f64;
        // The site's own headroom stays as it is written.
        let smaller = match eighths {
            0 => Vec::new(),
            _ => of_switches(site, "pfc.headroom", &shrunk(site, left)),
        };
        let see = Box::new(move |run: &Run| {
            let mut values = only(counts(run), &["loss"]);
            values.insert("latest-reaction", late);
            Ok(values)
        });
        let label = if eighths == 0 { "as configured".to_owned() } else { format!("late by {late:.0} ns") };
        Part::Run(Traffic { label, sets: [base.clone(), smaller].concat(), see })
    };
    Ok((0..=EIGHTHS).map(of).collect())
}

/// A headroom in the form that the site has.
fn shrunk(site: &Site, bytes: u64) -> String {
    use scenario::headroom::Headroom;
    let pfc = site.scenario.switch.pfc.get();
    match pfc.and_then(|pfc| pfc.headroom.as_ref()) {
        Some(Headroom::Cable(cable)) => match cable.shared_pool {
            Some(pool) => format!("{{ xoff = \"{bytes}B\", shared-pool = \"{}B\" }}", pool.get()),
            None => format!("{{ xoff = \"{bytes}B\" }}"),
        },
        _ => format!("{bytes}B"),
    }
}

/// Losses as configured and beyond, and the latest reaction without a loss.
fn latest(all: &[Seen]) -> Vec<Found> {
    let ([own, ..], [.., beyond]) = (all, all) else { return each(all) };
    let mut found: Vec<Found> =
        own.get("loss").map(|loss| Found::of(own, "loss", loss)).into_iter().collect();
    found.extend(beyond.get("loss").map(|loss| Found::of(beyond, "loss-beyond", loss)));
    let whole = all.iter().take_while(|seen| seen.get("loss") == Some(0.0)).last();
    found.extend(
        whole.and_then(|seen| Some(Found::of(seen, "latest-reaction", seen.get("latest-reaction")?))),
    );
    found
}
