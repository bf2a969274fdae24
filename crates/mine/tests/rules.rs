//! Rules that every scheme keeps. A test of what is special to yours belongs beside it, in `src/scheme.rs`.

use mine::SCHEMES;
use strand::hold;

/// The scheme's name.
const NAME: &str = "mine";

#[test]
fn it_keeps_the_contract_of_schemes() {
    hold::contract(SCHEMES, NAME);
}

#[test]
fn all_engines_agree_on_it_and_no_packet_is_lost_without_a_cause() {
    hold::twins(SCHEMES, NAME);
}

#[test]
fn it_keeps_the_rules_in_random_scenarios() {
    hold::fuzz(SCHEMES, NAME);
}
