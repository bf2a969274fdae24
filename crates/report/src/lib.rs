//! The report: one HTML file with the question, the answer and the figures of runs. It works offline and fits into a mail.
//!
//! The page is plain HTML, CSS and JavaScript (`page/`) with plotly's charts. All its content comes from one JSON
//! object, which `payload` makes from result tables. The page fetches nothing. `vendor/` has plotly's basic bundle, which
//! `scripts/plotly VERSION` replaces.
//!
//! | file of `page/` | what it holds |
//! |---|---|
//! | `page.html`, `style.css` | the frame, and the style for screens, phones and paper |
//! | `common.js` | elements, numbers, colours, tables, charts |
//! | `headline.js`, `paper.js`, `sweep.js` | the answer; a paper's figures with our data; the points of a sweep |
//! | `steps.js`, `flows.js`, `time.js`, `arrivals.js`, `fabric.js`, `matrix.js`, `counters.js`, `config.js`, `glossary.js` | one section each |
//! | `main.js` | puts the sections on the page |
//!
//! [`timeline`] writes a run for Perfetto.

mod frame;
mod payload;
mod policy;
mod timeline;

use lab::Failure;
use papers::Report;
use payload::experiment::Experiment;
use payload::{Group, Payload};
use results::table::Table;
use results::whole;
use results::{Results, ResultsError};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use timeline::timeline;

/// The scripts of the page, in the order in which they run.
const SCRIPTS: [&str; 14] = [
    include_str!("page/common.js"),
    include_str!("page/headline.js"),
    include_str!("page/paper.js"),
    include_str!("page/sweep.js"),
    include_str!("page/steps.js"),
    include_str!("page/flows.js"),
    include_str!("page/time.js"),
    include_str!("page/arrivals.js"),
    include_str!("page/fabric.js"),
    include_str!("page/matrix.js"),
    include_str!("page/counters.js"),
    include_str!("page/config.js"),
    include_str!("page/glossary.js"),
    include_str!("page/main.js"),
];

/// plotly.js: the bundle with lines, bars and pies, a quarter of the whole.
const PLOTLY: &str = include_str!("../vendor/plotly-basic.min.js");

/// The page about one run, or a comparison of several. Runs that differ only in their seed share a row.
pub fn of_runs(runs: &[Results]) -> String {
    of_comparison(runs, lab::compare::usual_baseline(), None)
}

/// The page about runs that are compared with those of the scheme `baseline`; `decides` is what decides the comparison, as JSON.
pub fn of_comparison(runs: &[Results], baseline: &str, decides: Option<&serde_json::Value>) -> String {
    let mut payload = Payload::of_runs(&payload::grouping::grouped(runs), baseline);
    payload.decided_by(decides);
    page(payload)
}

/// The time that ranks these runs in [`answer`], us, with its name; `None` if they have none in common.
pub fn measure(runs: &[Results]) -> Option<papers::Measure> {
    payload::answer::measure(&payload::grouping::grouped(runs))
}

/// The answer at the top of the page of [`of_comparison`], in sentences.
pub fn answer(runs: &[Results], baseline: &str) -> Vec<String> {
    payload::answer::answer(&payload::grouping::grouped(runs), baseline)
}

/// The page about experiments that ran in detail ([`papers::Work::detailed`]).
pub fn of_experiments(reports: &[Report]) -> String {
    let several = reports.len() > 1;
    let runs = reports.iter().flat_map(|report| report.detail.runs.iter().map(move |run| (report, run)));
    let group = |(report, (label, run)): (&Report, &'_ (String, Results))| -> (String, Results) {
        let name = if several { format!("{}: {label}", report.name) } else { label.clone() };
        (name, run.clone())
    };
    let runs: Vec<(String, Results)> = runs.map(group).collect();
    let groups: Vec<Group<'_>> =
        runs.iter().map(|(name, run)| Group { name: name.clone(), runs: vec![run] }).collect();
    page(Payload::of_experiments(reports.iter().map(Experiment::of).collect(), &groups))
}

/// The page about a finished sweep, from its `sweep.json` and `points.parquet`.
pub fn of_sweep(manifest: &serde_json::Value, points: &Table) -> String {
    page(Payload::of_sweep(manifest, points))
}

/// Writes the page of the finished sweep in `dir`.
///
/// # Errors
/// If the sweep cannot be read, or the page cannot be written.
pub fn write_sweep(dir: &Path, file: &PageFile) -> Result<(), Failure> {
    let (manifest, points) = lab::sweep::dataset::read(dir)?;
    file.write(&of_sweep(&manifest, &points))
}

/// First bytes of every page, by which ropewalk recognises its pages.
pub const MARK: &str = "<!doctype html><!-- a report of ropewalk -->";

/// A path at which a page or a timeline may be written: nothing is there, or an older one.
#[derive(Clone, Debug)]
pub struct PageFile(PathBuf);

impl PageFile {
    /// Checks the path of a page, and writes nothing.
    ///
    /// # Errors
    /// If another file is there. For example, a scenario given by mistake after `--report` is not overwritten.
    pub fn at(file: PathBuf) -> Result<Self, Failure> {
        Self::replacing(file, MARK, "report")
    }

    /// Checks the path of a timeline, and writes nothing.
    ///
    /// # Errors
    /// If another file is there.
    pub fn for_timeline(file: PathBuf) -> Result<Self, Failure> {
        Self::replacing(file, timeline::MARK, "timeline")
    }

    fn replacing(file: PathBuf, mark: &str, what: &str) -> Result<Self, Failure> {
        // A pipe or a device is written to; reading from it could take for ever.
        if whole::is_device(&file) {
            return Ok(PageFile(file));
        }
        let mut head = vec![0; mark.len()];
        let ours = match File::open(&file).and_then(|mut old| old.read_exact(&mut head)) {
            Ok(()) => head == mark.as_bytes(),
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        };
        if ours {
            return Ok(PageFile(file));
        }
        Err(Failure::Asked(format!(
            "{} exists and is no {what} of ropewalk, so it is not overwritten; name another file or remove this one",
            file.display()
        )))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes the page, and creates the directories above it. An older page is replaced as a whole or not at all.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write(&self, page: &str) -> Result<(), Failure> {
        let failed = |e| Failure::Results(ResultsError::Io(self.0.clone(), e));
        if let Some(dir) = self.0.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            fs::create_dir_all(dir).map_err(failed)?;
        }
        whole::write(&self.0, page).map_err(failed)
    }
}

fn page(payload: Payload) -> String {
    let scripts = SCRIPTS.concat();
    let json = payload.json();
    let template = include_str!("page/page.html");
    let (_, script) = template.split_once("<script>").unwrap_or_default();
    let (script, _) = script.split_once("</script>").unwrap_or_default();
    // The scripts are the same in every page.
    static POLICY: OnceLock<String> = OnceLock::new();
    let policy = POLICY.get_or_init(|| policy::of(&[&script.replacen("{{scripts}}", &scripts, 1), PLOTLY]));
    let parts = [
        ("{{policy}}", policy.as_str()),
        ("{{style}}", include_str!("page/style.css")),
        ("{{payload}}", &json),
        ("{{scripts}}", &scripts),
        // Plotly comes last, so that browsers parse the answer before its megabytes.
        ("{{plotly}}", PLOTLY),
    ];
    // A single pass, so that inserted text is not searched for marks.
    let mut page = MARK.to_owned();
    let mut rest = template;
    for (mark, part) in parts {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        page.push_str(before);
        page.push_str(part);
        rest = after;
    }
    page.push_str(rest);
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::table::{Column, Table};
    use serde_json::Value;

    /// Most bytes of a page.
    const LIMIT: usize = 2_000_000;

    fn results(scenario: &str, set: &[&str]) -> Results {
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        let run = lab::run(lab::load(scenario, &set).unwrap());
        run.results(vec!["ropewalk".into(), "run".into(), scenario.into()])
    }

    fn small(scheme: &str, seed: u64) -> Results {
        let (scheme, seed) = (format!("scheme.{scheme}={{}}"), format!("seed={seed}"));
        results("quickstart", &["workload.0.bytes=200kB", &scheme, &seed])
    }

    /// The payload of a page.
    fn payload(page: &str) -> Value {
        let (_, rest) = page.split_once("id=\"payload\">").unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }

    #[test]
    fn plotly_is_the_basic_bundle_with_its_licence() {
        assert!(PLOTLY.starts_with("/**\n* plotly.js (basic - minified) v"), "{}", &PLOTLY[..40]);
        assert!(PLOTLY[..200].contains("Licensed under the MIT license"));
        assert!(include_str!("../vendor/plotly-LICENSE").starts_with("MIT License"));
        // Browsers would end the script here.
        assert!(!PLOTLY.contains("</script"));
    }

    #[test]
    fn charts_use_only_what_the_basic_bundle_has() {
        let kinds = SCRIPTS.concat();
        let kinds = kinds.split("type: \"").skip(1).filter_map(|rest| rest.split_once('"'));
        let mut traces: Vec<&str> = kinds.map(|(kind, _)| kind).collect();
        traces.retain(|kind| {
            !["log", "linear", "category", "line", "rect", "range", "button", "checkbox"].contains(kind)
        });
        traces.sort_unstable();
        traces.dedup();
        assert_eq!(traces, ["bar", "scatter"]);
    }

    #[test]
    fn our_part_of_the_page_contains_no_address() {
        let ours = [include_str!("page/page.html"), include_str!("page/style.css")];
        for text in ours.into_iter().chain(SCRIPTS) {
            for address in ["http:", "https:", "src=", "@import", "url("] {
                assert!(!text.contains(address), "{address}");
            }
        }
    }

    #[test]
    fn the_page_of_a_run_shows_its_numbers() {
        let run = small("themis", 1);
        let page = of_runs(std::slice::from_ref(&run));
        assert!(page.starts_with(MARK) && page.trim_end().ends_with("</html>"));
        assert!(
            ["style", "payload", "scripts", "plotly"]
                .iter()
                .all(|part| !page.contains(&format!("{{{{{part}}}}}")))
        );
        assert!(page.len() < LIMIT);
        let payload = payload(&page);
        assert_eq!(payload["kind"], "run");
        let columns = payload["table"]["columns"].as_array().unwrap();
        let cell = |name: &str| {
            let column = columns.iter().position(|c| c["name"] == name).unwrap();
            payload["table"]["rows"][0]["cells"][column].as_f64().unwrap()
        };
        let true_of = |key: &str| run.summary.number(key).unwrap();
        for (name, path) in [
            ("slowest group", "jobs.all-reduce.groups.completion_us.slowest"),
            ("FCT, P99", "flows.fct_us.p99"),
            ("slowdown, mean", "flows.slowdown.mean"),
            ("NACKs", "control.nack"),
        ] {
            assert!((cell(name) / true_of(path) - 1.0).abs() < 1e-5, "{name}");
        }
        let part = &payload["parts"][0];
        let curve = part["curves"].as_array().unwrap().iter().find(|c| c["metric"] == "fct_us").unwrap();
        assert_eq!(curve["flows"], true_of("flows.finished") as u64);
        let last = curve["values"].as_array().unwrap().last().unwrap().as_f64().unwrap();
        assert!((last / true_of("flows.fct_us.max") - 1.0).abs() < 1e-5);
        assert_eq!(
            payload["shapes"]["drawn"][0]["name"].as_array().unwrap().len(),
            24,
            "16 hosts, 4 leaves, 4 spines"
        );
        let busy = part["fabric"]["busy"].as_array().unwrap();
        assert_eq!(busy.len(), run.table("links").unwrap().rows());
        let answer = payload["answer"][0].as_str().unwrap();
        assert!(answer.starts_with("All 96 flows finished; the slowest took "), "{answer}");
        let config = payload["config"]["annotated"].as_str().unwrap();
        assert!(config.contains("leaves = 4") && config.contains("Default 16 (Themis paper, section 5)"));
    }

    #[test]
    fn a_gray_link_leads_the_links_over_time_by_its_losses() {
        let set = [
            "workload.0.bytes=400kB",
            "record.links=all",
            "failure=[{links=[[\"leaf0\",\"spine1\"]],loss=0.02,at=\"10us\"}]",
        ];
        let run = results("quickstart", &set);
        let series = &payload(&of_runs(std::slice::from_ref(&run)))["parts"][0]["series"];
        let tracks = series["tracks"].as_array().unwrap();
        let first = tracks.iter().find(|track| track["kind"] == "link").unwrap();
        let ends = [first["from"].as_str().unwrap(), first["to"].as_str().unwrap()];
        assert!(ends == ["leaf0", "spine1"] || ends == ["spine1", "leaf0"], "{ends:?}");
        let lost: f64 = first["columns"]["lost"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
        let table = frame::Frame::new(run.table("links").unwrap());
        let row =
            (0..table.rows()).find(|&i| [table.texts("from")[i], table.texts("to")[i]] == ends).unwrap();
        assert_eq!(lost as u64, table.counts("lost")[row]);
        assert!(lost > 0.0);
    }

    #[test]
    fn the_page_of_a_training_step_shows_what_its_gpus_did() {
        let run = results("gpt-13b", &["workload.0.training.scale=0.03"]);
        let page = of_runs(std::slice::from_ref(&run));
        assert!(page.len() < LIMIT);
        let job = &payload(&page)["parts"][0]["steps"]["jobs"][0];
        assert_eq!((&job["name"], &job["ranks"], &job["block"]), (&"step".into(), &128.into(), &8.into()));
        let ends = frame::Frame::new(run.table("steps").unwrap()).reals("end_us");
        assert!((job["end_us"].as_f64().unwrap() / ends[0] - 1.0).abs() < 1e-5);
        let (rows, parts) = (job["rows"].as_array().unwrap(), job["parts"].as_u64().unwrap());
        let covered: u64 = rows.iter().filter(|row| row["ranks"][0] != row["ranks"][1]).count() as u64;
        assert_eq!(covered, 16, "blocks of eight GPUs, beside single ones");
        for row in rows {
            let shares = row["shares"].as_array().unwrap();
            let sum: f64 = shares.iter().map(|share| share[1].as_f64().unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{row}");
            let tracks = row["tracks"].as_object().unwrap();
            assert!(tracks.values().all(|track| track.as_str().unwrap().chars().count() as u64 == parts));
            assert!(tracks.contains_key("compute") && tracks.contains_key("exposed dp"));
        }
    }

    #[test]
    fn runs_that_differ_only_in_their_seed_share_a_row() {
        let runs = [small("ecmp", 1), small("ecmp", 2), small("themis", 1)];
        let payload = payload(&of_runs(&runs));
        assert_eq!(payload["kind"], "compare");
        let rows = payload["table"]["rows"].as_array().unwrap();
        let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(names, ["ecmp", "themis"]);
        let slowest = |run: &Results| run.summary.jobs["all-reduce"].groups.completion_us.slowest.unwrap();
        let (a, b) = (slowest(&runs[0]), slowest(&runs[1]));
        let close = |x: &Value, y: f64| (x.as_f64().unwrap() / y - 1.0).abs() < 1e-5;
        assert!(close(&rows[0]["cells"][0], f64::midpoint(a, b)));
        assert!(close(&rows[0]["ranges"][0][0], a.min(b)) && close(&rows[0]["ranges"][0][1], a.max(b)));
        assert_eq!(payload["parts"][0]["curves"][0]["flows"], 192, "the flows of both seeds");
        let differ = payload["config"]["differences"].as_array().unwrap();
        assert!(
            differ.iter().any(|d| d[0] == "scheme.ecmp" && d[1][0] == "{}" && d[1][1].is_null()),
            "{differ:?}"
        );
        let answer = payload["answer"][0].as_str().unwrap();
        assert!(
            answer.starts_with("themis is fastest: ") && answer.contains("than ecmp (slowest group "),
            "{answer}"
        );
    }

    #[test]
    fn a_repeated_run_counts_once() {
        let payload = payload(&of_runs(&[small("ecmp", 1), small("ecmp", 1), small("ecmp", 7)]));
        assert_eq!(payload["parts"][0]["seeds"], serde_json::json!([1, 7]));
        let asked = payload["asked"].as_array().unwrap();
        let seeds = asked.iter().find(|line| line["label"] == "Seeds").unwrap();
        assert_eq!(seeds["text"], "1, 7; numbers are means");
    }

    #[test]
    fn the_answer_covers_all_seeds() {
        let mut runs = [small("rps", 1), small("rps", 2), small("ecmp", 1), small("ecmp", 2)];
        for (run, (late, nacks)) in runs.iter_mut().zip([(100, 10), (300, 30), (0, 0), (0, 0)]) {
            run.summary.packets.sent = 1000;
            run.summary.packets.out_of_order = late;
            run.summary.control.nack = nacks;
        }
        let said = |runs: &[Results]| payload(&of_runs(runs))["answer"].to_string();
        let both = said(&runs[..2]);
        assert!(both.contains("20.0 % of the packets arrived out of order"), "{both}");
        assert!(both.contains("receivers sent 20.0 NACKs per run"), "{both}");
        let one = said(&runs[..1]);
        assert!(one.contains("10.0 % of the packets") && one.contains("receivers sent 10 NACKs;"), "{one}");
    }

    #[test]
    fn one_command_repeats_a_comparison() {
        let of = |scheme: &str, seed: u64| {
            let mut run = small(scheme, seed);
            let words = ["ropewalk", "compare", "quickstart", "--set", "workload.0.bytes=200kB"];
            let mut words: Vec<String> = words.map(str::to_owned).into();
            words.extend(["--schemes".into(), scheme.into(), "--seeds".into(), seed.to_string()]);
            run.manifest["command"] = words.into();
            run
        };
        let again = |runs: &[Results]| payload(&of_runs(runs))["again"].clone();
        let all = [of("ecmp", 1), of("ecmp", 2), of("rps", 1), of("rps", 2)];
        let start = "ropewalk compare quickstart --set workload.0.bytes=200kB";
        let one = format!("{start} --schemes ecmp,rps --seeds 1,2 --report");
        assert_eq!(again(&all), serde_json::json!([["", one]]));
        // If one run is missing, no single command repeats the others.
        let each = [
            ("ecmp", format!("{start} --schemes ecmp --seeds 1\n{start} --schemes ecmp --seeds 2")),
            ("rps", format!("{start} --schemes rps --seeds 1")),
        ];
        assert_eq!(again(&all[..3]), serde_json::json!(each));
    }

    #[test]
    fn a_run_that_its_scenario_stops_is_not_a_failure() {
        let run = results("quickstart", &["workload.0.bytes=200kB", "scheme.ecmp={}", "stop.after=1us"]);
        let payload = payload(&of_runs(&[run]));
        let answer = payload["answer"][0].as_str().unwrap();
        assert!(
            answer.starts_with("The run was stopped by [stop] after 1.00 µs, as configured: 0 of 96 "),
            "{answer}"
        );
        assert_eq!(
            payload["parts"][0]["curves"],
            serde_json::json!([]),
            "without finished flows there is no distribution"
        );
    }

    #[test]
    fn runs_with_different_workloads_are_not_ranked() {
        let at = |bytes: &str, spines: &str| {
            let bytes = format!("workload.0.all-reduce.bytes={bytes}");
            results(
                "quickstart",
                &[&bytes, "scheme.ecmp={}", &format!("topology.leaf-spine.spines={spines}")],
            )
        };
        let lines = |payload: &Value, label: &str| -> Vec<String> {
            let all = payload["asked"].as_array().unwrap().iter().filter(|line| line["label"] == label);
            all.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
        };
        let unlike = payload(&of_runs(&[at("64kB", "4"), at("128kB", "4")]));
        assert_eq!(
            unlike["answer"][0],
            "These runs have different workloads, so none is called the fastest."
        );
        let columns = unlike["table"]["columns"].as_array().unwrap();
        assert!(columns.iter().all(|column| column["better"] == 0), "none is best");
        let workloads = lines(&unlike, "Workload");
        assert!(workloads[0].starts_with("ecmp, bytes 64kB: all-reduce: "), "{workloads:?}");
        assert!(workloads[1].starts_with("ecmp, bytes 128kB: "), "{workloads:?}");
        assert_eq!(
            lines(&unlike, "Fabric"),
            ["16 hosts at 100 Gb/s, 4 leaf and 4 spine switches (leaf-spine)"]
        );
        // The same work on another fabric may be faster.
        let alike = payload(&of_runs(&[at("64kB", "4"), at("64kB", "2")]));
        assert!(!alike["answer"][0].as_str().unwrap().contains("different"), "{}", alike["answer"]);
        assert_eq!(lines(&alike, "Fabric").len(), 2);
    }

    #[test]
    fn failures_are_in_the_question_and_losses_in_the_answer() {
        let run = results(
            "themis-failed-spine",
            &["workload.0.permutation.bytes=10kB", "failure.0.at=0us", "stop.after=100us"],
        );
        let whole = payload(&of_runs(&[run]));
        let asked = whole["asked"].as_array().unwrap();
        let failures = asked.iter().find(|line| line["label"] == "Failures").unwrap();
        assert_eq!(failures["text"], "spine3 down until 11 ms");
        let kinds = whole["parts"][0]["kinds"].as_array().unwrap();
        let classes = kinds.iter().filter(|kind| kind[0] == "class");
        let classes: Vec<&str> = classes.map(|kind| kind[1].as_str().unwrap()).collect();
        assert_eq!(classes, ["after", "before", "during", "hit"]);
        let set = ["workload.0.all-reduce.bytes=64kB", "links.loss=1.0", "stop.after=1ms"];
        let answer = payload(&of_runs(&[results("quickstart", &set)]))["answer"].to_string();
        assert!(answer.contains("No packet arrived") && !answer.contains("in order"), "{answer}");
    }

    #[test]
    fn a_gray_link_and_a_slow_one_are_not_called_down() {
        let small = "workload.0.all-reduce.bytes=16kB";
        let asked = |entry: &str| {
            let whole = payload(&of_runs(&[results("quickstart", &[small, entry])]));
            let asked = whole["asked"].as_array().unwrap();
            asked.iter().find(|line| line["label"] == "Failures").unwrap()["text"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let gray = asked("failure=[{links=[[\"leaf0\",\"spine2\"]],loss=0.001,at=\"1us\"}]");
        assert_eq!(gray, "leaf0–spine2 gray (loses 0.1 % of packets) from 1 µs on");
        let slow = asked("failure=[{links=[[\"leaf0\",\"spine2\"]],rate=\"25Gbps\"}]");
        assert_eq!(slow, "leaf0–spine2 slowed to 25 Gb/s");
    }

    #[test]
    fn a_slowed_link_has_its_rate_of_the_time_in_tables_and_on_the_map() {
        let run = results(
            "quickstart",
            &[
                "workload.0.all-reduce.bytes=64kB",
                "scheme.rps={}",
                "record.links=64",
                "failure=[{links=[[\"leaf0\",\"spine2\"]],rate=0.1},{links=[[\"leaf1\",\"spine0\"]],loss=0.001}]",
            ],
        );
        let links = frame::Frame::new(run.table("links").unwrap());
        let (from, to) = (links.texts("from"), links.texts("to"));
        let row = |a: &str, b: &str| (0..links.rows()).find(|&i| (from[i], to[i]) == (a, b)).unwrap();
        let (rate, nominal, failures) =
            (links.reals("rate_gbps"), links.nominal_rates(), links.texts("failures"));
        let slow = row("leaf0", "spine2");
        assert_eq!((rate[slow], nominal[slow], failures[slow]), (10.0, 100.0, "slowed to 10 Gb/s"));
        let gray = row("spine0", "leaf1");
        assert_eq!((rate[gray], failures[gray]), (100.0, "gray (loses 0.1 % of packets)"));
        let well = row("leaf2", "spine3");
        assert_eq!((rate[well], nominal[well], failures[well]), (100.0, 100.0, ""));
        // What the link sent is its busy share of what it could send, but for preambles and gaps.
        let sent = 8e-3 * links.reals("bytes")[slow] / run.summary.sim_time_us;
        let could = links.reals("busy_share")[slow] * rate[slow];
        assert!(sent <= could && sent > 0.8 * could, "{sent} of {could} Gb/s");
        let series = frame::Frame::new(run.table("series").unwrap());
        let (kind, id) = (series.texts("kind"), series.counts("id"));
        let mine: Vec<usize> =
            (0..series.rows()).filter(|&i| (kind[i], id[i]) == ("link", slow as u64)).collect();
        let (gbps, load) = (series.reals("rate_gbps"), series.reals("utilisation"));
        assert!(mine.iter().any(|&i| load[i] > 0.8), "a tenth of the rate is soon full");
        assert!(mine.iter().all(|&i| (load[i] - gbps[i] / 10.0).abs() < 1e-9));
        let page = payload(&of_runs(std::slice::from_ref(&run)));
        let (shape, of) = (&page["shapes"]["drawn"][0], &page["parts"][0]["fabric"]);
        let name =
            |end: &str, link: usize| shape["name"][shape[end][link].as_u64().unwrap() as usize].clone();
        let at =
            (0..).find(|&i| (name("from", i), name("to", i)) == ("leaf0".into(), "spine2".into())).unwrap();
        assert_eq!(shape["gbps"][at], 100.0);
        assert_eq!(of["failing"][at.to_string()], serde_json::json!([10.0, "slowed to 10 Gb/s"]));
        assert_eq!(of["failing"].as_object().unwrap().len(), 4, "two cables");
        let time = &of["over_time"];
        let track = time["link"].as_array().unwrap().iter().position(|link| *link == at).unwrap();
        assert!(time["load"][track].as_array().unwrap().iter().any(|load| load.as_u64() > Some(700)));
    }

    #[test]
    fn equal_times_are_told_once() {
        let at = |delay: &str| {
            let set = format!("routing.detection={delay}");
            results("quickstart", &["workload.0.all-reduce.bytes=16kB", "scheme.ecmp={}", &set])
        };
        let answer = payload(&of_runs(&[at("1us"), at("2us")]))["answer"][0].to_string();
        assert!(
            answer.contains("All are within 2 %: slowest group ") && !answer.contains("between"),
            "{answer}"
        );
    }

    #[test]
    fn cut_packets_are_in_the_table_and_in_the_answer() {
        let ndp = |scheme: &str, set: &[&str]| {
            let small = ["workload.permutation.bytes=40kB", "workload.incast.bytes=100kB"];
            results("ndp", &[&[format!("scheme.{scheme}={{}}").as_str()], &small[..], set].concat())
        };
        let page = |runs: &[Results]| {
            let payload = payload(&of_runs(runs));
            let columns = payload["table"]["columns"].as_array().unwrap();
            let column = columns.iter().position(|column| column["name"] == "cut");
            let rows = payload["table"]["rows"].as_array().unwrap().iter();
            let cells =
                column.map(|at| rows.map(|row| row["cells"][at].as_f64().unwrap()).collect::<Vec<_>>());
            (cells, payload["answer"].to_string())
        };
        let whole = ndp("oblivious", &["switch.queue-cap=8MB"]);
        assert!(whole.summary.packets.cut.is_none());
        let cuts = ndp("ecmp", &[]);
        let share = |run: &Results| {
            100.0 * run.summary.packets.cut.as_ref().unwrap().packets as f64 / run.summary.packets.sent as f64
        };
        let (cells, answer) = page(std::slice::from_ref(&cuts));
        assert!((cells.unwrap()[0] - share(&cuts)).abs() < 0.01);
        assert!(
            answer.contains(" of the packets were cut by switches; ") && !answer.contains("lost"),
            "{answer}"
        );
        // A run without cuts has 0 beside a run with cuts, and no column alone.
        assert_eq!(page(&[cuts, whole.clone()]).0.unwrap()[1], 0.0);
        assert_eq!(page(&[whole]).0, None);
    }

    #[test]
    fn many_runs_of_a_scheme_are_named_after_their_rare_settings() {
        let run =
            |set: &str| results("quickstart", &["workload.0.all-reduce.bytes=16kB", "scheme.ecmp={}", set]);
        let sets = [
            "seed=1",
            "routing.detection=2us",
            "nic.ack-every=2",
            "wire.frame=1062B",
            "topology.leaf-spine.spines=2",
        ];
        let names = payload(&of_runs(&sets.map(run)))["parts"].clone();
        let names: Vec<&str> =
            names.as_array().unwrap().iter().map(|part| part["name"].as_str().unwrap()).collect();
        assert_eq!(names[0], "ecmp");
        assert!(names[4].contains("spines 2") && names[2].contains("ack-every 2"), "{names:?}");
    }

    /// Events of queue pair 0: PSN 2 overtakes PSN 1, and a switch blocks the NACK.
    fn events() -> Table {
        let rows = [
            (1.0, "arrived", 0),
            (1.12, "ahead", 2),
            (1.12, "nack-sent", 1),
            (1.5, "nack-blocked", 1),
            (1.25, "arrived", 1),
        ];
        let columns = vec![
            Column::real("time_us", "us", "", rows.iter().map(|r| Some(r.0))),
            Column::maybe("qp", "-", "", rows.iter().map(|_| Some(0))),
            Column::text("event", "", rows.iter().map(|r| r.1.to_owned())),
            Column::maybe("psn", "-", "", rows.iter().map(|r| Some(r.2))),
        ];
        Table::new(columns, 1)
    }

    #[test]
    fn recorded_events_are_stored_as_differences() {
        let payload = payload(&of_runs(&[small("themis", 1).with("events", events())]));
        let arrivals = &payload["parts"][0]["arrivals"];
        let names: Vec<&str> =
            arrivals["names"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(names, ["arrived", "ahead", "nack-sent", "nack-blocked"]);
        let track = &arrivals["tracks"][0];
        assert_eq!((&track["qp"], &track["of"]), (&0.into(), &5.into()));
        let list = |key: &str| -> Vec<i64> {
            track[key].as_array().unwrap().iter().filter_map(Value::as_i64).collect()
        };
        assert_eq!(list("time_ns"), [1000, 120, 0, 380, -250]);
        assert_eq!(list("psn"), [0, 2, -1, 0, 0]);
        assert_eq!(list("event"), [0, 1, 2, 3, 0]);
        assert!(track["from"].as_str().unwrap().starts_with("host"));
    }

    #[test]
    fn damaged_events_still_give_a_page() {
        let rows = [(f64::INFINITY, u64::MAX), (-f64::INFINITY, 1 << 63), (f64::NAN, 0), (1e300, u64::MAX)];
        let columns = vec![
            Column::real("time_us", "us", "", rows.iter().map(|r| Some(r.0))),
            Column::maybe("qp", "-", "", rows.iter().map(|_| Some(0))),
            Column::text("event", "", rows.iter().map(|_| "arrived".to_owned())),
            Column::maybe("psn", "-", "", rows.iter().map(|r| Some(r.1))),
        ];
        let payload = payload(&of_runs(&[small("themis", 1).with("events", Table::new(columns, 1))]));
        assert_eq!(payload["parts"][0]["arrivals"]["tracks"][0]["of"], 4);
    }

    #[test]
    fn counters_over_time_end_with_the_last_count() {
        let n = 1_000;
        let columns = vec![
            Column::real("start_us", "us", "", (0..n).map(|i| Some(i as f64))),
            Column::real("width_us", "us", "", (0..n).map(|_| Some(1.0))),
            Column::text("counter", "", (0..n).map(|_| "nacks_blocked".to_owned())),
            Column::count("total", "-", "", (0..n).map(|i| 2 * i)),
        ];
        let payload = payload(&of_runs(&[small("themis", 1).with("counters", Table::new(columns, 1))]));
        let track = &payload["parts"][0]["counters"]["over_time"][0];
        let (at, values) = (track["at_us"].as_array().unwrap(), track["values"].as_array().unwrap());
        assert!(at.len() == values.len() && at.len() <= 200, "{} points", at.len());
        assert_eq!((at.last().unwrap(), values.last().unwrap()), (&1000.0.into(), &1998.0.into()));
    }

    #[test]
    fn names_from_scenarios_do_not_end_the_script() {
        let mut run = small("ecmp", 1);
        run.summary.scenario = "</script><script>alert(1)</script>".into();
        let page = of_runs(&[run]);
        assert_eq!(payload(&page)["title"], "</script><script>alert(1)</script>");
        assert!(!page.contains("alert(1)</script>"));
    }

    /// The share that two digits of a matrix mean.
    fn share(text: &str, cell: usize) -> f64 {
        let digits = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
        let digit = |i: usize| digits.find(&text[2 * cell + i..=2 * cell + i]).unwrap();
        (64 * digit(0) + digit(1)) as f64 / 4095.0
    }

    #[test]
    fn a_thousand_hosts_fit_as_matrices_of_their_links() {
        let run = results(
            "quickstart",
            &[
                "topology.leaf-spine.leaves=64",
                "topology.leaf-spine.spines=64",
                "topology.leaf-spine.hosts-per-leaf=16",
                "workload=[{permutation={bytes=\"20kB\"}}]",
                "record.links=4096",
                "scheme.rps={}",
            ],
        );
        let page = of_runs(std::slice::from_ref(&run));
        assert!(page.len() < LIMIT, "{} bytes", page.len());
        let payload = payload(&page);
        assert!(payload["parts"][0]["fabric"].is_null(), "it is not drawn");
        let (shape, of) = (&payload["shapes"]["matrices"][0], &payload["parts"][0]["matrix"]);
        let name = |i: &Value| shape["names"][i.as_u64().unwrap() as usize].as_str().unwrap().to_owned();
        let links = frame::Frame::new(run.table("links").unwrap());
        let (from, to, busy) = (links.texts("from"), links.texts("to"), links.reals("busy_share"));
        let row: std::collections::BTreeMap<_, _> =
            from.iter().copied().zip(to.iter().copied()).zip(0..).collect();
        let mut seen = 0;
        for (g, (role, wide)) in [("host", 16), ("spine", 64)].into_iter().enumerate() {
            let grid = &shape["grids"][g];
            assert_eq!((&grid["rows_role"], &grid["ends_role"]), (&"leaf".into(), &role.into()));
            assert_eq!(grid["columns"].as_array().unwrap().len(), wide);
            let ends = grid["ends"].as_array().unwrap();
            for (cell, end) in ends.iter().enumerate() {
                let (leaf, end) = (name(&grid["rows"][cell / wide]), name(end));
                let ways = [(&end, &leaf), (&leaf, &end)];
                for (way, (a, b)) in ways.into_iter().enumerate() {
                    let shown = share(of["grids"][g][way]["busy"].as_str().unwrap(), cell);
                    assert!((shown - busy[row[&(a.as_str(), b.as_str())]]).abs() < 2e-4, "{a} to {b}");
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, links.rows(), "every link has a cell");
        let hottest = of["hottest"].as_array().unwrap();
        let most = hottest.iter().filter_map(|link| link["busy"].as_f64()).fold(0.0, f64::max);
        assert!((most / busy.iter().copied().fold(0.0, f64::max) - 1.0).abs() < 1e-5);
        let time = &of["over_time"];
        let (bins, load) = (time["bins"].as_u64().unwrap() as usize, time["load"].as_array().unwrap());
        // Bins are merged so that at most 12 are left.
        assert_eq!((&time["recorded"], (7..=12).contains(&bins)), (&4096.into(), true), "{bins} bins");
        assert!(load.iter().all(|line| line.as_str().unwrap().len() == bins));
    }

    #[test]
    fn matrices_of_pods_and_groups_are_as_wide_as_a_switch() {
        let grids = |topology: &str| {
            let small = "workload=[{permutation={bytes=\"2kB\"}}]";
            let page = payload(&of_runs(&[results("quickstart", &[topology, small, "scheme.ecmp={}"])]));
            let grid = |grid: &Value| {
                let text = |key: &str| grid[key].as_str().unwrap().to_owned();
                let wide = |key: &str| grid[key].as_array().unwrap().len();
                format!(
                    "{} {} {}x{} {}",
                    text("rows_role"),
                    text("ends_role"),
                    wide("rows"),
                    wide("columns"),
                    grid["columns"][0]
                )
            };
            page["shapes"]["matrices"][0]["grids"].as_array().unwrap().iter().map(grid).collect::<Vec<_>>()
        };
        assert_eq!(
            grids("topology={fat-tree={k=8}}"),
            ["edge host 32x4 \"0\"", "edge aggregation 32x4 \"aggregation0\"", "aggregation core 32x4 \"0\""]
        );
        let dragonfly =
            grids("topology={dragonfly={groups=9,routers-per-group=4,hosts-per-router=2,links-per-pair=1}}");
        assert_eq!(
            dragonfly,
            ["router host 36x2 \"0\"", "router router 36x3 \"0\"", "router router 36x2 \"0\""]
        );
    }

    /// Events of a timeline.
    fn traced(run: &Results) -> Vec<Value> {
        let text = timeline(run);
        assert!(text.starts_with(timeline::MARK), "{}", &text[..80]);
        let whole: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(whole["otherData"]["digest"], run.summary.digest.as_str());
        whole["traceEvents"].as_array().unwrap().clone()
    }

    fn of_phase<'a>(events: &'a [Value], phase: &str) -> Vec<&'a Value> {
        events.iter().filter(|event| event["ph"] == phase).collect()
    }

    /// What every timeline must keep, so that Perfetto shows all of it.
    fn check_trace(events: &[Value]) {
        let named = |what: &str, key: &str| -> std::collections::BTreeSet<u64> {
            let all = events.iter().filter(|event| event["name"] == what);
            let all: Vec<u64> = all.map(|event| event[key].as_u64().unwrap()).collect();
            let set: std::collections::BTreeSet<u64> = all.iter().copied().collect();
            assert_eq!(set.len(), all.len(), "one name each");
            set
        };
        let (processes, threads) = (named("process_name", "pid"), named("thread_name", "tid"));
        assert!(processes.is_disjoint(&threads) && !processes.contains(&0));
        let mut until: std::collections::BTreeMap<u64, f64> = std::collections::BTreeMap::new();
        for event in events {
            assert!(processes.contains(&event["pid"].as_u64().unwrap()), "{event}");
            match event["ph"].as_str().unwrap() {
                "X" => {
                    let tid = event["tid"].as_u64().unwrap();
                    assert!(threads.contains(&tid), "{event}");
                    let (start, long) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
                    let last = until.insert(tid, start + long).unwrap_or(0.0);
                    assert!(
                        start >= last - 1e-9 && long >= 0.0,
                        "slices of a thread follow each other: {event}"
                    );
                }
                "i" => assert!(threads.contains(&event["tid"].as_u64().unwrap()) && event["s"] == "t"),
                "C" => assert!(event["args"].as_object().unwrap().values().all(Value::is_number)),
                "M" => assert!(event["args"].is_object()),
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_timeline_has_the_flows_marks_and_counters_of_a_recorded_run() {
        let run = results(
            "quickstart",
            &["workload.0.bytes=200kB", "scheme.rps={}", "record.events=8", "record.links=8"],
        );
        let events = traced(&run);
        check_trace(&events);
        let flows = frame::Frame::new(run.table("flows").unwrap());
        let slices = of_phase(&events, "X");
        let sent: Vec<_> = slices.iter().filter(|slice| !slice["args"]["flow"].is_null()).collect();
        assert_eq!(sent.len(), flows.rows());
        let (times, starts) = (flows.reals("fct_us"), flows.reals("start_us"));
        for slice in sent {
            let row = slice["args"]["flow"].as_u64().unwrap() as usize;
            let of = |key: &str| slice[key].as_f64().unwrap();
            assert!((of("dur") - times[row]).abs() < 1e-6 && of("ts").total_cmp(&starts[row]).is_eq());
        }
        let recorded = frame::Frame::new(run.table("events").unwrap());
        let wanted = |name: &&&str| **name == "nack-sent";
        let marks = of_phase(&events, "i");
        let nacks = marks.iter().filter(|mark| mark["name"] == "nack-sent").count();
        assert!(nacks > 0 && nacks == recorded.texts("event").iter().filter(wanted).count());
        assert!(marks.iter().all(|mark| mark["name"] != "arrived"));
        let counters = of_phase(&events, "C");
        assert!(counters.iter().any(|c| c["name"].as_str().unwrap().starts_with("queue of the link to ")));
    }

    #[test]
    fn a_timeline_has_what_gpus_did() {
        let run = results("gpt-13b", &["workload.0.training.scale=0.03"]);
        let events = traced(&run);
        check_trace(&events);
        let tasks = frame::Frame::new(run.table("tasks").unwrap());
        let computed = tasks.texts("role").iter().filter(|role| **role == "compute").count();
        let names: std::collections::BTreeMap<u64, &str> = events
            .iter()
            .filter(|event| event["name"] == "thread_name")
            .map(|event| (event["tid"].as_u64().unwrap(), event["args"]["name"].as_str().unwrap()))
            .collect();
        let thread = |slice: &&&Value| names[&slice["tid"].as_u64().unwrap()].contains("computes");
        assert_eq!(of_phase(&events, "X").iter().filter(thread).count(), computed);
        assert!(names.values().any(|name| name.starts_with("operations: ")));
    }

    #[test]
    fn pauses_are_slices_and_the_last_ends_with_the_run() {
        let rows = [(1.0, "paused"), (3.0, "resumed"), (7.0, "paused")];
        let columns = vec![
            Column::real("time_us", "us", "", rows.iter().map(|r| Some(r.0))),
            Column::count("qp", "-", "", rows.iter().map(|_| 0)),
            Column::text("event", "", rows.iter().map(|r| r.1.to_owned())),
            Column::count("psn", "-", "", rows.iter().map(|_| 0)),
            Column::text("at", "", rows.iter().map(|_| "host0".to_owned())),
        ];
        let run = small("themis", 1).with("events", Table::new(columns, 1));
        let events = traced(&run);
        let pauses = of_phase(&events, "X").into_iter().filter(|slice| slice["name"] == "paused");
        let lengths: Vec<f64> = pauses.map(|slice| slice["dur"].as_f64().unwrap()).collect();
        assert_eq!(lengths, [2.0, run.summary.sim_time_us - 7.0]);
    }

    #[test]
    fn a_page_replaces_only_an_older_page() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("new").join("page.html");
        let page = format!("{MARK}<title>a page</title>");
        PageFile::at(file.clone()).unwrap().write(&page).unwrap();
        PageFile::at(file.clone()).unwrap().write(&page).unwrap();
        let scenario = tmp.path().join("my.toml");
        fs::write(&scenario, "seed = 1\n").unwrap();
        let error = PageFile::at(scenario.clone()).unwrap_err().to_string();
        assert!(error.contains("my.toml exists and is no report"), "{error}");
        assert!(PageFile::at(tmp.path().to_owned()).is_err(), "a directory is no report");
    }
}
