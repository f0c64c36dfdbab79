//! Compares computed arrays with the expected ones.

use crate::record::Tolerance;
use refcpu_kernels::DType;

/// The layout of the bits of a float type.
struct Format {
    exponent: u32,
    mantissa: u32,
    bias: i32,
    /// The values with the largest exponent.
    top: Top,
    /// `true` if the bits of negative zero are the only NaN.
    unsigned_zero: bool,
}

enum Top {
    /// Infinity, or NaN if the mantissa is not zero, as in IEEE 754.
    Ieee,
    /// Numbers, except that a mantissa of all ones is NaN.
    OneNan,
    /// Numbers.
    Numbers,
}

fn format(dtype: DType) -> Option<Format> {
    let f = |exponent, mantissa, bias, top, unsigned_zero| {
        Some(Format { exponent, mantissa, bias, top, unsigned_zero })
    };
    match dtype {
        DType::F64 => f(11, 52, 1023, Top::Ieee, false),
        DType::F32 => f(8, 23, 127, Top::Ieee, false),
        DType::F16 => f(5, 10, 15, Top::Ieee, false),
        DType::BF16 => f(8, 7, 127, Top::Ieee, false),
        DType::F8E3M4 => f(3, 4, 3, Top::Ieee, false),
        DType::F8E4M3 => f(4, 3, 7, Top::Ieee, false),
        DType::F8E5M2 => f(5, 2, 15, Top::Ieee, false),
        DType::F8E4M3FN => f(4, 3, 7, Top::OneNan, false),
        DType::F8E4M3B11FNUZ => f(4, 3, 11, Top::Numbers, true),
        DType::F8E4M3FNUZ => f(4, 3, 8, Top::Numbers, true),
        DType::F8E5M2FNUZ => f(5, 2, 16, Top::Numbers, true),
        DType::F6E2M3FN => f(2, 3, 1, Top::Numbers, false),
        DType::F6E3M2FN => f(3, 2, 3, Top::Numbers, false),
        DType::F4E2M1FN => f(2, 1, 1, Top::Numbers, false),
        _ => None,
    }
}

/// Returns the value of a real number, and its index among all numbers of the type, for counting units in the last place.
fn number(dtype: DType, bytes: &[u8]) -> (f64, i128) {
    let mut all = [0u8; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(all);
    if dtype == DType::F8E8M0FNU {
        let value = if bits == 255 { f64::NAN } else { 2f64.powi(bits as i32 - 127) };
        return (value, i128::from(bits));
    }
    let Some(f) = format(dtype) else {
        let unused = 64 - 8 * bytes.len() as u32;
        let value = if dtype.compute().is_signed_integer() {
            i128::from((bits << unused) as i64 >> unused)
        } else {
            i128::from(bits)
        };
        return (value as f64, value);
    };
    let magnitude = bits & ((1 << (f.exponent + f.mantissa)) - 1);
    let negative = bits >> (f.exponent + f.mantissa) & 1 == 1;
    let place = if negative { -i128::from(magnitude) } else { i128::from(magnitude) };
    let exponent = magnitude >> f.mantissa;
    let mantissa = magnitude & ((1 << f.mantissa) - 1);
    let top = exponent == (1 << f.exponent) - 1;
    let nan = match f.top {
        Top::Ieee => top && mantissa != 0,
        Top::OneNan => top && mantissa == (1 << f.mantissa) - 1,
        Top::Numbers => f.unsigned_zero && negative && magnitude == 0,
    };
    let value = if nan {
        f64::NAN
    } else if top && matches!(f.top, Top::Ieee) {
        f64::INFINITY
    } else if exponent == 0 {
        mantissa as f64 * 2f64.powi(1 - f.bias - f.mantissa as i32)
    } else {
        (mantissa + (1 << f.mantissa)) as f64 * 2f64.powi(exponent as i32 - f.bias - f.mantissa as i32)
    };
    (if negative { -value } else { value }, place)
}

/// Returns a message about the first element that is out of tolerance; `None` if there is none.
pub(crate) fn mismatch(dtype: DType, actual: &[u8], expected: &[u8], tol: &Tolerance) -> Option<String> {
    if actual.len() != expected.len() {
        return Some(format!("{} bytes instead of {}", actual.len(), expected.len()));
    }
    let part = match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    };
    let elements = actual.chunks_exact(dtype.size()).zip(expected.chunks_exact(dtype.size()));
    let mut wrong = 0usize;
    let mut first = None;
    for (i, (a, e)) in elements.enumerate() {
        let expected: Vec<_> = e.chunks_exact(part.size()).map(|b| number(part, b)).collect();
        let magnitude =
            if expected.len() == 2 { expected[0].0.hypot(expected[1].0) } else { expected[0].0.abs() };
        let parts = a.chunks_exact(part.size()).map(|b| number(part, b)).zip(&expected);
        if parts.into_iter().all(|(a, e)| passes(a, *e, magnitude, tol)) {
            continue;
        }
        wrong += 1;
        let show = |b: &[u8]| {
            let numbers: Vec<_> =
                b.chunks_exact(part.size()).map(|b| number(part, b).0.to_string()).collect();
            numbers.join("+i*")
        };
        first.get_or_insert_with(|| format!("element {i} is {}, should be {}", show(a), show(e)));
    }
    let first = first?;
    Some(format!("{first} ({wrong} of {} wrong)", actual.len() / dtype.size()))
}

fn passes((a, at): (f64, i128), (e, should): (f64, i128), magnitude: f64, tol: &Tolerance) -> bool {
    if a == e && (a != 0.0 || at == should || !tol.exact) || a.is_nan() && e.is_nan() || at == should {
        return true;
    }
    if a == 0.0 && e == 0.0 {
        return true;
    }
    if tol.exact || a.is_nan() || e.is_nan() || a.is_infinite() || e.is_infinite() {
        return false;
    }
    tol.ulp.is_some_and(|ulp| at.abs_diff(should) <= u128::from(ulp))
        || (a - e).abs() <= tol.atol + tol.rtol * magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floats_decode() {
        assert_eq!(number(DType::F8E4M3FN, &[0x7e]).0, 448.0);
        assert!(number(DType::F8E4M3FN, &[0x7f]).0.is_nan());
        assert_eq!(number(DType::F8E5M2, &[0x3c]).0, 1.0);
        assert!(number(DType::F8E4M3FNUZ, &[0x80]).0.is_nan());
        assert_eq!(number(DType::F4E2M1FN, &[0x7]).0, 6.0);
        assert_eq!(number(DType::BF16, &[0x80, 0xbf]).0, -1.0);
    }
}
