//! Files of other tools with mistakes, as `ropewalk import` reads them.

use crate::damage::spoilt;
use crate::draws::Draws;
use crate::trial::{Fault, Verdict, of_text, refused};
use scenario::import::hpcc::{File, import};

/// A topology, flows and a configuration that belong together.
const SAMPLES: &[(&str, &str, &str)] = &[
    (
        "8 4 8\n4 5 6 7\n0 4 100Gbps 1000ns 0\n1 4 100Gbps 0.001ms 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 0.000001s 0.001\n\
         4 6 100Gbps 1us 0\n4 7 100Gbps 1us 0\n5 6 100Gbps 1us 0\n5 7 100Gbps 1us 0\n",
        "2\n0 2 3 100 20000 2\n1 3 3 100 1000 2.00001\n",
        "ENABLE_QCN 1\nCC_MODE 1\nRATE_AI 40Mb/s\nEWMA_GAIN 0.00390625\nKMAX_MAP 1 100000000000 1600\n\
         KMIN_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\nBUFFER_SIZE 32\nPACKET_PAYLOAD_SIZE 1000\n",
    ),
    (
        "4 1 1 3\n3\n0 3 25000000000.0 1us 0\n1 3 25000000000.0 1us 0\n2 3 25000000000.0 1us 0\n",
        "1\n0 2 3 1000 2.000000001\n",
        "ENABLE_QCN 1\nCC_MODE 3\nENABLE_PFC 1\nSIMULATOR_STOP_TIME 4.00\n",
    ),
    ("2 0 1\n\n0 1 100Gbps 1us 0\n", "1\n0 1 3 1000 0\n", "CC_MODE 8\n"),
];

/// The verdict on a set of files, some of them with mistakes: an error with a line, or a scenario that runs.
pub(crate) fn of(draws: &mut Draws) -> (String, Verdict) {
    let &(topology, flows, config) = draws.pick(SAMPLES);
    let mut files = [topology, flows, config].map(str::to_owned);
    for _ in 0..=draws.below(2) {
        let which = draws.below(files.len());
        files[which] = spoilt(draws, &files[which]);
    }
    let [topology, flows, config] = &files;
    let file = |name, text| File { name, text };
    let text = format!("topology.txt:\n{topology}\nflow.txt:\n{flows}\nconfig.txt:\n{config}\n");
    let with = draws.chance(0.7).then(|| file("config.txt", config));
    let imported = import(file("topology.txt", topology), file("flow.txt", flows), with);
    let verdict = match imported {
        Err(error) => refused(&error),
        // A file that states 0 flows gives a fabric without a workload.
        Ok(imported) if imported.report.sends == 0 => Verdict::Passed(Vec::new()),
        Ok(imported) => match of_text("imported.toml", &imported.toml) {
            // The error points into the scenario, of which the user knows nothing.
            Verdict::Failed(fault) => {
                Verdict::Failed(Fault::new(&format!("an import runs: {}", fault.rule), fault.detail))
            }
            other => other,
        },
    };
    (text, verdict)
}
