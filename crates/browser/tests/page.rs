//! The page gets the results of the native program.

use browser::{Asked, Played, about};
use serde_json::Value;

/// The header of packed bytes, and the columns behind it.
fn unpack(bytes: &[u8]) -> (Value, &[u8]) {
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let header = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
    (header, &bytes[(4 + length).next_multiple_of(8)..])
}

fn numbers<const SIZE: usize>(packed: &[u8], column: &str) -> Vec<[u8; SIZE]> {
    let (header, data) = unpack(packed);
    let about = &header["columns"][column];
    let number = |key: &str| about[key].as_u64().unwrap() as usize;
    data[number("at")..].chunks_exact(SIZE).take(number("length")).map(|b| b.try_into().unwrap()).collect()
}

fn reals(packed: &[u8], column: &str) -> Vec<f64> {
    numbers(packed, column).into_iter().map(f64::from_le_bytes).collect()
}

fn words(packed: &[u8], column: &str) -> Vec<u32> {
    numbers(packed, column).into_iter().map(u32::from_le_bytes).collect()
}

fn sets(list: &[&str]) -> Vec<String> {
    list.iter().map(|&set| set.to_owned()).collect()
}

fn play(list: &[&str]) -> Played {
    let asked = Asked { scenario: "quickstart".into(), set: sets(list), ..Asked::default() };
    Played::new(asked.check().unwrap(), &mut |_| ())
}

const SMALL: &str = "workload.0.all-reduce.bytes=400kB";

#[test]
fn the_digest_is_that_of_a_run_on_the_command_line() {
    for more in [
        &[][..],
        &["scheme.ecmp={}"],
        &["scheme.rps={}", "links.loss=0.001"],
        &["links.loss=0.001", "topology.leaf-spine.rate=400Gbps"],
        &["failure=[{switch=\"spine1\",at=\"12.3us\"}]", "routing.detection=20us"],
        &["failure=[{switch=\"spine1\",at=\"12.3us\",until=\"30us\"}]", "routing.detection=never"],
    ] {
        let list = [&[SMALL], more].concat();
        let native = lab::run(lab::load("quickstart", &sets(&list)).unwrap());
        let played = play(&list);
        assert_eq!(played.digest(), native.summary.digest, "{list:?}");
        let shown = played.show();
        let (header, _) = unpack(&shown);
        assert_eq!(
            header["head"]["toml"],
            native.checked.to_toml(),
            "what the page records is no part of it"
        );
        assert_eq!(header["head"]["summary"]["flows"], serde_json::to_value(&native.summary.flows).unwrap());
    }
}

/// The page runs a scenario again when a spine is killed, and goes on from the same time. A frame on its way to the spine
/// counts as lost when it starts, up to a link's delay before the death.
#[test]
fn up_to_the_death_of_a_spine_nothing_changes() {
    let before = |played: &Played, limit: f64| {
        let shown = played.show();
        let (header, _) = unpack(&shown);
        let whats = numbers::<1>(&shown, "event.what");
        let rows = reals(&shown, "event.at").into_iter().zip(words(&shown, "event.psn"));
        let rows = rows.zip(words(&shown, "event.node")).zip(whats);
        let rows = rows.map(|(((at, psn), node), what)| {
            let name = header["head"]["events"][usize::from(what[0])].as_str().unwrap();
            (at, psn, node, name.to_owned())
        });
        let mut rows: Vec<_> = rows.filter(|(at, ..)| *at < limit).collect();
        rows.sort_unstable_by(|a, b| {
            a.0.total_cmp(&b.0).then_with(|| (a.1, a.2, &a.3).cmp(&(b.1, b.2, &b.3)))
        });
        rows
    };
    let (whole, killed) = (play(&[SMALL]), play(&[SMALL, "failure=[{switch=\"spine1\",at=\"12.3us\"}]"]));
    let (lost, others): (Vec<_>, Vec<_>) =
        before(&killed, 12.3).into_iter().partition(|(.., name)| name.ends_with("lost"));
    assert!(before(&whole, 12.3) == others && others.len() > 1000);
    assert!(!lost.is_empty() && lost.iter().all(|(at, ..)| *at > 12.3 - 1.2), "{lost:?}");
    assert!(before(&whole, 40.0) != before(&killed, 40.0));
    let shown = killed.show();
    let (header, _) = unpack(&shown);
    let changes = header["head"]["failures"].as_array().unwrap();
    assert_eq!(changes.len(), 8, "four cables, both directions");
    assert!(changes.iter().all(|change| change["at_us"] == 12.3 && change["gbps"].is_null()));
}

#[test]
fn a_gray_link_tells_from_when_to_when_it_loses_packets() {
    let played =
        play(&[SMALL, "failure=[{links=[[\"leaf0\",\"spine1\"]],loss=0.02,at=\"10us\",until=\"25us\"}]"]);
    let shown = played.show();
    let (header, _) = unpack(&shown);
    let head = &header["head"];
    assert_eq!(head["failures"].as_array().unwrap().len(), 0, "its rate stays");
    let losses = head["losses"].as_array().unwrap();
    let seen: Vec<_> = losses.iter().map(|loss| (loss["at_us"].as_f64(), loss["share"].as_f64())).collect();
    let both = |time, share: f64| {
        seen.iter().filter(|(at, s)| *at == Some(time) && (s.unwrap() - share).abs() < 1e-9).count()
    };
    assert_eq!((seen.len(), both(10.0, 0.02), both(25.0, 0.0)), (4, 2, 2), "both directions: {seen:?}");
}

#[test]
fn every_packet_of_a_flow_is_followed_from_host_to_host() {
    let played = play(&[SMALL]);
    let packets = played.packets(model::QpId(0));
    let (at, until) = (reals(&packets, "at"), reals(&packets, "until"));
    assert!(at.is_sorted() && at.iter().zip(&until).all(|(at, until)| until > at));
    let kinds = numbers::<1>(&packets, "kind");
    let mut hops = vec![0; 1000];
    for (psn, _) in words(&packets, "psn").into_iter().zip(kinds).filter(|(_, kind)| kind[0] == 0) {
        hops[psn as usize] += 1;
    }
    let sent = hops.iter().filter(|count| **count > 0).count();
    let shown = played.show();
    let (header, _) = unpack(&shown);
    let all = header["head"]["summary"]["packets"]["sent"].as_u64().unwrap() as usize;
    assert_eq!(sent * 16, all, "each of sixteen flows sends the same");
    assert!(hops[..sent].iter().all(|count| *count == 4), "host, leaf, spine, leaf");
}

#[test]
fn a_text_is_a_scenario_and_a_mistake_has_a_place() {
    let text = "[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n[[workload]]\nincast = { senders = 2, bytes = \"100kB\" }\n";
    let asked = Asked { scenario: "mine".into(), text: Some(text.to_owned()), set: Vec::new() };
    let played = Played::new(asked.check().unwrap(), &mut |_| ());
    let native = lab::run(lab::Prepared::by(|| scenario::check(&asked.source()?, &[])).unwrap());
    assert_eq!(played.digest(), native.summary.digest);
    let wrong = Asked { text: Some(text.replace("spines", "spins")), ..asked };
    let error = wrong.check().unwrap_err();
    assert!(error.located().starts_with("mine.toml:3:1: "), "{}", error.located());
    let refused = browser::play::refused(&error);
    assert_eq!(unpack(&refused).0["head"]["error"]["place"]["line"], 3);
    assert!(Asked::read("{\"scenario\":\"quickstart\",\"sets\":[]}").is_err());
}

#[test]
fn schemes_come_with_a_description_and_with_the_reason_why_they_do_not_fit() {
    let asked = Asked { scenario: "quickstart".into(), ..Asked::default() };
    let packed = about(&asked);
    let (header, _) = unpack(&packed);
    let schemes = header["head"]["schemes"].as_array().unwrap();
    assert!(schemes.len() > 20, "{}", schemes.len());
    let of = |name: &str| schemes.iter().find(|scheme| scheme["name"] == name).unwrap();
    assert!(of("themis")["about"].as_str().unwrap().starts_with("Themis"));
    assert!(of("themis")["why_not"].is_null());
    assert!(schemes.iter().all(|scheme| scheme["about"].as_str().is_some_and(|about| !about.is_empty())));
    assert!(header["head"]["scenarios"].as_array().unwrap().len() > 20);
}
