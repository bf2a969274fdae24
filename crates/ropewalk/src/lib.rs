//! The command `ropewalk`: a packet-level lab for RDMA fabrics.
//!
//! Each command is a thin file that reads its arguments, calls another crate and prints the answer. Programs can use
//! those crates without the command line: [`lab`] runs scenarios, [`results`] holds summaries and tables, [`report`]
//! makes pages, [`explain`] explains flows, [`capture`] writes frames for Wireshark, and [`papers`] repeats the
//! papers' experiments.
//!
//! | file | what it holds |
//! |---|---|
//! | [`cli`] | the arguments of all commands |
//! | [`typed`] | the words of a command for the record of its run |
//! | [`commands`] | one file per command |
//! | [`page`], [`compared`], [`swept`] | the texts that the terminal shows for a run, a comparison and a sweep |
//! | `sheet`, `slice` | a scenario on one screen; a smaller cluster that stands for it |
//! | [`progress`] | the progress bar |
//! | [`print`](mod@print), [`interrupt`] | standard output, and Ctrl-C |

pub mod cli;
pub mod commands;
pub mod compared;
mod input;
pub mod interrupt;
pub mod page;
pub mod print;
mod progress;
mod serving;
mod sheet;
mod slice;
pub mod swept;
pub mod typed;
