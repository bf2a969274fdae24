//! An explanation for people.

use crate::account::{Account, Cause};
use crate::explanation::Explanation;
use crate::flow::Flow;
use crate::kept::Kept;
use crate::packets::{Packets, Told};
use results::text::{self, bytes, count, number};
use std::fmt::Write;

/// Causes below this share of what the flow lost are not in the sentence. Our choice.
const WORTH_SAYING: f64 = 0.05;
/// Most causes in the sentence. Our choice.
const IN_SENTENCE: usize = 3;
/// A flow that is no slower than this many times its ideal is called undisturbed. Our choice.
const UNDISTURBED: f64 = 1.02;
/// Pieces below this are not in the table, us: half a digit of what it shows. Our choice.
const LEAST: f64 = 0.000_5;

/// The answer in one sentence.
pub(crate) fn answer(flow: &Flow, account: &Account, packets: &Packets) -> String {
    let name = format!("Flow {}, {} from {} to {}", flow.flow, bytes(flow.bytes), flow.from, flow.to);
    let lost: f64 = account.causes.iter().map(|cause| cause.us.max(0.0)).sum();
    let worth = |cause: &&Cause| cause.us >= lost * WORTH_SAYING && cause.kept != Kept::RunEnded;
    let mut told = account
        .causes
        .iter()
        .filter(worth)
        .take(IN_SENTENCE)
        .map(|cause| format!("{} us {}", number(cause.us), because(cause.kept, packets)));
    let causes = match (told.next(), told.collect::<Vec<_>>()) {
        (None, _) => String::new(),
        (Some(one), rest) => match rest.as_slice() {
            [] => one,
            [middle @ .., last] => [&[one][..], middle].concat().join(", ") + " and " + last,
        },
    };
    let (Some(fct), Some(ideal), Some(slowdown)) = (flow.fct_us, flow.ideal_fct_us, flow.slowdown) else {
        let arrived = if flow.received_us.is_some() {
            "all of it had arrived, but no ACK of its end came back"
        } else {
            "it had not arrived whole"
        };
        let mut text = format!(
            "{name} was not finished when the run ended, {} us after its start: {arrived}",
            number(account.elapsed_us)
        );
        if !causes.is_empty() {
            let _ = write!(text, "; before that, {causes}");
        }
        return text + ".";
    };
    let took = format!("{name}, took {} us", number(fct));
    if slowdown < UNDISTURBED || causes.is_empty() {
        return format!("{took}, {} times its ideal: nothing slowed it.", times(slowdown));
    }
    format!("{took}, {} times its ideal of {} us: {causes}.", times(slowdown), number(ideal))
}

/// A slowdown with two digits after the point, where that says something.
fn times(slowdown: f64) -> String {
    if slowdown < 10.0 { format!("{slowdown:.2}") } else { number(slowdown) }
}

/// Why, as the end of "10 us ...".
fn because(kept: Kept, packets: &Packets) -> String {
    let cuts = |by: Kept, one: &str| {
        let times = packets.rate.cuts.iter().find(|cuts| cuts.by == by).map_or(0, |cuts| cuts.times);
        match times {
            0 => format!("at a rate that {one}s had cut before"),
            1 => format!("at a rate that {one}s cut once"),
            n => format!("at a rate that {one}s cut {} times", count(n)),
        }
    };
    let resent = |n: u64| if n == 1 { "1 packet".to_owned() } else { format!("{} packets", count(n)) };
    match kept {
        Kept::Behind => "behind other messages of its queue pair".into(),
        Kept::Paused => "for its sender's paused port".into(),
        Kept::Port => "for its sender's port, which sent for others".into(),
        Kept::CnpCut => cuts(kept, "CNP"),
        Kept::NackCut => cuts(kept, "NACK"),
        Kept::TimeoutCut => cuts(kept, "timeout"),
        Kept::Pace => "at a rate below line rate that congestion control chose".into(),
        Kept::Window => "waiting for ACKs".into(),
        Kept::UntilNack => "until a NACK told of a missing packet".into(),
        Kept::UntilTimeout => "until the retransmission timer fired".into(),
        Kept::Resent => {
            let spurious = packets.resent.spurious;
            let only = if spurious == 0 {
                String::new()
            } else {
                format!(", {} of them spuriously", count(spurious))
            };
            format!("sending {} again{only}", resent(packets.resent.total))
        }
        Kept::Copies => "sending copies".into(),
        Kept::Network => "in queues of the network".into(),
        Kept::AckBack => "for the last ACK on its way back".into(),
        Kept::RunEnded => "until the run ended".into(),
        Kept::InIdeal => "less, as its ideal waits, too".into(),
    }
}

/// A line of the table.
fn label(kept: Kept) -> &'static str {
    match kept {
        Kept::Behind => "behind other messages of its queue pair",
        Kept::Paused => "its sender's port was paused",
        Kept::Port => "its sender's port sent for others",
        Kept::CnpCut => "below line rate: cut by CNPs",
        Kept::NackCut => "below line rate: cut by NACKs",
        Kept::TimeoutCut => "below line rate: cut by timeouts",
        Kept::Pace => "below line rate: congestion control's choice",
        Kept::Window => "waiting for ACKs, or held back by scheme or NIC",
        Kept::UntilNack => "nothing to send until a NACK came",
        Kept::UntilTimeout => "nothing to send until the timer fired",
        Kept::Resent => "sending packets again",
        Kept::Copies => "sending copies for its scheme",
        Kept::Network => "its last packet in queues, or on a longer way",
        Kept::AckBack => "its last ACK in queues, or late",
        Kept::RunEnded => "from its last packet to the end of the run",
        Kept::InIdeal => "less such waits that its ideal has, too",
    }
}

/// All of it.
pub(crate) fn page(e: &Explanation) -> String {
    let mut text = format!("{}\n\n{}\n", wrapped(&e.answer), causes(&e.account));
    let facts = facts(e);
    let width = facts.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (key, value) in facts {
        let _ = writeln!(text, "{key:width$}  {value}");
    }
    text.push('\n');
    text + &timeline(e)
}

fn causes(account: &Account) -> String {
    let header = ["where its time went", "us", "share", "how"].map(str::to_owned);
    let mut table = text::table(&header, 1);
    if let Some(how) = table.column_mut(3) {
        how.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    let mut row = |what: &str, us: f64, how: &str| {
        let share = format!("{:.1} %", us * 100.0 / account.elapsed_us.max(1e-6));
        table.add_row([what.to_owned(), format!("{us:.3}"), share, how.to_owned()]);
    };
    if let Some(ideal) = account.ideal_us {
        row("alone on the fabric: its ideal FCT", ideal, "computed");
    }
    if let Some(sending) = account.sending_us {
        row("its packets on the wire", sending, "measured");
    }
    let (shown, small): (Vec<&Cause>, Vec<&Cause>) =
        account.causes.iter().partition(|cause| cause.us.abs() >= LEAST);
    for cause in shown {
        row(label(cause.kept), cause.us, if cause.measured { "measured" } else { "shared out" });
    }
    let rest: f64 = small.iter().map(|cause| cause.us).sum();
    if rest.abs() >= LEAST {
        row("other pieces, each too small to show", rest, "measured");
    }
    row("in all", account.elapsed_us, "measured");
    table.to_string().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// What there is to say of its packets, a line each.
fn facts(e: &Explanation) -> Vec<(&'static str, String)> {
    let p = &e.packets;
    let mut facts = Vec::new();
    let mut sent = format!("{} sent for {}", count(p.sent), count(e.flow.packets));
    let r = &p.resent;
    if r.total > 0 {
        let reasons = [
            (r.lost, "lost on a link"),
            (r.dropped, "dropped for lack of buffer"),
            (r.discarded, "thrown away by the receiver"),
            (r.spurious, "only late: spurious"),
        ];
        let reasons: Vec<String> =
            reasons.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{} {why}", count(*n))).collect();
        let _ = write!(sent, "; {} sent again", count(r.total));
        if !reasons.is_empty() {
            let _ = write!(sent, " ({})", reasons.join(", "));
        }
    }
    if p.copies > 0 {
        let _ = write!(sent, "; {} copies by the scheme", count(p.copies));
    }
    facts.push(("packets", sent));
    if p.ahead > 0 {
        let text = format!("{} arrived ahead of ePSN, up to {} ahead", count(p.ahead), count(p.most_ahead));
        facts.push(("reordering", text));
    }
    for (name, told) in [("NACKs", &p.nacks), ("CNPs", &p.cnps)] {
        if *told != Told::default() {
            facts.push((name, of_told(told)));
        }
    }
    if let Some(least) = p.rate.least_gbps.filter(|least| *least < p.rate.line_gbps * 0.999) {
        let text = format!("{} Gb/s at the lowest, of {}", number(least), number(p.rate.line_gbps));
        facts.push(("rate", text));
    }
    if let Some(t) = p.transit {
        facts.push((
            "transit",
            format!(
                "{} us in the mean, {} us at most (PSN {}, sent at {:.3} us); {} us on an idle fabric",
                number(t.mean_us),
                number(t.most_us),
                t.most_psn,
                t.most_sent_us,
                number(t.ideal_us)
            ),
        ));
    }
    for (i, link) in p.links.iter().enumerate() {
        let key = if i == 0 { "queues" } else { "" };
        facts.push((
            key,
            format!(
                "{} -> {}: {} packets found {} us of data before them, {} us at most",
                link.from,
                link.to,
                count(link.packets),
                number(link.mean_wait_us),
                number(link.most_wait_us)
            ),
        ));
    }
    facts
}

fn of_told(told: &Told) -> String {
    let mut parts = vec![format!("{} sent by the receiver", count(told.sent))];
    for (n, what) in [(told.blocked, "blocked by the scheme"), (told.made, "made by the scheme")] {
        if n > 0 {
            parts.push(format!("{} {what}", count(n)));
        }
    }
    parts.push(format!("{} reached the sender", count(told.received)));
    parts.join(", ") + ", of its queue pair in this time"
}

fn timeline(e: &Explanation) -> String {
    let digits = if e.account.elapsed_us < 1000.0 { 2 } else { 1 };
    let time = |us: f64| format!("{us:.digits$}");
    let spans: Vec<String> = e
        .timeline
        .iter()
        .map(|line| match (time(line.from_us), time(line.to_us)) {
            (from, to) if from == to => from,
            (from, to) => format!("{from}-{to}"),
        })
        .collect();
    let width = spans.iter().map(String::len).max().unwrap_or(0).max(2);
    let mut text = format!("{:>width$}  what happened\n", "us");
    text += &format!("{}\n", "─".repeat(width + 15));
    for (span, line) in spans.iter().zip(&e.timeline) {
        let _ = writeln!(text, "{span:>width$}  {}", line.what);
    }
    text
}

/// A sentence in lines of a terminal's width.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= text::WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
