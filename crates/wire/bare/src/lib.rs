//! Links `wire` into a program without standard library and allocator. If `wire` or a dependency of it used `std`, there would
//! be two panic handlers, and this crate would not build.

#![no_std]

use wire::{icrc, patch, roce};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Reads a frame, changes its source port and checks its ICRC, so that the linker keeps these parts.
#[unsafe(no_mangle)]
pub extern "C" fn another_way(port: u16) -> bool {
    let mut frame = [0; 64];
    let read = roce::Repr::parse(&frame).is_ok();
    read && patch::set_source_port(&mut frame[14..], port).is_ok() && icrc::check(&frame[14..]).is_ok()
}
