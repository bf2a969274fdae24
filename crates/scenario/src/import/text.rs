//! Imported scenarios as text: a list of links or flows has a line for each entry, where TOML's usual form has a table for each.

use crate::toml_text::{inline, key};
use std::fmt::Write;
use toml::{Table, Value};

/// A scenario as TOML; `comment` stands above its workload.
pub(super) fn of(scenario: &Table, comment: &str) -> String {
    let mut text = String::new();
    table(&mut text, "", scenario, comment);
    text
}

/// A table whose header stands above. Its plain values come first, as TOML demands.
fn table(text: &mut String, path: &str, values: &Table, comment: &str) {
    for (name, value) in values {
        let name = key(name);
        let _ = match value {
            Value::Table(_) => continue,
            Value::Array(_) if path.is_empty() && name == "workload" => continue,
            Value::Array(list) if list.len() > 1 && list.iter().any(is_compound) => {
                let lines: String = list.iter().map(|entry| format!("  {},\n", inline(entry))).collect();
                writeln!(text, "{name} = [\n{lines}]")
            }
            _ => writeln!(text, "{name} = {}", inline(value)),
        };
    }
    for (name, value) in values {
        let inner = if path.is_empty() { key(name) } else { format!("{path}.{}", key(name)) };
        match value {
            Value::Table(inside) => {
                // A table of tables alone, such as the choice of a scheme, needs no header.
                let chooser = !inside.is_empty() && inside.values().all(Value::is_table);
                if !chooser {
                    let _ = writeln!(text, "\n[{inner}]");
                }
                table(text, &inner, inside, comment);
            }
            Value::Array(jobs) if inner == "workload" => {
                for job in jobs.iter().filter_map(Value::as_table) {
                    let _ = writeln!(text, "\n# {comment}\n[[{inner}]]");
                    table(text, &inner, job, comment);
                }
            }
            _ => {}
        }
    }
}

fn is_compound(value: &Value) -> bool {
    matches!(value, Value::Table(_) | Value::Array(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Resolved, Source, builtin, show};

    #[test]
    fn every_built_in_scenario_is_the_same_in_this_form() {
        for builtin in builtin::ALL {
            let resolved = Resolved::new(&Source::new(builtin.name, builtin.text), &[]).unwrap();
            let text = of(&show::table(&resolved.scenario), "a comment");
            let again: Table = text.parse().unwrap_or_else(|e| panic!("{}: {e}\n{text}", builtin.name));
            assert_eq!(again, resolved.to_toml().parse::<Table>().unwrap(), "{}", builtin.name);
        }
    }

    #[test]
    fn every_entry_of_a_list_has_its_line() {
        let toml = "seed = 1\na.links = [[\"x\", 1], [\"y\", 2]]\na.b.c = {}\nworkload = [{ start = 0, f.list = [{ q = 1 }, { q = 2 }] }]\n";
        let text = of(&toml.parse().unwrap(), "above");
        let expected = "seed = 1\n\n[a]\nlinks = [\n  [\"x\", 1],\n  [\"y\", 2],\n]\n\n[a.b.c]\n\n# above\n[[workload]]\nstart = 0\n\n\
                        [workload.f]\nlist = [\n  { q = 1 },\n  { q = 2 },\n]\n";
        assert_eq!(text, expected);
    }
}
