//! The files that redirects open.

use std::net::Ipv6Addr;
use std::path::Path;

use toold_engine::need::{Need, Word};
use toold_engine::policy::targets::check_target;
use toold_proto::tool::Category;

use super::shell;
use crate::exclude::Exclusions;
use crate::files::{Resolved, read_need, resolve_for, write_need};

/// A file that is opened by its name.
pub(super) struct Redirected {
    category: Category,
    path: String,
    /// As it was written.
    shown: String,
}

pub(super) enum Target {
    /// A descriptor, or a device that keeps nothing.
    Nothing,
    File(Redirected),
    /// Which file it is cannot be told.
    Unsure,
}

impl Redirected {
    pub(super) fn target(operator: &str, word: Word, raw: &str) -> Target {
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
            });
        }
        Target::File(Self { category, path: word.text, shown: format!("{operator} {raw}") })
    }

    /// A file that a program writes because an argument says so.
    pub(super) fn written_by_argument(path: String) -> Self {
        Self { category: Category::FileWrite, shown: path.clone(), path }
    }

    /// `cwd` is `None` when the line changes folders. A place on the way that needs permission comes before the file.
    pub(super) fn needs(
        self,
        line: &str,
        cwd: Option<&Path>,
        may_read: &mut dyn FnMut(&Path) -> bool,
        exclusions: &mut Exclusions,
    ) -> Vec<Need> {
        let path = Path::new(&self.path);
        let resolved = match (path.is_absolute(), cwd) {
            (true, _) => resolve_for(path, Path::new("/"), may_read),
            (false, Some(cwd)) => resolve_for(path, cwd, may_read),
            (false, None) => return vec![shell(line, self.shown, None)],
        };
        let on_file = match self.category {
            Category::FileRead => read_need,
            Category::FileWrite => write_need,
            other => {
                // A name of a port, or a host that no request could name: no rule could be about it.
                let forbidden = check_target(other, &self.path).err();
                return vec![Need { forbidden, command: Some(line.to_owned()), ..Need::new(other, self.path) }];
            }
        };
        let Ok(Resolved { path, veil }) = resolved else { return vec![shell(line, self.shown, None)] };
        let mut on = |path: &Path| Need { command: Some(line.to_owned()), ..on_file(path, exclusions) };
        veil.iter().chain([&path]).map(|path| on(path)).collect()
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
