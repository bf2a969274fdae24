//! The picture of an experiment: the paper's figure from our data, with the paper's numbers marked in it.

use serde::Serialize;

/// What an experiment shows on a page besides its rows.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The answer in a sentence; empty: made from the rows.
    pub(crate) answer: String,
    /// Its figures.
    pub(crate) figures: Vec<Figure>,
    /// Labels of the cases to show in detail; none: some of all.
    pub(crate) detailed: Vec<String>,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Bars side by side over categories.
    Bars,
    /// Lines over numbers.
    Lines,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// How it is drawn.
    pub shape: Shape,
    /// What the horizontal axis shows, with its unit.
    pub x: &'static str,
    /// What the vertical axis shows, with its unit.
    pub y: &'static str,
    /// Ours.
    pub series: Vec<Values>,
    /// The paper's.
    pub paper: Vec<Mark>,
}

/// Values of one scheme.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Values {
    /// Their name in the legend.
    pub name: String,
    /// The scheme, which has its colour.
    pub scheme: String,
    /// Categories, or numbers as text.
    pub x: Vec<String>,
    /// Values; none where a run is not complete.
    pub y: Vec<Option<f64>>,
}

/// Numbers that the paper prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// What it says.
    pub name: String,
    /// The category that it belongs to; none: all of the axis.
    pub x: Option<String>,
    /// The number.
    pub y: f64,
    /// The other end, where it is a range.
    pub to: Option<f64>,
}

impl Picture {
    /// The answer in a sentence; empty: made from the rows.
    pub fn answer(&self) -> &str {
        &self.answer
    }

    /// Its figures.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }
}
