//! `[fleet]` of the configuration: read, written once, and changed entry by entry. The rest of the file stays as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Key, Table, TableLike, value};
use toold_client::place;

/// The part of `[fleet]` that this program needs. The daemon checks it all.
#[derive(Debug, Default, Deserialize)]
pub(super) struct FleetSection {
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) servers: Vec<String>,
    credentials: Option<String>,
    key_file: Option<String>,
    pub(super) person: Option<String>,
    person_key_file: Option<String>,
    #[serde(default)]
    pub(super) daemons: BTreeMap<String, MemberKey>,
    #[serde(default)]
    pub(super) people: BTreeMap<String, MemberKey>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct MemberKey {
    #[serde(default)]
    pub(super) key: String,
}

impl FleetSection {
    /// `None` when the text has no `[fleet]`.
    pub(super) fn read(text: &str) -> anyhow::Result<Option<Self>> {
        #[derive(Deserialize)]
        struct FleetFile {
            fleet: Option<FleetSection>,
        }
        Ok(toml::from_str::<FleetFile>(text)?.fleet)
    }

    pub(super) fn key_file(&self) -> anyhow::Result<PathBuf> {
        self.key_file.as_deref().map_or_else(|| key_path("daemon.key"), absolute)
    }

    pub(super) fn person_key_file(&self) -> anyhow::Result<PathBuf> {
        self.person_key_file.as_deref().map_or_else(|| key_path("person.key"), absolute)
    }

    pub(super) fn credentials(&self) -> anyhow::Result<Option<PathBuf>> {
        self.credentials.as_deref().map(absolute).transpose()
    }
}

/// The place of a key file when the configuration names none.
pub(super) fn key_path(name: &str) -> anyhow::Result<PathBuf> {
    let state = place::state_folder().context("there is no state folder: set HOME or XDG_STATE_HOME")?;
    Ok(state.join("fleet").join(name))
}

fn absolute(text: &str) -> anyhow::Result<PathBuf> {
    match text.strip_prefix("~/") {
        Some(below) => Ok(PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(below)),
        None => Ok(PathBuf::from(text)),
    }
}

/// The section that `init` and `join` write.
pub(super) struct NewSection<'a> {
    pub(super) name: &'a str,
    pub(super) servers: &'a [String],
    pub(super) credentials: Option<&'a Path>,
    pub(super) ca_file: Option<&'a Path>,
    pub(super) in_the_clear: bool,
    pub(super) person: Option<&'a str>,
    pub(super) person_key_file: Option<&'a Path>,
    pub(super) labels: &'a [String],
    pub(super) daemons: &'a BTreeMap<String, String>,
    pub(super) people: &'a BTreeMap<String, String>,
}

impl NewSection<'_> {
    pub(super) fn toml(&self) -> String {
        let mut text = String::from("# This daemon's part in a fleet; docs/fleet.md explains it.\n[fleet]\n");
        let mut line = |key: &str, new: toml_edit::Value, about: &str| {
            if !about.is_empty() {
                text.push_str(&format!("# {about}\n"));
            }
            text.push_str(&format!("{key} = {new}\n"));
        };
        let list = |texts: &[String]| texts.iter().collect::<toml_edit::Array>().into();
        line("name", self.name.into(), "");
        line("servers", list(self.servers), "");
        for (key, path, about) in [
            ("credentials", self.credentials, "Logs in at the server."),
            ("ca_file", self.ca_file, "The authority that signed the server's certificate."),
        ] {
            if let Some(path) = path {
                line(key, path.to_string_lossy().into_owned().into(), about);
            }
        }
        if self.in_the_clear {
            line("in_the_clear", true.into(), "Everyone on the way to the server can read arguments and results.");
        }
        if let Some(person) = self.person {
            line("person", person.into(), "The person who uses this machine, and answers prompts of the fleet here.");
        }
        if let Some(file) = self.person_key_file {
            line("person_key_file", file.to_string_lossy().into_owned().into(), "");
        }
        if !self.labels.is_empty() {
            line("labels", list(self.labels), "Calls for a label run on any daemon that has it.");
        }
        let entries = [
            (
                "daemons",
                self.daemons,
                "Other daemons, whose tools are called NAME_tool here and which may call tools here.",
            ),
            ("people", self.people, "Persons who answer asks and make grants that count here."),
        ];
        for (holder, members, about) in entries {
            let mut about = Some(about);
            for (name, key) in members {
                let about = about.take().map(|about| format!("# {about}\n")).unwrap_or_default();
                // Both may come from an invitation that somebody made up.
                let (name, key) = (Key::new(name.as_str()), toml_edit::Value::from(key.as_str()));
                text.push_str(&format!("\n{about}[fleet.{holder}.{name}]\nkey = {key}\n"));
            }
        }
        text
    }
}

/// The members that `[fleet]` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberList {
    Daemons,
    People,
}

impl MemberList {
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Daemons => "daemons",
            Self::People => "people",
        }
    }

    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Daemons => "daemon",
            Self::People => "person",
        }
    }
}

/// The text with one more member.
pub(super) fn with_member(
    text: &str,
    list: MemberList,
    name: &str,
    key: &str,
    no_calls: bool,
) -> anyhow::Result<String> {
    let mut document: DocumentMut = text.parse()?;
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let fleet = table(&mut document, "fleet")?.context("the configuration has no [fleet]")?;
    let members = fleet.entry(list.key()).or_insert(Item::Table(implicit));
    let is_inline = members.is_inline_table();
    let members = members.as_table_like_mut().with_context(|| format!("fleet.{} is not a table", list.key()))?;
    let new = if is_inline { value(toml_edit::InlineTable::new()) } else { Item::Table(Table::new()) };
    let member = members.entry(name).or_insert(new);
    let member = member.as_table_like_mut().with_context(|| format!("fleet.{}.{name} is not a table", list.key()))?;
    member.insert("key", value(key));
    if no_calls {
        member.insert("may_call", value(false));
    }
    Ok(document.to_string())
}

/// The text without a member; `None` when it is not there.
pub(super) fn without_member(text: &str, list: MemberList, name: &str) -> anyhow::Result<Option<String>> {
    let mut document: DocumentMut = text.parse()?;
    let Some(fleet) = table(&mut document, "fleet")? else { bail!("the configuration has no [fleet]") };
    let members = fleet.get_mut(list.key()).and_then(Item::as_table_like_mut);
    let removed = members.and_then(|members| members.remove(name));
    Ok(removed.map(|_| document.to_string()))
}

fn table<'a>(document: &'a mut DocumentMut, name: &str) -> anyhow::Result<Option<&'a mut dyn TableLike>> {
    let Some(item) = document.get_mut(name) else { return Ok(None) };
    item.as_table_like_mut().with_context(|| format!("{name} is not a table")).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> String {
        let keys = |name: &str| BTreeMap::from([(name.to_owned(), format!("K{name}"))]);
        let new = NewSection {
            name: "laptop",
            servers: &["tls://build:4222".to_owned()],
            credentials: Some(Path::new("/k")),
            ca_file: None,
            in_the_clear: false,
            person: Some("anna"),
            person_key_file: None,
            labels: &["gpu".to_owned()],
            daemons: &keys("build"),
            people: &keys("anna"),
        };
        new.toml()
    }

    #[test]
    fn a_new_section_explains_itself() {
        insta::assert_snapshot!(section(), @r#"
        # This daemon's part in a fleet; docs/fleet.md explains it.
        [fleet]
        name = "laptop"
        servers = ["tls://build:4222"]
        # Logs in at the server.
        credentials = "/k"
        # The person who uses this machine, and answers prompts of the fleet here.
        person = "anna"
        # Calls for a label run on any daemon that has it.
        labels = ["gpu"]

        # Other daemons, whose tools are called NAME_tool here and which may call tools here.
        [fleet.daemons.build]
        key = "Kbuild"

        # Persons who answer asks and make grants that count here.
        [fleet.people.anna]
        key = "Kanna"
        "#);
        let read = FleetSection::read(&section()).unwrap().unwrap();
        assert_eq!((read.name.as_deref(), read.daemons["build"].key.as_str()), (Some("laptop"), "Kbuild"));
        assert!(FleetSection::read("# nothing\n").unwrap().is_none());
    }

    #[test]
    fn a_name_adds_nothing_but_a_name() {
        let bad = "x]\n[permission]\nmode = \"yolo\"\n[y";
        let members = BTreeMap::from([(bad.to_owned(), "\"\nmay_call = true".to_owned())]);
        let new = NewSection {
            name: "a",
            servers: &[],
            credentials: None,
            ca_file: None,
            in_the_clear: false,
            person: None,
            person_key_file: None,
            labels: &[],
            daemons: &members,
            people: &BTreeMap::new(),
        };
        let read: toml::Table = new.toml().parse().unwrap();
        assert_eq!(read.keys().collect::<Vec<_>>(), ["fleet"]);
        assert_eq!(read["fleet"]["daemons"][bad].as_table().unwrap().len(), 1);
    }

    #[test]
    fn members_come_and_go_and_the_rest_stays() {
        let before = format!("# mine\n[shell]\nx = 1 # one\n\n{}", section());
        let more = with_member(&before, MemberList::Daemons, "desk", "Kdesk", true).unwrap();
        assert!(more.starts_with("# mine\n[shell]\nx = 1 # one\n"), "{more}");
        assert!(more.contains("\n[fleet.daemons.desk]\nkey = \"Kdesk\"\nmay_call = false\n"), "{more}");
        let less = without_member(&more, MemberList::Daemons, "desk").unwrap().unwrap();
        assert_eq!(less, before);
        assert_eq!(without_member(&less, MemberList::People, "desk").unwrap(), None);
        assert!(with_member("[shell]\n", MemberList::Daemons, "desk", "K", false).is_err());
        let inline =
            with_member("fleet = {name = \"a\", people = {}}\n", MemberList::People, "anna", "U", false).unwrap();
        assert!(inline.parse::<DocumentMut>().is_ok() && inline.contains("anna"), "{inline}");
    }
}
