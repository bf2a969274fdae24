//! The figures of an experiment: the paper's figures with our data and the paper's numbers.

use serde::Serialize;

/// The content of an experiment's page besides its rows.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The result in one sentence; if empty, the page makes it from the rows.
    pub(crate) answer: String,
    /// Figures.
    pub(crate) figures: Vec<Figure>,
    /// Labels of the cases to show in detail; if empty, the page shows a selection.
    pub(crate) detailed: Vec<String>,
}

/// Shape of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Groups of bars over categories.
    Bars,
    /// Lines over numbers.
    Lines,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Title.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// Shape.
    pub shape: Shape,
    /// Label of the horizontal axis, with its unit.
    pub x: &'static str,
    /// Label of the vertical axis, with its unit.
    pub y: &'static str,
    /// Our values.
    pub series: Vec<Values>,
    /// The paper's values.
    pub paper: Vec<PaperValue>,
}

/// Values of one scheme, or one line of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Values {
    /// Name in the legend.
    pub name: String,
    /// Scheme whose colour the values have.
    pub scheme: String,
    /// Categories, or numbers as text.
    pub x: Vec<String>,
    /// Values; null for runs that are not complete.
    pub y: Vec<Option<f64>>,
}

/// A number that the paper prints, or a range of numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PaperValue {
    /// Name in the legend.
    pub name: String,
    /// Category that the number belongs to; null for the whole axis.
    pub x: Option<String>,
    /// The number, or the lower end of the range.
    pub y: f64,
    /// The upper end of a range; null for a single number.
    pub to: Option<f64>,
}

impl Picture {
    /// The result in one sentence; if empty, the page makes it from the rows.
    pub fn answer(&self) -> &str {
        &self.answer
    }

    /// Figures.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }
}
