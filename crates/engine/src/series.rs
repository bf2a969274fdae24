//! What a run records over time: bins that double in width when they are full, so that a recording never
//! grows beyond its plan.

use crate::outcome::{Series, Track, TrackOf};
use model::Time;
use model::plan::SeriesPlan;

/// One bin of one track.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    bytes: u64,
    packets: u64,
    retransmitted: u64,
    out_of_order: u64,
    max_queue: u64,
}

impl Bin {
    /// Both as one.
    fn and(&self, other: &Bin) -> Bin {
        Bin {
            bytes: self.bytes + other.bytes,
            packets: self.packets + other.packets,
            retransmitted: self.retransmitted + other.retransmitted,
            out_of_order: self.out_of_order + other.out_of_order,
            max_queue: self.max_queue.max(other.max_queue),
        }
    }
}

/// The tracks that one node fills. Nodes record apart and are merged at the end; all have the same widths in
/// the end, as widths are the plan's times a power of two.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    width: u64,
    limit: usize,
    tracks: Vec<(u32, Vec<Bin>)>,
}

impl Recorder {
    pub(crate) fn new(plan: &SeriesPlan) -> Self {
        Recorder { width: plan.width.ps().max(1), limit: plan.bins.max(2), tracks: Vec::new() }
    }

    #[cold]
    fn widen(&mut self) {
        self.width *= 2;
        for (_, bins) in &mut self.tracks {
            let merge = |pair: &[Bin]| pair.iter().fold(Bin::default(), |a, b| a.and(b));
            *bins = bins.chunks(2).map(merge).collect();
        }
    }

    fn bin(&mut self, track: u32, at: u64) -> &mut Bin {
        while at / self.width >= self.limit as u64 {
            self.widen();
        }
        let index = (at / self.width) as usize;
        let which = match self.tracks.iter().position(|(t, _)| *t == track) {
            Some(i) => i,
            None => {
                self.tracks.push((track, Vec::new()));
                self.tracks.len() - 1
            }
        };
        let bins = &mut self.tracks[which].1;
        if bins.len() <= index {
            bins.resize(index + 1, Bin::default());
        }
        &mut bins[index]
    }

    /// A packet of `bytes` on the wire has started.
    pub(crate) fn sent(&mut self, track: u32, at: u64, bytes: u64, again: bool) {
        let bin = self.bin(track, at);
        bin.bytes += bytes;
        bin.packets += 1;
        bin.retransmitted += again as u64;
    }

    /// A packet has arrived out of order.
    pub(crate) fn out_of_order(&mut self, track: u32, at: u64) {
        self.bin(track, at).out_of_order += 1;
    }

    /// A queue has grown to `bytes`.
    pub(crate) fn queue(&mut self, track: u32, at: u64, bytes: u64) {
        let bin = self.bin(track, at);
        bin.max_queue = bin.max_queue.max(bytes);
    }

    /// Puts the recordings of all nodes together, for a run that ended at `end`.
    pub(crate) fn merge<'a>(plan: &SeriesPlan, parts: impl Iterator<Item = &'a Recorder>) -> Series {
        let mut parts: Vec<Recorder> = parts.cloned().collect();
        let first = Recorder::new(plan);
        let width = parts.iter().map(|p| p.width).max().unwrap_or(first.width);
        let names =
            plan.qps.iter().map(|q| TrackOf::Qp(*q)).chain(plan.links.iter().map(|l| TrackOf::Link(*l)));
        let mut tracks: Vec<Vec<Bin>> = vec![Vec::new(); plan.qps.len() + plan.links.len()];
        for part in &mut parts {
            while part.width < width {
                part.widen();
            }
            for (track, bins) in part.tracks.drain(..) {
                // The two ends of a queue pair record apart.
                let whole = &mut tracks[track as usize];
                whole.resize(whole.len().max(bins.len()), Bin::default());
                for (bin, more) in whole.iter_mut().zip(&bins) {
                    *bin = bin.and(more);
                }
            }
        }
        let length = tracks.iter().map(Vec::len).max().unwrap_or(0);
        let column = |bins: &[Bin], f: fn(&Bin) -> u64| -> Vec<u64> {
            (0..length).map(|i| bins.get(i).map_or(0, f)).collect()
        };
        let tracks = names
            .zip(tracks)
            .map(|(of, bins)| Track {
                of,
                bytes: column(&bins, |b| b.bytes),
                packets: column(&bins, |b| b.packets),
                retransmitted: column(&bins, |b| b.retransmitted),
                out_of_order: column(&bins, |b| b.out_of_order),
                max_queue: column(&bins, |b| b.max_queue),
            })
            .collect();
        Series { width: Time(width), tracks }
    }
}
