//! A file of a site.

use crate::said::Place;
use std::rc::Rc;

/// A file of a site.
#[derive(Clone, Debug)]
pub struct Input {
    /// Name in messages: its path.
    pub name: String,
    /// Its content.
    pub text: String,
    /// Why it has no content here, if it could not be read.
    pub(crate) unreadable: Option<String>,
}

impl Input {
    /// A file with its content.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Input { name: name.into(), text: text.into(), unreadable: None }
    }

    /// A file that cannot be read, with the reason, which goes into the list of what is ignored.
    pub fn unreadable(name: impl Into<String>, why: impl Into<String>) -> Self {
        Input { name: name.into(), text: String::new(), unreadable: Some(why.into()) }
    }
}

/// A file with what readers need to know of it.
pub(crate) struct File<'a> {
    pub(crate) name: Rc<str>,
    pub(crate) text: &'a str,
    pub(crate) folder: Rc<str>,
    /// Name of the file without its folder and extensions.
    pub(crate) stem: &'a str,
}

impl<'a> File<'a> {
    pub(crate) fn new(input: &'a Input) -> Self {
        let (folder, last) = input.name.rsplit_once('/').unwrap_or(("", &input.name));
        let stem = last.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(last);
        File { name: input.name.as_str().into(), text: &input.text, folder: folder.into(), stem }
    }

    /// The place of a line.
    pub(crate) fn line(&self, line: usize) -> Place {
        Place::line(&self.name, line)
    }

    /// The lines with their numbers, without comments that start with `#`, and not empty.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        let lines = self.text.lines().enumerate().map(|(i, line)| (i + 1, line));
        lines.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    }

    /// The device that a file of a device without its name is about: its folder's name, unless that is the folder of all.
    pub(crate) fn device(&self, root: &str) -> String {
        let folder = self.folder.rsplit('/').next().unwrap_or_default();
        let is_own = !folder.is_empty() && *self.folder != *root;
        files::printable::name(if is_own { folder } else { self.stem })
    }
}
