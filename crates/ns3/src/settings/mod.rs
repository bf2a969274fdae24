//! Settings of the scenario that a configuration file stands for, see [`super::keys`].

mod nic;
mod switch;

use super::config::Config;
use super::flows::Flows;
use super::notes::Notes;
use super::tokens::Token;
use super::topology::{Dialect, Graph};
use finding::Finding;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines of the scenario, each with the word that caused it.
pub(super) struct Settings<'a> {
    start: Token<'a>,
    /// Keys above all tables.
    top: Vec<(String, Token<'a>)>,
    tables: BTreeMap<String, Vec<(String, Token<'a>)>>,
    /// Roles of switches that differ from others.
    pub(super) roles: BTreeMap<u32, String>,
}

/// A mapping under way.
struct Mapping<'a, 'c, 'g> {
    config: &'c mut Config<'a>,
    graph: &'g Graph<'a>,
    notes: &'c mut Notes,
    settings: Settings<'a>,
}

/// Switches with the long-haul system in the program of its prototype.
const EXTERNAL: [u32; 2] = [48, 49];

/// Longest time at which a scenario may stop, s.
const LONGEST: f64 = 1e6;

/// The settings of a configuration over a topology.
pub(super) fn of<'a>(
    mut config: Config<'a>,
    graph: &Graph<'a>,
    flows: &Flows<'_>,
    notes: &mut Notes,
) -> Result<Settings<'a>, Finding> {
    let start = config.start();
    let settings = Settings { start, top: Vec::new(), tables: BTreeMap::new(), roles: BTreeMap::new() };
    let mut mapping = Mapping { config: &mut config, graph, notes, settings };
    mapping.wire()?;
    mapping.switch()?;
    let control = mapping.nic()?;
    mapping.scheme()?;
    mapping.external()?;
    mapping.failure()?;
    mapping.stop(flows)?;
    let settings = mapping.settings;
    notes.warnings.extend(config.impossible(control)?);
    notes.notes.extend(config.absent());
    Ok(settings)
}

impl<'a> Mapping<'a, '_, '_> {
    /// Adds a line that a word has caused.
    fn put(&mut self, word: Token<'a>, table: &str, line: impl Into<String>) {
        self.settings.tables.entry(table.to_owned()).or_default().push((line.into(), word));
    }

    /// Adds the value of a key, if there is one, as `read` reads it.
    fn map(
        &mut self,
        key: &'static str,
        table: &str,
        ours: &str,
        read: impl Fn(&Token<'a>) -> Result<String, Finding>,
    ) -> Result<(), Finding> {
        if let Some(word) = self.config.get(key) {
            let value = read(&word)?;
            self.put(word, table, format!("{ours} = {value}"));
        }
        Ok(())
    }

    fn warn(&mut self, word: &Token<'_>, text: impl Into<String>) {
        self.notes.warnings.push(word.error(text).located());
    }

    /// True for the program of the full long-haul artefact, whose topologies have loops.
    fn has_loops(&self) -> bool {
        self.graph.loops > 0
    }

    fn wire(&mut self) -> Result<(), Finding> {
        self.map("PACKET_PAYLOAD_SIZE", "wire", "payload", |word| {
            Ok(format!("\"{}B\"", word.number::<u32>("a payload in bytes")?))
        })?;
        let word = self.config.get("ERROR_RATE_PER_LINK");
        let share = word.map(|word| word.share("an error rate")).transpose()?.unwrap_or(0.0);
        let word = word.unwrap_or(self.settings.start);
        if share > 0.0 {
            self.put(word, "links", format!("loss = {}", toml::Value::Float(share)));
        }
        if share > 0.0 || self.graph.links.iter().any(|link| link.loss > 0.0) {
            self.put(word, "links", "lose-replies = true");
        }
        Ok(())
    }

    fn scheme(&mut self) -> Result<(), Finding> {
        if !self.config.is_conweave() {
            return Ok(());
        }
        if let Some(word) = self.config.given("RANDOM_SEED") {
            let seed: u64 = word.number("a seed")?;
            self.settings.top.push((format!("seed = {seed}"), word));
        }
        let Some(word) = self.config.get("LB_MODE") else { return Ok(()) };
        match word.number("a load balancer")? {
            // The import sets ECMP, with the hash of the simulator.
            0u32 => {}
            2 => self.put(word, "scheme.drill", ""),
            // The constants of the program.
            3 => {
                for line in ["flowlet-gap = \"100us\"", "dre-period = \"50us\"", "dre-alpha = 0.2"] {
                    self.put(word, "scheme.conga", line);
                }
                self.put(word, "scheme.conga", "quantisation-bits = 3");
                self.put(word, "scheme.conga", "ageing = \"500us\"");
            }
            6 => self.put(word, "scheme.flowlet", "gap = \"100us\""),
            9 => self.conweave(word)?,
            n => self.warn(
                &word,
                format!("there is no load balancer {n}: the program has ECMP then, and so has the scenario"),
            ),
        }
        Ok(())
    }

    /// The external switches of the long-haul prototype, whose program knows them by their numbers.
    fn external(&mut self) -> Result<(), Finding> {
        let Some(word) = self.config.given("ENABLE_THEMIS") else { return Ok(()) };
        if word.number::<f64>("0 or 1")? == 0.0 {
            return Ok(());
        }
        let ids: Vec<u32> = EXTERNAL.into_iter().filter(|id| self.graph.switches.contains_key(id)).collect();
        if ids.is_empty() {
            let text = "the program has the long-haul system in switches 48 and 49 alone, and the topology has neither";
            self.notes.notes.push(word.error(text).located());
            return Ok(());
        }
        // A switch has one role, so the new one takes the settings of the old one along.
        let old: Vec<Option<String>> = ids.iter().map(|id| self.settings.roles.remove(id)).collect();
        if let [first, second] = &old[..]
            && first != second
        {
            self.warn(&word, "switches 48 and 49 differ in their buffers; both have that of switch 48 here");
        }
        if let Some(Some(old)) = old.first() {
            let lines = self.settings.tables.get(&format!("switch-role.{old}")).cloned();
            self.settings.tables.insert("switch-role.external".to_owned(), lines.unwrap_or_default());
        }
        for old in old.into_iter().flatten() {
            if !self.settings.roles.values().any(|role| *role == old) {
                self.settings.tables.remove(&format!("switch-role.{old}"));
            }
        }
        for id in ids {
            self.settings.roles.insert(id, "external".to_owned());
        }
        for line in ["notification = \"prototype\"", "interval = \"10us\"", "reaction = \"prototype\""] {
            self.put(word, "switch-role.external.feedback.long-haul", line);
        }
        Ok(())
    }

    fn conweave(&mut self, mode: Token<'a>) -> Result<(), Finding> {
        const TABLE: &str = "scheme.conweave";
        self.put(mode, TABLE, "");
        let micros = |word: &Token<'a>| Ok(format!("\"{}\"", word.micros()?));
        if let Some(word) = self.config.get("CONWEAVE_REPLY_TIMEOUT_EXTRA") {
            let extra: u64 = word.number("a time in us")?;
            if extra != 4 {
                // The program takes 1 us per hop, there and back.
                let reply = self.graph.longest_between_tors().saturating_mul(2).saturating_add(extra);
                self.put(word, TABLE, format!("theta-reply = \"{reply}us\""));
            }
        }
        self.map("CONWEAVE_PATH_PAUSE_TIME", TABLE, "theta-path-busy", micros)?;
        self.map("CONWEAVE_TX_EXPIRY_TIME", TABLE, "theta-inactive", micros)?;
        self.map("CONWEAVE_DEFAULT_VOQ_WAITING_TIME", TABLE, "resume-default", micros)?;
        self.map("CONWEAVE_EXTRA_VOQ_FLUSH_TIME", TABLE, "resume-extra", micros)
    }

    /// A failure of a link for good.
    fn failure(&mut self) -> Result<(), Finding> {
        let Some(&[after, a, b]) = self.config.all("LINK_DOWN") else { return Ok(()) };
        let micros = after.micros()?;
        if micros.ps() == 0 {
            return Ok(());
        }
        let ends = [self.graph.node(&a)?, self.graph.node(&b)?];
        if !self.graph.links.iter().any(|link| [link.from, link.to] == ends || [link.to, link.from] == ends) {
            self.warn(&a, format!("no link joins the nodes {} and {}, so none fails", ends[0], ends[1]));
            return Ok(());
        }
        let start = match self.config.is_conweave() {
            true => {
                self.config.get("FLOWGEN_START_TIME").map(|word| word.time()).transpose()?.unwrap_or_default()
            }
            false => model::Time::from_ms(2_000),
        };
        let at = model::Time(start.ps().saturating_add(micros.ps()));
        let [a, b] = ends.map(|id| self.graph.name(id));
        self.put(after, "[failure]", format!("links = [[\"{a}\", \"{b}\"]]"));
        self.put(after, "[failure]", format!("at = \"{at}\""));
        self.put(after, "routing", "detection = \"0s\"");
        Ok(())
    }

    fn stop(&mut self, flows: &Flows<'_>) -> Result<(), Finding> {
        let conweave = self.config.is_conweave();
        let key = if conweave { "FLOWGEN_STOP_TIME" } else { "SIMULATOR_STOP_TIME" };
        let Some(word) = self.config.get(key) else { return Ok(()) };
        let text = word.text;
        let mut after = match text.parse::<f64>() {
            Ok(seconds) if seconds > LONGEST => {
                self.notes.notes.push(
                    word.error(format!(
                        "a stop at {text} s is never reached, so the run ends with its last flow"
                    ))
                    .located(),
                );
                return Ok(());
            }
            _ => word.time()?,
        };
        if conweave {
            after = model::Time(after.ps().saturating_add(model::Time::from_ms(10_000).ps()));
        }
        if let Some(late) = flows.after(after) {
            self.warn(
                &late,
                format!("this flow and all later ones start after the stop at {after}: they do not run"),
            );
        }
        self.put(word, "stop", format!("after = \"{after}\""));
        Ok(())
    }

    fn dialect(&self) -> Dialect {
        self.graph.dialect
    }
}

impl<'a> Settings<'a> {
    /// The lines of a scenario without a configuration file.
    pub(super) fn none(start: Token<'a>) -> Self {
        Settings { start, top: Vec::new(), tables: BTreeMap::new(), roles: BTreeMap::new() }
    }

    /// Lines above all tables.
    pub(super) fn top(&self) -> &[(String, Token<'a>)] {
        &self.top
    }

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

    /// The word that caused a line of the text of [`Settings::write`].
    pub(super) fn origin(&self, line: usize) -> Token<'a> {
        self.lines().nth(line).map_or(self.start, |(_, word)| word)
    }

    pub(super) fn write(&self, toml: &mut String) {
        for (line, _) in self.lines() {
            let _ = writeln!(toml, "{line}");
        }
    }
}
