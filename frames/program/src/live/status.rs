//! What a command reports while it runs: the counters as JSON, metrics in the text format of Prometheus, and the decision log.

use super::failed;
use crate::cli::LiveArgs;
use crate::failure::Failure;
use results::whole;
use serde_json::{Map, Value as Json, json};
use std::fmt::{Display, Write as _};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The files.
#[derive(Debug)]
pub struct Reports {
    status: PathBuf,
    metrics: Option<PathBuf>,
    log: Option<(PathBuf, BufWriter<File>)>,
}

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Name.
    pub name: String,
    /// Meaning, one sentence.
    pub help: String,
    /// Labels in the text format of Prometheus: `port="h1"`.
    pub labels: String,
    /// Value.
    pub value: u64,
}

impl Reports {
    /// The files that the user wants.
    ///
    /// # Errors
    /// If a file is a pipe, or the decision log cannot be created.
    pub fn new(args: &LiveArgs) -> Result<Self, Failure> {
        let options = [("--status", Some(&args.status)), ("--metrics", args.metrics.as_ref())];
        let options = options.into_iter().chain([("--record", args.record.as_ref())]);
        options
            .flat_map(|(option, path)| Some((option, path?)))
            .try_for_each(|(option, path)| no_pipe(option, path))?;
        let open = |path: &PathBuf| match File::create(path) {
            Ok(file) => Ok((path.clone(), BufWriter::new(file))),
            Err(e) => Err(failed(&format!("{} cannot be created", path.display()), &e)),
        };
        let log = args.record.as_ref().map(open).transpose()?;
        Ok(Reports { status: args.status.clone(), metrics: args.metrics.clone(), log })
    }

    /// Adds a line to the decision log.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note(&mut self, note: &dyn Display) -> Result<(), Failure> {
        let Some((path, file)) = &mut self.log else { return Ok(()) };
        writeln!(file, "{note}").map_err(|e| failed(&format!("{} cannot be written", path.display()), &e))
    }

    /// Writes the status and the metrics, each as a whole: a reader never sees a part. `prefix` begins the names of metrics.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, prefix: &str, seconds: f64, rows: &[Row]) -> Result<(), Failure> {
        replace(&self.status, format!("{:#}\n", status(seconds, rows)).as_bytes())?;
        if let Some(path) = &self.metrics {
            replace(path, metrics(prefix, rows).as_bytes())?;
        }
        match &mut self.log {
            Some((path, file)) => {
                file.flush().map_err(|e| failed(&format!("{} cannot be written", path.display()), &e))
            }
            None => Ok(()),
        }
    }
}

/// Counters as JSON: by name, and below that by labels if there are any.
fn status(seconds: f64, rows: &[Row]) -> Json {
    let mut all = Map::new();
    all.insert("seconds".into(), json!(seconds));
    for row in rows {
        if row.labels.is_empty() {
            all.insert(row.name.clone(), row.value.into());
        } else if let Json::Object(by) =
            all.entry(row.name.clone()).or_insert_with(|| Json::Object(Map::new()))
        {
            by.insert(plain(&row.labels), row.value.into());
        }
    }
    Json::Object(all)
}

/// The values of labels: `port="h1",class="3"` as `h1 3`.
fn plain(labels: &str) -> String {
    labels.split('"').skip(1).step_by(2).collect::<Vec<_>>().join(" ")
}

/// Counters in the text format of Prometheus, version 0.0.4.
fn metrics(prefix: &str, rows: &[Row]) -> String {
    let mut text = String::new();
    let mut last = "";
    for row in rows {
        let Row { name, help, labels, value } = row;
        let done = if name == last {
            Ok(())
        } else {
            let help = if help.is_empty() { name.replace('_', " ") } else { help.clone() };
            write!(text, "# HELP {prefix}_{name}_total {help}\n# TYPE {prefix}_{name}_total counter\n")
        };
        last = name;
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let done = done.and_then(|()| writeln!(text, "{prefix}_{name}_total{labels} {value}"));
        debug_assert!(done.is_ok(), "a string takes everything");
    }
    text
}

/// Refuses a pipe: whoever writes to it waits for its reader, and no frame passes meanwhile.
fn no_pipe(option: &str, path: &Path) -> Result<(), Failure> {
    let is_pipe = fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    match is_pipe {
        false => Ok(()),
        true => Err(Failure::Asked(format!(
            "{option} {}: a pipe would stop all frames until its reader is ready; name a file",
            path.display()
        ))),
    }
}

/// Writes a file as a whole.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    whole::write(path, bytes).map_err(|e| failed(&format!("{} cannot be written", path.display()), &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, labels: &str, value: u64) -> Row {
        Row { name: name.into(), help: "Frames.".into(), labels: labels.into(), value }
    }

    #[test]
    fn counters_are_reported_as_json_and_as_metrics() {
        let rows =
            [row("frames", "port=\"h1\",class=\"3\"", 1), row("frames", "port=\"h2\"", 2), row("all", "", 3)];
        let status = status(1.5, &rows);
        assert_eq!(status, json!({"seconds": 1.5, "frames": {"h1 3": 1, "h2": 2}, "all": 3}));
        let text = "# HELP rw_frames_total Frames.\n# TYPE rw_frames_total counter\n\
                    rw_frames_total{port=\"h1\",class=\"3\"} 1\nrw_frames_total{port=\"h2\"} 2\n\
                    # HELP rw_all_total Frames.\n# TYPE rw_all_total counter\nrw_all_total 3\n";
        assert_eq!(metrics("rw", &rows), text);
    }
}
