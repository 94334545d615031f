//! The files that redirects open.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use toold_engine::need::{Need, Word};
use toold_engine::policy::targets::check_target;
use toold_proto::tool::Category;

use super::Command;
use super::files::is_public;
use crate::exclude::Exclusions;
use crate::file_needs::{read_need, write_need};
use crate::files::{ResolvedPath, resolve_for};

/// A file that is opened by its name.
pub(super) struct Redirected {
    category: Category,
    path: String,
    /// As it was written.
    shown: String,
    /// Where the shell may be; `None` when that is not known.
    folders: Option<Vec<PathBuf>>,
}

pub(super) enum Target {
    /// A descriptor, or a device that keeps nothing.
    Nothing,
    File(Redirected),
    /// Which file it is cannot be told.
    Unsure,
}

impl Redirected {
    pub(super) fn target(operator: &str, word: Word, raw: &str, folders: Option<&[PathBuf]>) -> Target {
        let folders = folders.map(<[PathBuf]>::to_vec);
        let harmless = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];
        let descriptor = operator.ends_with('&');
        let number = word.text.strip_suffix('-').unwrap_or(&word.text);
        let is_number = number.chars().all(|c| c.is_ascii_digit()) && word.text != "--";
        if !word.literal || word.text.is_empty() {
            return Target::Unsure;
        }
        // The shell expands the word behind `>&` twice.
        let plain = |c: char| c.is_alphanumeric() || "_./-+,@%=:".contains(c);
        if descriptor && !is_number && (!word.text.chars().all(plain) || word.text.starts_with(['-', '+'])) {
            return Target::Unsure;
        }
        if (descriptor && is_number) || harmless.contains(&word.text.as_str()) {
            return Target::Nothing;
        }
        let category = match operator {
            "<" => Category::FileRead,
            ">" | ">>" | ">|" | "&>" | "&>>" | ">&" => Category::FileWrite,
            _ => return Target::Unsure,
        };
        if let Some(address) = ["/dev/tcp/", "/dev/udp/"].iter().find_map(|start| word.text.strip_prefix(start)) {
            return Target::File(Self {
                category: Category::Network,
                path: requested(address),
                shown: format!("{operator} {raw}"),
                folders,
            });
        }
        Target::File(Self { category, path: word.text, shown: format!("{operator} {raw}"), folders })
    }

    /// A place on the way that needs permission comes before the file.
    pub(super) fn needs(
        &self,
        line: &str,
        may_read: &mut dyn FnMut(&Path) -> bool,
        exclusions: &mut Exclusions,
    ) -> Vec<Need> {
        let on_file = match self.category {
            Category::FileRead => read_need,
            Category::FileWrite => write_need,
            other => {
                // A name of a port, or a host that no request could name: no rule could be about it.
                let forbidden = check_target(other, &self.path).err();
                return vec![Need { forbidden, command: Some(line.to_owned()), ..Need::new(other, self.path.clone()) }];
            }
        };
        let not_known = |why: &str| Command::not_understood(&self.shown, why).need(line);
        let root = [PathBuf::from("/")];
        let folders = match (Path::new(&self.path).is_absolute(), &self.folders) {
            (true, _) => root.as_slice(),
            (false, Some(folders)) => folders,
            (false, None) => return vec![not_known("the folder that it runs in is not known")],
        };
        let mut needs = Vec::new();
        for folder in folders {
            let Ok(ResolvedPath { path, veil }) = resolve_for(Path::new(&self.path), folder, may_read) else {
                needs.push(not_known("a ring of links"));
                continue;
            };
            for path in veil.iter().chain([&path]) {
                let is_public = self.category == Category::FileRead && is_public(path);
                needs.push(Need { command: Some(line.to_owned()), is_public, ..on_file(path, exclusions) });
            }
        }
        needs
    }
}

/// `host/port` as requests to the web name it, so that the same rules hold: `::1/80` is `[::1]:80`, and `0x7f.1/80` is
/// `127.0.0.1:80`. What they could not name stays as it is.
fn requested(address: &str) -> String {
    let Some((host, port)) = address.split_once('/') else { return format!("{address}:") };
    let host = match host.parse::<Ipv6Addr>() {
        Ok(address) => match address.to_ipv4_mapped() {
            Some(inner) => inner.to_string(),
            None => format!("[{address}]"),
        },
        Err(_) if host.contains('%') => return address.to_owned(),
        Err(_) => match url::Host::parse(host) {
            Ok(host) => host.to_string().trim_end_matches('.').to_owned(),
            Err(_) => return address.to_owned(),
        },
    };
    format!("{host}:{port}")
}
