//! A switch apart from its ports: its scheme, its buffer, and the packets that its scheme holds. Both
//! engines use it.

use crate::buffer::{Account, Buffer};
use crate::setup::Setup;
use model::draw::Key;
use model::fabric::Detours;
use model::scheme::{Effects, Handle};
use model::{Annex, Cx, Interest, NodeId, Packet, Parcel, Parts, PortIndex, Scheme, Site, Time, Verdict};

/// A switch.
pub(crate) struct Switch<P: Parts> {
    pub(crate) scheme: P::Scheme,
    pub(crate) interest: Interest,
    pub(crate) buffer: Buffer,
    /// Virtual channels of its links.
    channels: u8,
    key: Key,
    pub(crate) salt: u64,
    /// By handle: `None` if it is free, `Some(None)` if its packet was dropped.
    stash: Vec<Option<Option<Parcel<P::Annex>>>>,
    /// Bytes of the packets held.
    pub(crate) held_bytes: u64,
    free: Vec<u32>,
    /// Bytes that wait in the class of data and are charged to no buffer, as this switch made them.
    pub(crate) uncharged: u64,
    /// Number of the sampling interval in which the buffer was last looked at.
    pub(crate) sampled: u64,
    /// When the scheme wants to be woken; [`u64::MAX`] if it does not.
    pub(crate) wake: u64,
    pub(crate) dropped_while_lossless: bool,
}

/// The virtual channel of a leg: its own, or the last one.
#[inline(always)]
pub(crate) fn channel(leg: u8, channels: u8) -> u8 {
    leg.min(channels - 1)
}

/// Where a packet stands when its switch looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand<'a> {
    pub(crate) now: u64,
    pub(crate) ingress: PortIndex,
    pub(crate) from_host: bool,
    pub(crate) to_host: bool,
    pub(crate) detours: Detours<'a>,
    pub(crate) view: &'a [u32],
}

impl<P: Parts> Switch<P> {
    pub(crate) fn new(setup: &Setup<'_>, parts: &P, node: NodeId) -> Self {
        let plan = setup.plan;
        let scheme = parts.scheme(Site { plan, node });
        let (key, salt) = setup.scheme_keys(node);
        let base = plan.fabric.base(node) as usize;
        let ports = &plan.ports[base..base + plan.fabric.ports(node).len()];
        let settings = &plan.switches[node.index() - plan.fabric.hosts()];
        let channels = plan.fabric.channels();
        // What no packet can be charged to needs no headroom.
        let used = |p: usize| plan.fabric.channels_on(&plan.fabric.links()[setup.feeding(base + p)]);
        let headroom = |p: usize| {
            let (used, own) = (used(p), ports[p].headroom.get());
            (0..channels).map(move |channel| if channel < used { own } else { 0 })
        };
        Switch {
            interest: scheme.interest(),
            scheme,
            buffer: Buffer::new(settings, (0..ports.len()).flat_map(headroom).collect()),
            channels,
            key,
            salt,
            stash: Vec::new(),
            held_bytes: 0,
            free: Vec::new(),
            uncharged: 0,
            sampled: 0,
            wake: u64::MAX,
            dropped_while_lossless: false,
        }
    }

    /// Who is charged for a packet.
    #[inline(always)]
    pub(crate) fn account(&self, pkt: &Parcel<P::Annex>) -> Account {
        match P::Annex::CARRIES {
            true => {
                let channel = channel(pkt.annex.way().came_on(), self.channels);
                Account(pkt.ingress().0 * u16::from(self.channels) + u16::from(channel))
            }
            false => Account(pkt.ingress().0),
        }
    }

    /// The channel of an account, for pause frames.
    pub(crate) fn channel_of(&self, account: Account) -> u8 {
        (account.0 % u16::from(self.channels)) as u8
    }

    #[inline]
    fn next_handle(&self) -> Handle {
        Handle(self.free.last().copied().unwrap_or(self.stash.len() as u32))
    }

    #[inline(always)]
    pub(crate) fn judge(
        &mut self,
        stand: Stand<'_>,
        queued: &[u32],
        pkt: &mut Parcel<P::Annex>,
        ports: &[PortIndex],
        effects: &mut Effects,
    ) -> Verdict {
        let handle = self.next_handle();
        let Stand { now, ingress, from_host, to_host, detours, view } = stand;
        let cx =
            Cx::new(Time(now), ingress, from_host, to_host, queued, self.key, self.salt, handle, effects);
        let mut cx =
            cx.with_entropy(if pkt.is_data() { pkt.annex.entropy() } else { 0 }).with_detours(detours, view);
        let kind = pkt.kind();
        let verdict = self.scheme.on_packet(&mut cx, &mut pkt.label, ports);
        if P::Annex::CARRIES && pkt.kind() != kind {
            pkt.annex = pkt.annex.overruled();
        }
        if P::Annex::CARRIES
            && let Some(detour) = cx.via
        {
            pkt.annex.set_way(pkt.annex.way().by(detour));
        }
        verdict
    }

    #[inline(always)]
    pub(crate) fn departed(&mut self, now: u64, pkt: &Packet, port: PortIndex, effects: &mut Effects) {
        let (handle, virt) = (self.next_handle(), PortIndex::VIRTUAL);
        let mut cx = Cx::new(Time(now), virt, false, true, &[], self.key, self.salt, handle, effects);
        self.scheme.on_depart(&mut cx, pkt, port);
    }

    pub(crate) fn woken(&mut self, now: u64, queued: &[u32], effects: &mut Effects) {
        self.wake = u64::MAX;
        let (handle, virt) = (self.next_handle(), PortIndex::VIRTUAL);
        let mut cx = Cx::new(Time(now), virt, false, false, queued, self.key, self.salt, handle, effects);
        self.scheme.on_wake(&mut cx);
    }

    /// Keeps a packet under the handle that its scheme was shown. `None`: there was no room for it; the scheme
    /// does not know that, so the handle stays taken until the scheme gives it back.
    pub(crate) fn hold(&mut self, pkt: Option<Parcel<P::Annex>>) {
        self.held_bytes += pkt.map_or(0, |p| p.frame() as u64);
        match self.free.pop() {
            Some(i) => self.stash[i as usize] = Some(pkt),
            None => self.stash.push(Some(pkt)),
        }
    }

    /// Hands out a held packet; `None` if the scheme names one that is not held.
    pub(crate) fn unhold(&mut self, handle: Handle) -> Option<Parcel<P::Annex>> {
        let pkt = self.stash.get_mut(handle.0 as usize)?.take()?;
        self.free.push(handle.0);
        self.held_bytes -= pkt.map_or(0, |p| p.frame() as u64);
        pkt
    }

    /// The packets held now.
    pub(crate) fn stashed(&self) -> impl Iterator<Item = &Parcel<P::Annex>> {
        self.stash.iter().flatten().flatten()
    }

    /// Bytes held that are charged to the buffer.
    #[inline]
    pub(crate) fn held_charge(&self, one_class: bool) -> u64 {
        match self.held_bytes {
            0 => 0,
            _ => self.stashed().filter(|p| one_class || p.is_data()).map(|p| p.frame() as u64).sum(),
        }
    }

    /// Packets held now: of data, and others.
    pub(crate) fn held(&self) -> (u64, u64) {
        let data = self.stashed().filter(|p| p.is_data()).count() as u64;
        (data, self.stashed().count() as u64 - data)
    }
}
