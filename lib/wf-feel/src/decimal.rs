//! Decimal arithmetic with 34 significant digits, half to even, as Java's DECIMAL128 does it.
//! It knows nothing of FEEL's values; `None` says that a number is beyond what may be calculated with.
//! Next: back to `arithmetic` or `functions::numbers`, which turn `None` into `EvalError::Size`.

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{Signed, Zero};

use crate::number::Number;

const PRECISION: usize = 34;
/// Powers keep some digits more between their multiplications, so that the last of the 34 is right.
const PRECISION_POWER: usize = 56;
/// Operands with more digits are copied and compared, not calculated with.
const DIGITS_OPERAND_MAX: usize = 1_000;
/// The leading digit of an operand or result stays within 10^±6144, the range of a decimal128.
const EXPONENT_MAX: i64 = 6_144;
const COEFFICIENT_END: i128 = 10_i128.pow(PRECISION as u32);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Up,
    Down,
    Ceiling,
    Floor,
    HalfUp,
    HalfDown,
    HalfEven,
}

pub(crate) fn add(a: &Number, b: &Number) -> Option<Number> {
    if let Some(sum) = add_short(a, b) {
        return Some(sum);
    }
    let (a, b) = (Operand::new(a)?, Operand::new(b)?);
    let (a, b) = (a.unless_negligible_to(&b), b.unless_negligible_to(&a));
    let exponent = a.exponent.min(b.exponent);
    finish(a.at(exponent)? + b.at(exponent)?, exponent)
}

/// The everyday case: both coefficients fit an `i128` once they are brought to one exponent.
fn add_short(a: &Number, b: &Number) -> Option<Number> {
    let ((a, ea), (b, eb)) = (a.short()?, b.short()?);
    let exponent = ea.min(eb);
    let lift = |c: i128, e: i32| c.checked_mul(10_i128.checked_pow(u32::try_from(e - exponent).ok()?)?);
    within_precision(lift(a, ea)?.checked_add(lift(b, eb)?)?, exponent)
}

/// `None` also where rounding or a range check is due; the general path does both.
fn within_precision(coefficient: i128, exponent: i32) -> Option<Number> {
    let inside = coefficient.abs() < COEFFICIENT_END && exponent.abs() < 6_000;
    inside.then(|| Number::from_coefficient(coefficient, exponent))
}

pub(crate) fn negate(a: &Number) -> Number {
    let parts = a.parts();
    Number::from_digits(!parts.negative, &parts.digits, parts.exponent)
}

pub(crate) fn abs(a: &Number) -> Number {
    if a.is_negative() { negate(a) } else { a.clone() }
}

pub(crate) fn subtract(a: &Number, b: &Number) -> Option<Number> {
    add(a, &negate(b))
}

pub(crate) fn multiply(a: &Number, b: &Number) -> Option<Number> {
    if let (Some((x, ex)), Some((y, ey))) = (a.short(), b.short())
        && let Some(product) = x.checked_mul(y).and_then(|c| within_precision(c, ex + ey))
    {
        return Some(product);
    }
    let (a, b) = (Operand::new(a)?, Operand::new(b)?);
    finish(a.coefficient * b.coefficient, a.exponent + b.exponent)
}

/// `None` for a zero divisor too: the caller asks first.
pub(crate) fn divide(a: &Number, b: &Number) -> Option<Number> {
    let (a, b) = (Operand::new(a)?, Operand::new(b)?);
    let (quotient, exponent) = quotient(&a, &b, PRECISION)?;
    finish(quotient, exponent)
}

/// At least `precision` + 1 digits of a / b, the last one made odd-looking if there is a remainder ("sticky").
fn quotient(a: &Operand, b: &Operand, precision: usize) -> Option<(BigInt, i64)> {
    if b.coefficient.is_zero() {
        return None;
    }
    let shift = (b.digits() + precision + 2).saturating_sub(a.digits());
    let (mut quotient, rest) = (&a.coefficient * ten_to(shift)?).div_rem(&b.coefficient);
    let mut exponent = a.exponent - b.exponent - i64::try_from(shift).ok()?;
    if !rest.is_zero() {
        let negative = a.coefficient.is_negative() != b.coefficient.is_negative();
        quotient = quotient * 10 + if negative { -1 } else { 1 };
        exponent -= 1;
    }
    Some((quotient, exponent))
}

/// The remainder with the divisor's sign: `modulo(-12, 5)` is 3. `None` for a zero divisor too.
pub(crate) fn modulo(a: &Number, b: &Number) -> Option<Number> {
    let (a, b) = (Operand::new(a)?, Operand::new(b)?);
    if b.coefficient.is_zero() {
        return None;
    }
    let exponent = a.exponent.min(b.exponent);
    finish(a.at(exponent)?.mod_floor(&b.at(exponent)?), exponent)
}

/// `a` to a whole power.
pub(crate) fn power(a: &Number, exponent: i64) -> Option<Number> {
    let mut base = Operand::new(a)?;
    let mut left = exponent.unsigned_abs();
    let mut result = Operand { coefficient: BigInt::from(1), exponent: 0 };
    if base.coefficient.is_zero() {
        return if exponent < 0 { None } else { Some(Number::from(i64::from(exponent == 0))) };
    }
    while left > 0 {
        if left & 1 == 1 {
            result = result.times(&base)?;
        }
        left >>= 1;
        if left > 0 {
            base = base.times(&base)?;
        }
    }
    if exponent < 0 {
        let one = Operand { coefficient: BigInt::from(1), exponent: 0 };
        let (coefficient, exponent) = quotient(&one, &result, PRECISION_POWER)?;
        return finish(coefficient, exponent);
    }
    finish(result.coefficient, result.exponent)
}

/// The square root; `None` for a negative number too.
pub(crate) fn square_root(a: &Number) -> Option<Number> {
    let a = Operand::new(a)?;
    if a.coefficient.is_negative() {
        return None;
    }
    let mut shift = (2 * PRECISION + 4).saturating_sub(a.digits());
    if (a.exponent - i64::try_from(shift).ok()?) % 2 != 0 {
        shift += 1;
    }
    let exponent = a.exponent - i64::try_from(shift).ok()?;
    let lifted = a.coefficient * ten_to(shift)?;
    let root = lifted.sqrt();
    let exact = &root * &root == lifted;
    let sticky = root * 10 + i32::from(!exact);
    finish(sticky, exponent / 2 - 1)
}

/// Rounds to `scale` digits after the point; a negative scale rounds whole digits.
pub(crate) fn round(a: &Number, scale: i64, rounding: Rounding) -> Option<Number> {
    let parts = a.parts();
    if scale.abs() > EXPONENT_MAX {
        return None;
    }
    let drop = -scale - parts.exponent;
    if drop <= 0 || parts.digits.is_empty() {
        return Some(a.clone());
    }
    let rounded = round_digits(&parts.digits, drop, parts.negative, rounding);
    Some(Number::from_digits(parts.negative, &rounded, -scale))
}

/// Whole part towards zero, as an `i64`. `None` if it does not fit.
pub(crate) fn truncate_to_i64(a: &Number) -> Option<i64> {
    match a.to_i64() {
        Some(whole) => Some(whole),
        None => round(a, 0, Rounding::Down)?.to_i64(),
    }
}

pub(crate) fn to_f64(a: &Number) -> Option<f64> {
    a.to_string().parse().ok()
}

/// `None` for what is not finite.
pub(crate) fn from_f64(value: f64) -> Option<Number> {
    if value.is_finite() { Number::parse(&format!("{value:e}")) } else { None }
}

struct Operand {
    coefficient: BigInt,
    exponent: i64,
}

impl Operand {
    fn new(number: &Number) -> Option<Operand> {
        let parts = number.parts();
        let top = parts.exponent.checked_add(i64::try_from(parts.digits.len()).ok()?)?;
        if parts.digits.len() > DIGITS_OPERAND_MAX || top.abs() > EXPONENT_MAX {
            return None;
        }
        let magnitude = BigUint::parse_bytes(parts.digits.as_bytes(), 10).unwrap_or_default();
        let sign = if parts.negative { Sign::Minus } else { Sign::Plus };
        Some(Operand { coefficient: BigInt::from_biguint(sign, magnitude), exponent: parts.exponent })
    }

    /// Decimal digits, at most one too many.
    fn digits(&self) -> usize {
        usize::try_from(self.coefficient.bits() * 30_103 / 100_000).unwrap_or(usize::MAX / 4) + 1
    }

    fn top(&self) -> i64 {
        self.exponent + i64::try_from(self.digits()).unwrap_or(0)
    }

    /// A summand far below the other one's last digit only says that there is something: it is replaced by a trace.
    fn unless_negligible_to(&self, other: &Operand) -> Operand {
        let floor = other.exponent.min(other.top() - PRECISION as i64 - 3) - 3;
        if other.coefficient.is_zero() || self.coefficient.is_zero() || self.top() >= floor {
            return Operand { coefficient: self.coefficient.clone(), exponent: self.exponent };
        }
        Operand { coefficient: self.coefficient.signum(), exponent: floor }
    }

    fn at(&self, exponent: i64) -> Option<BigInt> {
        if self.coefficient.is_zero() {
            return Some(BigInt::zero());
        }
        Some(&self.coefficient * ten_to(usize::try_from(self.exponent - exponent).ok()?)?)
    }

    fn times(&self, other: &Operand) -> Option<Operand> {
        let product = &self.coefficient * &other.coefficient;
        rounded(product, self.exponent + other.exponent, PRECISION_POWER)
    }
}

fn ten_to(power: usize) -> Option<BigInt> {
    let bounded = u32::try_from(power).ok().filter(|p| i64::from(*p) <= 4 * EXPONENT_MAX)?;
    Some(BigInt::from(10).pow(bounded))
}

fn finish(coefficient: BigInt, exponent: i64) -> Option<Number> {
    let negative = coefficient.is_negative();
    let digits = coefficient.magnitude().to_str_radix(10);
    let length = i64::try_from(digits.len()).ok()?;
    if length + exponent < -EXPONENT_MAX {
        return Some(Number::ZERO);
    }
    let drop = length - PRECISION as i64;
    let number = if drop > 0 {
        let rounded = round_digits(&digits, drop, negative, Rounding::HalfEven);
        Number::from_digits(negative, &rounded, exponent + drop)
    } else {
        Number::from_digits(negative, &digits, exponent)
    };
    (length + exponent <= EXPONENT_MAX).then_some(number)
}

/// An intermediate result with `precision` digits. `None` when it left the range by far.
fn rounded(coefficient: BigInt, exponent: i64, precision: usize) -> Option<Operand> {
    let digits = coefficient.magnitude().to_str_radix(10);
    let drop = i64::try_from(digits.len()).ok()? - i64::try_from(precision).ok()?;
    if exponent.abs() > 16 * EXPONENT_MAX {
        return None;
    }
    if drop <= 0 {
        return Some(Operand { coefficient, exponent });
    }
    let negative = coefficient.is_negative();
    let kept = round_digits(&digits, drop, negative, Rounding::HalfEven);
    let magnitude = BigUint::parse_bytes(kept.as_bytes(), 10).unwrap_or_default();
    let sign = if negative { Sign::Minus } else { Sign::Plus };
    Some(Operand { coefficient: BigInt::from_biguint(sign, magnitude), exponent: exponent + drop })
}

/// Drops the last `drop` digits and rounds the rest; `drop` may be larger than the number of digits.
fn round_digits(digits: &str, drop: i64, negative: bool, rounding: Rounding) -> String {
    let drop = usize::try_from(drop).unwrap_or(usize::MAX);
    let (kept, lost) = match digits.len().checked_sub(drop) {
        Some(at) => digits.split_at_checked(at).unwrap_or((digits, "")),
        None => ("", "0"), // Less than a tenth of the last kept place; `inexact` below still sees the digits.
    };
    let inexact = digits.len() < drop || lost.bytes().any(|b| b != b'0');
    let half = lost.bytes().next().unwrap_or(b'0').cmp(&b'5').then_with(|| {
        let more = lost.bytes().skip(1).any(|b| b != b'0');
        if more { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Equal }
    });
    let odd = kept.bytes().last().is_some_and(|b| b % 2 == 1);
    let away = inexact
        && match rounding {
            Rounding::Up => true,
            Rounding::Down => false,
            Rounding::Ceiling => !negative,
            Rounding::Floor => negative,
            Rounding::HalfUp => half.is_ge(),
            Rounding::HalfDown => half.is_gt(),
            Rounding::HalfEven => half.is_gt() || (half.is_eq() && odd),
        };
    if away { increment(kept) } else { kept.to_owned() }
}

/// The digit string plus one.
fn increment(digits: &str) -> String {
    let mut bytes = digits.as_bytes().to_vec();
    for byte in bytes.iter_mut().rev() {
        if *byte == b'9' {
            *byte = b'0';
        } else {
            *byte += 1;
            return String::from_utf8(bytes).unwrap_or_default();
        }
    }
    format!("1{}", String::from_utf8(bytes).unwrap_or_default())
}
