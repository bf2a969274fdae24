//! Ports can pause each class by itself: a mask of pauses has a bit for it, and a buffer has space for all headrooms.

use super::case::Case;
use finding::{Finding, code};
use model::plan::SwitchSettings;

/// Most bits in a mask of pauses.
const MOST_PRIORITIES: usize = u8::BITS as usize;

pub(super) fn judge(case: &Case<'_>) -> Vec<Finding> {
    let plan = case.plan;
    let own = &plan.own_queues.groups;
    let lossless = |settings: &SwitchSettings| settings.flow_control.is_lossless();
    if own.is_empty() || !plan.settings_of_groups().flatten().any(lossless) {
        return Vec::new();
    }
    let error = |text: String| vec![code::RANGE.at("switch.classes", text)];
    let channels = usize::from(plan.fabric.channels());
    if (1 + own.len()) * channels > MOST_PRIORITIES {
        return error(format!(
            "{} classes have `of`; with PFC, links with {channels} virtual channels allow {}",
            own.len(),
            MOST_PRIORITIES / channels - 1
        ));
    }
    for (i, node) in plan.fabric.switches().enumerate() {
        let base = plan.fabric.base(node) as usize;
        let all = std::iter::once((&plan.ports, &plan.switches));
        let groups = all.chain(own.iter().map(|group| (&group.ports, &group.switches)));
        let kept: u64 = groups
            .filter(|(_, switches)| lossless(&switches[i]) && !switches[i].memory.headroom_beside)
            .flat_map(|(ports, _)| ports[base..].iter().zip(plan.fabric.ports(node)))
            .map(|(port, link)| {
                let came = plan.fabric.reverse(plan.fabric.link(link.from, link.port));
                let channels = plan.fabric.channels_on(&plan.fabric.links()[came.index()]);
                port.headroom.get().saturating_mul(channels.into())
            })
            .fold(0, u64::saturating_add);
        let buffer = plan.switches[i].buffer;
        if kept >= buffer.get() {
            return error(format!(
                "the headrooms of {}'s ports for all classes take {} of its buffer of {buffer}; no shared buffer is left",
                plan.fabric.name(node),
                model::Bytes(kept),
            ));
        }
    }
    if plan.sharing.is_some() {
        let text = "a class with `of` needs `pfc = \"off\"` in all classes where ports share the queue pairs of their NIC \
                    (`server.port-use`): a pause cannot hold back some of them";
        return error(text.to_owned());
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::super::testing::told_of;

    #[test]
    fn the_headrooms_of_all_classes_fit_into_the_buffer() {
        let of = |buffer: &str, pfc: &str| {
            told_of(&format!(
                "[switch]\nbuffer = \"{buffer}\"\nclasses = [{{ kinds = [\"data\"] }}, \
                 {{ kinds = [\"data\"], of = [\"background\"], pfc = \"{pfc}\" }}]"
            ))
        };
        let text = of("600kB", "on");
        assert!(
            text.starts_with("s.toml:7:11: the headrooms of leaf0's ports for all classes take"),
            "{text}"
        );
        assert_eq!(of("16MB", "on"), "");
        assert_eq!(of("600kB", "off"), "");
    }
}
