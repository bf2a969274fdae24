//! Readers: a file per kind of content. None has I/O; each adds what it finds to the facts of the site.

mod cables;
mod containerlab;
mod dot;
mod file;
mod ibnetdiscover;
mod infragraph;
pub(crate) mod lldp;
mod lookup;
pub(crate) mod nic;
mod nvue;

use crate::facts::Facts;
use crate::kind::{self, Content, Refused};
use crate::ledger::WHOLE_FILE;
use crate::sonic::Switch;
pub(crate) use file::File;
pub use file::Input;

/// A switch that has no name yet: SONiC's default is `sonic`.
fn is_nameless(switch: &Switch) -> bool {
    switch.name.is_empty() || switch.name == "sonic"
}

/// Reads all files.
pub(crate) fn all(inputs: &[Input]) -> Facts {
    let mut facts = Facts::default();
    let root = common_folder(inputs);
    let mut later = Vec::new();
    for input in inputs {
        let file = File::new(input);
        if let Some(why) = &input.unreadable {
            facts.ledger.ignored(&file.line(1), WHOLE_FILE, &files::printable::on_one_line(why));
            continue;
        }
        if nic::single(&mut facts, &file) {
            continue;
        }
        match kind::of(&input.text) {
            Ok(Content::Sonic(tables)) => sonic(&mut facts, &file, &tables, &root),
            Ok(content) => later.push((file, content)),
            Err(refused) => refuse(&mut facts, &file, refused),
        }
    }
    // Files of cables may call a switch by what its configuration says.
    for (file, content) in &later {
        match content {
            Content::Sonic(_) => {}
            Content::Infragraph(tree) => infragraph::read(&mut facts, file, tree),
            Content::Containerlab(tree) => containerlab::read(&mut facts, file, tree),
            Content::Nvue(documents) => nvue::read(&mut facts, file, documents, &root),
            Content::PgLookup => lookup::read(&mut facts, file),
            Content::LlrLookup => lookup::llr(&mut facts, file),
            Content::MlnxQos => nic::mlnx_qos(&mut facts, file),
            Content::Mlxconfig => nic::mlxconfig(&mut facts, file),
            Content::NicValues => nic::values(&mut facts, file),
            Content::Nccl => nic::nccl(&mut facts, file),
            Content::Lldp => lldp::read(&mut facts, file, &root),
            Content::Cables => cables::read(&mut facts, file),
            Content::Dot => dot::read(&mut facts, file),
            Content::Ibnetdiscover => ibnetdiscover::read(&mut facts, file),
        }
    }
    facts
}

/// The folder that all files are in.
fn common_folder(inputs: &[Input]) -> String {
    let mut folders = inputs.iter().map(|input| input.name.rsplit_once('/').map_or("", |(folder, _)| folder));
    let first: Vec<&str> = folders.next().unwrap_or_default().split('/').collect();
    let mut common = first.len();
    for folder in folders {
        let same = folder.split('/').zip(&first).take_while(|(a, b)| a == *b).count();
        common = common.min(same);
    }
    first[..common].join("/")
}

fn sonic(facts: &mut Facts, file: &File<'_>, tables: &files::tree::Node, root: &str) {
    let is_part = tables.get("DEVICE_METADATA").is_none();
    let same = facts.switches.iter_mut().find(|switch| {
        let in_one = switch.folder == file.folder && (is_part || !switch.tables.contains("DEVICE_METADATA"));
        in_one && !switch.overlaps(tables)
    });
    if let Some(switch) = same {
        let name = switch.name.clone();
        switch.add(&file.name, tables);
        if is_nameless(switch) {
            switch.name = name;
        }
        return;
    }
    let mut switch = Switch::read(&file.name, &file.folder, tables);
    let taken = |facts: &Facts, name: &str| facts.switches.iter().any(|other| other.name == name);
    if is_nameless(&switch) || taken(facts, &switch.name) {
        let by_file = file.device(root);
        let all = [by_file, files::printable::name(file.stem)];
        let free = all.into_iter().find(|name| !name.is_empty() && !taken(facts, name));
        switch.name = free.unwrap_or_else(|| format!("switch{}", facts.switches.len() + 1));
    }
    facts.switches.push(switch);
}

fn refuse(facts: &mut Facts, file: &File<'_>, refused: Refused) {
    let (line, why) = match refused {
        Refused::Unread(name, way_out) => {
            (1, format!("this looks like {name}, which is not read; {way_out}"))
        }
        Refused::Wrong(kind, bad) => (
            bad.line,
            format!("this looks like {kind}, and it is wrong at {}:{}: {}", bad.line, bad.column, bad.text),
        ),
        Refused::Empty => (1, "it is empty".to_owned()),
        Refused::Unknown => (
            1,
            "it is none of the files that are read; the page \"My switch's configuration\" lists them"
                .to_owned(),
        ),
    };
    facts.ledger.ignored(&file.line(line), WHOLE_FILE, &files::printable::on_one_line(&why));
}
