//! The inside of a JSON string, escapes resolved. No Unicode normalisation: é and e+´ are two texts.

/// Reads from behind the opening quote and returns how many bytes were read, the closing quote included.
/// `None` for a control character, an unknown escape, half a surrogate pair, or no end.
pub(super) fn unescape(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        let plain = text[at..].iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')?;
        out.extend_from_slice(&text[at..at + plain]);
        at += plain;
        match text[at] {
            b'"' => return Some(at + 1),
            b'\\' => at += escape(&text[at..], out)?,
            _ => return None,
        }
    }
}

/// At the backslash; returns the length of the whole escape.
fn escape(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let byte = match text.get(1)? {
        &byte @ (b'"' | b'\\' | b'/') => byte,
        b'b' => 0x08,
        b'f' => 0x0C,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unicode(text, out),
        _ => return None,
    };
    out.push(byte);
    Some(2)
}

fn unicode(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let high = code_unit(text)?;
    let (code, len) = match high {
        0xD800..=0xDBFF => (0x10000 + ((high - 0xD800) << 10) + low_surrogate(text.get(6..)?)?, 12),
        _ => (high, 6),
    };
    let mut utf8 = [0; 4];
    out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut utf8).as_bytes());
    Some(len)
}

fn low_surrogate(text: &[u8]) -> Option<u32> {
    let low = code_unit(text)?;
    (0xDC00..=0xDFFF).contains(&low).then(|| low - 0xDC00)
}

/// Four hexadecimal digits behind a backslash and a `u`.
fn code_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
}
