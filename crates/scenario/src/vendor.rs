//! NVIDIA's names of settings of NICs, which stand for ropewalk's ([`rnic::vendor`]).

use crate::hardware::{nics, table_at};
use finding::{Finding, code};
use rnic::vendor::{NAMES, Name, Value as Own};
use toml::{Table, Value};

/// Puts ropewalk's keys and values in place of NVIDIA's, in all tables of NICs.
pub(crate) fn translate(scenario: &mut Table) -> Result<(), Finding> {
    for place in nics(scenario) {
        for name in NAMES {
            let (inner, key) = name.key.rsplit_once('.').unwrap_or(("", name.key));
            let path: Vec<String> = place
                .iter()
                .cloned()
                .chain(inner.split('.').filter(|p| !p.is_empty()).map(str::to_owned))
                .collect();
            let Some(table) = table_at(scenario, &path) else { continue };
            let Some(found) = table.keys().find(|key| name.matches(key)).cloned() else { continue };
            let at = format!("{}.{found}", path.join("."));
            let Some(value) = table.remove(&found) else { continue };
            if table.contains_key(key) {
                let mut error = code::CONFLICT
                    .at(&at, format!("`{found}` and `{key}` are one setting; leave out one of them"));
                error.at_key = true;
                return Err(error);
            }
            let value = own(name, &value).map_err(|wanted| {
                let text = format!(
                    "expected {wanted}, found {value}; NVIDIA's names take NVIDIA's units, here {}",
                    name.unit.about()
                );
                code::WRONG_TYPE.at(&at, text)
            })?;
            table.insert(key.to_owned(), value);
        }
    }
    Ok(())
}

/// Ropewalk's value for NVIDIA's, or what was expected.
fn own(name: &Name, value: &Value) -> Result<Value, &'static str> {
    let number = match value {
        Value::Integer(number) => *number,
        Value::Boolean(on) => (*on).into(),
        _ => return Err("a whole number"),
    };
    Ok(match name.value(number)? {
        Own::Text(text) => Value::String(text),
        Own::Count(number) => Value::Integer(number),
        Own::Share(share) => Value::Float(share),
        Own::Flag(on) => Value::Boolean(on),
    })
}

#[cfg(test)]
mod tests {
    use crate::{Source, check};

    fn nic(keys: &str) -> Result<rnic::NicConfig, String> {
        let text = format!("[topology.leaf-spine]\n[[workload]]\nneighbour-ring = {{}}\n{keys}\n");
        check(&Source::new("s.toml", text), &[])
            .map(|checked| checked.scenario.nic)
            .map_err(|e| e.located().to_string())
    }

    #[test]
    fn nvidias_names_set_what_ours_set() {
        let vendors = nic(
            "[nic]\nmin_time_between_cnps = 50\n[nic.congestion.dcqcn]\nRPG_TIME_RESET_P1 = 55\nrpg_ai_rate = 10\n\
             dce_tcp_g = 1008\nclamp_tgt_rate = true",
        );
        let ours =
            nic("[nic]\ncnp-interval = \"50us\"\n[nic.congestion.dcqcn]\nrate-increase-timer = \"55us\"\n\
             additive-increase = \"10Mbps\"\ngain = 0.015625\nclamp-target-rate = true");
        assert_eq!(vendors, ours);
        assert!(vendors.is_ok(), "{vendors:?}");
    }

    #[test]
    fn a_wrong_value_is_told_nvidias_unit_and_two_names_of_one_setting_are_refused() {
        let error = nic("[nic.congestion.dcqcn]\nrpg_time_reset = \"300us\"").unwrap_err();
        assert!(error.starts_with("s.toml:5:18: expected a whole number, found \"300us\""), "{error}");
        assert!(error.ends_with("NVIDIA's names take NVIDIA's units, here us"), "{error}");
        let error =
            nic("[nic.congestion.dcqcn]\nrpg_ai_rate = 5\nadditive-increase = \"5Mbps\"").unwrap_err();
        assert_eq!(
            error,
            "s.toml:5:1: `rpg_ai_rate` and `additive-increase` are one setting; leave out one of them"
        );
    }
}
