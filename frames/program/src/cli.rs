//! The arguments of all commands, as clap reads them.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Themis and RNIC loss recovery on real RoCEv2 frames.
#[derive(Debug, Parser)]
#[command(name = "ropewalk-frames", version, about, max_term_width = 100)]
#[command(propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Work with the software ToR, which runs Themis on real RoCEv2 frames
    Tor(TorArgs),
    /// Emulate RNIC loss recovery in front of hosts that lack it, over real frames
    Nic(NicArgs),
}

/// Files of a command that carries real frames.
#[derive(Args, Clone, Debug)]
pub struct LiveArgs {
    /// Write the counters as JSON every second; the file is replaced as a whole.
    #[arg(long, value_name = "FILE", default_value = "status.json")]
    pub status: PathBuf,
    /// Also write the counters in the text format of Prometheus every second.
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Write every decision, one per line.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Keep the last frames of all ports, and write them at the end for Wireshark.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Frames that --pcap keeps: 20000 take 30 MB at most of a usual MTU.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub pcap_frames: usize,
}

/// `ropewalk nic`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk nic bump.toml --check
  ropewalk nic bump.toml --metrics nic.prom --record nic.log

bump.toml names the hosts and the kind of their NICs; a port is `unix`, `packet` or `tap`:
  [[bump]]
  name = \"h1\"
  rate = \"10Gbps\"
  host = { packet = \"veth1\" }
  network = { unix = { bind = \"run/w1.sock\", peer = \"run/sw1.sock\" } }
  [nic.transport.nic-sr]                          the keys of a scenario's [nic]

SIGHUP reads [nic] again, for new connections. SIGTERM and Ctrl-C end the command after 100 ms, in which frames still leave.
docs/soft-tor.md explains more.")]
pub struct NicArgs {
    /// Path of a TOML file.
    pub file: String,
    /// Check the file and do nothing else.
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for help text")]
    pub live: LiveArgs,
}

/// `ropewalk tor`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  ropewalk tor check lab.toml
  ropewalk tor lab.toml --record tor.log --pcap last.pcapng

lab.toml describes the fabric; a port is `unix`, `packet` or `tap`:
  [fabric]
  spines = 4
  delay = \"200us\"
  spread = \"2ms\"
  [[port]]
  name = \"h1\"
  packet = \"veth1\"
  [themis]
  mode = \"sound\"

SIGTERM and Ctrl-C end the command after 100 ms, in which frames still leave. docs/soft-tor.md explains more.")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct TorArgs {
    /// Something else than carrying frames.
    #[command(subcommand)]
    pub command: Option<TorCommand>,
    /// Path of a TOML file: carry frames between its ports until a signal comes.
    #[arg(required = true)]
    pub file: Option<String>,
    /// Carry frames although the file injects events into them.
    #[arg(long)]
    pub allow_inject: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take it for help text")]
    pub live: LiveArgs,
}

/// The subcommands of `ropewalk tor`.
#[derive(Debug, Subcommand)]
pub enum TorCommand {
    /// Check a fabric's file and print what it says; or check the frames of a capture
    #[command(after_help = "\
Examples:
  ropewalk tor check lab.toml
  ropewalk tor check run.pcapng --expect nic-sr
  ropewalk tor check run.pcapng --expect themis --paths 4 --log run.log

A capture is detected by its first bytes. The exit code is 3 if a rule is broken.
docs/check-captures.md lists the rules.")]
    Check(TorCheckArgs),
    /// Let captured frames pass the fabric, and print its decisions and its counters
    ///
    /// The key `pcap` of a port names the capture of the frames that come in there, as pcap or pcapng. With --pcap, the frames
    /// are those that a ToR with these ports has captured itself: the decisions are the same as in its run.
    #[command(
        after_help = "Examples:\n  ropewalk tor replay lab.toml\n  ropewalk tor replay lab.toml --pcap run.pcapng"
    )]
    Replay {
        /// Path of a TOML file; docs/soft-tor.md lists its keys.
        file: PathBuf,
        /// Capture that `ropewalk tor FILE --pcap` has written.
        #[arg(long, value_name = "FILE")]
        pcap: Option<PathBuf>,
        /// Print the decisions and leave out the counters.
        #[arg(long)]
        decisions: bool,
    },
}

/// `ropewalk tor check`.
#[derive(Args, Debug)]
pub struct TorCheckArgs {
    /// Path of a fabric's TOML file, or of a capture: pcapng or pcap.
    pub file: PathBuf,
    /// What NICs or switch must be. Without it, only the general rules are checked.
    #[arg(long, value_enum)]
    pub expect: Option<ExpectArg>,
    /// Decision log of the switch (`ropewalk tor --record`), which explains the frames that it lost on purpose.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Paths over which the switch sprays, for `--expect themis`.
    #[arg(long, value_name = "N")]
    pub paths: Option<u16>,
    /// Entries of the switch's rings, for `--expect themis`.
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub ring: u16,
    /// The switch follows the paper's text instead of the sound rule, for `--expect themis`.
    #[arg(long)]
    pub literal: bool,
    /// Least time between two CNPs of a queue pair.
    #[arg(long, value_name = "TIME", default_value = "4us")]
    pub cnp_interval: String,
    /// Packets that may leave a sender between a NACK that it hears and the retransmission.
    #[arg(long, value_name = "N", default_value_t = checkers::UNDER_WAY)]
    pub under_way: u32,
    /// Exponent n of the senders' timeout, 4.096 us x 2^n.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=31))]
    pub ack_timeout: Option<u8>,
}

/// What NICs or switch must be.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ExpectArg {
    /// NICs that go back to the first missing packet.
    GoBackN,
    /// NICs that keep packets out of order and retransmit what a NACK names.
    NicSr,
    /// A switch that runs Themis.
    Themis,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
