//! Whole commands and whole runs. One program, since each would be linked with all of the crate.

mod busbw;
mod cli;
mod damage;
mod farm;
mod golden;
mod imports;
mod ns3;
mod outputs;
mod serve;
mod serving;
mod study;
mod survives;
mod sweep;
mod twins;
