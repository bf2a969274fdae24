//! A run has at most one program, and ends with it.

use super::case::Case;
use finding::{Finding, code};

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let programs = case.scenario.workload.iter().enumerate().filter(|(_, entry)| entry.is_driven());
    match programs.collect::<Vec<_>>()[..] {
        [_, (second, entry), ..] => {
            let kind = if entry.program.is_some() { "program" } else { "serving" };
            vec![code::CONFLICT.at(&format!("workload.{second}.{kind}"), "a run has one program, found two")]
        }
        [(only, entry)] if entry.background => {
            let text = "the workload of a program cannot be background traffic";
            vec![code::CONFLICT.at(&format!("workload.{only}.background"), text)]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{HEAD, JOB};
    use crate::{Source, check_program};

    #[test]
    fn a_second_program_and_one_in_the_background_are_refused() {
        let told = |programs: &str| {
            let text = format!("{HEAD}{JOB}{programs}");
            check_program(&Source::new("s.toml", text), &[]).map_or_else(|e| e.located(), |_| String::new())
        };
        let one = "[[workload]]\nname = \"one\"\nprogram = {}\n";
        assert_eq!(told(one), "");
        assert_eq!(
            told(&format!("{one}background = true\n")),
            "s.toml:10:14: the workload of a program cannot be background traffic"
        );
        assert_eq!(
            told(&format!("{one}{}", one.replace("one", "two"))),
            "s.toml:12:11: a run has one program, found two"
        );
    }
}
