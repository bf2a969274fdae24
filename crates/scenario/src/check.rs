//! Checked scenarios: from a source to a plan, with warnings.

use crate::document::Document;
use crate::footprint::{MemoryBudget, PacketRoom, Possible};
use crate::outlined::Outlined;
use crate::overlay::{AppliedChange, Change, Origin};
use crate::plan::{self, Detail, Kept};
use crate::program::{self, ProgramRanks};
use crate::resolve;
use crate::rules::case::Case;
use crate::source::Source;
use crate::tap::Tap;
use crate::traffic::Traffic;
use crate::workload::ranks::Ranks;
use crate::workload::serving::Laid;
use crate::{Plan, Scenario, own_nic, parts, rules, show};
use files::room::Room;
use finding::{Finding, code, suggestion};
use model::draw::{Key, Purpose};
use model::{Bytes, Fabric};
use rnic::{CongestionConfig, Nics, TransportConfig};
use schemes::{Assignment, Carried, FeedbackConfig, SchemeConfig};
use std::collections::BTreeSet;

/// A scenario that can run.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Name of the scenario: the name of its file without the extension.
    pub name: String,
    /// The scenario with every default filled in.
    pub scenario: Scenario,
    /// The plan that the engine simulates.
    pub plan: Plan,
    /// The scenario's schemes, and the switches and traffic classes that each of them serves.
    pub schemes: Assignment,
    /// The NICs of its queue pairs.
    pub nics: Nics,
    /// Warnings about settings that are possible but probably not intended.
    pub findings: Vec<Finding>,
    /// Estimated peak memory of a run, bytes.
    pub memory: u64,
    /// Memory that the run needs in addition if its queues, links or records fill.
    pub possible: Possible,
    document: Document,
}

/// A checked scenario of which only the traffic was counted, so that it cannot run.
#[derive(Debug)]
pub struct Survey {
    /// Its plan has the longest message of every queue pair alone, or of those that stand for others.
    checked: Checked,
    /// What its workloads send.
    pub traffic: Traffic,
}

impl Survey {
    /// Surveys a scenario. If this machine cannot run it, its findings say so.
    pub(crate) fn new(source: &Source, sets: &[String]) -> Result<Self, Finding> {
        let memory = MemoryBudget::new(Room::now()).counting();
        let Read { checked, traffic, .. } =
            Checked::read(Resolved::of(source, sets)?, Detail::Counted, memory)?;
        let mut traffic = traffic.unwrap_or_default();
        if let Some(serving) = checked.serving() {
            let (messages, packets) = serving.expected(&checked.plan.wire);
            // A message stands for each queue pair of the job.
            let stand = serving.queue_pairs();
            traffic.messages = (traffic.messages + messages).saturating_sub(stand);
            traffic.packets = (traffic.packets + packets).saturating_sub(stand);
        }
        Ok(Survey { checked, traffic })
    }

    /// Name of the scenario.
    pub fn name(&self) -> &str {
        &self.checked.name
    }

    /// The fabric.
    pub fn fabric(&self) -> &Fabric {
        &self.checked.plan.fabric
    }

    /// Number of queue pairs.
    pub fn queue_pairs(&self) -> u64 {
        self.traffic.queue_pairs
    }

    /// Estimated peak memory of a run, bytes, and what it needs in addition if its queues, links or records fill.
    pub fn memory(&self) -> (u64, Possible) {
        (self.checked.memory, self.checked.possible)
    }

    /// The scenario. Its plan has the longest message of every queue pair alone, or of those that stand for others.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// Warnings about settings that are possible but probably not intended.
    pub fn findings(&self) -> &[Finding] {
        &self.checked.findings
    }

    /// See [`Checked::annotated`].
    pub fn annotated(&self) -> String {
        self.checked.annotated()
    }

    /// See [`Checked::hash`].
    pub fn hash(&self) -> String {
        self.checked.hash()
    }
}

/// A scenario as it was read.
struct Read {
    checked: Checked,
    /// What its workloads send, if it was counted.
    traffic: Option<Traffic>,
    /// The outline of its job, if it was kept.
    kept: Option<Kept>,
}

/// A scenario with every default filled in, before its plan is made.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Name of the scenario.
    pub name: String,
    /// The scenario.
    pub scenario: Scenario,
    document: Document,
    /// Warnings about its source.
    warnings: Vec<Finding>,
}

impl Resolved {
    pub(crate) fn new(source: &Source, changes: &[Change]) -> Result<Self, Finding> {
        let document = Document::new(source, changes)?;
        let mut scenario: Scenario = document.read()?;
        resolve::resolve(&mut scenario, &|path| document.is_explicit(path))
            .and_then(|()| resolve::read_files(&mut scenario, source.folder()))
            .map_err(|error| document.locate(error))?;
        Ok(Resolved { name: source.name.clone(), scenario, document, warnings: source.warnings.clone() })
    }

    /// The scenario of a source with `KEY=VALUE` changes.
    ///
    /// # Errors
    /// The first mistake.
    pub fn of(source: &Source, sets: &[String]) -> Result<Self, Finding> {
        let changes = sets.iter().map(|set| Change::parse(set)).collect::<Result<Vec<_>, _>>()?;
        Resolved::new(source, &changes)
    }

    /// The path of the scheme that [`Resolved::swap`] replaces.
    pub(crate) fn scheme_path(&self, class: Option<&str>, name: &str) -> Result<Vec<String>, String> {
        let classes = self.scenario.traffic_classes().map_err(|error| error.text)?;
        swapped(&self.scenario, &classes, class, name).map(|(_, path)| path)
    }

    /// Replaces the scheme of a traffic class, as [`Resolved::with_scheme`] does; errors point at `origin`.
    pub(crate) fn swap(&mut self, class: Option<&str>, name: &str, origin: &Origin) -> Result<(), Finding> {
        let classes = self.scenario.traffic_classes().map_err(|error| self.document.locate(error))?;
        let path = swapped(&self.scenario, &classes, class, name);
        let (scenario, path) = path.map_err(|message| origin.error(false, &message))?;
        self.scenario = scenario;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        self.document.note(AppliedChange::at(&path, origin.clone()));
        if Entry::of(name).feedbacks.is_some() {
            self.document.note(AppliedChange::at(&["feedback"], origin.clone()));
        }
        Ok(())
    }

    /// The scenario with another scheme for a traffic class. `None` means `foreground`, or all classes if none has a scheme of its own. A
    /// scheme that the class already has keeps its settings; another scheme gets its defaults. `name` may be one of a scheme and a
    /// feedback, `themis+long-haul`, which then is the only feedback; `themis+none` is without. A feedback that the scenario has keeps
    /// its place and its settings.
    ///
    /// # Errors
    /// If there is no such scheme, feedback or class.
    pub fn with_scheme(&self, class: Option<&str>, name: &str) -> Result<Resolved, Finding> {
        let classes = self.scenario.traffic_classes().map_err(|error| self.document.locate(error))?;
        let (scenario, _) =
            swapped(&self.scenario, &classes, class, name).map_err(|text| code::UNKNOWN_NAME.plain(text))?;
        Ok(Resolved { scenario, ..self.clone() })
    }

    /// The scenario with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Resolved {
        self.scenario.seed = seed;
        self
    }

    /// Makes the plan and checks it.
    ///
    /// # Errors
    /// The first mistake.
    pub fn lay(self) -> Result<Checked, Finding> {
        let memory = MemoryBudget::new(Room::now());
        Checked::read(self, Detail::Whole, memory).map(|read| read.checked)
    }

    /// Checks it for a run that lays out the exchanges of its job when they start; `None` in the place of the outline if the job must be
    /// laid out before.
    ///
    /// # Errors
    /// The first mistake.
    pub fn outline(self) -> Result<(Checked, Option<Outlined>), Finding> {
        let memory = MemoryBudget::new(Room::now()).counting();
        let Read { checked, kept, .. } = Checked::read(self, Detail::Outlined, memory)?;
        let outlined = kept.map(|kept| Outlined::new(&checked, kept)).transpose()?;
        Ok((checked, outlined))
    }

    /// The parts that the program has added to the lists, see [`rnic::own`]: for each the number of its code, if that can change while the
    /// program runs.
    pub fn own_parts(&self) -> Vec<Option<u64>> {
        let Scenario { scheme, class, switch_role, nic, .. } = &self.scenario;
        let classes = class.values().filter_map(|class| class.scheme.as_ref());
        let roles = switch_role.values().filter_map(|role| role.scheme.as_ref());
        let schemes = std::iter::once(scheme).chain(classes).chain(roles).filter_map(|scheme| match scheme {
            SchemeConfig::Own(own) => Some(own.code()),
            _ => None,
        });
        let nics = std::iter::once(nic).chain(class.values().filter_map(|class| class.nic.as_ref()));
        let of_nics = nics.flat_map(|nic| {
            let mode = match &nic.transport {
                TransportConfig::Own(own) => Some(own.code()),
                _ => None,
            };
            let control = match &nic.congestion {
                CongestionConfig::Own(own) => Some(own.code()),
                _ => None,
            };
            [mode, control].into_iter().flatten()
        });
        schemes.chain(of_nics).collect()
    }

    /// True if the code of one of its parts can change while the program runs.
    pub fn may_change(&self) -> bool {
        self.own_parts().iter().any(Option::is_some)
    }

    /// The scenario as TOML with every default filled in; a run needs nothing else.
    pub fn to_toml(&self) -> String {
        show::plain(&self.scenario)
    }

    /// The scenario as TOML for readers: every key has a comment with its meaning, unit, default and source, and
    /// defaults are marked. A comment at the end lists the NICs that schemes bring.
    pub fn annotated(&self) -> String {
        annotated(&self.scenario, &self.document)
    }
}

/// An entry of a list of schemes: `themis`, or `themis+long-haul` for a scheme and a feedback.
struct Entry<'a> {
    scheme: &'a str,
    /// The feedbacks of the run, of which `none` is one; `None` for those of the scenario.
    feedbacks: Option<Vec<&'a str>>,
}

impl<'a> Entry<'a> {
    fn of(text: &'a str) -> Self {
        match text.split_once('+') {
            Some((scheme, rest)) => Entry { scheme, feedbacks: Some(rest.split('+').collect()) },
            None => Entry { scheme: text, feedbacks: None },
        }
    }
}

/// Gives the scenario these feedbacks alone. One that the scenario has keeps its place and its settings; another one stands
/// in all switches that it fits.
fn tell(scenario: &mut Scenario, names: &[&str]) -> Result<(), String> {
    if let Some(wrong) = names.iter().find(|name| FeedbackConfig::named(name).is_none()) {
        return Err(format!("unknown feedback `{wrong}`; {}", suggestion(wrong, FeedbackConfig::NAMES)));
    }
    let known = scenario.feedback_names();
    if !names.contains(&scenario.feedback.name()) {
        scenario.feedback = FeedbackConfig::default();
    }
    for role in scenario.switch_role.values_mut() {
        role.feedback.take_if(|feedback| !feedback.is_none() && !names.contains(&feedback.name()));
    }
    let named = names.iter().filter_map(|name| FeedbackConfig::named(name));
    let mut new = named.filter(|feedback| !feedback.is_none() && !known.contains(feedback.name()));
    let Some(feedback) = new.next() else { return Ok(()) };
    let taken = (!scenario.feedback.is_none()).then(|| scenario.feedback.clone());
    if let Some(other) = taken.or_else(|| new.next()) {
        let (one, other) = (feedback.name(), other.name());
        return Err(format!(
            "`{one}` and `{other}` cannot both stand in all switches; set one of them in `switch-role`, such as \
             `[switch-role.external.feedback.{one}]`"
        ));
    }
    scenario.feedback = feedback;
    Ok(())
}

/// The scenario with another scheme for a traffic class, and the path of that scheme.
fn swapped(
    scenario: &Scenario,
    classes: &[&str],
    class: Option<&str>,
    entry: &str,
) -> Result<(Scenario, Vec<String>), String> {
    let Entry { scheme: name, feedbacks } = Entry::of(entry);
    let all = class.is_none() && scenario.class.values().all(|class| class.scheme.is_none());
    let class = class.unwrap_or("foreground");
    if !classes.contains(&class) {
        return Err(format!("there is no traffic class `{class}`; {}", suggestion(class, classes)));
    }
    let Some(default) = SchemeConfig::named(name) else {
        let hint = if TransportConfig::names().contains(&name) {
            format!("it is a recovery mode of NICs, `nic.transport.{name}`")
        } else if FeedbackConfig::NAMES.contains(&name) {
            format!(
                "it is a feedback, which stands beside a scheme: `{}+{name}`",
                SchemeConfig::default().name()
            )
        } else {
            suggestion(name, SchemeConfig::names())
        };
        return Err(format!("unknown scheme `{name}`; {hint}"));
    };
    let mut scenario = scenario.clone();
    if let Some(names) = feedbacks {
        tell(&mut scenario, &names)?;
    }
    let whole = all || class == "foreground" && scenario.class.is_empty();
    if scenario.scheme_of(class).name() != name {
        if whole {
            scenario.scheme = default;
        } else {
            scenario.class.entry(class.to_owned()).or_default().scheme = Some(default);
        }
    }
    let path =
        if whole { vec!["scheme".to_owned()] } else { vec!["class".into(), class.into(), "scheme".into()] };
    Ok((scenario, path))
}

/// Refuses changes to the schemes at `path` that no run uses if `chooser` chooses among `schemes` there.
pub(crate) fn refuse_unused(
    changes: &[AppliedChange],
    path: &[String],
    schemes: &[&str],
    chooser: &str,
) -> Result<(), Finding> {
    let entries: Vec<Entry<'_>> = schemes.iter().map(|text| Entry::of(text)).collect();
    for (i, set) in changes.iter().enumerate() {
        if let Some(name) = set.feedback()
            && entries
                .iter()
                .all(|entry| entry.feedbacks.as_ref().is_some_and(|names| !names.contains(&name)))
        {
            let text = format!(
                "`{chooser}` chooses the feedbacks, and `{name}` is not among them: no run would use this"
            );
            return Err(set.origin.error(true, &text));
        }
        let Some(name) = set.variant(path) else { continue };
        if entries.iter().all(|entry| entry.scheme != name) {
            let text = format!(
                "`{chooser}` chooses the schemes, and `{name}` is not among them: no run would use this"
            );
            return Err(set.origin.error(true, &text));
        }
        let later =
            changes[i + 1..].iter().find_map(|later| later.variant(path).filter(|other| *other != name));
        if let Some(other) = later {
            let text = format!("a later change configures `{other}`, which removes the settings of `{name}`");
            let help =
                "one comparison can change the settings of one scheme; compare the other one by itself";
            return Err(set.origin.error(true, &text).with_help(help));
        }
    }
    Ok(())
}

impl Checked {
    /// The ranks of the program that drives the run; `None` if no program does.
    pub fn program(&self) -> Option<ProgramRanks> {
        let job = self.plan.posted?;
        let entry = self.scenario.workload.get(usize::from(job))?;
        let program = match &entry.program {
            Some(program) => program.clone(),
            None => self.serving()?.program(),
        };
        Some(ProgramRanks::new(&program, self.ranks()?, &self.plan, job))
    }

    /// The GPUs of the fabric. Making the plan has made the same, so there are always some.
    fn ranks(&self) -> Option<Ranks> {
        let server = self.scenario.server.map(|server| server.server()).transpose().ok()?;
        Ranks::new(&self.plan.fabric, server).ok()
    }

    /// What the run serves; `None` if it serves nothing. Making the plan has found the same.
    pub fn serving(&self) -> Option<Laid> {
        let (job, entry, serving) = (0..)
            .zip(&self.scenario.workload)
            .find_map(|(job, entry)| Some((job, entry, entry.serving.as_ref()?)))?;
        let key = Key::new(self.plan.seed, Purpose::Workload, job);
        serving.lay(&self.ranks()?, &self.plan.fabric, (key, entry.start)).ok()
    }

    /// The ports whose frames are captured.
    pub fn taps(&self) -> Vec<Tap> {
        // Making the plan has found the same ports, so there is no error here.
        self.scenario.record.ports(&self.plan.fabric).unwrap_or_default()
    }

    pub(crate) fn new(source: &Source, sets: &[String]) -> Result<Self, Finding> {
        Self::on(source, sets, Room::now())
    }

    /// Checks a scenario for a program that drives its run, see [`crate::load_program`].
    pub(crate) fn for_program(source: &Source, sets: &[String]) -> Result<Self, Finding> {
        let mut changes = sets.iter().map(|set| Change::parse(set)).collect::<Result<Vec<_>, _>>()?;
        let mut resolved = Resolved::new(source, &changes)?;
        if resolved.scenario.workload.iter().all(|entry| entry.program.is_none()) {
            changes.insert(0, Change::parse("workload=[{ program = {} }]")?);
            resolved = Resolved::new(source, &changes)?;
        }
        let memory = MemoryBudget::new(Room::now());
        Self::planned(resolved, Detail::Whole, memory).map(|read| read.checked)
    }

    /// Checks a scenario for a run that may take the memory of `room`.
    pub(crate) fn on(source: &Source, sets: &[String], room: Option<Room>) -> Result<Self, Finding> {
        Self::read(Resolved::of(source, sets)?, Detail::Whole, MemoryBudget::new(room))
            .map(|read| read.checked)
    }

    fn read(resolved: Resolved, detail: Detail, memory: MemoryBudget) -> Result<Read, Finding> {
        if let Some(program) = resolved.scenario.workload.iter().position(|entry| entry.program.is_some()) {
            let text = "a program posts the messages of this workload, so the scenario cannot run by itself";
            let help = "drive it with `ropewalk serve`, with `Session` in Python or over the C interface";
            let error = code::PROGRAM.at(&format!("workload.{program}.program"), text).with_help(help);
            return Err(resolved.document.locate(error));
        }
        Self::planned(resolved, detail, memory)
    }

    /// Makes the plan of a scenario, which a program may drive.
    fn planned(resolved: Resolved, detail: Detail, memory: MemoryBudget) -> Result<Read, Finding> {
        let Resolved { name, scenario, document, warnings } = resolved;
        let mut read = Self::lay(name, scenario, document, detail, memory)?;
        read.checked.findings.splice(..0, warnings);
        Ok(read)
    }

    fn lay(
        name: String,
        scenario: Scenario,
        document: Document,
        detail: Detail,
        mut memory: MemoryBudget,
    ) -> Result<Read, Finding> {
        let locate = |error| document.locate(error);
        scenario.nic.validate().map_err(|e| locate(nic_error(e)))?;
        for (name, class) in &scenario.class {
            let checked = class.nic.as_ref().map_or(Ok(()), |nic| nic.validate());
            checked.map_err(|e| locate(nic_error(e).within(&format!("class.{name}"))))?;
        }
        let plan::Laid { mut plan, traffic, load, nics, kept, mut warnings } =
            plan::plan(&scenario, detail, &mut memory).map_err(locate)?;
        let written = |path: &[String]| document.is_explicit(path);
        warnings.extend(rules::judge(&Case::new(&scenario, &plan, &nics, &written)).map_err(locate)?);
        let schemes = parts::schemes(&scenario, &plan);
        let nics = parts::nics(&scenario, &plan, &schemes);
        plan.wire.signal = schemes.signal();
        let room = PacketRoom::of(Carried::by(&plan, &schemes, &nics));
        memory.add_packets(&load, room).map_err(locate)?;
        memory.add_events(&plan, &load).map_err(locate)?;
        let possible = Possible::new(&plan, &load, &nics, room);
        // Exchanges that are laid out when they start need less memory.
        warnings.extend(memory.refusal().filter(|_| kept.is_none()));
        program::open(&scenario, &mut plan);
        if kept.is_some() {
            program::clear(&mut plan);
        }
        let checked = Checked {
            name,
            scenario,
            plan,
            schemes,
            nics,
            findings: warnings.into_iter().map(|warning| document.locate_warning(warning)).collect(),
            memory: memory.need(),
            possible,
            document,
        };
        Ok(Read { checked, traffic, kept })
    }

    /// The texts of all warnings.
    pub fn warnings(&self) -> Vec<String> {
        self.findings.iter().map(|warning| warning.text.clone()).collect()
    }

    /// The name of the scheme of the class `foreground`, and those of the feedbacks: `themis+long-haul`.
    pub fn scheme_name(&self) -> String {
        self.run_name(self.scenario.scheme_of("foreground").name())
    }

    /// [`Checked::scheme_name`] of the run that `entry` of a comparison stands for, see [`Resolved::with_scheme`].
    pub fn run_name(&self, entry: &str) -> String {
        let Entry { scheme, feedbacks } = Entry::of(entry);
        let names: BTreeSet<&str> = match feedbacks {
            Some(names) => {
                names.into_iter().filter(|name| FeedbackConfig::default().name() != *name).collect()
            }
            None => self.scenario.feedback_names(),
        };
        std::iter::once(scheme).chain(names).collect::<Vec<_>>().join("+")
    }

    /// The scenario before its plan was made.
    pub fn resolved(&self) -> Resolved {
        let (name, scenario) = (self.name.clone(), self.scenario.clone());
        Resolved { name, scenario, document: self.document.clone(), warnings: Vec::new() }
    }

    /// See [`Resolved::with_scheme`].
    ///
    /// # Errors
    /// If there is no such scheme, feedback or class, or one of them cannot run in this scenario.
    pub fn with_scheme(&self, class: Option<&str>, name: &str) -> Result<Checked, Finding> {
        self.resolved().with_scheme(class, name)?.lay()
    }

    /// Refuses changes that a comparison of `schemes` would never use: settings of other schemes, settings that a later change
    /// removes, and a seed if the comparison has `seeds`. See [`Resolved::with_scheme`] for `class`.
    ///
    /// # Errors
    /// The first such change.
    pub fn refuse_unused(&self, class: Option<&str>, schemes: &[&str], seeds: bool) -> Result<(), Finding> {
        let classes: Vec<&str> = self.plan.traffic_classes.iter().map(String::as_str).collect();
        // An unknown scheme or class is an error of `with_scheme`.
        let Some((_, path)) =
            schemes.first().and_then(|name| swapped(&self.scenario, &classes, class, name).ok())
        else {
            return Ok(());
        };
        refuse_unused(self.document.changes(), &path, schemes, "--schemes")?;
        match self.document.changes().iter().find(|set| set.path() == ["seed"]) {
            Some(set) if seeds => Err(set.origin.error(true, "set either `--seeds` or `seed`, not both")),
            _ => Ok(()),
        }
    }

    /// The scenario with another seed.
    ///
    /// # Errors
    /// If the random draws of the seed give an impossible plan.
    pub fn with_seed(&self, seed: u64) -> Result<Checked, Finding> {
        self.resolved().with_seed(seed).lay()
    }

    /// The scenario as TOML with every default filled in; repeating the run needs nothing else.
    pub fn to_toml(&self) -> String {
        show::plain(&self.scenario)
    }

    /// [`Checked::to_toml`] without these tables.
    pub fn to_toml_without(&self, tables: &[&str]) -> String {
        let mut all = show::table(&self.scenario);
        all.retain(|key, _| !tables.contains(&key));
        all.to_string()
    }

    /// The scenario as TOML for readers, see [`Resolved::annotated`].
    pub fn annotated(&self) -> String {
        annotated(&self.scenario, &self.document)
    }

    /// True if the scenario's author wrote the value at this path, or something inside it.
    pub(crate) fn writes(&self, path: &[String]) -> bool {
        self.document.is_explicit(path)
    }

    /// Hash of the resolved configuration, 16 hexadecimal digits (XXH3 of [`Checked::to_toml`]).
    pub fn hash(&self) -> String {
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(self.to_toml().as_bytes()))
    }
}

/// The scenario as TOML for readers: every key has a comment with its meaning, unit, default and source, and
/// defaults are marked. A comment at the end lists the NICs that schemes bring.
fn annotated(original: &Scenario, document: &Document) -> String {
    let explicit = |path: &[String]| document.is_explicit(path);
    let mut scenario = original.clone();
    if explicit(&["wire".into(), "payload".into()])
        && let Ok(wire) = scenario.wire.wire(scenario.compat)
    {
        // The user gave the payload, and the frame followed from it.
        (scenario.wire.frame, scenario.wire.payload) = (None, Some(Bytes(wire.payload.into())));
    }
    let mut text = show::annotated(&scenario, &explicit);
    let classes = original.class.values().filter_map(|class| class.scheme.as_ref());
    for scheme in std::iter::once(&original.scheme).chain(classes) {
        text += &own_nic::about(scheme, &original.nic);
    }
    text
}

fn nic_error(error: Finding) -> Finding {
    let key = error.key.last().map_or("", String::as_str);
    Finding { text: format!("`{key}` {}", error.text), ..error }.within("nic")
}
