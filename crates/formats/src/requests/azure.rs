//! Microsoft Azure's traces of LLM inference, 2023 and 2024.

use super::rows::{decimal, read_csv};
use super::trace::Trace;
use finding::Finding;

const NAMES: [&str; 3] = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];

pub(super) fn read(file: &str, text: &str) -> Result<Trace, Finding> {
    read_csv((file, text), NAMES, PS_PER_TICK, |word| {
        ticks(word.word).ok_or_else(|| {
            word.error(format!("expected a time such as 2023-11-16 18:17:03.9799600, found `{}`", word.word))
        })
    })
}

/// Picoseconds of a tick, a tenth of a microsecond.
const PS_PER_TICK: u64 = 100_000;

/// The ticks since March 1999. Times of zone 0 may say so.
fn ticks(text: &str) -> Option<u64> {
    let text = text.trim_end_matches("+00:00").trim_end_matches('Z');
    let (date, time) = text.split_once([' ', 'T'])?;
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.len() <= 4);
    let mut date = date.split('-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (number(time.next()?)?, number(time.next()?)?);
    let second = decimal(time.next()?, 7)?;
    let days = match month {
        2 => 28 + u64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let fits = (2000..2100).contains(&year) && (1..=12).contains(&month) && (1..=days).contains(&day);
    // A minute may have a leap second.
    if !fits || hour > 23 || minute > 59 || second >= 610_000_000 {
        return None;
    }
    // Years begin in March, so that the leap day is the last of its year.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * (y - 1999) + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day;
    let seconds = (days * 24 + hour) * 3600 + minute * 60;
    Some(seconds * 10_000_000 + second)
}
