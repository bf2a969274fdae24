//! Configuration files: `KEY value...` per line. Only keys that affect packets are read; a warning names the others.

use super::tokens::{Token, lines, word};
use super::{File, hinted};
use crate::Error;
use crate::error::nearest;
use model::{Bytes, Rate, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The lines of the scenario that reproduce a configuration, by table, each with the word that caused it.
#[derive(Debug)]
pub(super) struct Config<'a> {
    /// The first word of the file.
    start: Token<'a>,
    tables: BTreeMap<&'static str, Vec<(String, Token<'a>)>>,
}

/// Keys without effect on packets: paths of files, tracing, and keys that these simulators ignore.
const QUIET: &[&str] = &[
    "TOPOLOGY_FILE",
    "FLOW_FILE",
    "TRACE_FILE",
    "TRACE_OUTPUT_FILE",
    "FCT_OUTPUT_FILE",
    "PFC_OUTPUT_FILE",
    "QLEN_MON_FILE",
    "QLEN_MON_START",
    "QLEN_MON_END",
    "ENABLE_TRACE",
    "USE_DYNAMIC_PFC_THRESHOLD",
    "L2_CHUNK_SIZE",
    "L2_ACK_INTERVAL",
    "RATE_BOUND",
    "NIC_TOTAL_PAUSE_TIME",
    "INT_MULTI",
    "MULTI_RATE",
    "SAMPLE_FEEDBACK",
    "PINT_LOG_BASE",
    "PINT_PROB",
    "DCTCP_RATE_AI",
    "FAST_REACT",
];

/// Keys of DCQCN alone, or of all controls but HPCC, whose window always follows its rate.
const DCQCN_ALONE: [&str; 9] = [
    "ALPHA_RESUME_INTERVAL",
    "RATE_DECREASE_INTERVAL",
    "RP_TIMER",
    "RATE_HAI",
    "FAST_RECOVERY_TIMES",
    "EWMA_GAIN",
    "CLAMP_TARGET_RATE",
    "HAS_WIN",
    "VAR_WIN",
];

pub(super) fn read<'a>(file: File<'a>, warnings: &mut Vec<String>) -> Result<Config<'a>, Error> {
    let mut keys: BTreeMap<&str, Vec<Token<'a>>> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for line in lines(file) {
        let (key, values) = (line[0], &line[1..]);
        if values.is_empty() {
            return Err(hinted(file, key.error(format!("the key {} has no value", key.text))));
        }
        keys.insert(key.text, values.to_vec());
        places.insert(key.text, key);
    }
    let start = word(file, 0, 0);
    let config = Config { start, tables: BTreeMap::new() };
    let mut reader = Reader { keys, used: BTreeSet::new(), word: start, config, warnings };
    reader.wire()?;
    reader.switch()?;
    reader.nic()?;
    reader.rest()?;
    let Reader { used, config, warnings, .. } = reader;
    let known = || used.iter().chain(QUIET).copied();
    let mut ignored = Vec::new();
    for (key, place) in places.into_iter().filter(|(key, _)| known().all(|known| known != *key)) {
        match nearest(key, known()) {
            Some(near) => {
                let text = format!("the key {key} is not used; did you mean {near}?");
                warnings.push(place.error(text).located());
            }
            None => ignored.push(key),
        }
    }
    if !ignored.is_empty() {
        warnings.push(format!("{}: keys that are not used: {}", file.name, ignored.join(", ")));
    }
    Ok(config)
}

struct Reader<'a, 'w> {
    keys: BTreeMap<&'a str, Vec<Token<'a>>>,
    used: BTreeSet<&'a str>,
    /// First value of the key that was read last; the start of the file if the file lacks that key.
    word: Token<'a>,
    config: Config<'a>,
    warnings: &'w mut Vec<String>,
}

impl<'a> Reader<'a, '_> {
    fn all(&mut self, key: &'a str) -> Option<Vec<Token<'a>>> {
        self.used.insert(key);
        let words = self.keys.get(key).cloned();
        self.word = words.as_ref().and_then(|words| words.first()).map_or(self.config.start, |word| *word);
        words
    }

    fn get(&mut self, key: &'a str) -> Option<Token<'a>> {
        self.all(key)?.first().copied()
    }

    fn flag(&mut self, key: &'a str) -> Result<Option<bool>, Error> {
        let number = self.get(key).map(|word| word.number::<f64>("0 or 1")).transpose()?;
        Ok(number.map(|n| n != 0.0))
    }

    /// Adds a line that the key read last has caused.
    fn put(&mut self, table: &'static str, line: String) {
        self.put_from(self.word, table, line);
    }

    fn put_from(&mut self, word: Token<'a>, table: &'static str, line: String) {
        self.config.tables.entry(table).or_default().push((line, word));
    }

    fn warn(&mut self, word: &Token<'_>, text: &str) {
        self.warnings.push(word.error(text).located());
    }

    /// Whether the file belongs to the ConWeave simulator: the HPCC simulator has no key `LB_MODE`.
    fn is_conweave(&self) -> bool {
        self.keys.contains_key("LB_MODE")
    }

    fn wire(&mut self) -> Result<(), Error> {
        if let Some(word) = self.get("PACKET_PAYLOAD_SIZE") {
            let bytes: u32 = word.number("a payload in bytes")?;
            self.put("wire", format!("payload = \"{bytes}B\""));
        }
        if let Some(word) = self.get("ERROR_RATE_PER_LINK") {
            let share = toml::Value::Float(word.share("an error rate")?);
            self.put("links", format!("loss = {share}"));
        }
        Ok(())
    }

    fn switch(&mut self) -> Result<(), Error> {
        if let Some(word) = self.get("BUFFER_SIZE") {
            let mib: u32 = word.number("a buffer in MiB")?;
            self.put("switch", format!("buffer = \"{mib}MiB\""));
        }
        let high = self.flag("ACK_HIGH_PRIO")?;
        if !self.is_conweave() {
            // In the HPCC simulator the key only changes the queue of hosts; switches keep ACKs in the queue of data.
            let _ = high;
            self.put("switch", "classes = \"one\"".into());
        }
        if self.flag("ENABLE_PFC")? == Some(false) {
            self.put("switch", "pfc = \"off\"".into());
        } else if self.is_conweave() {
            self.put("switch", "pfc = { alpha = \"1/16\" }".into());
        }
        let kmin = self.map("KMIN_MAP")?;
        let kmax = self.map("KMAX_MAP")?;
        let pmax = self.map("PMAX_MAP")?;
        if self.flag("ENABLE_QCN")? == Some(false) {
            self.put("switch", "ecn = \"off\"".into());
            return Ok(());
        }
        let mut rows = Vec::new();
        for (rate, (_, word)) in &kmin {
            let Some((high, _)) = kmax.get(rate) else {
                return Err(word.error(format!("KMIN_MAP has the rate {rate}, KMAX_MAP has not")));
            };
            let share = match pmax.get(rate) {
                Some((_, word)) => word.share("a probability")?,
                None => 0.2,
            };
            let (kmin, kmax) = (kilobytes(&kmin[rate])?, kilobytes(&(high.clone(), kmax[rate].1))?);
            let pmax = toml::Value::Float(share);
            let row =
                format!("  {{ rate = \"{rate}\", kmin = \"{kmin}\", kmax = \"{kmax}\", pmax = {pmax} }},");
            rows.push((row, *word));
        }
        if let Some((_, first)) = rows.first().cloned() {
            self.put_from(first, "switch.ecn", "at-rate = [".into());
            rows.into_iter().for_each(|(row, word)| self.put_from(word, "switch.ecn", row));
            self.put_from(first, "switch.ecn", "]".into());
        }
        Ok(())
    }

    /// Reads a line of the form `KEY n (rate value)*`.
    fn map(&mut self, key: &'a str) -> Result<BTreeMap<Rate, (String, Token<'a>)>, Error> {
        let mut map = BTreeMap::new();
        let Some(words) = self.all(key) else { return Ok(map) };
        let n: usize = words[0].number("a number of pairs")?;
        if words.len() - 1 != n.saturating_mul(2) {
            let text =
                format!("expected {n} pairs of rate and value after {key}, found {} words", words.len() - 1);
            return Err(words[0].error(text));
        }
        for pair in words[1..].chunks(2) {
            map.insert(pair[0].rate()?, (pair[1].text.to_owned(), pair[1]));
        }
        Ok(map)
    }

    fn nic(&mut self) -> Result<(), Error> {
        let mode = self.get("CC_MODE");
        let number = mode.map(|word| word.number("a congestion control")).transpose()?.unwrap_or(1u32);
        if let Some(word) = mode
            && ![1, 3, 8].contains(&number)
        {
            let name = match number {
                7 => " (TIMELY)",
                10 => " (HPCC-PINT)",
                _ => "",
            };
            self.warn(
                &word,
                &format!("congestion control {number}{name} is not available; DCQCN replaces it"),
            );
        }
        // The simulators use one round-trip time for all pairs unless GLOBAL_T is 0.
        let global = self.flag("GLOBAL_T")? != Some(false);
        match number {
            3 => self.hpcc(global)?,
            8 => self.dctcp(global)?,
            _ => self.dcqcn(global)?,
        }
        if self.flag("L2_BACK_TO_ZERO")? == Some(true) {
            let word = self.keys["L2_BACK_TO_ZERO"][0];
            self.warn(&word, "L2_BACK_TO_ZERO is not available and stays off");
        }
        self.recovery()
    }

    fn hpcc(&mut self, global: bool) -> Result<(), Error> {
        const TABLE: &str = "nic.congestion.hpcc";
        self.put(TABLE, format!("base-rtt = \"{}\"", if global { "longest" } else { "pair" }));
        // In the simulators a rate without a code is sent as code 0, which stands for 25 Gb/s.
        self.put(TABLE, "unknown-rate = \"25Gbps\"".into());
        if let Some(word) = self.get("U_TARGET") {
            let share = toml::Value::Float(word.share("a utilisation")?);
            self.put(TABLE, format!("target-utilization = {share}"));
        }
        // 5 is the default of the simulator.
        let stages: u32 =
            self.get("MI_THRESH").map(|word| word.number("a number of steps")).transpose()?.unwrap_or(5);
        self.put(TABLE, format!("max-stage = {stages}"));
        if let Some(word) = self.get("RATE_AI") {
            let rate = word.rate()?;
            self.put(TABLE, format!("additive-increase = \"{rate}\""));
            self.put(TABLE, "scale-increase = false".into());
        }
        if let Some(word) = self.get("MIN_RATE") {
            let rate = word.rate()?;
            self.put(TABLE, format!("min-rate = \"{rate}\""));
        }
        for key in DCQCN_ALONE {
            self.used.insert(key);
        }
        Ok(())
    }

    fn dcqcn(&mut self, global: bool) -> Result<(), Error> {
        for (key, ours) in [
            ("ALPHA_RESUME_INTERVAL", "alpha-timer"),
            ("RATE_DECREASE_INTERVAL", "rate-decrease-interval"),
            ("RP_TIMER", "rate-increase-timer"),
        ] {
            if let Some(word) = self.get(key) {
                let time: Time = word.micros()?;
                self.put("nic.congestion.dcqcn", format!("{ours} = \"{time}\""));
            }
        }
        let mut absolute = false;
        for (key, ours) in
            [("RATE_AI", "additive-increase"), ("RATE_HAI", "hyper-increase"), ("MIN_RATE", "min-rate")]
        {
            if let Some(word) = self.get(key) {
                let rate = word.rate()?;
                self.put("nic.congestion.dcqcn", format!("{ours} = \"{rate}\""));
                absolute |= key != "MIN_RATE";
            }
        }
        if absolute {
            self.put("nic.congestion.dcqcn", "scale-increases = false".into());
        }
        if let Some(word) = self.get("FAST_RECOVERY_TIMES") {
            let n: u32 = word.number("a number of steps")?;
            self.put("nic.congestion.dcqcn", format!("fast-recovery = {n}"));
        }
        if let Some(word) = self.get("EWMA_GAIN") {
            let gain = toml::Value::Float(word.share("a gain")?);
            self.put("nic.congestion.dcqcn", format!("gain = {gain}"));
        }
        if let Some(clamp) = self.flag("CLAMP_TARGET_RATE")? {
            self.put("nic.congestion.dcqcn", format!("clamp-target-rate = {clamp}"));
        }
        self.window(global)
    }

    fn dctcp(&mut self, global: bool) -> Result<(), Error> {
        const TABLE: &str = "nic.congestion.dctcp";
        self.put(TABLE, String::new());
        if let Some(word) = self.get("EWMA_GAIN") {
            let gain = toml::Value::Float(word.share("a gain")?);
            self.put(TABLE, format!("gain = {gain}"));
        }
        for (key, ours) in [("DCTCP_RATE_AI", "additive-increase"), ("MIN_RATE", "min-rate")] {
            if let Some(word) = self.get(key) {
                let rate = word.rate()?;
                self.put(TABLE, format!("{ours} = \"{rate}\""));
            }
        }
        for key in DCQCN_ALONE {
            self.used.insert(key);
        }
        self.used.insert("RATE_AI");
        self.window(global)
    }

    /// The limit on what is outstanding, which holds for every control but HPCC.
    fn window(&mut self, global: bool) -> Result<(), Error> {
        if self.flag("HAS_WIN")? == Some(true) {
            let window = if global { "longest-bdp" } else { "bdp" };
            self.put("nic", format!("window = \"{window}\""));
            let scales = self.flag("VAR_WIN")? == Some(true);
            self.put("nic", format!("window-scales-with-rate = {scales}"));
        }
        for key in ["VAR_WIN", "U_TARGET", "MI_THRESH"] {
            self.used.insert(key);
        }
        Ok(())
    }

    /// Loss recovery, for most of which the simulators have no key.
    fn recovery(&mut self) -> Result<(), Error> {
        if self.flag("ENABLE_IRN")? == Some(true) {
            let word = self.keys["ENABLE_IRN"][0];
            self.warn(&word, "the IRN of the simulator is not imported; `nic-sr` replaces it");
            self.put("nic.transport.nic-sr", String::new());
            return Ok(());
        }
        let interval = if self.is_conweave() { "4us" } else { "500us" };
        self.put("nic.transport.go-back-n", format!("renack-interval = \"{interval}\""));
        if self.is_conweave() {
            self.put("nic", "timeout = { fixed = \"4ms\" }".into());
        } else {
            for line in ["timeout = \"none\"", "on-nack = \"none\"", "ack-duplicates = false"] {
                self.put("nic", line.into());
            }
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<(), Error> {
        if let Some(word) = self.get("LB_MODE") {
            match word.number("a load balancer")? {
                // The import sets ECMP, with the hash of the simulator.
                0u32 => {}
                2 => self.put("scheme.drill", String::new()),
                n => self.warn(&word, &format!("load balancer {n} is not available; ECMP replaces it")),
            }
        }
        if let Some(words) = self.all("LINK_DOWN")
            && words.iter().any(|word| word.text != "0")
        {
            self.warn(&words[0], "failures of links are not imported; all links stay up");
        }
        if let Some(word) = self.get("SIMULATOR_STOP_TIME") {
            let time = word.time()?;
            self.put("stop", format!("after = \"{time}\""));
        }
        Ok(())
    }
}

/// A threshold in kB of 1000 bytes.
fn kilobytes((text, word): &(String, Token<'_>)) -> Result<Bytes, Error> {
    format!("{text}kB")
        .parse()
        .map_err(|_| word.error(format!("expected a threshold in kB, found \"{text}\"")))
}

impl<'a> Config<'a> {
    /// The scenario's lines with the words that caused them.
    fn lines(&self) -> impl Iterator<Item = (String, Token<'a>)> {
        self.tables.iter().flat_map(|(table, lines)| {
            let head = lines.first().map_or(self.start, |(_, word)| *word);
            let lines = lines.iter().filter(|(line, _)| !line.is_empty()).cloned();
            let (head, blank) = ((format!("[{table}]"), head), (String::new(), self.start));
            std::iter::once(head).chain(lines).chain(std::iter::once(blank))
        })
    }

    /// True if the configuration sets a scheme other than ECMP.
    pub(super) fn sets_scheme(&self) -> bool {
        self.tables.keys().any(|table| table.starts_with("scheme."))
    }

    /// The word that caused a line of the text of [`Config::write`].
    pub(super) fn origin(&self, line: usize) -> Token<'a> {
        self.lines().nth(line).map_or(self.start, |(_, word)| word)
    }

    pub(super) fn write(&self, toml: &mut String) {
        for (line, _) in self.lines() {
            let _ = writeln!(toml, "{line}");
        }
    }
}
