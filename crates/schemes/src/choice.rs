//! Choice of the least loaded path, for a single packet or for a flow.
//!
//! On a fat tree that is the port with the fewest bytes waiting. On a Dragonfly it is UGAL's choice between minimal paths
//! and a detour (Singh, "Load-Balanced Routing in Interconnection Networks", PhD thesis, Stanford 2005; on Dragonfly Kim
//! et al., ISCA 2008, section 4.1). A scheme that chooses once for several packets keeps the [`Choice`] for the packets
//! that follow.

use crate::ar::load;
use model::{Bytes, Cx, Detour, PortIndex, Verdict};

/// First step of a path from the switch where a packet starts: a port, and the detour behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The port.
    pub port: PortIndex,
    /// The detour; `None` on a minimal path.
    pub via: Option<Detour>,
}

impl Choice {
    /// Sends the packet of `cx` by this choice.
    #[inline]
    pub fn take(self, cx: &mut Cx<'_>) -> Verdict {
        cx.via = self.via;
        Verdict::Forward(self.port)
    }
}

/// Counts of UGAL's choices between minimal paths and detours, where there was a detour to choose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chosen {
    minimal: u64,
    detours: u64,
}

impl Chosen {
    /// Counts a choice, and sends the packet of `cx` by it.
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

/// UGAL's rule for when a detour is worth its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ugal {
    /// Weight of a byte that waits on a detour, relative to a byte on a minimal path. Default 2 (SST's merlin; a
    /// detour has about twice as many links).
    pub weight: u32,
    /// Bytes added to a detour's weighted queue. Default 3200 B (SST's merlin: 50 flits, of 64 B in the Flowcut authors'
    /// runs).
    pub bias: Bytes,
}

impl Default for Ugal {
    fn default() -> Self {
        Ugal { weight: 2, bias: Bytes(3200) }
    }
}

impl Ugal {
    /// The better of the least loaded minimal path and the least loaded path over one random detour. The minimal
    /// path wins ties; a draw decides between equal ports. `ports` are the minimal ports, not empty. `cost` gives
    /// the bytes that wait on a path, by its first port and its detour.
    ///
    /// Without detours, this is the least loaded of `ports`.
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
