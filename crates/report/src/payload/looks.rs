//! How charts draw schemes: `schemes::look`, with the schemes of the page.

use schemes::look::{self, DASHES, HUES, MARKERS};
use serde::Serialize;
use std::collections::BTreeMap;

/// Colours for everything, and the looks of the page's schemes.
#[derive(Debug, Default, Serialize)]
pub(super) struct Looks {
    /// Name, and the colour on light and on dark backgrounds.
    hues: Vec<(&'static str, &'static str, &'static str)>,
    dashes: Vec<&'static str>,
    markers: Vec<&'static str>,
    /// Numbers of hue, dash and marker by scheme.
    schemes: BTreeMap<String, (usize, usize, usize)>,
}

impl Looks {
    /// The looks of these schemes.
    pub(super) fn of<'a>(schemes: impl Iterator<Item = &'a str>) -> Self {
        let look = |name: &str| {
            let look = look::of(name);
            (name.to_owned(), (look.hue, look.dash, look.marker))
        };
        Looks {
            hues: HUES.iter().map(|hue| (hue.name, hue.light, hue.dark)).collect(),
            dashes: DASHES.into(),
            markers: MARKERS.into(),
            schemes: schemes.map(look).collect(),
        }
    }
}
