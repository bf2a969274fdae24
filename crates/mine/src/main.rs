//! ropewalk with parts of one's own: `cargo run --release -- compare quickstart --schemes mine,themis`.

use std::process::ExitCode;

fn main() -> ExitCode {
    strand::main(mine::PARTS)
}
