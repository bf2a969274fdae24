//! `ropewalk busbw`.

use crate::cli::BusbwArgs;
use crate::print;
use busbw::cluster::Cluster;
use busbw::{Input, Request};
use lab::failure::Failure;

/// Answers whether the bus bandwidth of logs is what it should be. Returns the exit code.
///
/// # Errors
/// If a file cannot be read, or the description of the cluster is wrong.
pub fn run(args: &BusbwArgs) -> Result<u8, Failure> {
    let all = |names: &[String]| names.iter().map(|name| Input::read(name)).collect::<Result<Vec<_>, _>>();
    let more = [&args.nccl_log[..], &args.topo[..]].concat();
    let scenario = args.fabric.as_deref().map(|name| scenario::load(name, &[])).transpose()?;
    let request = Request {
        logs: all(&args.logs)?,
        more: all(&more)?,
        cluster: args.cluster.clone(),
        scenario: scenario.as_ref().map(Cluster::of_scenario),
        collective: args.collective.clone(),
        call: args.call,
        racks: args.racks.clone(),
        simulate: args.simulate,
    };
    let page = super::report::place(&args.report, || super::report::by_name("busbw"))?;
    let answer = busbw::answer(&request)?;
    print::out(&if args.json { print::json(&answer) } else { busbw::text(&answer) })?;
    if let Some(page) = page {
        page.write(&format!("{}{}", report::MARK, busbw::page(&answer)))?;
        super::report::say(&page, args.json)?;
    }
    Ok(answer.exit_code)
}
