//! Patterns of hosts and ports.

use crate::policy::pattern::wild::Wild;
use crate::policy::targets::{is_address, is_host_char};
use toold_proto::cut;

#[derive(Clone, Debug)]
pub(super) struct HostPattern {
    labels: Vec<Label>,
    /// `None`: any port.
    port: Option<Wild>,
    /// IPv6: one label, which contains colons.
    is_address: bool,
}

#[derive(Clone, Debug)]
enum Label {
    One(Wild),
    /// `**`: any number of labels, also none.
    Any,
}

impl HostPattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.contains(char::is_whitespace) || text.contains("//") {
            return Err("expected a host, or a host and a port, such as example.com:443".into());
        }
        let (host, port) = split(text);
        if host.is_empty() {
            return Err("it names no host; * stands for every host".into());
        }
        if host.starts_with('[') && host.find(']') != Some(host.len() - 1) {
            return Err("expected : and a port, or nothing, after an address in brackets".into());
        }
        if port.is_some_and(|port| port.is_empty() || !port.chars().all(|c| c.is_ascii_digit() || c == '*')) {
            return Err("a port is a number or *".into());
        }
        let labels: Vec<Label> = labels(host)
            .iter()
            .map(|label| if label == "**" { Label::Any } else { Label::One(Wild::parse(label)) })
            .collect();
        Ok(Self { labels, port: port.map(Wild::parse), is_address: is_one_label(host) })
    }

    /// # Errors
    /// Why no request goes to such a host.
    pub(super) fn check(&self) -> Result<(), String> {
        let nothing = |why: &str| Err(format!("it can match nothing: {why}"));
        if let Some(port) = &self.port
            && !(0..=u16::MAX).any(|number| port.matches(&number.to_string()))
        {
            return nothing("ports are numbers up to 65535");
        }
        // `localhost` is the one host without a dot, and a pattern for it names it.
        if matches!(self.labels.as_slice(), [Label::One(wild)] if wild.is_any()) {
            return nothing("a * matches one label, and host names have several");
        }
        if self.is_address {
            let [Label::One(address)] = self.labels.as_slice() else { return Ok(()) };
            let fits = match address.as_literal() {
                Some(literal) => is_address(literal),
                None => address.pieces().all(|piece| piece.chars().all(|c| c.is_ascii_hexdigit() || ":.".contains(c))),
            };
            return match fits {
                true => Ok(()),
                false => nothing("IPv6 addresses are compared in their shortest form, such as [2001:db8::1]"),
            };
        }
        for label in &self.labels {
            let Label::One(wild) = label else { continue };
            if wild.as_literal() == Some("") {
                return nothing("the labels of a host name are never empty");
            }
            if wild.pieces().any(|piece| piece.contains(['{', '}'])) {
                return nothing("hosts are not written with alternatives in braces: write a separate rule for each");
            }
            if let Some(odd) = wild.pieces().flat_map(str::chars).find(|c| !is_host_char(*c)) {
                return match odd.is_ascii() {
                    true => nothing(&format!("a host name contains no {odd:?}; paths and schemes are not compared")),
                    false => nothing("host names with other letters are compared in their xn--... form"),
                };
            }
        }
        Ok(())
    }

    /// Literal labels (and port), and wildcards.
    pub(super) fn count(&self) -> (usize, usize) {
        let parts = self.labels.iter().map(|label| match label {
            Label::One(wild) => (usize::from(wild.stars() == 0), wild.stars()),
            Label::Any => (0, 2),
        });
        let port = self.port.as_ref().map_or((0, 0), |port| (usize::from(port.stars() == 0), port.stars()));
        parts.chain([port]).fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }

    pub(super) fn matches(&self, target: &str) -> bool {
        let (host, port) = split(target);
        let port_fits = self.port.as_ref().is_none_or(|wanted| wanted.matches(port.unwrap_or_default()));
        port_fits && fits(&self.labels, &labels(host))
    }
}

fn fits(pattern: &[Label], labels: &[String]) -> bool {
    // `reachable[n]`: the pattern so far can match the first n labels.
    let mut reachable = vec![false; labels.len() + 1];
    reachable[0] = true;
    for part in pattern {
        let mut next = vec![false; labels.len() + 1];
        match part {
            Label::Any => {
                let first = reachable.iter().position(|reached| *reached).unwrap_or(next.len());
                next[first..].fill(true);
            }
            Label::One(wild) => {
                for (at, label) in labels.iter().enumerate() {
                    next[at + 1] = reachable[at] && !label.is_empty() && wild.matches(label);
                }
            }
        }
        reachable = next;
    }
    reachable[labels.len()]
}

pub(in crate::policy) fn split(text: &str) -> (&str, Option<&str>) {
    if text.starts_with('[') {
        let end = text.find(']').map_or(text.len(), |at| at + 1);
        return match (cut::from(text, end), cut::from(text, end).strip_prefix(':')) {
            ("", _) => (text, None),
            (_, Some(port)) => (cut::before(text, end), Some(port)),
            // It is not an address: the rest must not be skipped.
            (_, None) => (text, None),
        };
    }
    match text.matches(':').count() {
        1 => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        // No port, or an IPv6 address without brackets.
        _ => (text, None),
    }
}

fn is_one_label(host: &str) -> bool {
    host.starts_with('[') || host.contains(':')
}

pub(in crate::policy) fn labels(host: &str) -> Vec<String> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if is_one_label(&host) {
        return vec![host.trim_matches(['[', ']']).to_owned()];
    }
    host.split('.').map(str::to_owned).collect()
}
