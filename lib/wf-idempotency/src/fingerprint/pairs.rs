//! `a=1&b=2`, as a query or a form: the order of different names is taken out, all else stays.
//! Does not decode what it feeds to the MAC: `+` and `%20` mean the same to some services only.

use crate::mac::Mac;

/// Beyond this many the order is not taken out: a body of ampersands must not cost its own size sixteen times over.
const PAIRS_MAX: usize = 10_000;

/// Adds the number of pairs and then each pair as it was spelled, sorted by family (stable).
pub(super) fn add(mac: &mut Mac, text: &[u8]) {
    let mut pairs: Vec<&[u8]> = text.split(|&byte| byte == b'&').take(PAIRS_MAX + 1).collect();
    if pairs.len() > PAIRS_MAX {
        // No list has this length, so nothing else looks the same.
        mac.count(usize::MAX);
        return mac.part(text);
    }
    if !pairs.is_sorted_by(|a, b| family(a).le(family(b))) {
        pairs.sort_by(|a, b| family(a).cmp(family(b)));
    }
    mac.count(pairs.len());
    pairs.iter().for_each(|pair| mac.part(pair));
}

/// Pairs of one family keep their order. It is the decoded name, so that `a` and `%61` are one, up to the first
/// bracket, because in `line[][sku]=1&line[][qty]=2&line[][sku]=3` order says which quantity belongs to which line.
fn family(pair: &[u8]) -> impl Iterator<Item = u8> {
    let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
    Decoded(name).take_while(|&byte| byte != b'[')
}

struct Decoded<'a>(&'a [u8]);

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = match *self.0 {
            [b'%', high, low, ref rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex_digit(high) << 4 | hex_digit(low), rest)
            }
            [b'+', ref rest @ ..] => (b' ', rest),
            [byte, ref rest @ ..] => (byte, rest),
            [] => return None,
        };
        self.0 = rest;
        Some(byte)
    }
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
