//! `ropewalk check`.

use crate::cli::CheckArgs;
use crate::print;
use crate::sheet::{Costs, Sheet};
use lab::failure::Failure;
use results::text::wrapped;
use scenario::room::Room;
use scenario::{Finding, Possible, Survey, amount, code};
use serde::Serialize;

/// The answer of `--json`. An error leaves the findings alone.
#[derive(Serialize)]
struct Answer<'a> {
    findings: Vec<Row<'a>>,
    #[serde(flatten)]
    size: Option<Size<'a>>,
    #[serde(flatten)]
    sheet: Option<Sheet>,
}

/// A finding as JSON.
#[derive(Serialize)]
struct Row<'a> {
    severity: &'a str,
    code: &'a str,
    key: Option<String>,
    text: &'a str,
    help: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
}

impl<'a> Row<'a> {
    fn new(finding: &'a Finding) -> Self {
        let place = finding.place.as_deref();
        Row {
            severity: finding.severity.name(),
            code: finding.code,
            key: Some(finding.path()).filter(|key| !key.is_empty()),
            text: &finding.text,
            help: finding.help.as_deref(),
            file: place.map(|place| place.file.as_str()),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
        }
    }
}

/// The size of a run.
#[derive(Serialize)]
struct Size<'a> {
    scenario: &'a str,
    hosts: usize,
    switches: usize,
    queue_pairs: u64,
    flows: u64,
    data_packets: u64,
    memory_bytes: u64,
    configuration: String,
}

impl<'a> Size<'a> {
    fn of(survey: &'a Survey) -> Self {
        Size {
            scenario: survey.name(),
            hosts: survey.fabric().hosts(),
            switches: survey.fabric().switch_count(),
            queue_pairs: survey.queue_pairs(),
            flows: survey.traffic.messages,
            data_packets: survey.traffic.packets,
            memory_bytes: survey.memory().0,
            configuration: survey.hash(),
        }
    }
}

/// Checks a scenario and prints its sheet, or all its settings, or its findings and its sheet as JSON.
///
/// # Errors
/// The first error of the scenario.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let costs = args.costs.as_deref().map(Costs::read).transpose()?.unwrap_or_default();
    if args.json {
        return match crate::input::survey(&args.scenario) {
            Ok(survey) => {
                let findings = survey.findings().iter().map(Row::new).collect();
                let sheet = Some(Sheet::of(&survey, &costs));
                print::out(&print::json(&Answer { findings, size: Some(Size::of(&survey)), sheet }))
            }
            Err(Failure::Scenario(error)) => {
                print::out(&print::json(&Answer {
                    findings: vec![Row::new(&error)],
                    size: None,
                    sheet: None,
                }))?;
                Err(Failure::Told)
            }
            Err(other) => Err(other),
        };
    }
    let survey = crate::input::survey(&args.scenario)?;
    print::warnings(survey.findings());
    let Size { scenario, hosts, switches, queue_pairs, flows, data_packets, memory_bytes, configuration } =
        Size::of(&survey);
    let refused = survey.findings().iter().any(|warning| warning.code == code::NO_ROOM.name);
    if let Some(note) = note(&survey, Room::now()).filter(|_| !refused) {
        print::note(&note);
    }
    let size = format!(
        "{scenario}: {hosts} hosts, {switches} switches, {queue_pairs} queue pairs, {flows} flows, {data_packets} data packets"
    );
    if args.full {
        return print::out(&format!(
            "# {size}; about {:.0} MB of memory{}.\n# Configuration {configuration}.\n\n{}",
            memory_bytes as f64 / 1e6,
            more(&survey),
            survey.annotated()
        ));
    }
    if let Some(gpus) = args.slice {
        return print::out(&crate::slice::of(&args.scenario, &survey, gpus)?);
    }
    let sheet = Sheet::of(&survey, &costs);
    print::out(&format!(
        "{}{}settings  --full prints all, with the sources of their defaults; configuration {configuration}\n",
        wrapped(&size) + "\n\n",
        sheet.text(&survey)
    ))
}

/// The memory that a run may need in addition, if it is as much as the estimate or more.
fn more(survey: &Survey) -> String {
    let (memory, possible) = survey.memory();
    match possible.total {
        total if total < memory => String::new(),
        total => format!(", and up to {} more if queues and links fill", amount(total)),
    }
}

/// A note if a run may need more memory than is left.
fn note(survey: &Survey, room: Option<Room>) -> Option<String> {
    let (memory, Possible { queues, in_flight, records, total }) = survey.memory();
    let Room { left, limit } = room?;
    let [queues, in_flight, records] = [queues, in_flight, records].map(amount);
    (memory.saturating_add(total) > left).then(|| {
        format!(
            "note: {limit} has {} left, and the run may need more: up to {queues} for packets in queues, {in_flight} for \
             packets on links and {records} for records. If memory runs out, the run stops with a summary and exit code 3",
            amount(left)
        )
    })
}
