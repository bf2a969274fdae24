//! NVIDIA's names of settings, as its drivers (`/sys/class/net/DEV/ecn`, debugfs) and its firmware tool (`mstconfig`) have them.

/// A setting that has a name of NVIDIA's, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Name {
    /// NVIDIA's name, in lower case.
    pub vendor: &'static str,
    /// Dotted key below `[nic]`.
    pub key: &'static str,
    /// Unit of NVIDIA's value.
    pub unit: Unit,
}

/// Unit of NVIDIA's value, which is a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// Megabits per second.
    Mbps,
    /// Bytes.
    Bytes,
    /// A number of events.
    Count,
    /// 0 or 1.
    Flag,
    /// Per cent of 1.
    Percent,
    /// 1024ths of 1.
    Of1024,
    /// 1024ths that are missing to 1: the weight of the old value in an average.
    Complement,
    /// Binary logarithm of a divisor of alpha that 1024 stands for.
    Shift,
}

/// Value of a setting in ropewalk's unit.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A quantity with its unit.
    Text(String),
    /// A number of events.
    Count(i64),
    /// A share.
    Share(f64),
    /// A choice of two.
    Flag(bool),
}

const fn name(vendor: &'static str, key: &'static str, unit: Unit) -> Name {
    Name { vendor, key, unit }
}

/// All names.
pub const NAMES: &[Name] = &[
    name("rpg_time_reset", "congestion.dcqcn.rate-increase-timer", Unit::Microseconds),
    name("rpg_byte_reset", "congestion.dcqcn.byte-reset", Unit::Bytes),
    name("rpg_threshold", "congestion.dcqcn.fast-recovery", Unit::Count),
    name("rpg_ai_rate", "congestion.dcqcn.additive-increase", Unit::Mbps),
    name("rpg_hai_rate", "congestion.dcqcn.hyper-increase", Unit::Mbps),
    name("rpg_min_rate", "congestion.dcqcn.min-rate", Unit::Mbps),
    name("rpg_max_rate", "congestion.dcqcn.max-rate", Unit::Mbps),
    name("rpg_gd", "congestion.dcqcn.cut-per-alpha", Unit::Shift),
    name("rpg_min_dec_fac", "congestion.dcqcn.cut-floor", Unit::Percent),
    name("rate_reduce_monitor_period", "congestion.dcqcn.rate-decrease-interval", Unit::Microseconds),
    name("rate_to_set_on_first_cnp", "congestion.dcqcn.rate-on-first-cnp", Unit::Mbps),
    name("dce_tcp_g", "congestion.dcqcn.gain", Unit::Complement),
    name("dce_tcp_rtt", "congestion.dcqcn.alpha-timer", Unit::Microseconds),
    name("initial_alpha_value", "congestion.dcqcn.initial-alpha", Unit::Of1024),
    name("clamp_tgt_rate", "congestion.dcqcn.clamp-target-rate", Unit::Flag),
    name(
        "clamp_tgt_rate_after_time_inc",
        "congestion.dcqcn.clamp-target-rate-after-time-increase",
        Unit::Flag,
    ),
    name("min_time_between_cnps", "cnp-interval", Unit::Microseconds),
];

impl Name {
    /// True if `key` is this name: in any case, and with the number of a port behind it (`RPG_GD_P1`).
    pub fn matches(&self, key: &str) -> bool {
        let key = key.to_ascii_lowercase();
        let port = key.rsplit_once("_p").filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        key == self.vendor || port.is_some_and(|(name, port)| !port.is_empty() && name == self.vendor)
    }

    /// Ropewalk's value for NVIDIA's.
    ///
    /// # Errors
    /// The values that are possible.
    pub fn value(&self, number: i64) -> Result<Value, &'static str> {
        let share = |most: i64, share: f64, range| {
            (0..=most).contains(&number).then_some(Value::Share(share)).ok_or(range)
        };
        if number < 0 {
            return Err("a whole number that is not negative");
        }
        match self.unit {
            Unit::Microseconds => Ok(Value::Text(format!("{number}us"))),
            Unit::Mbps => Ok(Value::Text(format!("{number}Mbps"))),
            Unit::Bytes => Ok(Value::Text(format!("{number}B"))),
            Unit::Count => Ok(Value::Count(number)),
            Unit::Flag => match number {
                0 | 1 => Ok(Value::Flag(number == 1)),
                _ => Err("0 or 1"),
            },
            Unit::Percent => share(100, number as f64 / 100.0, "per cent from 0 to 100"),
            Unit::Of1024 => share(1023, number as f64 / 1024.0, "1024ths from 0 to 1023"),
            Unit::Complement => share(1023, (1024 - number) as f64 / 1024.0, "1024ths from 0 to 1023"),
            Unit::Shift => match number {
                10 => Ok(Value::Share(1.0)),
                11 => Ok(Value::Share(0.5)),
                _ => Err("10 or 11"),
            },
        }
    }
}

impl Unit {
    /// The unit in words.
    pub const fn about(self) -> &'static str {
        match self {
            Unit::Microseconds => "us",
            Unit::Mbps => "Mb/s",
            Unit::Bytes => "B",
            Unit::Count => "a number",
            Unit::Flag => "0 or 1",
            Unit::Percent => "%",
            Unit::Of1024 => "of 1024",
            Unit::Complement => "of 1024, the weight of the old alpha",
            Unit::Shift => "log2, 1024 times alpha's divisor",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(vendor: &str) -> Name {
        *NAMES.iter().find(|name| name.matches(vendor)).unwrap_or_else(|| panic!("{vendor}"))
    }

    #[test]
    fn names_of_sysfs_and_of_the_firmware_tool_are_one() {
        assert_eq!(named("RPG_TIME_RESET_P1"), named("rpg_time_reset"));
        assert_eq!(named("CLAMP_TGT_RATE_P2").key, "congestion.dcqcn.clamp-target-rate");
        assert!(!NAMES.iter().any(|name| name.matches("rpg_time_reset_p") || name.matches("rpg_time")));
    }

    #[test]
    fn defaults_of_the_firmware_tool_are_defaults_of_the_control() {
        let listed = [
            ("rpg_time_reset", 300),
            ("rpg_byte_reset", 32_767),
            ("rpg_threshold", 1),
            ("rpg_ai_rate", 5),
            ("rpg_hai_rate", 50),
            ("rpg_min_rate", 1),
            ("rpg_max_rate", 0),
            ("rpg_gd", 11),
            ("rpg_min_dec_fac", 50),
            ("rate_reduce_monitor_period", 4),
            ("rate_to_set_on_first_cnp", 0),
            ("dce_tcp_g", 1019),
            ("dce_tcp_rtt", 1),
            ("initial_alpha_value", 1023),
            ("clamp_tgt_rate", 0),
            ("clamp_tgt_rate_after_time_inc", 1),
        ];
        assert_eq!(listed.len() + 1, NAMES.len(), "and min_time_between_cnps, which is not in its table");
        let mut text = String::new();
        for (vendor, number) in listed {
            let name = named(vendor);
            let key = name.key.strip_prefix("congestion.dcqcn.").unwrap();
            let value = match name.value(number).unwrap() {
                Value::Text(text) => format!("\"{text}\""),
                Value::Count(number) => number.to_string(),
                Value::Share(share) => format!("{share:?}"),
                Value::Flag(on) => on.to_string(),
            };
            text += &format!("{key} = {value}\n");
        }
        let read: crate::congestion::dcqcn::Config = toml::from_str(&text).unwrap();
        assert_eq!(read, crate::congestion::dcqcn::Config::default());
    }

    #[test]
    fn impossible_values_are_told_the_range() {
        assert_eq!(named("rpg_gd").value(12), Err("10 or 11"));
        assert_eq!(named("rpg_min_dec_fac").value(101), Err("per cent from 0 to 100"));
        assert_eq!(named("clamp_tgt_rate").value(2), Err("0 or 1"));
        assert_eq!(named("rpg_time_reset").value(-1), Err("a whole number that is not negative"));
    }
}
