//! The answer's foundation: dominant cause, assumed settings, survival.

use super::blame::{self, Blame};
use super::contender::Contender;
use super::root::{self, Root, row};
use super::survival::{self, Ranking, Survival, TIE};
use lab::execute::{Prepared, Run, execute, window_on};
use lab::{Crew, Failure, Progress};
use results::text::{number, percent};
use scenario::{Checked, Evidence, Setting};
use serde::Serialize;

/// Most settings that the answer names. Our choice.
const SETTINGS: usize = 3;
/// Smallest time that flows lost under the fastest scheme, as a share of that under the other, whose cause is named. Our choice.
const WORTH_SAYING: f64 = 0.25;
/// Most causes that are named where none dominates. Our choice.
const CAUSES: usize = 3;

/// What is asked.
pub struct Asked<'a> {
    /// The contenders in any order. With a single one the cause is all that there is to tell.
    pub contenders: Vec<Contender<'a>>,
    /// The contender with which the fastest is compared; `None` for the slowest.
    pub baseline: Option<&'a str>,
    /// What the contenders have in common, and the name of the time that ranks them, where a sweep or an experiment has several
    /// rankings.
    pub place: Option<(String, String)>,
    /// The time that ranks runs, us.
    pub measure: &'a (dyn Fn(&Run) -> Option<f64> + Sync),
    /// Packet-hops of the runs of which the contenders are a part; the variations may take as many.
    pub hops: u64,
    /// True if the contenders have several seeds.
    pub seeded: bool,
    /// Threads.
    pub crew: Crew,
}

/// What decides a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What the contenders have in common, in a sweep or an experiment with several rankings.
    pub place: Option<String>,
    /// The fastest scheme, or choice of settings.
    pub fastest: String,
    /// The one with which it is compared.
    pub against: String,
    /// Where the time went under each of the two.
    pub time: Vec<Blame>,
    /// Dominant cause under `against`; null if none dominates.
    pub cause: Option<Root>,
    /// Settings on which the cause depends and that the scenario leaves to defaults, the least certain first.
    pub rests_on: Vec<Setting>,
    /// Whether the ranking survives other values; null for a tie.
    pub survives: Option<Survival>,
    /// The answer in sentences.
    pub answer: Vec<String>,
}

/// What decides a ranking; `None` if nothing competes, no flow lost time, or runs left out what repeats or served requests: these
/// cannot record where time goes. The fastest and the one with which it is compared run once more with events recorded, and the
/// contenders with each variation.
///
/// # Errors
/// If the user interrupted it.
pub fn of(asked: &Asked<'_>, progress: &Progress<'_>) -> Result<Option<Verdict>, Failure> {
    if asked.contenders.iter().any(|of| of.run.summary.fast.is_some() || of.run.served.is_some()) {
        return Ok(None);
    }
    let mut order: Vec<&Contender<'_>> = asked.contenders.iter().collect();
    order.sort_by(|a, b| a.us.total_cmp(&b.us));
    let (Some(fastest), Some(last)) = (order.first().copied(), order.last().copied()) else {
        return Ok(None);
    };
    let baseline = order[1..].iter().find(|other| asked.baseline == Some(other.name.as_str())).copied();
    // Those that tie with the fastest are not ranked against it.
    let tied = |other: &&&Contender<'_>| other.us <= fastest.us * TIE;
    let next = order[1..].iter().find(|other| !tied(other)).or(order.get(1)).map_or(fastest, |next| next);
    let against = baseline.unwrap_or(if asked.baseline == Some(&fastest.name) { next } else { last });
    let tie = last.us <= fastest.us * TIE;
    let mut recorded = vec![against];
    if against.name != fastest.name {
        recorded.push(fastest);
    }
    let prepared: Vec<(String, Prepared)> =
        recorded.into_iter().filter_map(|of| Some((of.name.clone(), blame::recording(of.run)?))).collect();
    let one = |(name, prepared): (String, Prepared), threads| {
        if progress.stopped() {
            return Err(Failure::Interrupted);
        }
        let kind = window_on(threads, &prepared.checked.plan);
        let blame = blame::of(&execute(prepared, kind, progress))?;
        Ok(blame.map(|blame| Blame { scheme: name, ..blame }))
    };
    progress.expect(prepared.len());
    let time = asked.crew.side_by_side(prepared, one)?.into_iter().collect::<Result<Vec<_>, _>>()?;
    let time: Vec<Blame> = time.into_iter().flatten().collect();
    let Some(first) = time.iter().find(|blame| blame.scheme == against.name) else { return Ok(None) };
    let cause = first.dominant().map(|share| share.cause);
    let varied = varied(first);
    let rests_on = cause.or(varied).map_or_else(Vec::new, |root| rests_on(&against.run.checked, root));
    let control = root::control(&against.run.checked);
    let survives = match varied.filter(|_| !tie) {
        None => None,
        Some(root) => {
            let mut contenders = vec![fastest];
            for other in [next, against] {
                if contenders.iter().all(|known| known.name != other.name) {
                    contenders.push(other);
                }
            }
            let ranking = Ranking { contenders, root, hops: asked.hops, seeded: asked.seeded };
            Some(survival::of(&ranking, asked.measure, asked.crew, progress)?)
        }
    };
    let mut answer = Vec::new();
    if let Some((place, what)) = &asked.place {
        answer.push(headline(place, what, fastest, against, tie));
    }
    answer.push(sentence(first, &capital(&under(against))));
    answer.extend(resting(&rests_on));
    let much = |blame: &&Blame| blame.scheme == fastest.name && blame.us > first.us * WORTH_SAYING;
    if let Some(second) = time.iter().find(much)
        && let (Some(share), true) = (second.dominant(), second.dominant().map(|s| s.cause) != cause)
    {
        let under = capital(&under(fastest));
        answer.push(format!("{under}, {} {}.", percent(share.share), of_what(second, &share.what)));
    }
    let ties: Vec<&str> = order.iter().take_while(tied).map(|of| of.name.as_str()).collect();
    if let ([most @ .., last], false) = (&*ties, tie)
        && !most.is_empty()
    {
        answer.push(format!("{} and {last} are within 2 %: a tie.", most.join(", ")));
    }
    answer.extend(survives.iter().flat_map(|survival| survival.sentences(&control)));
    Ok(Some(Verdict {
        place: asked.place.as_ref().map(|(place, _)| place.clone()),
        fastest: fastest.name.clone(),
        against: against.name.clone(),
        cause,
        rests_on,
        survives,
        answer,
        time,
    }))
}

/// The ranking of a place in a sentence.
fn headline(place: &str, what: &str, fastest: &Contender<'_>, against: &Contender<'_>, tie: bool) -> String {
    let shown =
        |us: f64| if us < 1e5 { format!("{} us", number(us)) } else { format!("{} ms", number(us / 1e3)) };
    let at = if place.is_empty() { String::new() } else { format!("{place}: ") };
    if fastest.name == against.name {
        return format!("{at}{} takes longest: {what} {}.", fastest.name, shown(fastest.us));
    }
    if tie {
        return format!("{at}all are within 2 %: {what} {}.", shown(fastest.us));
    }
    format!(
        "{at}{} is fastest: {what} {} against {} {}.",
        fastest.name,
        shown(fastest.us),
        shown(against.us),
        under(against)
    )
}

/// `under themis`, or `with kmin 5kB`.
fn under(of: &Contender<'_>) -> String {
    let word = if of.name == of.run.summary.scheme { "under" } else { "with" };
    format!("{word} {}", of.name)
}

fn capital(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

/// The cause whose settings are varied: the largest one about which settings can say anything.
fn varied(blame: &Blame) -> Option<Root> {
    let network =
        |root: Root| !matches!(root, Root::Computation | Root::Alone | Root::Server | Root::Schedule);
    let largest = blame.causes.first()?;
    // Computation is the same under all schemes; what differs is the rest.
    let differs = blame.causes.iter().find(|share| network(share.cause));
    Some(differs.unwrap_or(largest).cause)
}

/// The settings of a cause that the scenario leaves to defaults, the least certain first.
fn rests_on(checked: &Checked, root: Root) -> Vec<Setting> {
    let Some(row) = row(root) else { return Vec::new() };
    let control = || checked.scenario.nic.congestion.decisive().into_iter().map(|key| format!("nic.{key}"));
    let keys = row.depends.iter().flat_map(|key| match *key {
        "control" => control().collect(),
        key => vec![key.to_owned()],
    });
    let mut settings: Vec<Setting> =
        keys.filter_map(|key| checked.setting(&key)).filter(|s| s.evidence != Evidence::Written).collect();
    let uncertain = |setting: &Setting| setting.evidence > Evidence::OurChoice;
    settings.sort_by_key(uncertain);
    settings.truncate(SETTINGS);
    settings
}

/// Causes in a sentence.
fn sentence(blame: &Blame, under: &str) -> String {
    if let Some(share) = blame.dominant() {
        return format!("{under}, {} {}.", percent(share.share), of_what(blame, &share.what));
    }
    let parts: Vec<String> = blame
        .causes
        .iter()
        .take(CAUSES)
        .map(|share| format!("{} goes to {}", percent(share.share), share.what))
        .collect();
    let whole = if blame.of_step { "of the step" } else { "of the time that flows lost" };
    format!("{under}, no cause has half {whole}: {}.", parts.join(", "))
}

fn of_what(blame: &Blame, what: &str) -> String {
    match blame.of_step {
        true => format!("of the step's critical path goes to {what}"),
        false => format!("of the time that flows lost goes to {what}"),
    }
}

/// The settings in a sentence, with values and sources.
fn resting(settings: &[Setting]) -> Option<String> {
    let named = |setting: &Setting| {
        let short = setting.key.split('.').rev().take(2).collect::<Vec<_>>();
        let key = short.into_iter().rev().collect::<Vec<_>>().join(".");
        // The first words of a source name its kind.
        let source = setting.source.split([';', ',']).next().unwrap_or_default();
        let source = source.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{key} = {} ({source})", setting.value)
    };
    (!settings.is_empty()).then(|| {
        format!("That rests on defaults: {}.", settings.iter().map(named).collect::<Vec<_>>().join(", "))
    })
}
