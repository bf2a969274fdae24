//! Balance over uplinks.

use crate::acceptance::case::{Case, Part, Traffic, Values, each, less, more};
use crate::seen::{counts, only};
use crate::site::Site;
use crate::traffic::{Flow, job, jobs};
use lab::Run;
use model::LinkId;

/// Queue pairs of each pair of hosts.
const QPS: [u32; 5] = [1, 4, 8, 16, 32];
/// Bytes of each pair of hosts. Our choice.
const BYTES: u64 = 4_000_000;

/// Entropy of queue pairs, flowlets and spraying.
pub(crate) const A10: Case = Case {
    id: "a10",
    plan: "BMWG 3, load balancing",
    about: "every host of a leaf sends 4 MB to one of another leaf, over 1 to 32 QPs under the site's scheme, in flowlets, and sprayed; \
            bytes of the first leaf's uplinks",
    metrics: &[less("max-mean", ""), more("jain", ""), less("reordered", "% of packets")],
    parts: spread,
    rows: each,
};

fn spread(site: &Site) -> Result<Vec<Part>, String> {
    let (from, to) = site.two_leaves()?;
    let uplinks: Vec<LinkId> = site.uplinks().into_iter().map(|(link, _)| link).collect();
    if uplinks.len() < 2 {
        return Err("a leaf has one uplink".to_owned());
    }
    let flows: Vec<Flow> = from.iter().zip(to).map(|(from, to)| Flow::new(*from, *to, BYTES)).collect();
    let part = |label: String, qps: u32, scheme: Option<&str>| {
        let keys = match qps {
            1 => String::new(),
            _ => format!(", split = {{ subflows = {qps}, paths = \"free\" }}"),
        };
        let mut sets = vec![jobs(&[job(site, "across", &keys, &flows)])];
        sets.extend(scheme.map(str::to_owned));
        let uplinks = uplinks.clone();
        Part::Run(Traffic { label, sets, see: Box::new(move |run| Ok(balance(run, &uplinks))) })
    };
    let own =
        QPS.into_iter().map(|qps| part(format!("{qps} QP{}", if qps == 1 { "" } else { "s" }), qps, None));
    let others = [("flowlets", "scheme.flowlet={}"), ("sprayed", "scheme.rps={}")];
    let others = others.into_iter().map(|(label, scheme)| part(label.to_owned(), 1, Some(scheme)));
    Ok(own.chain(others).collect())
}

fn balance(run: &Run, uplinks: &[LinkId]) -> Values {
    let bytes: Vec<f64> = uplinks.iter().map(|link| run.outcome.links[link.index()].bytes as f64).collect();
    let n = bytes.len() as f64;
    let sum: f64 = bytes.iter().sum();
    let squares: f64 = bytes.iter().map(|x| x * x).sum();
    let mut values = only(counts(run), &["reordered"]);
    if sum > 0.0 {
        values.insert("max-mean", bytes.iter().copied().fold(0.0, f64::max) * n / sum);
        values.insert("jain", sum * sum / (n * squares));
    }
    values
}
