//! Rules that every part keeps. A test of what is special to yours belongs beside it, as in `src/transport.rs`.

use mine::PARTS;
use strand::hold;

/// The name of the parts: each function holds all parts of that name.
const NAME: &str = "mine";

#[test]
fn they_keep_the_contracts_of_their_kinds() {
    hold::contract(PARTS, NAME);
}

#[test]
fn all_engines_agree_on_them_and_no_packet_is_lost_without_a_cause() {
    hold::twins(PARTS, NAME);
}

#[test]
fn they_keep_the_rules_in_random_scenarios() {
    hold::fuzz(PARTS, NAME);
}
