//! RDMA operations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The RDMA operation that moves a message. Its data goes the same way whichever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// WRITE: the sender writes into the memory of the receiver.
    #[default]
    Write,
    /// SEND: the sender's data fills a buffer that the receiver has posted.
    Send,
    /// READ: the receiver asks for the data with a request packet, and the sender's NIC responds with it.
    Read,
}

impl Verb {
    /// Name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Verb::Write => "write",
            Verb::Send => "send",
            Verb::Read => "read",
        }
    }
}
