//! Links RoCEv2's bytes into a program that has no standard library and no allocator. If `wire` or anything below it
//! pulled in `std`, there would be two panic handlers and this would not build.

#![no_std]

use wire::{icrc, patch, roce};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// A frame read, sent another way and checked, so that the linker keeps the parts.
#[unsafe(no_mangle)]
pub extern "C" fn another_way(port: u16) -> bool {
    let mut frame = [0; 64];
    let read = roce::Repr::parse(&frame).is_ok();
    read && patch::set_source_port(&mut frame[14..], port).is_ok() && icrc::check(&frame[14..]).is_ok()
}
