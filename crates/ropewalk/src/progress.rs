//! Progress on the terminal: a bar on a terminal, a plain line every few seconds elsewhere, or nothing.

use crate::interrupt::Watched;
use indicatif::{ProgressBar, ProgressStyle};
use lab::Progress;
use lab::progress::Reporter;
use std::io::IsTerminal;

/// Seconds between plain lines.
const LINE_EVERY_S: f64 = 5.0;
/// Positions of the bar.
const STEPS: u64 = 1000;
/// Seconds between updates of the bar.
const BAR_EVERY_S: f64 = 0.1;

/// The visible progress of a command's runs. Ctrl-C stops the runs.
pub(crate) struct Shown {
    pub(crate) progress: Progress<'static>,
    bar: ProgressBar,
    watched: Option<Watched>,
}

impl Shown {
    /// Progress of `runs` runs, hidden if `quiet`.
    pub(crate) fn new(quiet: bool, runs: usize) -> Self {
        let watched = Watched::begin();
        let stop = watched.flag();
        let on_terminal = std::io::stderr().is_terminal();
        let bar = if on_terminal && !quiet { ProgressBar::new(STEPS) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let reporter = match (quiet, on_terminal) {
            (true, _) => None,
            (false, true) => Some(on_bar(bar.clone())),
            (false, false) => Some(on_lines()),
        };
        Shown { progress: Progress::new(runs, stop, reporter), bar, watched: Some(watched) }
    }

    /// Removes the bar when the runs are done. From now on, Ctrl-C ends the process.
    pub(crate) fn clear(&mut self) {
        self.bar.finish_and_clear();
        self.watched = None;
    }
}

fn on_bar(bar: ProgressBar) -> Reporter<'static> {
    let show = move |fraction: f64, text| {
        bar.set_position((fraction * STEPS as f64) as u64);
        bar.set_message(text);
    };
    Reporter { every_s: BAR_EVERY_S, show: Box::new(show) }
}

fn on_lines() -> Reporter<'static> {
    #[expect(clippy::print_stderr, reason = "this is the progress report")]
    let show = |fraction: f64, text| eprintln!("{:3.0} %  {text}", fraction * 100.0);
    Reporter { every_s: LINE_EVERY_S, show: Box::new(show) }
}
