//! A dump beside a run. Runs last milliseconds and polls seconds, so shares and rates are compared, never counts.

use crate::View;
use crate::dump::{Dump, fits};
use finding::{Finding, code};
use results::text::{maybe, number};
use serde::Serialize;

/// A counter of the run beside that of a dump.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// The operators' name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The counter of which both are shares.
    pub per: Option<&'static str>,
    /// Share in the run.
    pub run_share: Option<f64>,
    /// Share in the dump.
    pub dump_share: Option<f64>,
    /// Growth per second and port in the run.
    pub run_rate: Option<f64>,
    /// Growth per second and port in the dump; `None` without the time between its readings.
    pub dump_rate: Option<f64>,
    /// Why there is nothing to compare, or what to beware of; empty otherwise.
    pub note: String,
}

/// A dump beside a run.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Readings in the dump. With one, its values are those since its counters were zero.
    pub readings: usize,
    /// Most devices or ports in the dump with one counter.
    pub devices: usize,
    /// The counters that either has.
    pub counters: Vec<Beside>,
}

/// Lays a dump beside a run; `interval` is the time between its two readings, s.
///
/// # Errors
/// If the dump has no counter of the view, or the interval is no time.
pub fn compare(view: &View, dump: &str, interval: Option<f64>) -> Result<Comparison, Finding> {
    if let Some(interval) = interval.filter(|interval| !(interval.is_finite() && *interval > 0.0)) {
        let text = format!("the interval must be a number of seconds above 0, found {interval}");
        return Err(code::RANGE.plain(text));
    }
    let mut dump = Dump::read(dump);
    let has_numbers = !dump.is_empty();
    dump.keep(|name| view.counters.iter().any(|counter| fits(counter.name, name)));
    if dump.is_empty() {
        let why = if !has_numbers {
            "it has no lines of a name and a number"
        } else {
            "none of its names is among them"
        };
        return Err(code::UNKNOWN_NAME
            .plain(format!("the dump has no counter of {}: {why}", view.of))
            .with_help("ropewalk reads `ethtool -S`, `rdma statistic`, and SONiC's `show pfc counters`, `show queue counters`, `show queue watermark unicast`, `show priority-group watermark`, `show buffer_pool watermark` and `pfcwd show stats`, and Junos' `show interfaces queue` and `show interfaces extensive`"));
    }
    let readings = dump.readings();
    let devices = view.counters.iter().filter_map(|counter| Some(dump.counter(counter.name)?.devices)).max();
    let devices = devices.unwrap_or(0);
    let beside = |counter: &crate::Counter| {
        let seen = dump.counter(counter.name);
        let base = counter.per.and_then(|per| dump.counter(per));
        let dump_share =
            seen.zip(base).filter(|(_, base)| base.grown > 0.0).map(|(seen, base)| seen.grown / base.grown);
        let dump_rate = seen
            .zip(interval.filter(|_| readings > 1))
            .map(|(seen, time)| seen.grown / time / seen.devices.max(1) as f64);
        let is_peak = counter.total.is_some() && counter.rate.is_none() && view.seconds > 0.0;
        let missing = || match counter.per {
            Some(per) if dump_share.is_none() => format!("the dump has no {per}, or it is 0"),
            _ => String::new(),
        };
        let note = match seen {
            _ if counter.total.is_none() => counter.source.to_owned(),
            None => "the dump lacks it".to_owned(),
            Some(seen) if is_peak => {
                format!(
                    "{} {} at most in the run, {} in the dump",
                    maybe(counter.total),
                    counter.unit,
                    number(seen.most)
                )
            }
            Some(seen) if seen.reset => "it went backwards: it was reset between the readings".to_owned(),
            Some(_) => missing(),
        };
        Beside {
            name: counter.name,
            unit: counter.unit,
            per: counter.per,
            run_share: counter.share,
            dump_share,
            run_rate: counter.rate,
            dump_rate: dump_rate.filter(|_| !is_peak),
            note,
        }
    };
    let is_in_dump = |counter: &crate::Counter| dump.counter(counter.name).is_some();
    // One count may have several names, of which a dump has one.
    let has_other_name = |counter: &crate::Counter| {
        view.counters.iter().any(|other| other.of == counter.of && is_in_dump(other))
    };
    let is_shown = |counter: &&crate::Counter| {
        is_in_dump(counter) || counter.total.is_some() && !has_other_name(counter)
    };
    let counters = view.counters.iter().filter(is_shown).map(beside).collect();
    Ok(Comparison { readings, devices, counters })
}
