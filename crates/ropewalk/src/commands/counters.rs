//! `ropewalk counters`.

use crate::cli::CountersArgs;
use crate::print;
use lab::failure::Failure;
use results::Results;
use scenario::file::{self, Reading};

/// A dump of counters: its text and a word for each value. Our choice: more than a switch with a thousand queues prints.
const READING: Reading = Reading::up_to(16 << 20, 8);

/// Prints the counters of a run, or a dump beside them.
///
/// # Errors
/// If the directory holds no results, a file cannot be read, or there are no such names.
pub fn run(args: &CountersArgs) -> Result<(), Failure> {
    let results = Results::read(&args.dir)?;
    let view = counters::view(&results, &args.names, args.at.as_deref())?;
    let Some(path) = &args.compare else {
        return print::out(&if args.json { print::json(&view) } else { view.text() });
    };
    let dump = file::read(path, READING)
        .map_err(|error| Failure::Asked(error.about(&path.display().to_string()).to_string()))?;
    let comparison = counters::compare(&view, &dump, args.interval)?;
    print::out(&if args.json { print::json(&comparison) } else { comparison.text() })
}
