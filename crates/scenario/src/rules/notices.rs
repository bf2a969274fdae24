//! Receivers heed the notices of a scheme that sends some, and lose patience before the sender's timer expires.

use super::case::{Case, Chosen};
use crate::Plan;
use finding::{Finding, code};
use rnic::TransportConfig;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    case.schemes.iter().filter_map(|chosen| unheeded(chosen, case.plan)).collect()
}

fn unheeded(chosen: &Chosen<'_>, plan: &Plan) -> Option<Finding> {
    let (scheme, nic) = (chosen.scheme, &chosen.nic);
    let notices = scheme.notices(plan)?;
    if !nic.build().hears_notices() {
        let text = format!(
            "`{}` sends notices and requests single packets; `{}` supports neither",
            scheme.name(),
            nic.transport.name()
        );
        let able = TransportConfig::all().filter(|transport| transport.facts().heeds_notices);
        let able: Vec<String> = able.map(|t| format!("`nic.transport.{} = {{}}`", t.name())).collect();
        let help = format!("set {}", able.join(" or "));
        return Some(code::UNSUITED.at(&chosen.settings(), text).with_help(help));
    }
    let timeout = nic.timeout.span();
    let text = format!(
        "the receiver's wait for late packets ({}) must be shorter than the sender's timeout ({timeout})",
        notices.patience
    );
    (notices.patience >= timeout).then(|| code::FIT.at(&format!("{}.theta", chosen.settings()), text))
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn notices_need_a_nic_that_heeds_them_in_time() {
        assert_eq!(
            told_of("[scheme.dlbf]"),
            "s.toml:5:1: `dlbf` sends notices and requests single packets; `nic-sr` supports neither"
        );
        let of = |theta: &str| {
            told_of(&format!(
                "[nic]\ntimeout = {{ fixed = \"50us\" }}\n[nic.transport.sr-sack]\n[scheme.dlbf]\ntheta = \"{theta}\""
            ))
        };
        assert_eq!(
            of("50us"),
            "s.toml:9:9: the receiver's wait for late packets (50us) must be shorter than the sender's timeout (50us)"
        );
        assert_eq!(of("49us"), "");
    }
}
