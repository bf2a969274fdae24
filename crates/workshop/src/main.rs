//! The command `ropewalk-workshop`, for those who work on ropewalk: random trials of the program, and the source of the
//! documentation's reference pages. Users have no need of it.

mod fuzz;
mod reference;

use clap::{Parser, Subcommand};
use command_line::{commands, interrupt};
use std::process::ExitCode;

/// Tools for work on ropewalk itself.
#[derive(Parser)]
#[command(name = "ropewalk-workshop", version, about, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    /// Command to run.
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Subcommand)]
enum Command {
    /// Run random scenarios, damaged files and interrupted commands, and check that every rule holds
    Fuzz(fuzz::FuzzArgs),
    /// Print the source of the documentation's reference pages as JSON
    Reference,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    interrupt::listen();
    ExitCode::from(commands::exit_code(match cli.command {
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Reference => reference::run(),
    }))
}
