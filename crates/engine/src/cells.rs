//! A buffer that counts in cells, is cut into slices, or sets room aside: [`model::plan::Memory`] as a switch keeps it.
//!
//! A packet takes whole cells. An ingress of a class that pauses first fills its guarantee, then its share of what is free of its
//! port's slice, then headroom, up to its own limit and that of all headrooms together. A queue of a class that drops first fills its
//! guarantee, then its share of what is free of the slice of the port by which it leaves. Packets that a scheme holds belong to
//! no queue yet. Of a class that drops they take no slice, but room that no slice then has.

use crate::buffer::Account;
use model::plan::{Classes, Memory};

/// An egress queue of a switch: a class of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    #[inline(always)]
    pub(crate) const fn new(port: usize, class: usize) -> Self {
        Place((port * Classes::MOST + class) as u32)
    }

    fn port(self) -> usize {
        self.0 as usize / Classes::MOST
    }
}

/// Charges beside those that a plain buffer keeps.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    memory: Memory,
    /// Ports, and accounts of a port in each group of classes.
    ports: usize,
    channels: usize,
    /// Bytes of one slice.
    slice: u64,
    /// Bytes in use of each slice.
    used: Vec<u64>,
    /// Bytes of each queue, by [`Place`].
    queues: Vec<u64>,
    /// Bytes of packets of classes that drop which a scheme holds.
    held: u64,
    /// Bytes in all headrooms.
    headroom: u64,
}

impl Cells {
    pub(crate) fn new(memory: Memory, shared: u64, (ports, channels): (usize, usize)) -> Self {
        let slices = usize::from(memory.slices);
        let (used, queues) = (vec![0; slices], vec![0; ports * Classes::MOST]);
        Cells { memory, ports, channels, slice: shared / slices as u64, used, queues, held: 0, headroom: 0 }
    }

    /// Bytes that a packet takes.
    #[inline]
    pub(crate) fn room(&self, bytes: u64) -> u64 {
        self.memory.room(bytes)
    }

    fn slice_of(&self, port: usize) -> usize {
        self.memory.slice(port, self.ports)
    }

    /// The slice of an account's port.
    pub(crate) fn slice_of_account(&self, account: Account) -> usize {
        self.slice_of(usize::from(account.0) / self.channels % self.ports)
    }

    /// The slice of a queue's port.
    pub(crate) fn slice_of_queue(&self, place: Place) -> usize {
        self.slice_of(place.port())
    }

    /// Free bytes of a slice.
    #[inline]
    pub(crate) fn free(&self, slice: usize) -> u64 {
        let free = self.slice.saturating_sub(self.used[slice]);
        if self.held == 0 { free } else { free.min(self.left()) }
    }

    /// Bytes that neither slices nor packets that a scheme holds use.
    pub(crate) fn left(&self) -> u64 {
        let used = self.used.iter().sum::<u64>() + self.held;
        (self.slice * self.used.len() as u64).saturating_sub(used)
    }

    /// Free bytes of the fullest slice.
    pub(crate) fn least_free(&self) -> u64 {
        self.slice.saturating_sub(self.used.iter().copied().max().unwrap_or(0))
    }

    /// Bytes above the guarantee.
    #[inline]
    pub(crate) fn above(&self, held: u64) -> u64 {
        held.saturating_sub(self.memory.guarantee.get())
    }

    /// Bytes of a queue.
    pub(crate) fn queue(&self, place: Place) -> u64 {
        self.queues[place.0 as usize]
    }

    /// Bytes of the longest queue.
    pub(crate) fn longest_queue(&self) -> u64 {
        self.queues.iter().copied().max().unwrap_or(0)
    }

    /// Changes what an account or a queue holds from `before` to `after` bytes, and so the use of a slice.
    #[inline]
    pub(crate) fn change(&mut self, slice: usize, before: u64, after: u64) {
        let (before, after) = (self.above(before), self.above(after));
        self.used[slice] = self.used[slice] + after - before;
    }

    /// Adds a packet to a queue of a class that drops.
    pub(crate) fn join(&mut self, place: Place, room: u64) {
        let before = self.queue(place);
        self.queues[place.0 as usize] = before + room;
        self.change(self.slice_of_queue(place), before, before + room);
    }

    /// Takes room for a packet that a scheme holds.
    pub(crate) fn hold(&mut self, room: u64) {
        self.held += room;
    }

    /// Adds a packet that a scheme has held to a queue of a class that drops.
    pub(crate) fn join_held(&mut self, place: Place, room: u64) {
        self.held -= room;
        self.join(place, room);
    }

    /// Takes a packet from a queue of a class that drops.
    pub(crate) fn leave(&mut self, place: Place, room: u64) {
        let before = self.queue(place);
        self.queues[place.0 as usize] = before - room;
        self.change(self.slice_of_queue(place), before, before - room);
    }

    /// Takes headroom for a packet of an account that has `held` of its `limit`; false if there is none.
    pub(crate) fn take_headroom(&mut self, held: u64, limit: u64, room: u64) -> bool {
        let all = self.memory.shared_headroom.map_or(u64::MAX, |most| most.get());
        let fits = held + room <= limit && self.headroom + room <= all;
        self.headroom += if fits { room } else { 0 };
        fits
    }

    /// Gives headroom back.
    pub(crate) fn give_headroom(&mut self, room: u64) {
        self.headroom -= room;
    }

    /// Forgets all queues, slices and held packets, before a new count.
    pub(crate) fn clear(&mut self) {
        self.used.fill(0);
        self.queues.fill(0);
        self.held = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{Admission, Buffer, Request};
    use crate::switch::Egress;
    use model::draw::{Key, Purpose, scaled};
    use model::packet::Kinds;
    use model::plan::{Class, FlowControl, Overflow, Pfc, SwitchSettings};
    use model::{Bytes, Kind};

    const DATA: Class = Class::strict(Kinds::of(&[Kind::Data])).of_data();

    fn settings(buffer: u64, flow_control: FlowControl, memory: Memory) -> SwitchSettings {
        SwitchSettings { buffer: Bytes(buffer), flow_control, overflow: Overflow::Drop, memory }
    }

    /// The buffer of a switch with four ports.
    fn buffer(settings: &SwitchSettings, xoff: u64) -> Buffer {
        Buffer::new(settings, vec![xoff; 4]).with_cells(settings.memory, (4, 1))
    }

    fn packet(port: u16, bytes: u64, out: usize) -> Request<'static> {
        let egress = Egress { queue: 0, cap: u64::MAX, place: Some(Place::new(out, 0)) };
        Request { account: Account(port), bytes, egress, class: &DATA, cuttable: false }
    }

    fn memory(cell: u32, slices: u16, guarantee: u64) -> Memory {
        let guarantee = Bytes(guarantee);
        Memory { cell, slices, guarantee, shared_headroom: None, headroom_beside: true }
    }

    /// Vendor and measured: packets of 64 B until the first pause and the first drop, as sonic-net/sonic-mgmt (tests/qos/files) expects
    /// them of switches, with the pools of sonic-net/sonic-buildimage.
    #[test]
    fn a_lone_queue_fills_to_the_cell_as_on_switches_of_four_kinds() {
        let rows = [
            (10_875_072, memory(208, 4, 1_248), (1, 1), 268_736, 6_542),
            (33_329_088, memory(208, 4, 1_248), (1, 1), 141_856, 20_034),
            (33_169_344, memory(208, 4, 1_248), (1, 1), 101_088, 19_939),
            (33_262_528, memory(208, 4, 1_248), (1, 1), 101_296, 19_994),
            (33_582_016, memory(208, 4, 1_248), (1, 8), 60_112, 4_490),
            (33_329_088, memory(208, 4, 1_248), (1, 8), 108_368, 4_457),
            (55_921_148, memory(254, 2, 2_540), (1, 4), 117_348, 22_026),
            (38_462_204, memory(254, 2, 2_540), (1, 4), 373_888, 15_152),
            (121_964_196, memory(254, 2, 18_796), (1, 1), 300_990, 120_117),
        ];
        for (pool, memory, alpha, xoff, expected) in rows {
            let flow_control =
                FlowControl::Lossless(Pfc { alpha, resume_offset: Bytes(3_556), watchdog: None });
            let mut b = buffer(&settings(pool, flow_control, memory), xoff);
            let fill = |b: &mut Buffer, until: Admission| {
                (0_u64..).find(|_| b.admit(packet(0, 64, 1)) == until).unwrap_or_default()
            };
            let pause = fill(&mut b, Admission::AdmittedPause);
            assert!(pause.abs_diff(expected) <= 2, "{pool}: {pause}, not {expected}");
            // The packet that paused the port was the first in headroom.
            let drop = pause + 1 + fill(&mut b, Admission::Dropped);
            assert_eq!(drop - pause, xoff / u64::from(memory.cell), "{pool}");
        }
    }

    /// Measured: packets of one cell until a lossy queue drops, as sonic-net/sonic-mgmt expects them of a Tomahawk 3 with alpha 2.
    #[test]
    fn a_lone_queue_without_pfc_drops_at_its_share_of_a_slice() {
        for (pool, expected) in [(55_921_148, 73_394), (38_462_204, 50_482)] {
            let settings = settings(pool, FlowControl::Lossy { alpha: (2, 1) }, memory(254, 2, 1_778));
            let mut b = buffer(&settings, 0);
            let held =
                (0_u64..).find(|_| b.admit(packet(0, 64, 1)) == Admission::Dropped).unwrap_or_default();
            assert!(held.abs_diff(expected) <= 2, "{pool}: {held}, not {expected}");
        }
    }

    #[test]
    fn a_packet_takes_whole_cells_and_gives_them_back() {
        let flow_control =
            FlowControl::Lossless(Pfc { alpha: (1, 1), resume_offset: Bytes(0), watchdog: None });
        let mut b = buffer(&settings(10_000, flow_control, memory(200, 1, 0)), 1_000);
        // 201 B take two cells: 12 packets hold 4,800 B and leave 5,200 B, which is room for one more.
        let held = (0..).find(|_| b.admit(packet(0, 201, 1)) != Admission::Admitted);
        assert_eq!(held, Some(13));
        assert_eq!(b.take_recent().now, 14 * 400, "the last one is in headroom");
        assert_eq!((0..).find(|_| b.admit(packet(0, 1, 1)) != Admission::Admitted), Some(3), "a cell each");
        (0..3).for_each(|_| assert!(!b.release(Account(0), 1, Place::new(1, 0))));
        assert!(
            !b.release(Account(0), 201, Place::new(1, 0)),
            "headroom is empty, and 5,200 B are above the threshold"
        );
        assert!(b.release(Account(0), 201, Place::new(1, 0)), "the port goes on");
        (0..12).for_each(|_| assert!(!b.release(Account(0), 201, Place::new(1, 0))));
        assert!(b.idle(false));
    }

    #[test]
    fn ports_of_another_slice_and_guarantees_are_left_alone_and_headroom_is_shared() {
        let flow_control =
            FlowControl::Lossless(Pfc { alpha: (8, 1), resume_offset: Bytes(0), watchdog: None });
        let parts = Memory { shared_headroom: Some(Bytes(2_500)), ..memory(100, 2, 300) };
        let mut b = buffer(&settings(20_000, flow_control, parts), 2_000);
        let fill = |b: &mut Buffer, port| {
            (0..).find(|_| b.admit(packet(port, 100, 3)) != Admission::Admitted).unwrap()
        };
        // Ports 0 and 1 share 10 kB: alpha 8 lets the first one have 8 of 9 parts beside its own 300 B.
        assert_eq!(fill(&mut b, 0), 3 + 89);
        assert_eq!(fill(&mut b, 1), 3 + 10, "8 of 9 parts of the rest, and its guarantee");
        assert_eq!(fill(&mut b, 2), 3 + 89, "the other slice is empty");
        // One packet of each is in headroom. Port 0 may have 20 of them, and all together 25.
        assert_eq!(fill(&mut b, 0), 19);
        assert_eq!(fill(&mut b, 1), 3);
        assert_eq!(fill(&mut b, 2), 0);
    }

    /// A scheme that holds packets in the buffer leaves less of it to queues, and gets no more of it than they leave.
    #[test]
    fn packets_that_a_scheme_holds_and_those_in_queues_share_one_buffer() {
        for (slices, alpha) in [(1, (8, 1)), (2, (8, 1)), (1, (1, 1))] {
            let lossy = FlowControl::Lossy { alpha };
            let mut b = buffer(&settings(40_000, lossy, memory(5_000, slices, 0)), 0);
            let held =
                Request { egress: Egress { place: None, ..packet(0, 64, 1).egress }, ..packet(0, 64, 1) };
            (0..6).for_each(|_| assert_eq!(b.admit(held), Admission::Admitted));
            let queued = (0..).find(|_| b.admit(packet(1, 64, 1)) == Admission::Dropped).unwrap();
            assert_eq!(queued, if alpha == (1, 1) { 1 } else { 2 }, "two of eight cells are left");
            let more = (0..).find(|_| b.admit(held) == Admission::Dropped).unwrap();
            assert_eq!((queued + more, b.take_recent().now), (2, 40_000), "the scheme holds what is left");
            // A packet that joins its queue changes no sum.
            b.join(Account(0), 64, Place::new(2, 0));
            assert_eq!(b.admit(packet(1, 64, 3)), Admission::Dropped);
            b.release(Account(0), 64, Place::new(2, 0));
            assert_eq!(b.admit(packet(1, 64, 3)), Admission::Admitted);
        }
    }

    /// Any order of arrivals and departures: cells are neither lost nor made, no slice holds more than it has, and no charge is
    /// negative, which overflow checks would tell.
    #[test]
    fn cells_are_conserved_whatever_comes_and_goes() {
        for seed in 0..60 {
            let mut draws = (0..).map(|i| Key::new(seed, Purpose::Mark, 7).draw(i));
            let mut below = move |most: u64| scaled(draws.next().unwrap_or(0), most - 1);
            let rules = [
                FlowControl::Lossless(Pfc { alpha: (1, 1), resume_offset: Bytes(500), watchdog: None }),
                FlowControl::Lossy { alpha: (2, 1) },
                FlowControl::Capped { least: Bytes(3_000) },
            ];
            let shared_headroom = (below(2) == 0).then_some(Bytes(5_000));
            let parts = Memory {
                shared_headroom,
                ..memory(1 + below(400) as u32, 1 + below(3) as u16, [0, 700, 3_000][below(3) as usize])
            };
            let settings = settings(30_000 + below(40_000), rules[below(3) as usize], parts);
            let mut b = buffer(&settings, 4_000);
            // A packet that the scheme holds joins its queue before it leaves.
            let leave = |b: &mut Buffer, (port, bytes, out, waits): (u16, u64, usize, bool)| {
                let place = Place::new(out, 0);
                if waits {
                    b.join(Account(port), bytes, place);
                }
                b.release(Account(port), bytes, place);
            };
            // Four ports have headroom and guarantees beside the buffer, or four queues guarantees.
            let most = settings.buffer.get() + 4 * (4_000 + parts.guarantee.get());
            let mut held: Vec<(u16, u64, usize, bool)> = Vec::new();
            for _ in 0..3_000 {
                if held.is_empty() || below(100) < 53 {
                    let (port, bytes, out) = (below(4) as u16, 1 + below(1_500), below(4) as usize);
                    let (queued, waits) = (packet(port, bytes, out), below(3) == 0);
                    let place = queued.egress.place.filter(|_| !waits);
                    let request = Request { egress: Egress { place, ..queued.egress }, ..queued };
                    if matches!(b.admit(request), Admission::Admitted | Admission::AdmittedPause) {
                        held.push((port, bytes, out, waits));
                    }
                } else {
                    leave(&mut b, held.swap_remove(below(held.len() as u64) as usize));
                }
                let cells = held.iter().map(|packet| parts.room(packet.1)).sum::<u64>();
                assert!(b.take_recent().now == cells && cells <= most, "seed {seed}: {cells} of {most}");
            }
            held.drain(..).for_each(|packet| leave(&mut b, packet));
            assert!(b.idle(false), "seed {seed}");
        }
    }

    #[test]
    fn a_new_count_gives_the_charges_of_packets_one_by_one() {
        for rule in [
            FlowControl::Lossless(Pfc { alpha: (1, 1), resume_offset: Bytes(0), watchdog: None }),
            FlowControl::Lossy { alpha: (1, 1) },
        ] {
            let settings = settings(90_000, rule, memory(254, 2, 600));
            let (mut one, mut other) = (buffer(&settings, 9_000), buffer(&settings, 9_000));
            let packets = [(0, 64, 1), (1, 1_000, 2), (3, 255, 0), (0, 1_500, 1), (2, 254, 1)];
            for (port, bytes, out) in packets {
                assert_eq!(one.admit(packet(port, bytes, out)), Admission::Admitted);
            }
            other.count(
                packets
                    .map(|(port, bytes, out)| (Account(port), Some(Place::new(out, 0)), bytes))
                    .into_iter(),
            );
            assert_eq!(format!("{one:?}"), format!("{other:?}"));
        }
    }
}
