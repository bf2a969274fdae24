//! Models: those of the list, and those that a user describes.

use super::{ModelChoice, Sizes};
use finding::{Finding, code, suggestion};
use serving::kv::{ByHand, Heads, Keeps, Latent};
use serving::models::{self, Model};

impl ModelChoice {
    pub(super) fn model(&self) -> Result<Model, Finding> {
        match self {
            ModelChoice::Named(name) => models::named(name).ok_or_else(|| {
                let text = format!("unknown model `{name}`; {}", suggestion(name, models::NAMES));
                code::UNKNOWN_NAME.at("", text).with_help("a table of sizes describes any other model")
            }),
            ModelChoice::Sizes(sizes) => sizes.model(),
        }
    }
}

/// Most of each size of a model. Our choice: products stay far below 2^64.
const MOST_SIZE: u64 = 1 << 20;

impl Sizes {
    pub(super) fn model(&self) -> Result<Model, Finding> {
        let Sizes { layers, hidden, active, heads, latent, bytes_per_token, bytes_per_request } = *self;
        let all = [
            ("layers", &[layers][..]),
            ("hidden", &[hidden]),
            ("heads", heads.as_ref().map_or(&[], |all| all)),
        ];
        let all = all.into_iter().chain([("latent", latent.as_ref().map_or(&[][..], |all| all))]);
        for (key, sizes) in all {
            if let Some(wrong) = sizes.iter().find(|size| !(1..=MOST_SIZE).contains(*size)) {
                return Err(code::RANGE.at(key, format!("expected 1 to {MOST_SIZE}, found {wrong}")));
            }
        }
        if active == 0 {
            return Err(code::RANGE.at("active", "expected at least 1, found 0"));
        }
        let keeps = match (heads, latent, bytes_per_token) {
            (Some([kv, width]), None, None) => Keeps::Heads(Heads { kv, width }),
            (None, Some([width, rotary]), None) => Keeps::Latent(Latent { width, rotary }),
            (None, None, Some(token)) if token.get() == 0 && bytes_per_request.get() == 0 => {
                let text = "expected at least 1 byte of KV, here or in `bytes-per-request`, found none";
                return Err(code::RANGE.at("bytes-per-token", text));
            }
            (None, None, Some(token)) => {
                Keeps::ByHand(ByHand { token: token.get(), request: bytes_per_request.get() })
            }
            _ => {
                let text = "expected exactly one of `heads`, `latent` and `bytes-per-token`";
                return Err(code::CONFLICT.at("", text));
            }
        };
        Ok(Model { layers, hidden, keeps, active })
    }
}
