//! The commands, one file each. A command returns its failure, and this file turns it into an exit code.

pub mod busbw;
pub mod check;
pub mod compare;
pub mod counters;
pub mod explain;
pub mod export;
pub mod frames;
pub mod import;
pub mod list;
pub mod memory;
pub mod new;
pub mod new_scheme;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod serve;
pub mod site;
pub mod study;
pub mod sweep;
pub mod workload;

use crate::cli::{Cli, Command, SchemaOf};
use crate::{interrupt, print};
use clap::CommandFactory;
use lab::failure::Failure;
use std::process::ExitCode;

/// Runs the command and returns the exit code.
pub fn dispatch(cli: Cli) -> ExitCode {
    ExitCode::from(answer(cli))
}

/// Runs the command and returns the exit code as a number.
pub fn answer(cli: Cli) -> u8 {
    interrupt::listen();
    exit_code(match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Counters(args) => counters::run(&args),
        Command::Busbw(args) => {
            return busbw::run(&args).unwrap_or_else(|failure| exit_code(Err(failure)));
        }
        Command::Study(args) => study::run(&args),
        Command::Memory(args) => memory::run(&args),
        Command::Workload(args) => workload::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Nic(args) => frames::run("nic", &args),
        Command::Check(args) => check::run(&args),
        Command::List(args) => list::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Tor(args) => frames::run("tor", &args),
        Command::Schema { of } => schema(of),
        Command::Completions { shell } => completions(shell),
        Command::New { name } => new::run(&name),
        Command::NewScheme { name, dir, sources } => new_scheme::run(&name, &dir, sources.as_deref()),
        Command::Tune(_) => Err(Failure::Asked(
            "`tune` is a command of the Python package, because Optuna is: `pip install '.[tune]'` in a clone of the repository".into(),
        )),
        Command::Fuzz(_) => Err(Failure::Asked(
            "`fuzz` and `reference` are commands of the program ropewalk-workshop, which `make workshop` builds".into(),
        )),
    })
}

/// The exit code of a command; its failure is reported on standard error.
pub fn exit_code(done: Result<(), Failure>) -> u8 {
    match done {
        Ok(()) => 0,
        Err(failure) => {
            let code = failure.code();
            if let Some(report) = failure.report() {
                print::note(&report);
            }
            code
        }
    }
}

fn schema(of: SchemaOf) -> Result<(), Failure> {
    print::out(&print::json(match of {
        SchemaOf::Scenario => scenario::schema(),
        SchemaOf::Sweep => scenario::sweep_schema(),
    }))
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ropewalk", &mut text);
    print::out(&String::from_utf8_lossy(&text))
}
