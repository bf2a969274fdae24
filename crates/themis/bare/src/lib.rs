//! Links the mechanism into a program without standard library and allocator. If `themis` or a dependency of it used `std`,
//! there would be two panic handlers, and this crate would not build.

#![no_std]

use themis::{Flow, Mode, Psn, Rule, Settings, Verdict, Width};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Calls the mechanism with one departure and one NACK, so that the linker keeps it.
#[unsafe(no_mangle)]
pub extern "C" fn blocks(departed: u32, expected: u32) -> bool {
    let settings =
        Settings { mode: Mode::Sound, slots: 4, ring: 8, width: Width::W24, age_limit: 8, watch: true };
    let Ok(rule) = Rule::new(settings) else { return false };
    let (mut flow, mut ring) = (Flow::new(), [0u32; 8]);
    rule.on_depart(&mut flow, &mut ring, Psn::new(departed));
    matches!(rule.on_nack(&mut flow, &ring, Psn::new(expected)), Verdict::Block(_))
}
