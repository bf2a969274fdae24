//! `ropewalk serve`: a program drives a run over standard input and output.
//!
//! Every request is a JSON object, and every request has one answer. `docs/programs.md` describes both.

use crate::cli::ServeArgs;
use crate::print;
use crate::typed::Typed;
use lab::session::{Event, Next};
use lab::{Failure, Session};
use model::Time;
use results::directory::Target;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};

/// Largest request, bytes. Our choice: a thousand times the usual size.
const LARGEST: usize = 1 << 20;

/// A request of the program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    /// Sends a message from one rank to another, now or at a later time.
    Send {
        id: u64,
        from: u32,
        to: u32,
        bytes: u64,
        #[serde(default)]
        tag: u32,
        at_ps: Option<u64>,
    },
    /// Gives names to the ranks of instances.
    Instances { list: Vec<Named> },
    /// Sends bytes from the ranks of one instance to those of another.
    Transfer { id: u64, from: Instance, to: Instance, bytes: u64 },
    /// Sets a timer of a rank.
    Timer { id: u64, rank: u32, after_ps: u64 },
    /// Asks for the next event up to a time.
    Next { until_ps: Option<u64> },
    /// Asks for all events up to a time.
    Advance { until_ps: u64 },
    /// Plays what is sent to its end and writes the results.
    Finish {},
}

/// An instance and its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    ranks: Vec<u32>,
}

/// An instance: its ranks, or its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected the name of an instance, or a list of ranks")]
enum Instance {
    Name(String),
    Ranks(Vec<u32>),
}

impl Instance {
    fn ranks(self, session: &Session) -> Result<Vec<u32>, Failure> {
        match self {
            Instance::Name(name) => session.instance(&name).map(<[u32]>::to_vec),
            Instance::Ranks(ranks) => Ok(ranks),
        }
    }
}

/// The answer to a request.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    Ready { ropewalk: &'static str, scenario: String, ranks: u32 },
    Accepted { ps: u64 },
    Event(EventRow),
    State { state: &'static str, ps: u64 },
    Events { events: Vec<EventRow>, state: &'static str, ps: u64 },
    Finished { digest: String, ps: u64, faults: Vec<String> },
    Refused { error: String },
}

#[derive(Debug, Serialize)]
struct EventRow {
    event: &'static str,
    ps: u64,
    rank: u32,
    id: u64,
}

impl From<Event> for EventRow {
    fn from(Event { at, rank, kind, id }: Event) -> Self {
        EventRow { event: kind.name(), ps: at.ps(), rank, id }
    }
}

/// Serves one run.
///
/// # Errors
/// If the scenario is wrong, standard input or output fails, or the simulation failed.
pub fn run(args: &Typed<ServeArgs>) -> Result<(), Failure> {
    let mut session = Session::open(&args.scenario, &args.set)?;
    print::warnings(&session.checked().findings);
    let target = args.output.clone().map(Target::at).transpose()?;
    let mut wire = Wire { input: BufReader::new(io::stdin()), output: io::stdout(), frames: args.frames };
    let scenario = session.checked().name.clone();
    wire.answer(&Answer::Ready { ropewalk: env!("CARGO_PKG_VERSION"), scenario, ranks: session.ranks() })?;
    while let Some(request) = wire.request()? {
        let answer = match serde_json::from_slice::<Request>(&request) {
            Err(error) => Answer::Refused { error: format!("no request: {error}") },
            Ok(Request::Finish {}) => return finish(session, &mut wire, target.as_ref(), args),
            Ok(request) => answer(&mut session, request),
        };
        wire.answer(&answer)?;
    }
    print::note("the program has closed its output without `finish`, so there are no results");
    Ok(())
}

fn finish(
    session: Session,
    wire: &mut Wire<impl Read, impl Write>,
    target: Option<&Target>,
    args: &Typed<ServeArgs>,
) -> Result<(), Failure> {
    let run = session.finish();
    if let Some(target) = target {
        run.results(args.command("serve", &[])).write(target, false)?;
    }
    let (digest, ps) = (run.summary.digest.clone(), run.outcome.end.ps());
    wire.answer(&Answer::Finished { digest, ps, faults: run.faults() })?;
    super::run::verdict(&run)
}

/// Carries out a request other than `finish`.
fn answer(session: &mut Session, request: Request) -> Answer {
    let accepted = |session: &Session, done: Result<(), Failure>| match done {
        Ok(()) => Answer::Accepted { ps: session.now().ps() },
        Err(refusal) => Answer::Refused { error: refusal.to_string() },
    };
    match request {
        Request::Send { id, from, to, bytes, tag, at_ps: None } => {
            let done = session.send(id, (from, to), bytes, tag);
            accepted(session, done)
        }
        Request::Send { id, from, to, bytes, tag, at_ps: Some(at) } => {
            let done = session.send_at(Time(at), id, (from, to), bytes, tag);
            accepted(session, done)
        }
        Request::Instances { list } => {
            let done = list.iter().try_for_each(|named| session.name_instance(&named.name, &named.ranks));
            accepted(session, done)
        }
        Request::Transfer { id, from, to, bytes } => {
            let ranks = from.ranks(session).and_then(|from| Ok((from, to.ranks(session)?)));
            let done = ranks.and_then(|(from, to)| session.transfer(id, (&from, &to), bytes));
            accepted(session, done)
        }
        Request::Timer { id, rank, after_ps } => {
            let done = session.timer(id, rank, Time(after_ps));
            accepted(session, done)
        }
        Request::Next { until_ps } => match session.next(until_ps.map(Time)) {
            Ok(Next::Event(event)) => Answer::Event(event.into()),
            Ok(other) => Answer::State { state: state(other), ps: session.now().ps() },
            Err(refusal) => Answer::Refused { error: refusal.to_string() },
        },
        Request::Advance { until_ps } => {
            let mut events = Vec::new();
            loop {
                match session.next(Some(Time(until_ps))) {
                    Ok(Next::Event(event)) => events.push(event.into()),
                    Ok(other) => {
                        return Answer::Events { events, state: state(other), ps: session.now().ps() };
                    }
                    Err(refusal) => return Answer::Refused { error: refusal.to_string() },
                }
            }
        }
        Request::Finish {} => Answer::Refused { error: "the run is finished".to_owned() },
    }
}

fn state(next: Next) -> &'static str {
    match next {
        Next::Event(_) | Next::Until => "until",
        Next::Idle => "idle",
        Next::Ended => "ended",
    }
}

/// Requests and answers: lines, or frames of a length and a text.
struct Wire<I, O> {
    input: BufReader<I>,
    output: O,
    /// True for frames: the length as 32 bits, big-endian, and the object.
    frames: bool,
}

impl<I: Read, O: Write> Wire<I, O> {
    /// The next request; `None` at the end of the input. Empty lines are skipped.
    fn request(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let unreadable = |e: io::Error| Failure::Asked(format!("cannot read standard input: {e}"));
        if self.frames {
            let mut length = [0; 4];
            match self.input.read_exact(&mut length) {
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
                done => done.map_err(unreadable)?,
            }
            let length = u32::from_be_bytes(length) as usize;
            if length > LARGEST {
                return Err(Failure::Asked(format!("a frame has at most {LARGEST} B, found {length} B")));
            }
            let mut frame = vec![0; length];
            self.input.read_exact(&mut frame).map_err(unreadable)?;
            return Ok(Some(frame));
        }
        loop {
            let mut line = Vec::new();
            let limit = LARGEST as u64 + 1;
            let read = self.input.by_ref().take(limit).read_until(b'\n', &mut line).map_err(unreadable)?;
            if read == 0 {
                return Ok(None);
            }
            if read > LARGEST {
                return Err(Failure::Asked(format!("a request has at most {LARGEST} B, found more")));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    fn answer(&mut self, answer: &Answer) -> Result<(), Failure> {
        let mut text = serde_json::to_vec(answer).unwrap_or_default();
        let mut bytes = Vec::with_capacity(text.len() + 4);
        if self.frames {
            bytes.extend((text.len() as u32).to_be_bytes());
        } else {
            text.push(b'\n');
        }
        bytes.append(&mut text);
        self.output.write_all(&bytes).and_then(|()| self.output.flush()).map_err(Failure::Output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers to some requests, on a fabric of two racks with two hosts each.
    fn answers(requests: &[&str]) -> Vec<String> {
        let text = "[topology.leaf-spine]\nleaves = 2\nspines = 1\nhosts-per-leaf = 2\n";
        let source = scenario::Source::new("serve.toml", text);
        let mut session = Session::open_source(&source, &[]).unwrap();
        let of = |request: &&str| match serde_json::from_str(request) {
            Ok(request) => serde_json::to_string(&answer(&mut session, request)).unwrap(),
            Err(error) => error.to_string(),
        };
        requests.iter().map(of).collect()
    }

    #[test]
    fn a_message_is_sent_received_and_acknowledged() {
        let all = answers(&[
            r#"{"do":"send","id":5,"from":0,"to":1,"bytes":1438}"#,
            r#"{"do":"timer","id":6,"rank":2,"after_ps":10000000}"#,
            r#"{"do":"next"}"#,
            r#"{"do":"advance","until_ps":20000000}"#,
            r#"{"do":"next","until_ps":30000000}"#,
        ]);
        assert_eq!(all[..2], [r#"{"ps":0}"#, r#"{"ps":0}"#]);
        // Two links of 1 us and two transmissions of 1,520 B at 400 Gb/s; then an ACK of 86 B back.
        assert_eq!(all[2], r#"{"event":"received","ps":2060800,"rank":1,"id":5}"#);
        let sent = r#"{"event":"sent","ps":4064240,"rank":0,"id":5}"#;
        let timer = r#"{"event":"timer","ps":10000000,"rank":2,"id":6}"#;
        assert_eq!(all[3], format!(r#"{{"events":[{sent},{timer}],"state":"idle","ps":20000000}}"#));
        assert_eq!(all[4], r#"{"state":"idle","ps":30000000}"#);
    }

    #[test]
    fn a_transfer_between_instances_has_one_event() {
        let all = answers(&[
            r#"{"do":"instances","list":[{"name":"p0","ranks":[0,1]},{"name":"d0","ranks":[2,3]}]}"#,
            r#"{"do":"transfer","id":5,"from":"p0","to":"d0","bytes":2876}"#,
            r#"{"do":"transfer","id":5,"from":"p1","to":[2],"bytes":2876}"#,
            r#"{"do":"transfer","id":6,"from":[0],"to":[],"bytes":1}"#,
            r#"{"do":"advance","until_ps":20000000}"#,
        ]);
        assert_eq!(all[..2], [r#"{"ps":0}"#, r#"{"ps":0}"#]);
        assert!(all[2].contains("there is no instance"), "{}", all[2]);
        assert_eq!(all[3], r#"{"error":"an instance has no ranks"}"#);
        assert!(all[4].starts_with(r#"{"events":[{"event":"transferred","ps":"#), "{}", all[4]);
        assert!(all[4].ends_with(r#""rank":2,"id":5}],"state":"idle","ps":20000000}"#), "{}", all[4]);
    }

    #[test]
    fn wrong_requests_say_what_is_wrong() {
        let all = answers(&[
            r#"{"do":"jump"}"#,
            r#"{"do":"send","id":5,"from":0,"to":1,"bytes":1.5}"#,
            r#"{"do":"next","until":3}"#,
            r#"{"do":"send","id":5,"from":0,"to":9,"bytes":1}"#,
        ]);
        assert!(all[0].contains("unknown variant `jump`"), "{}", all[0]);
        assert!(all[1].contains("expected u64"), "{}", all[1]);
        assert!(all[2].contains("unknown field `until`"), "{}", all[2]);
        assert_eq!(all[3], r#"{"error":"rank 9 does not exist; the ranks are 0 to 3"}"#);
    }

    #[test]
    fn times_beyond_the_end_of_time_are_refused() {
        let all = answers(&[
            r#"{"do":"send","id":5,"from":0,"to":1,"bytes":1,"at_ps":18446744073709551615}"#,
            r#"{"do":"next","until_ps":18446744073709551614}"#,
            r#"{"do":"advance","until_ps":1000000000000000001}"#,
            r#"{"do":"timer","id":6,"rank":2,"after_ps":18446744073709551615}"#,
            r#"{"do":"advance","until_ps":1000000000000000000}"#,
            r#"{"do":"advance","until_ps":1}"#,
        ]);
        for refused in &all[..4] {
            assert!(refused.contains("beyond the end of time, 1000000s"), "{refused}");
        }
        assert_eq!(all[4], r#"{"events":[],"state":"idle","ps":1000000000000000000}"#);
        assert!(all[5].contains("has passed"), "{}", all[5]);
    }

    #[test]
    fn frames_have_a_length_and_an_object() {
        let mut output = Vec::new();
        let input: &[u8] =
            &[0, 0, 0, 13, b'{', b'"', b'd', b'o', b'"', b':', b'"', b'n', b'e', b'x', b't', b'"', b'}'];
        let mut wire = Wire { input: BufReader::new(input), output: &mut output, frames: true };
        assert_eq!(wire.request().unwrap().unwrap(), br#"{"do":"next"}"#);
        assert!(wire.request().unwrap().is_none());
        wire.answer(&Answer::Accepted { ps: 7 }).unwrap();
        assert_eq!(output, b"\x00\x00\x00\x08{\"ps\":7}");
        let long: &[u8] = &[1, 0, 0, 0];
        let mut wire = Wire { input: BufReader::new(long), output: Vec::new(), frames: true };
        assert!(wire.request().unwrap_err().to_string().contains("at most 1048576 B"));
    }
}
