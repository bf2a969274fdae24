//! Most room that packets have taken in the buffer of a switch, in a run that counts queues. All its visits are then heavy, so each
//! charge is seen.

use crate::outcome::Room;

/// The most so far.
#[derive(Clone, Debug)]
pub(crate) struct Watermarks {
    pub(crate) accounts: Vec<Room>,
    /// Of all accounts at one time.
    pub(crate) all: Room,
}

impl Watermarks {
    pub(crate) fn new(accounts: usize) -> Self {
        Watermarks { accounts: vec![Room::default(); accounts], all: Room::default() }
    }

    /// An account holds `own` bytes of the shared part, and all accounts `all`.
    pub(crate) fn shared(&mut self, account: usize, own: u64, all: u64) {
        let most = &mut self.accounts[account];
        most.shared = most.shared.max(own);
        self.all.shared = self.all.shared.max(all);
    }

    /// An account holds `own` bytes of headroom, and all accounts `all`.
    pub(crate) fn headroom(&mut self, account: usize, own: u64, all: u64) {
        let most = &mut self.accounts[account];
        most.headroom = most.headroom.max(own);
        self.all.headroom = self.all.headroom.max(all);
    }
}
