//! Every scheme fits the NIC of its queue pairs.

use super::case::{Case, Chosen, all};
use finding::Finding;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let of = |chosen: &Chosen<'_>| {
        let found = all(chosen.scheme.validate_nic(&chosen.nic, case.plan));
        found.into_iter().map(|finding| finding.within(&chosen.settings())).collect::<Vec<_>>()
    };
    case.schemes.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{HEAD, JOB, lossy};
    use crate::{Source, check};

    #[test]
    fn themis_over_go_back_n_is_warned_of() {
        let warnings = |more: &str| {
            let text = format!("{HEAD}{more}{JOB}");
            check(&Source::new("s.toml", text), &[]).unwrap().warnings()
        };
        assert_eq!(warnings("[scheme.themis]\n"), [""; 0]);
        assert_eq!(warnings("[scheme.ecmp]\n[nic.transport.go-back-n]\n"), [""; 0]);
        for themis in ["[scheme.themis]", "[switch-role.leaf.scheme.themis]"] {
            let [warning] = &warnings(&format!("{themis}\n[nic.transport.go-back-n]\n"))[..] else {
                panic!("{themis}")
            };
            assert!(warning.starts_with("themis over `transport.go-back-n` cannot help"), "{warning}");
        }
    }

    #[test]
    fn nacks_of_cut_packets_that_themis_may_block_are_warned_of() {
        let of = |keys: &str| lossy(&format!("cut = \"on\"\n[nic.transport.uec]\n{keys}\n"));
        let text = of("[scheme.themis]");
        assert!(text.starts_with("themis over `transport.uec`: its NACKs report trimmed packets"), "{text}");
        assert!(text.ends_with("set `scheme.themis.filter = false`"), "{text}");
        assert_eq!(of("[scheme.themis]\nfilter = false"), "");
        assert_eq!(of("[scheme.rps]"), "");
        // Without cuts there is no NACK to block.
        assert_eq!(lossy("[nic.transport.uec]\ninfer-loss = true\n[scheme.themis]\n"), "");
        let dcp = lossy("cut = \"on\"\n[nic.transport.dcp]\n[scheme.themis]\n");
        assert!(!dcp.contains("themis over"), "{dcp}");
    }
}
