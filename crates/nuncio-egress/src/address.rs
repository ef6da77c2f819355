//! Which addresses may be dialled: the special ranges and what hides inside an IPv6 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::Rule;

/// The special ranges of IPv4, with the rule each belongs to.
const SPECIAL_V4: &[(Ipv4Addr, u8, Rule)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, Rule::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Rule::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Rule::Shared),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Rule::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Rule::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Rule::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Rule::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Rule::Reserved),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Rule::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Rule::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Rule::Reserved),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Rule::Reserved),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Rule::Reserved),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Rule::Multicast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Rule::Reserved),
];

/// The special ranges of IPv6. What is in none of them must be in 2000::/3 all the same.
const SPECIAL_V6: &[(Ipv6Addr, u8, Rule)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, Rule::Unspecified),
    (Ipv6Addr::LOCALHOST, 128, Rule::Loopback),
    // IPv4-compatible and IPv4-translated; mapped ones are IPv4 by the time they come here.
    (Ipv6Addr::UNSPECIFIED, 96, Rule::Transition),
    (
        Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0),
        96,
        Rule::Transition,
    ),
    // NAT64, well-known and local.
    (
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0),
        96,
        Rule::Transition,
    ),
    (
        Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0),
        48,
        Rule::Transition,
    ),
    (
        Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0),
        64,
        Rule::Reserved,
    ),
    // Teredo, then the rest of the protocol assignments.
    (
        Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0),
        32,
        Rule::Transition,
    ),
    (
        Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0),
        23,
        Rule::Reserved,
    ),
    (
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
        32,
        Rule::Reserved,
    ),
    // 6to4.
    (
        Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0),
        16,
        Rule::Transition,
    ),
    (
        Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0),
        20,
        Rule::Reserved,
    ),
    (
        Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0),
        16,
        Rule::Reserved,
    ),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Rule::Private),
    (
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0),
        10,
        Rule::LinkLocal,
    ),
    (
        Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0),
        10,
        Rule::Private,
    ),
    (
        Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0),
        8,
        Rule::Multicast,
    ),
];

/// Judges an address: itself and every IPv4 address it carries must be public or allowed.
pub(crate) fn judge(address: IpAddr, allow: &[IpNet]) -> Result<(), Rule> {
    let address = address.to_canonical();
    judge_one(address, allow)?;
    let IpAddr::V6(v6) = address else {
        return Ok(());
    };
    embedded(v6)
        .into_iter()
        .flatten()
        .try_for_each(|v4| judge_one(IpAddr::V4(v4), allow))
}

fn judge_one(address: IpAddr, allow: &[IpNet]) -> Result<(), Rule> {
    match special(address) {
        Some(rule) if !allow.iter().any(|net| net.contains(&address)) => Err(rule),
        _ => Ok(()),
    }
}

fn special(address: IpAddr) -> Option<Rule> {
    match address {
        IpAddr::V4(v4) => SPECIAL_V4
            .iter()
            .find(|(net, bits, _)| same_prefix_v4(v4, *net, *bits))
            .map(|(_, _, rule)| *rule),
        IpAddr::V6(v6) => SPECIAL_V6
            .iter()
            .find(|(net, bits, _)| same_prefix_v6(v6, *net, *bits))
            .map(|(_, _, rule)| *rule)
            .or_else(|| (v6.segments()[0] >> 13 != 1).then_some(Rule::Reserved)),
    }
}

fn same_prefix_v4(a: Ipv4Addr, b: Ipv4Addr, bits: u8) -> bool {
    (a.to_bits() ^ b.to_bits()) >> (32 - bits) == 0
}

fn same_prefix_v6(a: Ipv6Addr, b: Ipv6Addr, bits: u8) -> bool {
    (a.to_bits() ^ b.to_bits()) >> (128 - u32::from(bits)) == 0
}

/// The IPv4 addresses that a gateway on the way may read out of an IPv6 address.
fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let at = |shift: u32| Ipv4Addr::from_bits((address.to_bits() >> shift) as u32);
    match address.segments() {
        // Compatible, translated, well-known NAT64: the last 32 bits.
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => [Some(at(0)), None],
        [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => [Some(at(0)), None],
        // Local NAT64 of any prefix length from 48 on (RFC 6052): the usual places.
        [0x64, 0xff9b, 1, ..] => [Some(at(0)), Some(nat64_48(address))],
        // Teredo: the server, and the client with its bits flipped.
        [0x2001, 0, ..] => [
            Some(at(64)),
            Some(Ipv4Addr::from_bits(!(address.to_bits() as u32))),
        ],
        // 6to4: behind the prefix.
        [0x2002, ..] => [Some(at(80)), None],
        // ISATAP under any prefix.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => [Some(at(0)), None],
        _ => [None, None],
    }
}

/// The address behind a /48 NAT64 prefix, which leaves bits 64 to 71 out.
fn nat64_48(address: Ipv6Addr) -> Ipv4Addr {
    let o = address.octets();
    Ipv4Addr::new(o[6], o[7], o[9], o[10])
}
