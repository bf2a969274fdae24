//! `ropewalk-workshop reference`: the source of the documentation's reference pages, as JSON.
//!
//! The program prints the documentation's tables of commands, settings and results itself, so that they agree with the code.
//! The format may change with any version.

use clap::{Arg, CommandFactory};
use command_line::cli::Cli;
use command_line::print;
use lab::failure::Failure;
use papers::reproduce;
use results::{Metric, Summary};
use scenario::import::hpcc::{KEYS, Key};
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};

/// The JSON output.
#[derive(Serialize)]
struct Reference {
    version: &'static str,
    commands: Vec<Value>,
    scenario: Value,
    summary: Value,
    metrics: Vec<&'static Metric>,
    scenarios: Vec<Value>,
    experiments: Vec<Value>,
    hpcc_keys: &'static [Key],
}

/// Prints the reference.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn run() -> Result<(), Failure> {
    print::out(&print::json(&Reference {
        version: env!("CARGO_PKG_VERSION"),
        commands: commands(),
        scenario: json!(scenario::schema()),
        summary: summary(),
        metrics: Metric::listed().collect(),
        scenarios: scenario::builtin::ALL
            .iter()
            .map(|b| json!({ "name": b.name, "about": b.about(), "text": b.text }))
            .collect(),
        experiments: reproduce::ALL
            .iter()
            .map(|e| json!({ "name": e.name, "source": e.source, "about": e.about }))
            .collect(),
        hpcc_keys: KEYS,
    }))
}

/// The schema of `summary.json`, in the same dialect as the schema of scenarios.
fn summary() -> Value {
    json!(SchemaSettings::draft07().into_generator().into_root_schema_for::<Summary>())
}

/// The visible commands, in the order of the help.
fn commands() -> Vec<Value> {
    let mut root = Cli::command();
    root.build();
    let seen = root.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help");
    seen.map(command).collect()
}

fn command(of: &clap::Command) -> Value {
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string);
    let deeper = of.get_subcommands().filter(|c| c.get_name() != "help");
    json!({
        "name": of.get_bin_name(),
        "about": text(of.get_long_about().or(of.get_about())),
        "usage": of.clone().render_usage().to_string(),
        "after": text(of.get_after_long_help().or(of.get_after_help())),
        "arguments": of.get_arguments().filter(|a| shown(a)).map(argument).collect::<Vec<_>>(),
        "commands": deeper.map(command).collect::<Vec<_>>(),
    })
}

/// False for `--help` and `--version`, which every command has.
fn shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str())
}

fn argument(arg: &Arg) -> Value {
    let takes = arg.get_action().takes_values();
    let values: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let choices = arg.get_possible_values();
    let choices = choices.iter().filter(|c| takes && !c.is_hide_set());
    let defaults = arg.get_default_values().iter().filter(|_| takes);
    json!({
        "long": arg.get_long(),
        "short": arg.get_short(),
        "values": if takes { values } else { Vec::new() },
        "required": arg.is_required_set(),
        "repeatable": matches!(arg.get_action(), clap::ArgAction::Append),
        "help": arg.get_long_help().or(arg.get_help()).map(ToString::to_string),
        "default": defaults.map(|d| d.to_string_lossy()).collect::<Vec<_>>().join(","),
        "choices": choices.map(|c| json!({ "name": c.get_name(), "help": c.get_help().map(ToString::to_string) }))
            .collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_every_argument_has_a_help_text() {
        let commands = commands();
        let names: Vec<&str> = commands.iter().filter_map(|c| c["name"].as_str()).collect();
        assert!(names.contains(&"ropewalk run") && !names.contains(&"ropewalk fuzz"), "{names:?}");
        let mut left = commands;
        while let Some(command) = left.pop() {
            assert!(command["about"].is_string(), "{command}");
            for argument in command["arguments"].as_array().unwrap() {
                assert!(argument["help"].is_string(), "{}: {argument}", command["name"]);
            }
            left.extend(command["commands"].as_array().unwrap().clone());
        }
    }

    #[test]
    fn every_key_of_a_summary_has_a_description() {
        let schema = summary();
        let definitions = schema["definitions"].as_object().unwrap();
        for (name, of) in definitions.iter().map(|(k, v)| (k.as_str(), v)).chain([("Summary", &schema)]) {
            for (key, value) in of["properties"].as_object().into_iter().flatten() {
                assert!(value["description"].is_string(), "{name}.{key}");
            }
        }
    }
}
