//! A congestion control that knows rates by a code has one for every rate of the fabric.

use super::case::Case;
use finding::Finding;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let rates = case.plan.rates();
    case.of_schemes(|_, nic| nic.congestion.warning(&rates))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LEAVES, lay};

    #[test]
    fn a_rate_without_a_code_is_warned_of_only_where_codes_are_used() {
        let odd = LEAVES.replace("100Gbps", "800Gbps");
        assert_eq!(lay(&format!("{odd}[nic.congestion.hpcc]")).unwrap().warnings(), [""; 0]);
        let compat = lay(&format!("{odd}[nic.congestion.hpcc]\ncompat = \"long-haul-prototype\"")).unwrap();
        assert!(compat.warnings()[0].contains("800Gbps, taken for 25Gbps"), "{:?}", compat.warnings());
        let coded = lay(&format!("{LEAVES}[nic.congestion.hpcc]\nunknown-rate = \"25Gbps\"")).unwrap();
        assert_eq!(coded.warnings(), [""; 0]);
    }
}
