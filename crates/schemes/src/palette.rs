//! Colours, dashes and markers of pictures.
//!
//! Colours alone never distinguish schemes: those of one colour differ in dash and marker, so that pictures can be read on
//! paper. The tests of [`crate::look`] simulate three kinds of colour blindness.

/// A colour for data, for light and for dark backgrounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hue {
    /// Its name.
    pub name: &'static str,
    /// `#rrggbb` on a light background.
    pub light: &'static str,
    /// `#rrggbb` on a dark background.
    pub dark: &'static str,
}

/// The colours, which people with any colour vision can tell apart.
///
/// Our choice: a numerical search started at the colours of Okabe and Ito (Color Universal Design, 2008) and required that any
/// two differ by 13 or more (CIEDE2000) under every simulated vision, and a contrast of 3 to the background (WCAG 2.2, 1.4.11).
/// In the palette of Okabe and Ito the closest two differ by 11, and two colours have less contrast on white.
pub const HUES: [Hue; 8] = [
    Hue { name: "blue", light: "#1e60c5", dark: "#91a2f7" },
    Hue { name: "red", light: "#c23100", dark: "#ea8140" },
    Hue { name: "green", light: "#2e9062", dark: "#33c091" },
    Hue { name: "purple", light: "#a9507f", dark: "#cb94b4" },
    Hue { name: "sky", light: "#3796f8", dark: "#4a6fd8" },
    Hue { name: "gold", light: "#c18900", dark: "#f2d863" },
    Hue { name: "ink", light: "#21252b", dark: "#f2f4f6" },
    Hue { name: "wine", light: "#861f2b", dark: "#d83a5a" },
];

/// Dashes of lines, by their names in plotly.
pub const DASHES: [&str; 5] = ["solid", "dash", "dot", "dashdot", "longdash"];

/// Markers of points, by their names in plotly.
pub const MARKERS: [&str; 8] =
    ["circle", "square", "triangle-up", "diamond", "x", "cross", "triangle-down", "star"];

/// Look of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Index in [`HUES`].
    pub hue: usize,
    /// Index in [`DASHES`].
    pub dash: usize,
    /// Index in [`MARKERS`].
    pub marker: usize,
}

impl Look {
    /// The look with a hue and a dash, by their indices. Relatives share a hue, and schemes that are often compared differ in hue
    /// and dash. No two looks have the same dash and the same marker. The factor is our choice: with it, the schemes that are compared
    /// most often differ in marker, and so in the pattern of their bars.
    pub(crate) const fn new(hue: usize, dash: usize) -> Self {
        Look { hue, dash, marker: (hue + 2 * dash) % MARKERS.len() }
    }
}
