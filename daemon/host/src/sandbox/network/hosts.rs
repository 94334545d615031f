//! `[sandbox] network`: the hosts that need no ask, and the private addresses that they may have.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use toold_engine::need::{HostListing, Need, NeedKind, Word};
use toold_engine::policy::pattern::Pattern;
use toold_proto::tool::Category;
use url::{Host, Url};

use crate::http::guard::{GUARD, Guard, is_of_this_machine, is_public, kind_of, plain};
use crate::http::target::HostPort;

/// What the configuration lists; empty for `"ask"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkHosts {
    /// The lists of the user and of a project: what one of them leaves out is not listed.
    lists: Vec<HostList>,
    /// Hosts with their ports that a command's lock file names.
    locked: Vec<String>,
    /// A host that a rule or a grant of a person names, as an entry of a list.
    allowed: HostList,
}

#[derive(Clone, Debug, Default)]
struct HostList {
    entries: Vec<String>,
    patterns: Vec<Pattern>,
    /// The hosts without a wildcard.
    exact: Vec<Pattern>,
    /// Entries that name this machine or an address.
    named: Guard,
    loopback: Vec<LoopbackPlace>,
}

/// A port of this machine's loopback address, with the host as it was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoopbackPlace {
    host: String,
    pub(super) port: u16,
}

/// The most entries that name a port of this machine: each is two listeners.
const MAX_LOOPBACK: usize = 24;
/// The ports of a host without one.
const USUAL_PORTS: [u16; 2] = [443, 80];

impl PartialEq for HostList {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Eq for HostList {}

/// The addresses that a command downloads from, if it shows all of them.
pub(crate) fn addresses(need: &Need) -> Option<Vec<Url>> {
    /// Programs whose operands are URLs.
    const DOWNLOADERS: [&str; 2] = ["curl", "wget"];
    let address = |word: &Word| {
        let text = Some(word.text.as_str()).filter(|_| word.literal)?;
        let text = if text.contains("://") { Cow::Borrowed(text) } else { Cow::Owned(format!("http://{text}")) };
        Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    };
    let program = need.words().into_iter().flatten().next().and_then(|word| word.text.rsplit('/').next())?;
    let words = need.command()?.form.as_ref()?.plain.as_slice();
    let all = words.iter().map(address).collect::<Option<Vec<Url>>>()?;
    (DOWNLOADERS.contains(&program) && !all.is_empty()).then_some(all)
}

impl NetworkHosts {
    /// Parses entries such as `packages.example.org` (its ports 443 and 80), `*.example.com:8443` or `localhost:5432`.
    ///
    /// # Errors
    /// An entry that is no host, in words for people.
    pub fn parse(entries: &[String]) -> Result<Self, String> {
        let mut list = HostList { entries: entries.to_vec(), ..HostList::default() };
        for entry in entries {
            list.add(entry.trim())?;
        }
        if list.loopback.len() > MAX_LOOPBACK {
            return Err(format!("at most {MAX_LOOPBACK} ports of this machine can be named"));
        }
        Ok(Self { lists: vec![list], ..Self::default() })
    }

    /// What both list.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self { lists: self.lists.iter().chain(&other.lists).cloned().collect(), ..Self::default() }
    }

    /// With the hosts that a command's lock file names, each as `host:port`. They are public hosts, whatever the lists say.
    #[must_use]
    pub fn with_locked(&self, locked: Vec<String>) -> Self {
        Self { locked, ..self.clone() }
    }

    /// With the patterns of hosts that rules and grants of a person allow. Of these, the ones that name a host and its port, or an
    /// address, count for addresses that are not public.
    #[must_use]
    pub fn with_allowed(&self, patterns: &[String]) -> Self {
        let mut allowed = HostList::default();
        for pattern in patterns.iter().filter(|pattern| !pattern.contains('*')) {
            let (host, port) = split(pattern);
            if (port.is_some() || address_of(host).is_some()) && allowed.loopback.len() < MAX_LOOPBACK {
                // Stored patterns may be of an earlier version.
                let _ = allowed.add_named(pattern, host, port);
            }
        }
        Self { allowed, ..self.clone() }
    }

    /// The need of a connection to a host. What is certain without a look-up is forbidden before anybody is asked.
    pub(super) fn need(&self, target: &HostPort) -> Need {
        let mut need = Need::new(Category::Network, target.to_string());
        let is_listed = self.lists(&need);
        need.kind = NeedKind::Network(Some(match is_listed {
            true => HostListing::Listed,
            false if self.locked.contains(&need.target) => HostListing::Locked,
            false => HostListing::Unlisted,
        }));
        let here = || is_loopback_name(&target.host).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let address = target.address.or_else(here);
        let refused = address.filter(|address| !self.admits(*address, target));
        need.forbidden = refused.map(|address| format!("{GUARD}: {}", not_named(address, target)));
        need
    }

    /// The need of a connection that a command is going to make to `host:port`, for an ask before it runs; `None` if
    /// nobody is asked about that.
    pub fn need_before(&self, authority: &str) -> Option<Need> {
        let need = self.need(&target_of(authority).ok()?);
        let is_asked = need.kind == NeedKind::Network(Some(HostListing::Unlisted)) && need.forbidden.is_none();
        is_asked.then(|| need.because("the command's settings or its lock file name it"))
    }

    /// Whether a command shows all hosts that it downloads from, and each is listed or the loopback network of its session.
    /// Others, to which a host leads it, are asked about when it connects.
    pub(crate) fn lists_all_of(&self, need: &Need) -> bool {
        addresses(need).is_some_and(|addresses| {
            addresses.iter().all(|url| {
                let is_own = url.host_str().is_some_and(|host| ["localhost", "127.0.0.1", "[::1]"].contains(&host));
                is_own || self.lists(&self.need(&HostPort::of(url)))
            })
        })
    }

    /// Whether the need of a connection needs no ask.
    fn lists(&self, need: &Need) -> bool {
        !self.lists.is_empty()
            && self.lists.iter().all(|list| list.patterns.iter().any(|pattern| pattern.matches(need).is_some()))
    }

    /// Whether a host may have this address. One that is named without a wildcard may be in a private network, or a public address
    /// of this machine: whoever owns names chooses their addresses. The loopback addresses, those of the link, and those at which a
    /// cloud gives its secrets must be named themselves.
    pub(super) fn admits(&self, address: IpAddr, target: &HostPort) -> bool {
        let in_lists = |names: &dyn Fn(&HostList) -> bool| !self.lists.is_empty() && self.lists.iter().all(names);
        let named = |list: &HostList| list.named.names(address, &target.host, target.port);
        let need = Need::new(Category::Network, target.to_string());
        let exact = |list: &HostList| list.exact.iter().any(|pattern| pattern.matches(&need).is_some());
        let is_narrow = || is_public(address) || is_in_private_network(address);
        is_public(address) && !is_of_this_machine(address)
            || is_narrow() && (in_lists(&exact) || exact(&self.allowed))
            || in_lists(&named)
            || named(&self.allowed)
    }

    /// The ports of this machine that programs reach at their own loopback address.
    pub(super) fn loopback_places(&self) -> Vec<LoopbackPlace> {
        let in_all = |place: &&LoopbackPlace| self.lists.iter().skip(1).all(|list| list.loopback.contains(place));
        let listed = self.lists.first().into_iter().flat_map(|list| &list.loopback).filter(in_all);
        let mut places: Vec<LoopbackPlace> = listed.chain(&self.allowed.loopback).cloned().collect();
        places.truncate(MAX_LOOPBACK);
        places
    }
}

impl HostList {
    fn add(&mut self, entry: &str) -> Result<(), String> {
        let (host, port) = split(entry);
        let wrong = |error: String| format!("network: {error}");
        let is_here = is_loopback_name(host.trim_start_matches("*."));
        let is_address = host.parse::<Ipv4Addr>().is_ok() || host.starts_with('[');
        if (is_here || is_address) && port.is_none() {
            return Err(wrong(format!("{entry:?} needs a port, such as {host}:5432")));
        }
        let texts = match port {
            Some(_) => vec![entry.to_owned()],
            None => USUAL_PORTS.iter().map(|port| format!("{entry}:{port}")).collect(),
        };
        for text in &texts {
            let pattern = Pattern::parse_to_use(Category::Network, text).map_err(|error| wrong(error.to_string()))?;
            self.exact.extend(Some(pattern.clone()).filter(|_| !host.contains('*')));
            self.patterns.push(pattern);
        }
        match is_here || is_address {
            true => self.add_named(entry, host, port).map_err(wrong),
            false => Ok(()),
        }
    }

    /// Adds an entry that names this machine, an address, or a host without a wildcard.
    fn add_named(&mut self, entry: &str, host: &str, port: Option<&str>) -> Result<(), String> {
        let is_here = is_loopback_name(host.trim_start_matches("*."));
        if is_here || address_of(host).is_some() {
            self.named = self.named.and(entry)?;
        } else {
            self.exact.push(Pattern::parse(Category::Network, entry).map_err(|error| error.to_string())?);
        }
        let port = port.and_then(|port| port.parse().ok());
        let is_loopback = host == "localhost" || address_of(host).is_some_and(|address| address.is_loopback());
        self.loopback.extend(port.filter(|_| is_loopback).map(|port| LoopbackPlace { host: host.to_owned(), port }));
        Ok(())
    }
}

impl LoopbackPlace {
    pub(super) fn target(&self) -> HostPort {
        HostPort { host: self.host.clone(), port: self.port, address: address_of(&self.host) }
    }
}

/// The host of an entry, and its port if it has one.
fn split(entry: &str) -> (&str, Option<&str>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') && !port.is_empty() => (host, Some(port)),
        _ => (entry, None),
    }
}

/// Also of one in brackets.
fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Names that always mean this machine, and that no resolver is asked about.
pub(super) fn is_loopback_name(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

fn is_in_private_network(address: IpAddr) -> bool {
    match plain(address) {
        IpAddr::V4(address) => address.is_private(),
        // A cloud gives secrets at addresses of one network of this kind.
        IpAddr::V6(address) => address.is_unique_local() && address.segments()[..2] != [0xfd00, 0xec2],
    }
}

/// Why an address is not connected to.
pub(super) fn not_named(address: IpAddr, target: &HostPort) -> String {
    let names_itself = is_in_private_network(address) || is_loopback_name(&target.host) || target.address.is_some();
    let named = if names_itself { target.to_string() } else { SocketAddr::new(address, target.port).to_string() };
    let kind = kind_of(address);
    format!(
        "{address} {kind}, and neither [sandbox] network nor a rule or a grant names it: allow it with \
         toolctl permissions grant network {named}"
    )
}

/// The host and the port that a program asks for, in their one form.
///
/// # Errors
/// No host and port, in words for people.
pub(super) fn target_of(authority: &str) -> Result<HostPort, String> {
    let bad = || format!("{authority:?} is not a host with a port");
    let (host, port) = authority.rsplit_once(':').ok_or_else(bad)?;
    let port: u16 = port.parse().map_err(|_| bad())?;
    if host.is_empty() || port == 0 || host.contains(['@', '/', '?', '#', '\\']) || host.contains(char::is_whitespace) {
        return Err(bad());
    }
    let url = Url::parse(&format!("http://{host}:{port}/")).map_err(|_| bad())?;
    match url.host() {
        Some(Host::Domain(name)) if name.trim_end_matches('.').is_empty() => Err(bad()),
        Some(_) => Ok(HostPort::of(&url)),
        None => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(entries: &[&str]) -> NetworkHosts {
        NetworkHosts::parse(&entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    #[track_caller]
    fn check(entries: &[&str], authority: &str, address: &str, expected: (bool, bool)) {
        let (hosts, target) = (hosts(entries), target_of(authority).unwrap());
        let listed = hosts.need(&target).kind == NeedKind::Network(Some(HostListing::Listed));
        let admitted = hosts.admits(address.parse().unwrap(), &target);
        assert_eq!((listed, admitted), expected, "{entries:?} {authority} {address}");
    }

    #[test]
    fn listed_hosts_need_no_ask_at_their_ports() {
        let public = "93.184.215.14";
        check(&["packages.example.org"], "packages.example.org:443", public, (true, true));
        check(&["packages.example.org"], "PACKAGES.example.org.:80", public, (true, true));
        check(&["packages.example.org"], "packages.example.org:22", public, (false, true));
        check(&["packages.example.org"], "evil.packages.example.org:443", public, (false, true));
        check(&["*.example.com:8443"], "a.example.com:8443", public, (true, true));
        check(&["*.example.com:8443"], "a.example.com:443", public, (false, true));
        check(&["*"], "anything.example:443", public, (true, true));
        check(&["*"], "anything.example:22", public, (false, true));
        check(&[], "packages.example.org:443", public, (false, true));
    }

    #[test]
    fn private_addresses_need_a_listed_host_and_this_machine_its_own_name() {
        let listed = ["packages.corp.example", "*.corp.example:8443"];
        check(&listed, "packages.corp.example:443", "10.1.2.3", (true, true));
        check(&listed, "packages.corp.example:443", "fd12::1", (true, true));
        check(&listed, "other.example:443", "10.1.2.3", (false, false));
        // The owner of the domain chooses the address.
        check(&listed, "a.corp.example:8443", "10.1.2.3", (true, false));
        check(&["*"], "a.corp.example:443", "10.1.2.3", (true, false));
        check(&["10.1.2.3:5432"], "10.1.2.3:5432", "10.1.2.3", (true, true));
        for address in
            ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1", "fd00:ec2::254", "0.0.0.0"]
        {
            check(&listed, "packages.corp.example:443", address, (true, false));
            check(&["*"], "rebound.example:443", address, (true, false));
        }
        check(&["localhost:5432"], "localhost:5432", "127.0.0.1", (true, true));
        check(&["localhost:5432"], "localhost:5433", "127.0.0.1", (false, false));
        check(&["127.0.0.1:8080"], "2130706433:8080", "127.0.0.1", (true, true));
        check(&["[::1]:8080"], "[::1]:8080", "::1", (true, true));
        check(&["*.localhost:8080"], "a.localhost:8080", "127.0.0.1", (true, true));
        // The name of another host does not become that of this machine.
        check(&["localhost:8080", "*.example"], "a.example:8080", "127.0.0.1", (false, false));
    }

    #[test]
    fn what_a_rule_or_a_grant_names_may_have_any_address_that_it_names() {
        let patterns =
            ["localhost:5432", "127.0.0.1:80", "10.1.2.3", "db.corp.example:5432", "*.corp.example:1", "a.example"];
        let allowed = hosts(&[]).with_allowed(&patterns.map(str::to_owned));
        let admits =
            |authority: &str, address: &str| allowed.admits(address.parse().unwrap(), &target_of(authority).unwrap());
        for (authority, address, expected) in [
            ("localhost:5432", "127.0.0.1", true),
            ("localhost:5433", "127.0.0.1", false),
            ("127.0.0.1:80", "127.0.0.1", true),
            ("10.1.2.3:22", "10.1.2.3", true),
            ("10.1.2.4:22", "10.1.2.4", false),
            ("db.corp.example:5432", "10.9.9.9", true),
            ("db.corp.example:5432", "127.0.0.1", false),
            ("db.corp.example:5432", "169.254.169.254", false),
            ("db.corp.example:22", "10.9.9.9", false),
            ("a.corp.example:1", "10.9.9.9", false),
            // It says nothing about the port, and the name may lead anywhere tomorrow.
            ("a.example:443", "10.9.9.9", false),
        ] {
            assert_eq!(admits(authority, address), expected, "{authority} {address}");
        }
        let ports = allowed.loopback_places().iter().map(|place| place.port).collect::<Vec<_>>();
        assert_eq!(ports, [5432, 80]);
    }

    #[test]
    fn what_the_user_and_the_project_list_is_listed() {
        let both = hosts(&["a.example", "b.example", "localhost:1"]).and(&hosts(&["b.example", "localhost:2"]));
        let lists = |target: &str| both.lists(&Need::new(Category::Network, target));
        assert!(lists("b.example:443") && !lists("a.example:443"));
        assert!(both.loopback_places().is_empty());
        assert!(
            hosts(&["a.example"]).and(&NetworkHosts::default()).lists(&Need::new(Category::Network, "a.example:443"))
        );
        assert!(!hosts(&["a.example"]).and(&hosts(&[])).lists(&Need::new(Category::Network, "a.example:443")));
    }

    #[test]
    fn wrong_entries_are_reported() {
        for bad in [
            "",
            "https://a.example",
            "a.example/x",
            "localhost",
            "127.0.0.1",
            "[::1]",
            "*.localhost",
            "a b",
            "a.example:x",
        ] {
            let entries = [bad.to_owned()];
            assert!(NetworkHosts::parse(&entries).is_err(), "{bad}");
        }
    }

    #[test]
    fn ports_of_this_machine_are_forwarded() {
        let places =
            hosts(&["localhost:5432", "127.0.0.1:80", "[::1]:81", "10.0.0.1:82", "*.localhost:83"]).loopback_places();
        assert_eq!(places.iter().map(|place| place.port).collect::<Vec<_>>(), [5432, 80, 81]);
        assert_eq!(places[2].target().to_string(), "[::1]:81");
    }

    #[test]
    fn authorities_are_read_strictly() {
        for bad in
            ["a.example", ":443", "a.example:", "a.example:0", "a@b:1", "a/b:1", "a b:1", ".:1", "[::1:1", "a:99999"]
        {
            assert!(target_of(bad).is_err(), "{bad}");
        }
        for (text, target) in
            [("0x7f.1:80", "127.0.0.1:80"), ("[::ffff:127.0.0.1]:1", "127.0.0.1:1"), ("A.Example:443", "a.example:443")]
        {
            assert_eq!(target_of(text).unwrap().to_string(), target);
        }
    }
}
