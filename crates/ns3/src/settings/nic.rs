//! Congestion control, window and loss recovery.

use super::Mapping;
use crate::tokens::Token;
use crate::topology::Dialect;
use finding::Finding;

/// Topology files of ConWeave's program, by a part of their names, with their bandwidth-delay products in packets.
const KNOWN: [(&str, u32); 2] = [("leaf_spine_128_100G_OS2", 104), ("fat_k8_100G_OS2", 156)];

/// Hops in the telemetry of HPCC's program.
const HOPS: u64 = 5;
/// Most hops for which packets have room here.
const MOST_HOPS: u64 = 15;

impl<'a> Mapping<'a, '_, '_> {
    /// Sets the NIC; returns the value of CC_MODE.
    pub(super) fn nic(&mut self) -> Result<u32, Finding> {
        let mode = self.config.get("CC_MODE").unwrap_or(self.settings.start);
        let control: u32 = mode.number("a congestion control")?;
        // Packets of HPCC carry telemetry, so the window is part of the control.
        let global = self.config.flag("GLOBAL_T")?;
        match control {
            1 => self.dcqcn()?,
            3 => self.hpcc(mode, global)?,
            7 => self.timely(mode)?,
            8 => self.dctcp(mode)?,
            10 if !self.config.is_conweave() => self.pint(mode)?,
            _ => {
                self.put(mode, "nic.congestion.none", "");
                self.warn(&mode, format!("there is no congestion control {control}: the program sends at line rate then, and so does the scenario"));
            }
        }
        self.window(control, global)?;
        self.acks()?;
        self.recovery()?;
        Ok(control)
    }

    fn hpcc(&mut self, mode: Token<'a>, global: bool) -> Result<(), Finding> {
        const TABLE: &str = "nic.congestion.hpcc";
        if self.dialect() == Dialect::Tors {
            self.warn(
                &mode,
                "programs of this topology run PowerTCP with --wien or --delayWien and CC_MODE 3; ropewalk has no PowerTCP, so the \
                 scenario has HPCC",
            );
        }
        let word = self.config.given("GLOBAL_T").unwrap_or(mode);
        self.put(word, TABLE, format!("base-rtt = \"{}\"", if global { "longest" } else { "pair" }));
        let hops = self.graph.longest_between_tors() + 1;
        if hops > HOPS {
            let text = format!(
                "paths cross {hops} switches, and the telemetry of the program has room for {HOPS}; packets of the scenario have \
                 room for {}",
                hops.min(MOST_HOPS)
            );
            self.warn(&mode, text);
            self.put(mode, TABLE, format!("int-hops = {}", hops.min(MOST_HOPS)));
        }
        // In the simulators a rate without a code is sent as code 0, which stands for 25 Gb/s.
        self.put(mode, TABLE, "unknown-rate = \"25Gbps\"");
        self.utilisation(TABLE)?;
        self.rate("RATE_AI", TABLE, "additive-increase")?;
        if self.config.given("RATE_AI").is_some() {
            self.put(mode, TABLE, "scale-increase = false");
        }
        self.rate("MIN_RATE", TABLE, "min-rate")
    }

    fn utilisation(&mut self, table: &str) -> Result<(), Finding> {
        self.map("U_TARGET", table, "target-utilization", |word| share(word, "a utilisation"))?;
        self.map("MI_THRESH", table, "max-stage", |word| {
            Ok(word.number::<u32>("a number of steps")?.to_string())
        })
    }

    fn rate(&mut self, key: &'static str, table: &str, ours: &str) -> Result<(), Finding> {
        self.map(key, table, ours, |word| Ok(format!("\"{}\"", word.rate()?)))
    }

    fn dcqcn(&mut self) -> Result<(), Finding> {
        const TABLE: &str = "nic.congestion.dcqcn-hpcc";
        for (key, ours) in [
            ("ALPHA_RESUME_INTERVAL", "alpha-timer"),
            ("RATE_DECREASE_INTERVAL", "rate-decrease-interval"),
            ("RP_TIMER", "rate-increase-timer"),
        ] {
            self.map(key, TABLE, ours, |word| Ok(format!("\"{}\"", word.micros()?)))?;
        }
        self.rate("RATE_AI", TABLE, "additive-increase")?;
        self.rate("RATE_HAI", TABLE, "hyper-increase")?;
        self.rate("MIN_RATE", TABLE, "min-rate")?;
        if let Some(word) = self.config.given("RATE_AI").or(self.config.given("RATE_HAI")) {
            self.put(word, TABLE, "scale-increases = false");
        }
        self.map("FAST_RECOVERY_TIMES", TABLE, "fast-recovery", |word| {
            Ok(word.number::<u32>("a number of steps")?.to_string())
        })?;
        self.map("EWMA_GAIN", TABLE, "gain", |word| share(word, "a gain"))?;
        let clamp = self.config.flag("CLAMP_TARGET_RATE")?;
        let word = self.config.given("CLAMP_TARGET_RATE").unwrap_or(self.settings.start);
        self.put(word, TABLE, format!("clamp-target-rate = {clamp}"));
        Ok(())
    }

    fn dctcp(&mut self, mode: Token<'a>) -> Result<(), Finding> {
        const TABLE: &str = "nic.congestion.dctcp";
        self.put(mode, TABLE, "");
        self.map("EWMA_GAIN", TABLE, "gain", |word| share(word, "a gain"))?;
        self.rate("DCTCP_RATE_AI", TABLE, "additive-increase")?;
        self.rate("MIN_RATE", TABLE, "min-rate")
    }

    fn timely(&mut self, mode: Token<'a>) -> Result<(), Finding> {
        const TABLE: &str = "nic.congestion.timely";
        self.put(mode, TABLE, "");
        self.rate("RATE_AI", TABLE, "additive-increase")?;
        self.rate("RATE_HAI", TABLE, "hyper-increase")?;
        self.rate("MIN_RATE", TABLE, "min-rate")
    }

    fn pint(&mut self, mode: Token<'a>) -> Result<(), Finding> {
        const TABLE: &str = "nic.congestion.pint";
        self.put(mode, TABLE, "");
        self.utilisation(TABLE)?;
        self.rate("RATE_AI", TABLE, "additive-increase")?;
        if self.config.given("RATE_AI").is_some() {
            self.put(mode, TABLE, "scale-increase = false");
        }
        self.rate("MIN_RATE", TABLE, "min-rate")?;
        self.map("PINT_LOG_BASE", TABLE, "log-base", |word| {
            Ok(toml::Value::Float(word.number("a base")?).to_string())
        })?;
        self.map("PINT_PROB", TABLE, "probability", |word| share(word, "a probability"))
    }

    /// The bound on outstanding bytes, which holds for every control.
    fn window(&mut self, control: u32, global: bool) -> Result<(), Finding> {
        let (has, varies) = (self.config.flag("HAS_WIN")?, self.config.flag("VAR_WIN")?);
        let word = self.config.given("HAS_WIN").unwrap_or(self.settings.start);
        if control == 3 {
            let other = match (has, varies) {
                (false, _) => {
                    Some((word, "HPCC without a window is not available: its window follows its rate here"))
                }
                (true, false) => Some((
                    self.config.given("VAR_WIN").unwrap_or(word),
                    "HPCC with a fixed window is not available: its window follows its rate here",
                )),
                (true, true) => None,
            };
            if let Some((word, text)) = other {
                self.warn(&word, text);
            }
            return Ok(());
        }
        if self.has_loops() {
            if has {
                let text =
                    "the program of this topology ignores HAS_WIN and VAR_WIN, so the scenario has no window";
                self.notes.notes.push(word.error(text).located());
            }
            return Ok(());
        }
        if has {
            self.put(word, "nic", format!("window = \"{}\"", if global { "longest-bdp" } else { "bdp" }));
            let word = self.config.given("VAR_WIN").unwrap_or(word);
            self.put(word, "nic", format!("window-scales-with-rate = {varies}"));
        }
        Ok(())
    }

    fn acks(&mut self) -> Result<(), Finding> {
        if let Some(word) = self.config.get("L2_ACK_INTERVAL") {
            let bytes: u64 = word.number("a number of bytes")?;
            if bytes != 1 {
                let text = format!(
                    "L2_ACK_INTERVAL {bytes} is not available: receivers acknowledge every packet here"
                );
                self.warn(&word, text);
            }
        }
        Ok(())
    }

    /// Loss recovery, for most of which the programs have no key.
    fn recovery(&mut self) -> Result<(), Finding> {
        let start = self.settings.start;
        if !self.config.is_conweave() {
            self.put(start, "nic.transport.go-back-n", "renack-interval = \"500us\"");
            for line in ["timeout = \"none\"", "on-nack = \"none\"", "ack-duplicates = false"] {
                self.put(start, "nic", line);
            }
            return Ok(());
        }
        if self.config.flag("ENABLE_IRN")? {
            return self.irn();
        }
        self.put(start, "nic.transport.go-back-n", "renack-interval = \"4us\"");
        self.put(start, "nic", "timeout = { fixed = \"4ms\" }");
        Ok(())
    }

    fn irn(&mut self) -> Result<(), Finding> {
        const TABLE: &str = "nic.transport.irn";
        let word = self.config.given("ENABLE_IRN").unwrap_or(self.settings.start);
        let names = [self.config.given("TOPOLOGY_FILE").map_or("", |word| word.text), self.graph.file.name];
        match KNOWN.iter().find(|(name, _)| names.iter().any(|file| file.contains(name))) {
            Some((_, packets)) => self.put(word, TABLE, format!("bdp-cap = {packets}")),
            None => {
                self.warn(
                    &word,
                    "the program has no bandwidth-delay product for a topology file of this name and stops; the scenario takes the \
                     topology's largest one",
                );
                self.put(word, TABLE, format!("bdp-cap = {}", self.graph.longest_bdp()));
            }
        }
        self.put(word, TABLE, "on-gap = \"all\"");
        self.put(word, TABLE, "on-timeout = \"all\"");
        // Every answer to a packet out of order carries a CNP.
        self.put(word, "nic", "on-nack = \"as-cnp\"");
        match self.config.flag("ENABLE_PFC")? {
            true => {
                self.put(word, TABLE, "few = 0");
                self.put(word, "nic", "timeout = \"none\"");
            }
            false => {
                self.put(word, TABLE, "low-timeout = \"100us\"");
                self.put(word, TABLE, "few = 3");
                self.put(word, "nic", "timeout = { fixed = \"320us\" }");
            }
        }
        Ok(())
    }
}

fn share(word: &Token<'_>, what: &str) -> Result<String, Finding> {
    Ok(toml::Value::Float(word.share(what)?).to_string())
}
