//! The right word for a wrong one.

/// The word of `words` that is nearest to `wrong`, if it is near enough to be a typing error.
pub fn nearest<'a>(wrong: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = simple(wrong);
    let mut all: Vec<(Distance, &str)> =
        words.into_iter().map(|word| (distance(&wrong, word), word)).collect();
    all.sort_by_key(|(distance, _)| *distance);
    let near =
        |&&(Distance { errors, .. }, word): &&(Distance, &str)| errors <= 1 + word.len().min(wrong.len()) / 3;
    match all.iter().take_while(near).collect::<Vec<_>>()[..] {
        [] => None,
        // A part of several words may mean any of them.
        [(one, _), (other, _), ..] if one.part && other.part => None,
        [(_, word), ..] => Some(word),
    }
}

/// A word as [`distance`] compares it.
fn simple(word: &str) -> String {
    word.to_lowercase().replace('_', "-")
}

/// How far a word is from another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    /// Number of typing errors between them; 1 if one of them begins with the other, [`PART`] if it is a part of the other.
    errors: usize,
    /// True if it counts as a part of the other word.
    part: bool,
    /// Number of letters to change.
    letters: usize,
}

/// Typing errors for which a part of a word counts, such as `mixed` of `entropy-mixed`. Our choice: most words are so near
/// to their parts that the user means them, but one with a single typing error is nearer.
const PART: usize = 2;

/// How far `word` is from a wrong one.
fn distance(wrong: &str, word: &str) -> Distance {
    let word = word.to_lowercase();
    let letters = strsim::damerau_levenshtein(&word, wrong);
    let begins = !wrong.is_empty() && (word.starts_with(wrong) || wrong.starts_with(&word));
    let part = !begins && letters > PART && word.split('-').any(|part| part == wrong);
    let errors = if begins {
        letters.min(1)
    } else if part {
        PART
    } else {
        letters
    };
    Distance { errors, part, letters }
}

/// "did you mean ...?" with the nearest word. If none is near, the words if they are few, else the nearest three of them.
pub fn suggestion(wrong: &str, words: &[&str]) -> String {
    const FEW: usize = 3;
    let quoted = |words: &[&str]| words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
    match nearest(wrong, words.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None if words.is_empty() => "no name is possible here".into(),
        None if words.len() <= FEW => format!("expected one of {}", quoted(words)),
        None => {
            let mut by_distance = words.to_vec();
            by_distance.sort_by_key(|word| distance(&simple(wrong), word));
            by_distance.truncate(FEW);
            format!("the nearest of {} names are {}", words.len(), quoted(&by_distance))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_near() {
        let words = ["leaves", "spines", "hosts-per-leaf", "rate"];
        assert_eq!(nearest("leafs", words), Some("leaves"));
        assert_eq!(nearest("hosts_per_leaf", words), Some("hosts-per-leaf"));
        assert_eq!(nearest("hosts", words), Some("hosts-per-leaf"));
        let caps = ["queue-cap", "queue-cap-to-hosts", "queue-cap-at-rate"];
        assert_eq!(nearest("queue-cap-to-host", caps), Some("queue-cap-to-hosts"));
        assert_eq!(nearest("mixed", ["bicc", "entropy-mixed", "mixer"]), Some("mixer"));
        assert_eq!(nearest("mixed", ["bicc", "mrc", "entropy-mixed"]), Some("entropy-mixed"));
        assert_eq!(nearest("mixed", ["class-mixed", "mrc", "entropy-mixed"]), None);
        assert_eq!(nearest("xyz", words), None);
        assert_eq!(nearest("", words), None);
    }

    #[test]
    fn a_name_that_is_far_from_all_gets_the_nearest_three() {
        let words = ["ecmp", "rps", "ar", "drill", "themis"];
        assert_eq!(suggestion("themiss", &words), "did you mean `themis`?");
        assert_eq!(suggestion("xmxp", &words), "the nearest of 5 names are `ecmp`, `rps`, `ar`");
        assert_eq!(suggestion("zzzzzz", &words[..3]), "expected one of `ecmp`, `rps`, `ar`");
        assert_eq!(suggestion("x", &[]), "no name is possible here");
        let nics = ["ecmp", "rps", "rps-nic", "flowlet-nic"];
        assert_eq!(suggestion("nic", &nics), "the nearest of 4 names are `rps-nic`, `flowlet-nic`, `rps`");
    }
}
