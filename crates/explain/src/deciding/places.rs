//! A sweep or an experiment has a ranking at each of several places. The widest is worth a verdict, and the widest that another one wins.

use super::survival::TIE;
use std::collections::BTreeMap;

/// One that competes at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it has in common with those that it competes with.
    pub place: String,
    /// Name.
    pub name: String,
    /// Time that ranks it, us.
    pub us: f64,
}

/// The entries of each ranking that is worth a verdict: the fastest, the next that is no tie, and the slowest. If nothing competes, the
/// slowest entry by itself.
pub fn chosen(entries: &[Entry]) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, entry) in entries.iter().enumerate() {
        places.entry(&entry.place).or_default().push(i);
    }
    let by_time = |a: &usize, b: &usize| entries[*a].us.total_cmp(&entries[*b].us);
    let mut rankings: Vec<Vec<usize>> = places.into_values().filter(|all| all.len() > 1).collect();
    rankings.iter_mut().for_each(|ranking| ranking.sort_by(by_time));
    let lead = |ranking: &Vec<usize>| {
        let end = |i: Option<&usize>| i.map_or(1.0, |&i| entries[i].us);
        end(ranking.last()) / end(ranking.first()).max(1e-9)
    };
    rankings.sort_by(|a, b| lead(b).total_cmp(&lead(a)));
    let Some(widest) = rankings.first() else {
        return (0..entries.len()).max_by(by_time).map(|slowest| vec![slowest]).into_iter().collect();
    };
    let winner = &entries[widest[0]].name;
    let lost = |ranking: &&Vec<usize>| {
        let (first, won) = (entries[ranking[0]].us, ranking.iter().find(|&&i| entries[i].name == *winner));
        won.is_some_and(|&i| entries[i].us > first * TIE)
    };
    let three = |ranking: &Vec<usize>| {
        let (first, last) = (ranking[0], ranking[ranking.len() - 1]);
        let next = ranking.iter().copied().find(|&i| entries[i].us > entries[first].us * TIE);
        let mut three = vec![first, next.unwrap_or(last), last];
        three.dedup();
        three
    };
    std::iter::once(widest).chain(rankings.iter().find(lost)).map(three).collect()
}

/// What the words of several labels have in common in front and behind, and what is left of each.
pub fn apart(labels: &[&str]) -> (String, Vec<String>) {
    let words: Vec<Vec<&str>> = labels.iter().map(|label| label.split(' ').collect()).collect();
    let shortest = words.iter().map(Vec::len).min().unwrap_or(0);
    let common = |at: &dyn Fn(&[&'_ str], usize) -> String, most: usize| {
        (0..most).take_while(|&i| words.windows(2).all(|pair| at(&pair[0], i) == at(&pair[1], i))).count()
    };
    let front = common(&|words, i| words[i].to_owned(), shortest.saturating_sub(1));
    let behind =
        common(&|words, i| words[words.len() - 1 - i].to_owned(), shortest.saturating_sub(1 + front));
    let trimmed = |words: &[&str]| words.join(" ").trim_matches([',', ':', ' ']).to_owned();
    let first = words.first().map_or(&[][..], Vec::as_slice);
    let place = [&first[..front], &first[first.len() - behind..]].map(trimmed);
    let rest = words.iter().map(|words| trimmed(&words[front..words.len() - behind])).collect();
    (place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(all: &[(&str, &str, f64)]) -> Vec<Entry> {
        let of = |(place, name, us): &(&str, &str, f64)| Entry {
            place: (*place).to_owned(),
            name: (*name).to_owned(),
            us: *us,
        };
        all.iter().map(of).collect()
    }

    #[test]
    fn the_widest_ranking_is_chosen_and_the_widest_that_another_one_wins() {
        let all = entries(&[
            ("small", "ecmp", 110.0),
            ("small", "ar", 100.0),
            ("large", "ecmp", 300.0),
            ("large", "ar", 130.0),
            ("large", "themis", 100.0),
            ("large", "rps", 101.0),
            ("slow link", "ar", 150.0),
            ("slow link", "themis", 200.0),
        ]);
        // rps ties with themis, so ar is the next.
        assert_eq!(chosen(&all), [vec![4, 3, 2], vec![6, 7]]);
    }

    #[test]
    fn where_nothing_competes_the_slowest_stands_alone() {
        assert_eq!(chosen(&entries(&[("1 MB", "", 10.0), ("8 MB", "", 80.0)])), [vec![1]]);
        assert_eq!(chosen(&[]), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn labels_are_divided_into_a_place_and_names() {
        let of = |labels: &[&str]| apart(labels);
        let (place, names) = of(&["all-reduce, 3 MB (900, 4) ar", "all-reduce, 3 MB (900, 4) themis"]);
        assert_eq!(
            (place.as_str(), names),
            ("all-reduce, 3 MB (900, 4)", vec!["ar".to_owned(), "themis".into()])
        );
        let (place, names) = of(&["ecmp, incast", "flowcut, full, incast"]);
        assert_eq!((place.as_str(), names), ("incast", vec!["ecmp".to_owned(), "flowcut, full".into()]));
        assert_eq!(of(&["a", "b"]), (String::new(), vec!["a".to_owned(), "b".into()]));
    }
}
