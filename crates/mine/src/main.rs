//! ropewalk with one more scheme: `cargo run --release -- compare quickstart --schemes mine,themis`.

use std::process::ExitCode;

fn main() -> ExitCode {
    strand::main(mine::SCHEMES)
}
