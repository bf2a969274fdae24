//! The models of `models/`: what they keep of a token, and how much they compute for it. A file has the figures of one model and their
//! source.

use crate::kv::{Copies, Heads, Keeps, Kv, Latent};
use serde::Deserialize;

macro_rules! models {
    ($($name:literal),+ $(,)?) => {
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../models/", $name, ".toml")))),+];
        /// The names of all models.
        pub const NAMES: &[&str] = &[$($name),+];
    };
}

models! {
    "llama-3-8b", "llama-3-70b", "llama-3.1-405b", "qwen3-8b", "qwen3-235b-a22b", "deepseek-v3", "opt-66b"
}

/// A model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Number of layers.
    pub layers: u64,
    /// Width of the hidden state.
    pub hidden: u64,
    /// What each layer keeps of a token.
    pub keeps: Keeps,
    /// Parameters that a token uses.
    pub active: u64,
}

/// A file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    layers: u64,
    hidden: u64,
    heads: Option<Heads>,
    latent: Option<Latent>,
    parameters: u64,
    active: u64,
    source: String,
}

fn figures(name: &str) -> Option<Figures> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    toml::from_str(text).ok()
}

/// The model with this name.
pub fn named(name: &str) -> Option<Model> {
    let Figures { layers, hidden, heads, latent, active, .. } = figures(name)?;
    let keeps = heads.map(Keeps::Heads).or(latent.map(Keeps::Latent))?;
    Some(Model { layers, hidden, keeps, active })
}

/// What a model is, its parameters, and the source of its figures.
pub fn about(name: &str) -> Option<(&'static str, u64, String)> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    let figures = figures(name)?;
    let about = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    Some((about, figures.parameters, figures.source))
}

impl Model {
    /// Its keys and values, with so many bytes per value and tokens per block.
    pub fn kv(&self, value: u64, block: u64, copies: Copies) -> Kv {
        Kv { layers: self.layers, keeps: self.keeps, value, block, copies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_has_a_source_and_one_kind_of_attention() {
        for name in NAMES {
            let figures = figures(name).unwrap_or_else(|| panic!("{name}"));
            assert!(
                figures.source.len() > 20 && figures.heads.is_some() != figures.latent.is_some(),
                "{name}"
            );
            assert!(figures.active <= figures.parameters, "{name}");
            let (about, ..) = about(name).unwrap();
            assert!(about.contains(&format!("{} layers", figures.layers)), "{name}: {about}");
        }
        assert!(named("gpt-5").is_none());
    }
}
