//! Patterns of hosts and ports.

use crate::policy::pattern::wild::Wild;

#[derive(Clone, Debug)]
pub(super) struct Host {
    labels: Vec<Label>,
    /// `None`: any port.
    port: Option<Wild>,
}

#[derive(Clone, Debug)]
enum Label {
    One(Wild),
    /// `**`: any number of labels, none too.
    Any,
}

impl Host {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.contains(char::is_whitespace) || text.contains("//") {
            return Err("expected a host, or a host and a port, as example.com:443".into());
        }
        let (host, port) = split(text);
        if host.is_empty() {
            return Err("it names no host".into());
        }
        if host.starts_with('[') && host.find(']') != Some(host.len() - 1) {
            return Err("after an address in brackets comes : and a port, or nothing".into());
        }
        if port.is_some_and(|port| port.is_empty() || !port.chars().all(|c| c.is_ascii_digit() || c == '*')) {
            return Err("a port is a number, or *".into());
        }
        let labels: Vec<Label> = labels(host)
            .iter()
            .map(|label| if label == "**" { Label::Any } else { Label::One(Wild::parse(label)) })
            .collect();
        Ok(Self { labels, port: port.map(Wild::parse) })
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

fn split(text: &str) -> (&str, Option<&str>) {
    if text.starts_with('[') {
        let end = text.find(']').map_or(text.len(), |at| at + 1);
        return match (&text[end..], text[end..].strip_prefix(':')) {
            ("", _) => (text, None),
            (_, Some(port)) => (&text[..end], Some(port)),
            // It is no address: what follows must not be passed over.
            (_, None) => (text, None),
        };
    }
    match text.matches(':').count() {
        1 => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        // None, or an address of version 6 without brackets.
        _ => (text, None),
    }
}

fn labels(host: &str) -> Vec<String> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host.starts_with('[') || host.contains(':') {
        return vec![host.trim_matches(['[', ']']).to_owned()];
    }
    host.split('.').map(str::to_owned).collect()
}
