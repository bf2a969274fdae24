//! The content security policy of a page: it loads nothing, and it runs these scripts and no other, whatever names it shows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// The policy of a page with these scripts. Charts set styles, and images are saved from data.
pub(crate) fn of(scripts: &[&str]) -> String {
    let allowed: Vec<String> = scripts
        .iter()
        .map(|script| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script))))
        .collect();
    format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'",
        allowed.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of "abc" is a test vector of FIPS 180-4.
    #[test]
    fn a_policy_allows_the_scripts_by_their_hashes() {
        let policy = of(&["abc", ""]);
        let allowed = "script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=' \
                       'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=';";
        assert!(policy.starts_with("default-src 'none'; ") && policy.contains(allowed), "{policy}");
    }
}
