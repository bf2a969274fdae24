//! Arguments together with the words that a user typed for them, as a record of the run keeps them.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Id};
use std::ops::Deref;

/// Options that decide no result: they say where results go, how fast they come and what the terminal shows.
const ASIDE: [&str; 9] = ["output", "threads", "jobs", "engine", "csv", "report", "json", "quiet", "frames"];

/// The arguments of a command, and the words by which they were given.
#[derive(Clone, Debug)]
pub struct Typed<A> {
    args: A,
    /// Name and words of each argument that decides results.
    words: Vec<(Id, Vec<String>)>,
}

impl<A> Typed<A> {
    /// The command that gives the same results, without the arguments of these names.
    #[must_use]
    pub fn command(&self, name: &str, without: &[&str]) -> Vec<String> {
        let kept = self.words.iter().filter(|(id, _)| !without.contains(&id.as_str()));
        let begin = ["ropewalk".to_owned(), name.to_owned()].into_iter();
        begin.chain(kept.flat_map(|(_, words)| words.clone())).collect()
    }
}

impl<A> Deref for Typed<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.args
    }
}

/// The words of an argument on the command line: one option for each time that it was given.
fn words(arg: &Arg, matches: &ArgMatches) -> Vec<String> {
    let id = arg.get_id().as_str();
    if matches.value_source(id) != Some(ValueSource::CommandLine) {
        return Vec::new();
    }
    let option = arg.get_long().map(|long| format!("--{long}"));
    if !arg.get_action().takes_values() {
        return option.into_iter().collect();
    }
    let mut all = Vec::new();
    for given in matches.get_raw_occurrences(id).into_iter().flatten() {
        let values: Vec<_> = given.map(|value| value.to_string_lossy()).collect();
        all.extend(option.iter().cloned().chain([values.join(",")]));
    }
    all
}

impl<A: Args> FromArgMatches for Typed<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let command = A::augment_args(Command::new(""));
        let kept = command.get_arguments().filter(|arg| !ASIDE.contains(&arg.get_id().as_str()));
        let words = kept.map(|arg| (arg.get_id().clone(), words(arg, matches))).collect();
        Ok(Typed { args: A::from_arg_matches(matches)?, words })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<A: Args> Args for Typed<A> {
    fn group_id() -> Option<Id> {
        A::group_id()
    }

    fn augment_args(command: Command) -> Command {
        A::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        A::augment_args_for_update(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, CompareArgs, RunArgs, ServeArgs};
    use clap::Parser;

    #[test]
    fn a_record_has_the_words_that_decide_results_in_the_order_of_the_help() {
        let asked = |words: &str| match Cli::parse_from(words.split(' ')).command {
            crate::cli::Command::Run(args) => args.command("run", &[]).join(" "),
            crate::cli::Command::Compare(args) => args.command("compare", &["seeds"]).join(" "),
            other => panic!("{other:?}"),
        };
        assert_eq!(asked("ropewalk run a.toml"), "ropewalk run a.toml");
        assert_eq!(
            asked(
                "ropewalk run --pcap h0 -o out --pcap h1 --set a=1 --threads 2 --quiet x.goal --seed 7 --snap-length 0 \
                 --topology t --record --set b=2,3"
            ),
            "ropewalk run x.goal --topology t --set a=1 --set b=2,3 --seed 7 --record --pcap h0 --pcap h1 --snap-length 0"
        );
        assert_eq!(
            asked("ropewalk compare --schemes ecmp,ar --csv a --seeds 1..5 --class b --record --report"),
            "ropewalk compare a --schemes ecmp,ar --class b --record"
        );
    }

    #[test]
    fn every_option_that_is_left_out_exists() {
        let commands = [RunArgs::augment_args, CompareArgs::augment_args, ServeArgs::augment_args]
            .map(|augment| augment(Command::new("")));
        for name in ASIDE {
            let known = |command: &Command| command.get_arguments().any(|arg| arg.get_id().as_str() == name);
            assert!(commands.iter().any(known), "{name}");
        }
    }
}
