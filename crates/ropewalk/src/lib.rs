//! The command `ropewalk`: a packet-level lab for RDMA fabrics.
//!
//! Each command is a thin file that reads its arguments, calls a room of the house and prints the answer. The rooms are
//! crates of their own, for programs that need no command line: [`lab`] runs scenarios, [`results`] holds what they come to,
//! [`report`] makes pages, [`explain`] explains flows, [`capture`] writes frames for Wireshark, and [`papers`] repeats the
//! papers' experiments.
//!
//! | file | what it holds |
//! |---|---|
//! | [`cli`] | the arguments of all commands |
//! | [`commands`] | one file per command |
//! | [`page`], [`compared`], [`swept`] | a run, a comparison and a sweep as the terminal shows them |
//! | [`progress`] | the progress bar |
//! | [`print`](mod@print), [`interrupt`] | standard output, and Ctrl-C |

pub mod cli;
pub mod commands;
pub mod compared;
pub mod interrupt;
pub mod page;
pub mod print;
mod progress;
pub mod swept;
