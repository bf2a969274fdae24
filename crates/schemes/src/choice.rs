//! Where a packet goes, or a flow when it is given a path: the least loaded of the ways that there are.
//!
//! On a fat tree that is the port with the fewest bytes waiting. On a Dragonfly it is UGAL's choice between minimal ways and
//! a detour (Singh, "Load-Balanced Routing in Interconnection Networks", PhD thesis, Stanford 2005; on Dragonfly Kim et
//! al., ISCA 2008, section 4.1). A scheme that chooses now and then keeps what was chosen ([`Choice`]) for the packets
//! that follow.

use crate::ar::load;
use model::{Bytes, Cx, Detour, PortIndex, Verdict};

/// A way out of the switch where a packet starts: a port, and over what it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The port.
    pub port: PortIndex,
    /// The detour, if it is no minimal way.
    pub via: Option<Detour>,
}

impl Choice {
    /// Sends the packet of `cx` this way.
    #[inline]
    pub fn take(self, cx: &mut Cx<'_>) -> Verdict {
        cx.via = self.via;
        Verdict::Forward(self.port)
    }
}

/// How often UGAL chose which kind of way, where it had a choice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chosen {
    minimal: u64,
    detours: u64,
}

impl Chosen {
    /// Counts a choice, and sends the packet of `cx` this way.
    #[inline]
    pub(crate) fn take(&mut self, cx: &mut Cx<'_>, choice: Choice) -> Verdict {
        if !cx.detours.is_empty() {
            match choice.via {
                None => self.minimal += 1,
                Some(_) => self.detours += 1,
            }
        }
        choice.take(cx)
    }

    pub(crate) fn counters(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        sink("ways_minimal", self.minimal);
        sink("ways_detour", self.detours);
    }
}

/// When a detour is worth its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ugal {
    /// A byte that waits on a detour counts as so many on a minimal way. Default 2 (SST's merlin; a detour has about twice
    /// the links).
    pub weight: u32,
    /// What is added to a detour's queue. Default 3200 B (SST's merlin: 50 flits, of 64 B in the Flowcut authors' runs).
    pub bias: Bytes,
}

impl Default for Ugal {
    fn default() -> Self {
        Ugal { weight: 2, bias: Bytes(3200) }
    }
}

impl Ugal {
    /// The better of the least loaded minimal way and the least loaded way over one detour, which is drawn; equals go the
    /// minimal way. Among ports alike lots are drawn. `ports` are the minimal ones, not empty; `cost` is what waits on the way
    /// that begins with a port and leads over a detour or not, bytes.
    ///
    /// Where there is no detour, this is the least loaded of `ports`.
    #[inline]
    pub fn choose(
        &self,
        cx: &mut Cx<'_>,
        ports: &[PortIndex],
        cost: impl Fn(&Cx<'_>, PortIndex, Option<Detour>) -> u64,
    ) -> Choice {
        let (port, minimal) = least(cx, ports, |cx, port| cost(cx, port, None));
        let direct = Choice { port, via: None };
        if cx.detours.is_empty() {
            return direct;
        }
        let lot = cx.pick(cx.detours.len());
        let Some((detour, around)) = cx.detours.get(lot) else { return direct };
        let (port, longer) = least(cx, around, |cx, port| cost(cx, port, Some(detour)));
        let longer = longer.saturating_mul(self.weight.into()).saturating_add(self.bias.get());
        if longer < minimal { Choice { port, via: Some(detour) } } else { direct }
    }

    /// [`Ugal::choose`] by the queues of this switch (UGAL-L).
    #[inline]
    pub fn choose_locally(&self, cx: &mut Cx<'_>, ports: &[PortIndex]) -> Choice {
        self.choose(cx, ports, |cx, port, _| load(cx.queued, port).into())
    }
}

/// The port with the least cost, drawn among equals, and its cost; `ports` are not empty.
#[inline]
pub fn least(
    cx: &mut Cx<'_>,
    ports: &[PortIndex],
    cost: impl Fn(&Cx<'_>, PortIndex) -> u64,
) -> (PortIndex, u64) {
    let (mut best, mut equals) = (u64::MAX, 0);
    for &port in ports {
        let cost = cost(cx, port);
        if cost < best {
            (best, equals) = (cost, 1);
        } else if cost == best {
            equals += 1;
        }
    }
    let lot = if equals > 1 { cx.pick(equals) } else { 0 };
    let port = ports.iter().copied().filter(|&port| cost(cx, port) == best).nth(lot);
    (port.unwrap_or(PortIndex::VIRTUAL), best)
}
