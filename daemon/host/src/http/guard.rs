//! Decides which addresses may be reached: public ones, and those in the configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use toold_engine::need::Need;
use toold_engine::policy::pattern::Pattern;
use toold_proto::tool::Category;

/// The part of toold that refuses an address, in words that stand behind "by".
pub(crate) const GUARD: &str = "the guard of addresses";

/// Hosts and networks that may be reached although they are not public.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    allowed: Vec<Allowed>,
}

#[derive(Clone, Debug)]
enum Allowed {
    Network(Network),
    /// A host, by name or address, as in a rule of the policy.
    Host(Box<Pattern>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    /// As an IPv6 network.
    bits: u128,
    prefix: u32,
}

impl Guard {
    /// Parses entries: networks (`10.0.0.0/8`, `fd00::/8`), addresses (`127.0.0.1`, `[::1]`) or hosts
    /// (`*.corp.example`). Addresses and hosts may have a port.
    ///
    /// # Errors
    /// An entry that is none of these, with a message for people.
    pub fn parse(allow_private: &[String]) -> Result<Self, String> {
        let allowed = allow_private.iter().map(|text| {
            if text.contains('/') {
                return Network::parse(text).map(Allowed::Network);
            }
            Pattern::parse(Category::Network, text)
                .map(|pattern| Allowed::Host(Box::new(pattern)))
                .map_err(|error| error.to_string())
        });
        allowed.collect::<Result<_, _>>().map(|allowed| Self { allowed })
    }

    /// A copy with one more entry.
    ///
    /// # Errors
    /// As [`Guard::parse`].
    pub fn and(&self, entry: &str) -> Result<Self, String> {
        let more = Self::parse(&[entry.to_owned()])?;
        Ok(Self { allowed: self.allowed.iter().cloned().chain(more.allowed).collect() })
    }

    /// Whether this address may be reached as `host` (its name, or the address itself) at `port`.
    pub(super) fn admits(&self, address: IpAddr, host: &str, port: u16) -> bool {
        is_public(address) && !is_of_this_machine(address) || self.names(address, host, port)
    }

    /// Whether an entry names this address, or the host.
    pub(crate) fn names(&self, address: IpAddr, host: &str, port: u16) -> bool {
        self.allowed.iter().any(|allowed| allowed.admits(address, host, port))
    }
}

impl Allowed {
    fn admits(&self, address: IpAddr, host: &str, port: u16) -> bool {
        match self {
            Self::Network(network) => network.contains(address),
            Self::Host(pattern) => {
                let matches =
                    |host: &str| pattern.matches(&Need::new(Category::Network, format!("{host}:{port}"))).is_some();
                matches(host)
                    || match plain(address) {
                        IpAddr::V4(address) => matches(&address.to_string()),
                        IpAddr::V6(address) => matches(&format!("[{address}]")),
                    }
            }
        }
    }
}

impl Network {
    fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is not a network: expected an address and a prefix, such as 10.0.0.0/8");
        let (address, prefix) = text.split_once('/').ok_or_else(bad)?;
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let prefix: u32 = prefix.parse().map_err(|_| bad())?;
        let prefix = if address.is_ipv4() { prefix.checked_add(96).ok_or_else(bad)? } else { prefix };
        if prefix > 128 {
            return Err(bad());
        }
        Ok(Self { bits: bits(address), prefix })
    }

    fn contains(self, address: IpAddr) -> bool {
        let shift = 128 - self.prefix;
        bits(address).checked_shr(shift) == self.bits.checked_shr(shift)
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// An IPv4-mapped IPv6 address is treated as the IPv4 address.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(inner) => inner.to_ipv4_mapped().map_or(address, IpAddr::V4),
    }
}

/// Whether this machine has the address, public as it may be: its own servers, which a firewall may hide from all others, are
/// reached there. Sends nothing: the kernel chooses the address itself to reach it from.
pub(crate) fn is_of_this_machine(address: IpAddr) -> bool {
    /// Any other one would do.
    const DISCARD: u16 = 9;
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let chosen = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, DISCARD))?;
        socket.local_addr()
    });
    chosen.is_ok_and(|chosen| chosen.ip() == address)
}

/// Why an address is not admitted by itself, after its name.
pub(crate) fn kind_of(address: IpAddr) -> &'static str {
    if is_public(address) { "is an address of this machine" } else { "is not a public address" }
}

/// Whether an address belongs to the public internet, and not to this machine, a private network, a link, a multicast
/// group, a carrier, a cloud's internal services, a tunnel or documentation.
pub fn is_public(address: IpAddr) -> bool {
    match plain(address) {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// First address and prefix length of the special-purpose registries' entries, and of one address on which a cloud
/// serves secrets.
const SPECIAL_V4: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |first: Ipv4Addr, prefix: u32| (address.to_bits() ^ first.to_bits()) >> (32 - prefix) == 0;
    !SPECIAL_V4.iter().any(|(first, prefix)| within(*first, *prefix))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // Translated to IPv4 on the way (NAT64).
    if address.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return is_public_v4(Ipv4Addr::from_bits(address.to_bits() as u32));
    }
    match first {
        // Tunnels and identifiers, documentation.
        0x2001 => second > 0x1ff && second != 0xdb8,
        // A tunnel with an embedded IPv4 address.
        0x2002 => false,
        // Documentation.
        0x3fff => second > 0xfff,
        0x2000..=0x3ffe => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for public in ["1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700::1", "2a00:1450::1"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for mapped in ["::ffff:1.1.1.1", "64:ff9b::1.1.1.1"] {
            assert!(is_public(mapped.parse().unwrap()), "{mapped}");
        }
        let special = "0.0.0.0 0.1.2.3 10.1.2.3 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.255 168.63.129.16 \
            169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.19.0.1 \
            198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 \
            ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:7f00:1 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 \
            100::1 2001::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::1 3fff::1 fc00::1 fd00:ec2::254 fe80::1 \
            fec0::1 ff02::1";
        for special in special.split_whitespace() {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
    }

    #[track_caller]
    fn check(entry: &str, address: &str, host: &str, admitted: bool) {
        let guard = Guard::parse(&[entry.to_owned()]).unwrap();
        assert_eq!(guard.admits(address.parse().unwrap(), host, 8080), admitted, "{entry} {address} {host}");
    }

    #[test]
    fn private_addresses_can_be_allowed() {
        check("10.0.0.0/8", "10.9.8.7", "10.9.8.7", true);
        check("10.0.0.0/8", "::ffff:10.9.8.7", "inside.example", true);
        check("10.0.0.0/8", "11.0.0.1", "11.0.0.1", true);
        check("10.0.0.0/8", "192.168.0.1", "192.168.0.1", false);
        check("0.0.0.0/0", "192.168.0.1", "x", true);
        check("0.0.0.0/0", "::1", "x", false);
        check("::/0", "::1", "x", true);
        check("fd00::/8", "fd12::1", "x", true);
        check("fd00::/8", "fe80::1", "x", false);
        check("127.0.0.1:8080", "127.0.0.1", "localhost", true);
        check("127.0.0.1:8081", "127.0.0.1", "localhost", false);
        check("127.0.0.1", "127.0.0.1", "localhost", true);
        check("localhost:8080", "127.0.0.1", "localhost", true);
        check("localhost:8080", "127.0.0.1", "127.0.0.1", false);
        check("[::1]:8080", "::1", "localhost", true);
        check("*.corp.example", "10.0.0.1", "wiki.corp.example", true);
        check("*.corp.example", "10.0.0.1", "corp.example", false);
        check("*.corp.example", "10.0.0.1", "wiki.corp.example.evil.test", false);
    }

    #[test]
    fn invalid_entries_are_reported() {
        for bad in ["10.0.0.0/33", "10.0.0.0/x", "host/8", "", "http://x", "::/129", "1.2.3.4/4294967295"] {
            assert!(Guard::parse(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }
}
