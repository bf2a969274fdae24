//! Messages that a program posts while the run goes on, on the queue pairs without messages in the plan.

use model::plan::Message;
use model::{Plan, QpId, Time};

/// The posted messages of all queue pairs.
#[derive(Debug)]
pub(crate) struct Posted {
    /// By queue pair.
    messages: Vec<Vec<PostedMessage>>,
}

/// A message that a program has posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostedMessage {
    pub(crate) bytes: u64,
    pub(crate) start: Time,
    /// Packets of the queue pair up to the end of this message.
    pub(crate) end: u64,
    /// Time at which it had arrived; [`Time::NEVER`] before.
    pub(crate) received: Time,
}

impl Posted {
    /// No messages yet.
    pub(crate) fn new(plan: &Plan) -> Self {
        Posted { messages: vec![Vec::new(); plan.qps.len()] }
    }

    /// The messages of a queue pair, in their order.
    pub(crate) fn of(&self, qp: QpId) -> &[PostedMessage] {
        &self.messages[qp.index()]
    }

    /// Adds a message; returns its number among those of its queue pair.
    pub(crate) fn add(&mut self, plan: &Plan, qp: QpId, bytes: u64, start: Time) -> u32 {
        let mine = &mut self.messages[qp.index()];
        let end = mine.last().map_or(0, |last| last.end) + plan.wire.packets(bytes);
        mine.push(PostedMessage { bytes, start, end, received: Time::NEVER });
        mine.len() as u32 - 1
    }

    /// Notes that a message has arrived.
    pub(crate) fn received(&mut self, qp: QpId, number: u32, at: Time) {
        self.messages[qp.index()][number as usize].received = at;
    }

    /// The plan with these messages, as if they had been known from the start. Triggers of messages keep their targets.
    pub(crate) fn added_to(&self, plan: &Plan) -> Plan {
        let mut grown = plan.clone();
        let Some(job) = plan.posted else { return grown };
        grown.posted = None;
        grown.messages.clear();
        let mut moved = vec![0; plan.messages.len()];
        for (i, qp) in grown.qps.iter_mut().enumerate() {
            let (id, first) = (QpId(i as u32), grown.messages.len() as u32);
            for m in qp.messages.clone() {
                moved[m as usize] = grown.messages.len() as u32;
                grown.messages.push(plan.messages[m as usize].clone());
            }
            let posted = self.of(id).iter().map(|posted| Message::plain(id, posted.bytes, posted.start, job));
            grown.messages.extend(posted);
            qp.messages = first..grown.messages.len() as u32;
        }
        for trigger in &mut grown.triggers {
            if let model::plan::Trigger::Message(m) = trigger {
                m.0 = moved[m.index()];
            }
        }
        grown
    }
}

/// A message by its number among those of its queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnyMessage<'s> {
    Planned(&'s Message),
    Posted(&'s PostedMessage),
}

impl AnyMessage<'_> {
    #[inline]
    pub(crate) fn bytes(self) -> u64 {
        match self {
            AnyMessage::Planned(message) => message.bytes,
            AnyMessage::Posted(message) => message.bytes,
        }
    }

    /// The job of a planned message; that of posted ones is [`Plan::posted`].
    pub(crate) fn job(self) -> Option<u16> {
        match self {
            AnyMessage::Planned(message) => Some(message.job),
            AnyMessage::Posted(_) => None,
        }
    }

    /// Earliest time at which the message is posted.
    #[inline]
    pub(crate) fn start(self) -> Time {
        match self {
            AnyMessage::Planned(message) => message.start,
            AnyMessage::Posted(message) => message.start,
        }
    }
}
