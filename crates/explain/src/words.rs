//! An explanation as text.

use crate::account::{Account, Delay};
use crate::cause::Cause;
use crate::explanation::Explanation;
use crate::flow::Flow;
use crate::packets::{Feedback, Packets};
use crate::timeline::Line;
use results::text::{self, bytes, count, number, wrapped};
use std::fmt::Write;

/// Smallest share of a flow's total delay that puts a delay into the sentence. Our choice.
const WORTH_SAYING: f64 = 0.05;
/// Most delays in the sentence. Our choice.
const IN_SENTENCE: usize = 3;
/// Most links with losses that are told. Our choice.
const LOSSES: usize = 5;
/// Largest slowdown of a flow that the sentence calls undisturbed. Our choice.
const UNDISTURBED: f64 = 1.02;
/// Shortest delay in the table, us: half of the last digit that the table shows. Our choice.
const LEAST: f64 = 0.000_5;

/// The explanation in one sentence.
pub(crate) fn answer(flow: &Flow, account: &Account, packets: &Packets) -> String {
    let which = match flow.subflow_of {
        None => format!("Flow {}", flow.flow),
        Some(whole) => format!("Subflow {} of flow {whole}", flow.flow),
    };
    let name = format!("{which}, {} from {} to {}", bytes(flow.bytes), flow.from, flow.to);
    let lost: f64 = account.delays.iter().map(|delay| delay.us.max(0.0)).sum();
    let worth = |delay: &&Delay| delay.us >= lost * WORTH_SAYING && delay.cause != Cause::RunEnded;
    let mut phrases = account
        .delays
        .iter()
        .filter(worth)
        .take(IN_SENTENCE)
        .map(|delay| format!("{} us {}", number(delay.us), because(delay.cause, packets)));
    let causes = match (phrases.next(), phrases.collect::<Vec<_>>()) {
        (None, _) => String::new(),
        (Some(one), rest) => match rest.as_slice() {
            [] => one,
            [middle @ .., last] => [&[one][..], middle].concat().join(", ") + " and " + last,
        },
    };
    let (Some(fct), Some(ideal), Some(slowdown)) = (flow.fct_us, flow.ideal_fct_us, flow.slowdown) else {
        let arrived = if flow.received_us.is_some() {
            "all of it had arrived, but the last ACK had not reached the sender"
        } else {
            "part of it had not arrived"
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

/// A slowdown, with two digits after the point if it is below 10.
fn times(slowdown: f64) -> String {
    if slowdown < 10.0 { format!("{slowdown:.2}") } else { number(slowdown) }
}

/// The cause, as the end of a phrase such as "10 us for its sender's paused port".
fn because(cause: Cause, packets: &Packets) -> String {
    let cuts = |by: Cause, one: &str| {
        let times = packets.rate.cuts.iter().find(|cuts| cuts.by == by).map_or(0, |cuts| cuts.times);
        match times {
            0 => format!("at a rate that {one}s had cut before"),
            1 => format!("at a rate that {one}s cut once"),
            n => format!("at a rate that {one}s cut {} times", count(n)),
        }
    };
    match cause {
        Cause::Behind => "behind other messages of its queue pair".into(),
        Cause::Paused => "for its sender's paused port".to_owned() + &why_paused(packets),
        Cause::Port => "for its sender's port, which sent other packets".into(),
        Cause::SlowPort => "for its sender's port, which a failure slowed".into(),
        Cause::CnpCut => cuts(cause, "CNP"),
        Cause::NackCut => cuts(cause, "NACK"),
        Cause::TimeoutCut => cuts(cause, "timeout"),
        Cause::Pace => "at a rate below line rate that congestion control chose".into(),
        Cause::Window => "waiting for ACKs".into(),
        Cause::UntilNack => "until a NACK reported a missing packet".to_owned() + &lost_on(packets),
        Cause::UntilTimeout => "until the retransmission timer fired".to_owned() + &lost_on(packets),
        Cause::Resent => {
            let spurious = packets.resent.spurious;
            let only = if spurious == 0 {
                String::new()
            } else {
                format!(", {} of them spuriously", count(spurious))
            };
            format!("sending {} again{only}", number_of(packets.resent.total))
        }
        Cause::Copies => "sending copies".into(),
        Cause::Network => match why_paused(packets) {
            why if why.is_empty() => "in queues of the network".to_owned(),
            why => format!("in queues of the network, where links were paused{why}"),
        },
        Cause::AckBack => "for the last ACK on its way back".into(),
        Cause::RunEnded => "until the run ended".into(),
        Cause::InIdeal => "less, because the ideal includes such waits".into(),
    }
}

/// The link that lost most of the flow's lost packets, and why; empty if no link lost any.
fn lost_on(packets: &Packets) -> String {
    match packets.lost_on.as_slice() {
        [] => String::new(),
        [only] => format!(" (lost on {})", only.place()),
        [most, ..] => format!(" ({} of {} losses on {})", most.packets, packets.lost, most.place()),
    }
}

/// Why links on the way were paused; empty if none was.
fn why_paused(packets: &Packets) -> String {
    packets.held_up.first().map_or_else(String::new, |pauses| match pauses.slow_host {
        true => format!(" (because {} took data too slowly)", pauses.to),
        false => format!(" (because the port {} was full)", pauses.cause),
    })
}

/// So many packets.
fn number_of(packets: u64) -> String {
    if packets == 1 { "1 packet".to_owned() } else { format!("{} packets", count(packets)) }
}

/// Name of the cause in the table.
fn label(cause: Cause) -> &'static str {
    match cause {
        Cause::Behind => "behind other messages of its queue pair",
        Cause::Paused => "its sender's port was paused",
        Cause::Port => "its sender's port sent other packets",
        Cause::SlowPort => "its sender's port, which a failure slowed",
        Cause::CnpCut => "below line rate: cut by CNPs",
        Cause::NackCut => "below line rate: cut by NACKs",
        Cause::TimeoutCut => "below line rate: cut by timeouts",
        Cause::Pace => "below line rate: congestion control's choice",
        Cause::Window => "waiting for ACKs, or held back by scheme or NIC",
        Cause::UntilNack => "nothing to send until a NACK came",
        Cause::UntilTimeout => "nothing to send until the timer fired",
        Cause::Resent => "sending packets again",
        Cause::Copies => "sending copies for its scheme",
        Cause::Network => "its last packet in queues, or on a longer path",
        Cause::AckBack => "its last ACK in queues, or late",
        Cause::RunEnded => "from its last packet to the end of the run",
        Cause::InIdeal => "minus waits that the ideal includes",
    }
}

/// The whole text.
pub(crate) fn page(e: &Explanation) -> String {
    let mut text = format!("{}\n\n{}\n", wrapped(&e.answer), causes(&e.account));
    let facts = facts(e);
    let width = facts.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (key, value) in facts {
        let _ = writeln!(text, "{key:width$}  {value}");
    }
    text.push('\n');
    text + &timeline(&e.timeline, e.account.elapsed_us, "what happened")
}

/// A table of times, with their shares and with a total: what, us, and one more column.
pub(crate) fn time_table(header: [&str; 4], rows: &[(String, f64, String)], total: f64) -> String {
    let mut table = text::table(&header.map(str::to_owned), 1);
    let mut row = |what: &str, us: f64, more: &str| {
        let share = format!("{:.1} %", us * 100.0 / total.max(1e-6));
        table.add_row([what.to_owned(), format!("{us:.3}"), share, more.to_owned()]);
    };
    rows.iter().for_each(|(what, us, more)| row(what, *us, more));
    row("total", total, "");
    table.to_string().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
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
    let (shown, small): (Vec<&Delay>, Vec<&Delay>) =
        account.delays.iter().partition(|delay| delay.us.abs() >= LEAST);
    for delay in shown {
        row(label(delay.cause), delay.us, if delay.measured { "measured" } else { "shared out" });
    }
    let rest: f64 = small.iter().map(|delay| delay.us).sum();
    if rest.abs() >= LEAST {
        row("other pieces, each too small to show", rest, "measured");
    }
    row("total", account.elapsed_us, "measured");
    table.to_string().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Facts about the flow's packets, one line each.
fn facts(e: &Explanation) -> Vec<(&'static str, String)> {
    let p = &e.packets;
    let mut facts = Vec::new();
    let mut sent = format!("{} sent for {}", count(p.sent), count(e.flow.packets));
    let r = &p.resent;
    if r.total > 0 {
        let reasons = [
            (r.lost, "lost on a link"),
            (r.dropped, "dropped for lack of buffer"),
            (r.cut, "trimmed by a switch"),
            (r.discarded, "discarded by the receiver"),
            (r.spurious - r.arrived, "only late: spurious"),
            (r.arrived, "had arrived already: spurious"),
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
    for (i, lost) in p.lost_on.iter().take(LOSSES).enumerate() {
        let key = if i == 0 { "losses" } else { "" };
        facts.push((key, format!("{} on {}", number_of(lost.packets), lost.place())));
    }
    if p.ahead > 0 {
        let text = format!("{} arrived ahead of ePSN, up to {} ahead", count(p.ahead), count(p.most_ahead));
        facts.push(("reordering", text));
    }
    for (name, feedback) in [("NACKs", &p.nacks), ("CNPs", &p.cnps)] {
        if *feedback != Feedback::default() {
            facts.push((name, fates(feedback)));
        }
    }
    if let Some(least) = p.rate.least_gbps.filter(|least| *least < p.rate.line_gbps * 0.999) {
        let text =
            format!("{} Gb/s at the lowest, {} Gb/s at line rate", number(least), number(p.rate.line_gbps));
        facts.push(("rate", text));
    }
    if let Some(t) = p.transit {
        facts.push((
            "transit",
            format!(
                "{} us on average, {} us at most (PSN {}, sent at {:.3} us); {} us on an idle fabric",
                number(t.mean_us),
                number(t.most_us),
                t.most_psn,
                t.most_sent_us,
                number(t.ideal_us)
            ),
        ));
    }
    for (i, pauses) in p.held_up.iter().enumerate() {
        let key = if i == 0 { "pauses" } else { "" };
        facts.push((key, pauses.sentence() + ", over the whole run"));
    }
    for (i, link) in p.links.iter().enumerate() {
        let key = if i == 0 { "queues" } else { "" };
        facts.push((
            key,
            format!(
                "{} -> {}: {} met a queue of {} us on average, {} us at most",
                link.from,
                link.to,
                number_of(link.packets),
                number(link.mean_wait_us),
                number(link.most_wait_us)
            ),
        ));
    }
    facts
}

/// Who sent, made, blocked and received the feedback.
fn fates(feedback: &Feedback) -> String {
    let mut parts = vec![format!("{} sent by the receiver", count(feedback.sent))];
    for (n, what) in [(feedback.blocked, "blocked by the scheme"), (feedback.made, "made by the scheme")] {
        if n > 0 {
            parts.push(format!("{} {what}", count(n)));
        }
    }
    parts.push(format!("{} reached the sender", count(feedback.received)));
    parts.join(", ") + ", for the whole queue pair in this time"
}

/// Lines below a heading, with their times. The times have a digit more if all of them are within a millisecond.
pub(crate) fn timeline(lines: &[Line], elapsed_us: f64, heading: &str) -> String {
    let digits = if elapsed_us < 1000.0 { 2 } else { 1 };
    let time = |us: f64| format!("{us:.digits$}");
    let spans: Vec<String> = lines
        .iter()
        .map(|line| match (time(line.from_us), time(line.to_us)) {
            (from, to) if from == to => from,
            (from, to) => format!("{from}-{to}"),
        })
        .collect();
    let width = spans.iter().map(String::len).max().unwrap_or(0).max(2);
    let mut text = format!("{:>width$}  {heading}\n", "us");
    text += &format!("{}\n", "─".repeat(width + 2 + heading.len()));
    for (span, line) in spans.iter().zip(lines) {
        let _ = writeln!(text, "{span:>width$}  {}", line.what);
    }
    text
}
