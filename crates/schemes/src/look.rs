//! How pictures draw schemes. Pages and Python take the looks from here, so that a scheme looks the same everywhere.

pub use crate::palette::{DASHES, HUES, Hue, Look, MARKERS};
use crate::{FeedbackConfig, SchemeConfig};

/// The look that a scheme or a feedback chooses.
fn chosen(name: &str) -> Option<Look> {
    let of_feedback = || FeedbackConfig::named(name)?.look();
    SchemeConfig::named(name).map_or_else(of_feedback, |scheme| scheme.look())
}

/// Look of a scheme by its name, which further words may follow. A feedback beside ECMP has the look of the feedback. A scheme
/// that chooses no look, and a name that is not in the lists, get one of the looks that are free, by a hash.
pub fn of(name: &str) -> Look {
    let name = name.split(|c: char| c.is_whitespace() || c == ',').next().unwrap_or_default();
    let name = name.strip_prefix("ecmp+").unwrap_or(name);
    if let Some(look) = chosen(name) {
        return look;
    }
    let names = || SchemeConfig::names().iter().chain(FeedbackConfig::NAMES);
    let taken = |look: &Look| names().any(|name| chosen(name) == Some(*look));
    let all = (0..DASHES.len()).flat_map(|dash| (0..HUES.len()).map(move |hue| Look::new(hue, dash)));
    let free: Vec<Look> = all.filter(|look| !taken(look)).collect();
    let hash = name.bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()) % 997);
    free[hash % free.len()]
}

/// Looks of all schemes and feedbacks of this program.
pub fn all() -> impl Iterator<Item = (&'static str, Look)> {
    let feedbacks = FeedbackConfig::NAMES.iter().filter(|name| **name != FeedbackConfig::default().name());
    SchemeConfig::names().iter().chain(feedbacks).map(|name| (*name, of(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    type Triple = [f64; 3];

    /// Linear sRGB of `#rrggbb`.
    fn linear(hex: &str) -> Triple {
        [1, 3, 5].map(|i| {
            let c = f64::from(u8::from_str_radix(&hex[i..i + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: [Triple; 3], v: Triple) -> Triple {
        matrix.map(|row| row.iter().zip(v).map(|(m, x)| m * x).sum())
    }

    /// Complete loss of one kind of cones in linear sRGB: Machado, Oliveira and Fernandes (IEEE TVCG 2009), severity 1.
    const VISIONS: [(&str, [Triple; 3]); 4] = [
        ("normal vision", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ),
    ];

    /// CIELAB of linear sRGB, at D65.
    fn lab(rgb: Triple) -> Triple {
        let to_xyz = [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ];
        let xyz = times(to_xyz, rgb.map(|c| c.clamp(0.0, 1.0)));
        let f = |t: f64| {
            if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 }
        };
        let [x, y, z] = [f(xyz[0] / 0.95047), f(xyz[1]), f(xyz[2] / 1.08883)];
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// Difference of two colours by CIEDE2000 (ISO/CIE 11664-6).
    fn difference([l1, a1, b1]: Triple, [l2, a2, b2]: Triple) -> f64 {
        let seventh = |c: f64| (c.powi(7) / (c.powi(7) + 25f64.powi(7))).sqrt();
        let g = 0.5 * (1.0 - seventh(f64::midpoint(a1.hypot(b1), a2.hypot(b2))));
        let (a1, a2) = (a1 * (1.0 + g), a2 * (1.0 + g));
        let (c1, c2) = (a1.hypot(b1), a2.hypot(b2));
        let (h1, h2) = (b1.atan2(a1).to_degrees(), b2.atan2(a2).to_degrees());
        let turn = (h2 - h1 + 540.0).rem_euclid(360.0) - 180.0;
        let (l, c) = (f64::midpoint(l1, l2), f64::midpoint(c1, c2));
        let h = (h1 + turn / 2.0).rem_euclid(360.0);
        let cos = |degrees: f64| degrees.to_radians().cos();
        let t = 1.0 - 0.17 * cos(h - 30.0) + 0.24 * cos(2.0 * h) + 0.32 * cos(3.0 * h + 6.0)
            - 0.20 * cos(4.0 * h - 63.0);
        let from_50 = (l - 50.0).powi(2);
        let s_l = 1.0 + 0.015 * from_50 / (20.0 + from_50).sqrt();
        let (s_c, s_h) = (1.0 + 0.045 * c, 1.0 + 0.015 * c * t);
        let bend = 30.0 * (-((h - 275.0) / 25.0).powi(2)).exp();
        let r = -(2.0 * bend).to_radians().sin() * 2.0 * seventh(c);
        let (dl, dc) = ((l2 - l1) / s_l, (c2 - c1) / s_c);
        let dh = 2.0 * (c1 * c2).sqrt() * (turn / 2.0).to_radians().sin() / s_h;
        (dl * dl + dc * dc + dh * dh + r * dc * dh).sqrt()
    }

    #[test]
    fn the_difference_is_that_of_the_standards_examples() {
        // Sharma, Wu and Dalal (2005), pairs 1, 7, 17 and 20.
        for (a, b, expected) in [
            ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
            ([50.0, 0.0, 0.0], [50.0, -1.0, 2.0], 2.3669),
            ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
            ([50.0, 2.5, 0.0], [58.0, 24.0, 15.0], 19.4535),
        ] {
            assert!((difference(a, b) - expected).abs() < 1e-4, "{}", difference(a, b));
        }
    }

    #[test]
    fn colours_differ_for_every_kind_of_colour_vision() {
        let pick: [fn(&Hue) -> &'static str; 2] = [|hue| hue.light, |hue| hue.dark];
        for (vision, matrix) in VISIONS {
            for of in pick {
                for (i, a) in HUES.iter().enumerate() {
                    for b in &HUES[..i] {
                        let seen = |hue| lab(times(matrix, linear(of(hue))));
                        let far = difference(seen(a), seen(b));
                        assert!(far >= 13.0, "{vision}: {} and {} differ by {far:.1}", of(a), of(b));
                    }
                }
            }
        }
    }

    #[test]
    fn colours_stand_out_from_the_background() {
        let brightness = |hex| {
            let [r, g, b] = linear(hex);
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        for hue in &HUES {
            // The backgrounds of the pages; paper is lighter than the first.
            assert!(brightness("#fdfdfc") / brightness(hue.light) >= 2.995, "{hue:?}");
            assert!(brightness(hue.dark) / brightness("#13171a") >= 2.995, "{hue:?}");
        }
    }

    #[test]
    fn no_two_schemes_look_alike_even_without_colour() {
        let mut seen = BTreeSet::new();
        for (name, look) in all() {
            assert!(
                seen.insert((look.dash, look.marker)),
                "{name} looks like another scheme; choose another `LOOK` for it"
            );
        }
    }

    #[test]
    fn schemes_that_are_often_compared_differ_in_colour_dash_and_marker() {
        let looks = ["ecmp", "rps", "ar", "themis", "flowcut"].map(of);
        for part in [|look: &Look| look.hue, |look: &Look| look.dash, |look: &Look| look.marker] {
            assert_eq!(looks.iter().map(part).collect::<BTreeSet<_>>().len(), looks.len());
        }
    }

    #[test]
    fn further_words_and_unknown_names_have_a_look() {
        assert_eq!(of("themis, bytes 64kB"), of("themis"));
        assert_eq!(of("ecmp+long-haul"), of("long-haul"));
        assert_ne!(of("themis+long-haul"), of("themis"));
        assert_ne!(of("mine"), of("themis"));
        assert_eq!(of("mine"), of("mine"));
        of("");
    }
}
