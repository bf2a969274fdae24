//! No allocation per frame after the start, and tables of the size that the documentation says.
#![allow(unsafe_code)] // a counting allocator can only be written so

mod lab;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use tor::{Mode, Out, Pool, PortId, Rate, Settings, Span, Spine, Time, Tor};
use wire::bth::Opcode;
use wire::ecn::Ecn;
use wire::roce::Extension;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

struct Counting;

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn fabric() -> Settings {
    let mut settings = Settings::of_ports(2);
    let spine = |i: u64| Spine { delay: Span::from_micros(20 + 10 * i), ..Spine::default() };
    settings.spines = (0..4).map(spine).collect();
    settings.themis.mode = Mode::Sound;
    for port in &mut settings.ports {
        port.rate = Rate::from_bits(10_000_000_000);
        port.last_hop = Span::from_micros(2);
    }
    settings
}

/// One test, because the counters belong to the whole program.
#[test]
fn frames_cost_no_allocation_and_tables_have_their_size() {
    let before = BYTES.load(Ordering::Relaxed);
    let mut settings = fabric();
    settings.themis.ring = 128;
    let with = Tor::new(&settings);
    let with_themis = BYTES.load(Ordering::Relaxed) - before;
    settings.themis.mode = Mode::Off;
    let before = BYTES.load(Ordering::Relaxed);
    drop(Tor::new(&settings));
    let without = BYTES.load(Ordering::Relaxed) - before;
    let tables = with_themis - without;
    println!("tables for 4,096 connections with rings of 128: {tables} bytes");
    assert!(tables <= 4_000_000, "{tables}");
    drop(with);

    let settings = fabric();
    let mut tor = Tor::new(&settings);
    let mut pool = Pool::new(4096, 2048);
    let t = lab::Transfer::default();
    let frames: Vec<Vec<u8>> = (0..64)
        .map(|n| t.frame(true, Opcode::SendOnly, n, Extension::None, 1024, true, 0, Ecn::NotEct))
        .collect();
    let nack = |n| {
        let aeth = wire::aeth::Repr { syndrome: wire::aeth::Syndrome::PSN_SEQUENCE, msn: 0 };
        t.frame(false, Opcode::Acknowledge, n, Extension::Aeth(aeth), 0, false, 0, Ecn::NotEct)
    };
    let nacks: Vec<Vec<u8>> = (0..64).map(nack).collect();
    let mut now = Time::ZERO;
    let mut round = |counted: bool| {
        let start = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..100 {
            for (n, frame) in frames.iter().enumerate() {
                now += Span::from_nanos(900);
                for (port, bytes) in [(0, frame), (1, &nacks[n])] {
                    let frame = pool.copy_of(bytes).unwrap();
                    tor.frame(now, PortId(port), frame, &mut pool);
                    while let Some(out) = tor.poll() {
                        if let Out::Send { frame, .. } = out {
                            pool.put_back(frame);
                        }
                    }
                }
            }
        }
        let count = ALLOCATIONS.load(Ordering::Relaxed) - start;
        assert!(!counted || count == 0, "{count} allocations in 12,800 frames");
    };
    round(false);
    round(true);
    assert!(tor.counters().all_blocked() > 0);
}
