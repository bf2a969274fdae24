//! A site's own files as a scenario: configurations of switches and NICs, cabling, and graphs of other tools.
//!
//! ```text
//! files  ->  kind  ->  read  ->  facts  ->  fabric, view  ->  settings, rules  ->  TOML and the lists
//! ```
//!
//! | file | content |
//! |---|---|
//! | `kind` | what a file is: its content decides |
//! | `read/` | a reader per kind; none has I/O |
//! | `sonic` | a switch as `config_db.json` has it |
//! | `facts` | all that readers found |
//! | `fabric` | cables of all files joined to hosts, switches and links |
//! | `view` | a switch as its data sees it |
//! | `settings` | a row per setting of ropewalk; queues and schemes have a file each |
//! | `rules` | a function per contradiction |
//! | `fates` | why a field of SONiC is ignored |
//! | `ledger` | what became of every field |
//! | `write` | the scenario as TOML |
//! | [`mod@text`] | the lists as text |
//! | [`infragraph`] | a scenario's fabric as a graph of InfraGraph |

#![forbid(unsafe_code)]

mod fabric;
mod facts;
mod fates;
pub mod infragraph;
mod kind;
mod ledger;
mod read;
mod rules;
mod said;
mod settings;
mod sonic;
pub mod text;
mod view;
mod write;

pub use ledger::{Contradiction, Row, WHOLE_FILE};
pub use read::Input;
pub use said::Place;
pub use text::text;

use finding::Finding;
use said::Said;
use serde::Serialize;
use std::collections::BTreeMap;
use view::View;

/// What an import made and found.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The scenario as TOML.
    #[serde(skip)]
    pub toml: String,
    /// Number of hosts of the fabric.
    pub hosts: usize,
    /// Number of switches.
    pub switches: usize,
    /// Number of links.
    pub links: usize,
    /// Fields that became a setting, or that were compared.
    pub read: Vec<Row>,
    /// Fields that had no effect, with the reason.
    pub ignored: Vec<Row>,
    /// What does not fit together.
    pub contradicts: Vec<Contradiction>,
    /// What no file says.
    pub assumed: Vec<String>,
}

/// Reads the files of a site.
///
/// # Errors
/// If they describe no fabric.
pub fn import(inputs: &[Input]) -> Result<Answer, Box<Failed>> {
    let mut facts = read::all(inputs);
    let built = fabric::build(&mut facts);
    let mut fabric = match built {
        Ok(fabric) => fabric,
        Err(finding) => {
            let mut ledger = std::mem::take(&mut facts.ledger);
            ledger.name_all(inputs);
            let (_, ignored) = ledger.rows();
            return Err(Box::new(Failed { finding, ignored }));
        }
    };
    let mut ledger = std::mem::take(&mut facts.ledger);
    let whole = fabric.whole();
    let mut ports = fabric.ports();
    let views: Vec<View<'_>> = facts
        .switches
        .iter()
        .map(|switch| {
            let used = ports.remove(&switch.name).unwrap_or_default();
            View::new(switch, &used, &whole, &facts.lookups, facts.dscp.as_ref())
        })
        .collect();
    rules::judge(&facts, &views, &fabric, &mut ledger);
    let made = write::make(&views, &fabric, &mut ledger);
    let data = write::dscp(&views, &made, facts.dscp.as_ref(), &mut ledger);
    fates::list(&facts, &fabric, &made, &mut ledger);
    drop(views);
    facts.nic.extend(data);
    facts.ledger = ledger;
    let toml = write::scenario(&mut facts, &mut fabric, &made);
    let mut ledger = facts.ledger;
    let (contradicts, assumed) =
        (std::mem::take(&mut ledger.contradicts), std::mem::take(&mut ledger.assumed));
    ledger.name_all(inputs);
    let (read, ignored) = ledger.rows();
    Ok(Answer {
        toml,
        hosts: fabric.hosts.len(),
        switches: fabric.switches.len(),
        links: fabric.links.len(),
        read,
        ignored,
        contradicts,
        assumed,
    })
}

/// Files that describe no fabric.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Why.
    pub finding: Finding,
    /// What was not read, with the reasons.
    pub ignored: Vec<Row>,
}

/// The places of values by their file and path, with what they became.
type Uses = BTreeMap<(String, String), Vec<String>>;

fn note(uses: &mut Uses, place: &Place, what: &str) {
    let all = uses.entry((place.file.to_string(), place.path.clone())).or_default();
    if all.iter().all(|known| known != what) {
        all.push(what.to_owned());
    }
}

/// The place of a value, if there is one.
fn place<T>(said: Option<&Said<T>>) -> Option<&Place> {
    said.map(|said| &said.at)
}
