//! Dips: sizes at which a collective has less bandwidth on the bus than at the next smaller size.

use std::fmt::Write;

/// A collective of one size.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// The case's label: collective and cluster, then the size.
    pub(super) label: String,
    pub(super) bytes: u64,
    pub(super) us: f64,
    /// Algorithm, protocol and channels that NCCL takes.
    pub(super) how: String,
}

impl Point {
    /// Collective and cluster, and the size.
    fn parts(&self) -> (&str, &str) {
        self.label.rsplit_once(", ").unwrap_or((&self.label, ""))
    }
}

/// A dip.
pub(super) struct Dip {
    /// The points on its two sides.
    before: Point,
    after: Point,
    at: At,
}

/// Where a dip lies.
#[derive(Clone, Copy, PartialEq)]
enum At {
    /// NCCL's choice differs from that of the size before.
    Switch,
    /// The bandwidth has fallen from size to size since a switch.
    Behind,
    Elsewhere,
}

/// The dips of all collectives and clusters. Of several times of one size, the shortest counts.
pub(super) fn dips(mut points: Vec<Point>) -> Vec<Dip> {
    points.sort_by(|a, b| (a.parts().0, a.bytes).cmp(&(b.parts().0, b.bytes)).then(a.us.total_cmp(&b.us)));
    points.dedup_by(|later, first| later.parts().0 == first.parts().0 && later.bytes == first.bytes);
    let speed = |point: &Point| point.bytes as f64 / point.us;
    let (mut found, mut fall) = (Vec::new(), false);
    for pair in points.windows(2) {
        let (before, after) = (pair[0].clone(), pair[1].clone());
        if before.parts().0 != after.parts().0 || speed(&after) >= speed(&before) {
            fall = false;
            continue;
        }
        let at = match before.how != after.how {
            true => At::Switch,
            false if fall => At::Behind,
            false => At::Elsewhere,
        };
        fall = at != At::Elsewhere;
        found.push(Dip { before, after, at });
    }
    found
}

/// How many dips there are, how many of them lie at a switch of NCCL's choice, and the names of those elsewhere.
pub(super) fn told(what: &str, points: Vec<Point>) -> String {
    let all = dips(points);
    let count = |at| all.iter().filter(|dip| dip.at == at).count();
    let mut text = format!(
        "Dips of {what}: {}; {} at a switch of NCCL's choice, {} in a fall that begins at one\n",
        all.len(),
        count(At::Switch),
        count(At::Behind)
    );
    for Dip { before, after, .. } in all.iter().filter(|dip| dip.at == At::Elsewhere) {
        let ((of, from), (_, to)) = (before.parts(), after.parts());
        let _ = writeln!(text, "  elsewhere: {of}, {from} to {to}, both by {}", after.how);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, read};
    use super::*;
    use std::collections::BTreeSet;

    /// NCCL's choice for a cell. Slices do not change it, and take long to lay out.
    fn how(cell: &Cell) -> String {
        let case = cell.case().and("server.cost=none").and("workload.0.collective.tuning.message=1GiB");
        let plan = scenario::load(case.scenario, &case.set).unwrap().plan;
        let made = &plan.operations[0];
        format!("{} {} {}", made.algorithm, made.protocol, made.channels)
    }

    fn point(label: &str, bytes: u64, us: f64, how: &str) -> Point {
        Point { label: label.to_owned(), bytes, us, how: how.to_owned() }
    }

    #[test]
    fn a_dip_is_named_unless_it_lies_at_a_switch_or_continues_a_fall_from_one() {
        let mut points = vec![
            point("a, 4", 4, 1.0, "ring"),
            point("a, 5", 5, 2.0, "tree"),
            point("a, 6", 6, 3.0, "tree"),
            point("a, 8", 8, 3.0, "tree"),
            point("a, 9", 9, 4.0, "tree"),
            // Another cluster, which is slower.
            point("b, 4", 4, 8.0, "ring"),
            // A second, slower time of a size is no dip.
            point("b, 4", 4, 9.0, "ring"),
        ];
        let expected = "Dips of it: 3; 1 at a switch of NCCL's choice, 1 in a fall that begins at one\n  \
                        elsewhere: a, 8 to 9, both by tree\n";
        assert_eq!(told("it", points.clone()), expected);
        points.reverse();
        assert_eq!(told("it", points), expected);
    }

    /// The measured times lie on ramps, so that a fall covers several sizes. All-gathers and reduce-scatters on two servers fall one size
    /// later than NCCL's model leaves LL128. Nothing is fitted to this.
    #[test]
    fn measured_bandwidth_falls_at_switches_of_nccls_choice_but_for_three_sizes() {
        let cells = read("h100.csv", include_str!("h100.csv")).unwrap();
        let plain = |cell: &Cell| point(&cell.case().label, cell.bytes, cell.us, "");
        let sides: BTreeSet<String> = dips(cells.iter().map(plain).collect())
            .into_iter()
            .flat_map(|dip| [dip.before.label, dip.after.label])
            .collect();
        let of = |cell: &Cell| {
            let point = plain(cell);
            let how = if sides.contains(&point.label) { how(cell) } else { String::new() };
            Point { how, ..point }
        };
        assert_eq!(
            told("the measured bus bandwidth", cells.iter().map(of).collect()),
            "Dips of the measured bus bandwidth: 15; 6 at a switch of NCCL's choice, 6 in a fall that begins at one\n  \
             elsewhere: all-gather, 2 x 8, 56 MiB to 64 MiB, both by ring simple 16\n  \
             elsewhere: all-to-all, 8 x 8, 12 MiB to 16 MiB, both by direct simple 1\n  \
             elsewhere: reduce-scatter, 2 x 8, 56 MiB to 64 MiB, both by ring simple 16\n"
        );
    }
}
