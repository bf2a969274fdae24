//! READs and SENDs under parts that carry them.

use super::case::Case;
use finding::{Finding, code};
use rnic::Verb;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, entry) in case.scenario.workload.iter().enumerate().filter(|(_, entry)| entry.verb != Verb::Write)
    {
        let (verb, nic) = (entry.verb, case.scenario.nic_of(entry.class()));
        let mut wrong = |text: String| found.push(code::UNSUITED.at(&format!("workload.{i}.verb"), text));
        if !nic.transport.facts().verbs.contains(&verb) {
            let able = rnic::TransportConfig::all().filter(|mode| mode.facts().verbs.contains(&verb));
            let able: Vec<&str> = able.map(|mode| mode.name()).collect();
            let text = format!(
                "cannot be \"{}\" with `transport.{}`: how it repairs losses of such messages is not modelled; {} can",
                verb.name(),
                nic.transport.name(),
                able.join(", ")
            );
            wrong(text);
        } else if entry.program.is_some() && verb == Verb::Read {
            wrong("cannot be \"read\": a program starts each message itself".to_owned());
        } else if entry.serving.is_some() && verb == Verb::Read {
            wrong("cannot be \"read\" with `serving`, which has `transfer.way = \"pull\"`".to_owned());
        } else if let Some(scheme) = case.schemes.iter().find(|chosen| chosen.scheme.facts().judges_nacks)
            && verb == Verb::Read
        {
            let name = scheme.scheme.name();
            wrong(format!(
                "cannot be \"read\" under `{name}`: lost responses of a READ cause no NACKs for it to judge"
            ));
        }
    }
    let reads = |class: &str| {
        case.scenario.workload.iter().any(|entry| entry.verb == Verb::Read && entry.class() == class)
    };
    let limited = case.plan.traffic_classes.iter().any(|class| reads(class));
    if case.is_explicit("nic.reads") && !limited {
        found.push(code::NO_EFFECT.at("nic.reads", "no workload has `verb = \"read\"`"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::{HEAD, told};

    fn of(keys: &str, work: &str) -> String {
        told(&format!("{HEAD}{keys}\n[[workload]]\n{work}\n"))
    }

    #[test]
    fn what_is_not_modelled_is_refused() {
        let (read, send) = ("verb = \"read\"\nneighbour-ring = {}", "verb = \"send\"\nneighbour-ring = {}");
        assert_eq!(of("", read), "");
        assert!(of("", send).contains("\"send\" with `transport.nic-sr`"), "{}", of("", send));
        assert_eq!(of("[nic.transport.go-back-n]", send), "");
        assert!(
            of("[nic.transport.uec]", read).contains("go-back-n, nic-sr"),
            "{}",
            of("[nic.transport.uec]", read)
        );
        assert!(of("[scheme.themis]", read).contains("under `themis`"), "{}", of("[scheme.themis]", read));
        let split = of("", &format!("split.subflows = 2\n{read}"));
        assert!(split.contains("split into subflows"), "{split}");
        let ring = of("", "verb = \"read\"\nall-reduce = {}");
        assert!(ring.contains("tell one another when data is ready"), "{ring}");
    }

    #[test]
    fn a_limit_without_reads_is_warned_of() {
        let told = of("[nic]\nreads = 4", "neighbour-ring = {}");
        assert_eq!(told, "no workload has `verb = \"read\"`");
    }
}
