//! An exact decimal number: any JSON number can be held, compared and written back as it came.
//! It knows no rounding and no operator.
//! Next: `decimal`, which calculates with 34 significant digits.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The largest power of ten that is accepted when a number is read; it keeps all later sums inside `i64`.
const EXPONENT_READ_MAX: i64 = 1_000_000_000_000_000;
/// Short numbers keep their digits in an `i128` and stay within this exponent.
const EXPONENT_SHORT_MAX: i64 = 1_000_000;
const DIGITS_SHORT_MAX: usize = 38;
/// Up to this many digits are written without an exponent.
const PLAIN_DIGITS_MAX: i64 = 40;

/// An exact decimal number. Two numbers are equal when their values are: `1`, `1.0` and `1e0` are one number.
///
/// A number that was read keeps its text, so that a copy is written exactly as it came.
#[derive(Clone)]
pub struct Number {
    repr: Repr,
    text: Option<Arc<str>>,
}

#[derive(Clone, PartialEq, Eq)]
enum Repr {
    Short { coefficient: i128, exponent: i32 },
    Long(Arc<Long>),
}

/// More digits or a wider exponent than `Short` holds. Never zero, no outer zeros.
#[derive(PartialEq, Eq)]
struct Long {
    negative: bool,
    digits: Box<str>,
    exponent: i64,
}

/// The value `digits × 10^exponent`; `digits` has no outer zeros and is empty for zero.
pub(crate) struct Parts<'a> {
    pub negative: bool,
    pub digits: Cow<'a, str>,
    pub exponent: i64,
}

impl Number {
    pub const ZERO: Number = Number { repr: Repr::Short { coefficient: 0, exponent: 0 }, text: None };

    /// Reads `-?digits[.digits][e[+-]digits]`; a missing integer part is allowed. `None` if the text is anything else
    /// or its exponent is beyond 10^15.
    pub fn parse(text: &str) -> Option<Number> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
            Some(at) => (unsigned.get(..at)?, parse_exponent(unsigned.get(at + 1..)?)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        if mantissa.ends_with('.') {
            return None;
        }
        let digits = [whole, fraction].concat();
        let exponent = exponent - i64::try_from(fraction.len()).ok()?;
        Some(Number::from_digits(negative, &digits, exponent))
    }

    /// Like [`Number::parse`], and remembers the text where it differs from the canonical form.
    pub(crate) fn parse_keeping_text(text: &str) -> Option<Number> {
        let mut number = Number::parse(text)?;
        if number.canonical() != text {
            number.text = Some(Arc::from(text));
        }
        Some(number)
    }

    /// The value of a decimal digit string times a power of ten.
    pub(crate) fn from_digits(negative: bool, digits: &str, exponent: i64) -> Number {
        let leading = digits.trim_start_matches('0');
        let trimmed = leading.trim_end_matches('0');
        if trimmed.is_empty() {
            return Number::ZERO;
        }
        let dropped = i64::try_from(leading.len() - trimmed.len()).unwrap_or(0);
        let exponent = exponent + dropped;
        let short = trimmed.len() <= DIGITS_SHORT_MAX && exponent.abs() <= EXPONENT_SHORT_MAX;
        let repr = match (short, trimmed.parse::<i128>(), i32::try_from(exponent)) {
            (true, Ok(magnitude), Ok(exponent)) => {
                Repr::Short { coefficient: if negative { -magnitude } else { magnitude }, exponent }
            }
            _ => Repr::Long(Arc::new(Long { negative, digits: trimmed.into(), exponent })),
        };
        Number { repr, text: None }
    }

    /// `coefficient × 10^exponent`, brought to the one form in which the coefficient does not end in zero.
    pub(crate) fn from_coefficient(mut coefficient: i128, mut exponent: i32) -> Number {
        if coefficient == 0 {
            return Number::ZERO;
        }
        while coefficient % 10 == 0 {
            coefficient /= 10;
            exponent += 1;
        }
        Number { repr: Repr::Short { coefficient, exponent }, text: None }
    }

    /// The coefficient and exponent of a number of at most 38 digits.
    pub(crate) fn short(&self) -> Option<(i128, i32)> {
        match self.repr {
            Repr::Short { coefficient, exponent } => Some((coefficient, exponent)),
            Repr::Long(_) => None,
        }
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        match &self.repr {
            Repr::Short { coefficient: 0, .. } => Parts { negative: false, digits: "".into(), exponent: 0 },
            Repr::Short { coefficient, exponent } => Parts {
                negative: *coefficient < 0,
                digits: coefficient.unsigned_abs().to_string().into(),
                exponent: i64::from(*exponent),
            },
            Repr::Long(long) => {
                Parts { negative: long.negative, digits: Cow::Borrowed(&long.digits), exponent: long.exponent }
            }
        }
    }

    /// The number as an `i64` if it is whole and fits.
    pub fn to_i64(&self) -> Option<i64> {
        let (coefficient, exponent) = self.short()?;
        let scale = 10_i128.checked_pow(u32::try_from(exponent).ok()?)?;
        i64::try_from(coefficient.checked_mul(scale)?).ok()
    }

    /// What it costs to look at the number, in steps; nothing for everyday numbers.
    pub(crate) fn weight(&self) -> usize {
        match &self.repr {
            Repr::Short { .. } => 0,
            Repr::Long(long) => 1 + long.digits.len() / 4,
        }
    }

    pub fn is_zero(&self) -> bool {
        matches!(self.repr, Repr::Short { coefficient: 0, .. })
    }

    pub fn is_negative(&self) -> bool {
        match &self.repr {
            Repr::Short { coefficient, .. } => *coefficient < 0,
            Repr::Long(long) => long.negative,
        }
    }

    pub fn is_whole(&self) -> bool {
        self.parts().exponent >= 0
    }

    /// The text as it was read, else the canonical form; valid JSON in both cases.
    pub(crate) fn json_text(&self) -> Cow<'_, str> {
        match &self.text {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(self.canonical()),
        }
    }

    fn canonical(&self) -> String {
        let parts = self.parts();
        if parts.digits.is_empty() {
            return "0".to_owned();
        }
        let length = i64::try_from(parts.digits.len()).unwrap_or(i64::MAX);
        let magnitude = length.saturating_add(parts.exponent);
        let unsigned = if parts.exponent >= 0 && magnitude <= PLAIN_DIGITS_MAX.max(length) {
            let zeros = usize::try_from(parts.exponent).unwrap_or(0);
            format!("{}{}", parts.digits, "0".repeat(zeros))
        } else if parts.exponent < 0 && magnitude > -PLAIN_DIGITS_MAX {
            with_point(&parts.digits, magnitude)
        } else {
            scientific(&parts.digits, magnitude - 1)
        };
        if parts.negative { format!("-{unsigned}") } else { unsigned }
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let magnitude: i64 = unsigned.trim_start_matches('0').parse().or_else(|_| zero_if_empty(unsigned)).ok()?;
    if magnitude > EXPONENT_READ_MAX {
        return None;
    }
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// `000` is the exponent zero; digits that do not fit are refused.
fn zero_if_empty(digits: &str) -> Result<i64, ()> {
    if digits.bytes().all(|b| b == b'0') { Ok(0) } else { Err(()) }
}

/// `digits` with the point after `magnitude` digits, zeros added in front where needed.
fn with_point(digits: &str, magnitude: i64) -> String {
    match usize::try_from(magnitude) {
        Ok(at) if at > 0 => {
            let (whole, fraction) = digits.split_at_checked(at).unwrap_or((digits, ""));
            format!("{whole}.{fraction}")
        }
        _ => {
            let zeros = usize::try_from(-magnitude).unwrap_or(0);
            format!("0.{}{digits}", "0".repeat(zeros))
        }
    }
}

fn scientific(digits: &str, exponent: i64) -> String {
    match digits.split_at_checked(1) {
        Some((first, rest)) if !rest.is_empty() => format!("{first}.{rest}e{exponent}"),
        _ => format!("{digits}e{exponent}"),
    }
}

impl fmt::Display for Number {
    /// The canonical form: no needless zeros, plain up to 40 digits, else with an exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json_text())
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.repr == other.repr
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        if let (Some((a, ea)), Some((b, eb))) = (self.short(), other.short())
            && ea == eb
        {
            return a.cmp(&b);
        }
        let (a, b) = (self.parts(), other.parts());
        match (sign(&a), sign(&b)) {
            (x, y) if x != y => x.cmp(&y),
            (0, _) => Ordering::Equal,
            (1, _) => magnitudes(&a, &b),
            _ => magnitudes(&b, &a),
        }
    }
}

fn sign(parts: &Parts<'_>) -> i8 {
    match (parts.digits.is_empty(), parts.negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    }
}

/// Digits without outer zeros compare as text once they begin at the same power of ten.
fn magnitudes(a: &Parts<'_>, b: &Parts<'_>) -> Ordering {
    let top = |p: &Parts<'_>| p.exponent + i64::try_from(p.digits.len()).unwrap_or(i64::MAX / 2);
    top(a).cmp(&top(b)).then_with(|| a.digits.as_ref().cmp(b.digits.as_ref()))
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::from_coefficient(i128::from(value), 0)
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Number {
        Number::from_coefficient(i128::from(value), 0)
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Number {
        Number::from(i64::from(value))
    }
}

impl From<usize> for Number {
    fn from(value: usize) -> Number {
        Number::from(u64::try_from(value).unwrap_or(u64::MAX))
    }
}
