//! Sort keys: unsigned integers that have the same order as the elements.

use crate::DType;
use crate::isa::{Isa, multiversion};

/// The order of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyOrder {
    /// By value: -0 equals 0, and all NaNs are equal and the greatest. JAX's comparators compute this order
    /// by replacing -0 and NaN before a TOTALORDER comparison. The only NaN of the FNUZ types is the least,
    /// as in [`Self::Total`].
    Numeric,
    /// IEEE totalOrder: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN (StableHLO's TOTALORDER). The only NaN
    /// of the FNUZ types has its sign bit set.
    Total,
}

/// The part of an element that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyPart {
    /// The whole element, for types that are not complex.
    Whole,
    /// The real part of a complex number.
    Real,
    /// The imaginary part of a complex number.
    Imaginary,
}

/// One criterion of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// The index of the operand.
    pub operand: usize,
    /// The part of the operand's elements.
    pub part: KeyPart,
    /// The order of these parts. Integers and booleans have only one order.
    pub order: KeyOrder,
    /// `true` for descending order. The sort is stable nevertheless.
    pub descending: bool,
}

impl SortKey {
    /// Creates a key for ascending order of the whole elements of `operand`.
    pub fn ascending(operand: usize, order: KeyOrder) -> Self {
        Self { operand, part: KeyPart::Whole, order, descending: false }
    }
}

/// The conversion of bits to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Unsigned,
    Signed,
    /// Sign and magnitude. `sign` is the sign bit; [`Nan`] defines the NaNs.
    Float {
        sign: u64,
        nan: Nan,
    },
}

/// The bit patterns of a float type that are NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nan {
    /// None.
    Never,
    /// The patterns with a greater magnitude than this.
    Above(u64),
    /// This pattern alone.
    Only(u64),
}

/// Turns the bits of one type's elements into keys and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyCodec {
    encoding: Encoding,
    order: KeyOrder,
    descending: bool,
    /// The size of the compared part, in bytes.
    pub(super) size: usize,
    /// The offset of the compared part in the element.
    pub(super) offset: usize,
    mask: u64,
}

impl KeyCodec {
    /// Creates the codec of a key for elements of `dtype`.
    ///
    /// # Panics
    /// Panics if the type does not have the part.
    pub(super) fn new(dtype: DType, key: &SortKey) -> Self {
        let (part, offset) = match (dtype, key.part) {
            (DType::C64, KeyPart::Real) => (DType::F32, 0),
            (DType::C64, KeyPart::Imaginary) => (DType::F32, 4),
            (DType::C128, KeyPart::Real) => (DType::F64, 0),
            (DType::C128, KeyPart::Imaginary) => (DType::F64, 8),
            (other, KeyPart::Whole) if !other.is_complex() => (other, 0),
            (other, part) => panic!("sort: elements of {other:?} do not have the part {part:?}"),
        };
        let size = part.size();
        let mask = u64::MAX >> (64 - 8 * size);
        let top = 1u64 << (8 * size - 1);
        use DType as D;
        let encoding = match part {
            D::F64 => Encoding::Float { sign: top, nan: Nan::Above(0x7ff0_0000_0000_0000) },
            D::F32 => Encoding::Float { sign: top, nan: Nan::Above(0x7f80_0000) },
            D::F16 => Encoding::Float { sign: top, nan: Nan::Above(0x7c00) },
            D::BF16 => Encoding::Float { sign: top, nan: Nan::Above(0x7f80) },
            D::F8E5M2 => Encoding::Float { sign: top, nan: Nan::Above(0x7c) },
            D::F8E4M3 => Encoding::Float { sign: top, nan: Nan::Above(0x78) },
            D::F8E3M4 => Encoding::Float { sign: top, nan: Nan::Above(0x70) },
            D::F8E4M3FN => Encoding::Float { sign: top, nan: Nan::Above(0x7e) },
            D::F8E4M3B11FNUZ | D::F8E4M3FNUZ | D::F8E5M2FNUZ => {
                Encoding::Float { sign: top, nan: Nan::Only(0x80) }
            }
            D::F6E2M3FN | D::F6E3M2FN => Encoding::Float { sign: 0x20, nan: Nan::Never },
            D::F4E2M1FN => Encoding::Float { sign: 0x08, nan: Nan::Never },
            // The largest pattern is its NaN, and there is no sign.
            D::F8E8M0FNU => Encoding::Unsigned,
            other if other.compute().is_signed_integer() => Encoding::Signed,
            _ => Encoding::Unsigned,
        };
        Self { encoding, order: key.order, descending: key.descending, size, offset, mask }
    }

    /// Returns the key of an element whose compared part has these bits. Keys have as many bits as the part.
    #[inline(always)]
    pub(super) fn encode(&self, bits: u64) -> u64 {
        let top = (self.mask >> 1) + 1;
        let key = match self.encoding {
            Encoding::Unsigned => bits,
            Encoding::Signed => bits ^ top,
            Encoding::Float { sign, nan } => {
                let magnitude = bits & (sign - 1);
                let is_nan = match nan {
                    Nan::Never => false,
                    Nan::Above(limit) => magnitude > limit,
                    Nan::Only(pattern) => bits & self.mask == pattern,
                };
                let negative = bits & sign != 0;
                match (nan, self.order) {
                    // No bit pattern represents -0 in these types, so its key is free, and NaN can be placed
                    // at the start.
                    (Nan::Only(_), _) if is_nan => 0,
                    (Nan::Only(_), _) if negative => sign - magnitude,
                    (_, KeyOrder::Numeric) if is_nan => self.mask,
                    (_, KeyOrder::Numeric) if magnitude == 0 => sign,
                    _ if negative => sign - 1 - magnitude,
                    _ => sign + magnitude,
                }
            }
        };
        key ^ self.flip()
    }

    /// Returns the bits of a key, if [`encode_narrow`] or [`encode_wide`] reported that keys determine them.
    #[inline(always)]
    pub(super) fn decode(&self, key: u64) -> u64 {
        let key = key ^ self.flip();
        match self.encoding {
            Encoding::Unsigned => key,
            Encoding::Signed => key ^ ((self.mask >> 1) + 1),
            Encoding::Float { nan: Nan::Only(pattern), .. } if key == 0 => pattern,
            Encoding::Float { sign, .. } if key >= sign => key - sign,
            Encoding::Float { sign, nan: Nan::Only(_) } => sign | (sign - key),
            Encoding::Float { sign, .. } => sign | (sign - 1 - key),
        }
    }

    /// Returns `true` for keys that elements with different bits share.
    pub(super) fn is_shared(&self, key: u64) -> bool {
        match self.encoding {
            Encoding::Float { nan: Nan::Only(_), .. } => false,
            Encoding::Float { sign, .. } if self.order == KeyOrder::Numeric => {
                let key = key ^ self.flip();
                key == sign || key == self.mask
            }
            _ => false,
        }
    }

    /// Returns the value with which the exclusive or of descending keys is computed.
    #[inline(always)]
    fn flip(&self) -> u64 {
        if self.descending { self.mask } else { 0 }
    }

    /// Returns `true` if the compared part fits the keys of [`encode_narrow`].
    pub(super) fn is_narrow(&self) -> bool {
        self.size <= 4
    }
}

/// The body of [`encode_narrow`] and [`encode_wide`]: one loop for each common encoding.
macro_rules! encoder {
    ($body:ident, $word:ty, $($t:ty),*) => {
        #[inline(always)]
        unsafe fn $body<I: Isa>(codec: &KeyCodec, from: *const u8, step: usize, out: *mut $word, count: usize) -> bool {
            let flip = codec.flip() as $word;
            $(if codec.size == size_of::<$t>() {
                macro_rules! each {
                    ($key:expr, $lost:expr) => {{
                        let (key, is_lost) = ($key, $lost);
                        let mut lost = false;
                        // Two loops, so that contiguous elements are loaded as vectors.
                        if step == size_of::<$t>() {
                            for i in 0..count {
                                // SAFETY: guaranteed by the caller.
                                let bits = <$word>::from(unsafe { from.cast::<$t>().add(i).read_unaligned() });
                                lost |= is_lost(bits);
                                // SAFETY: guaranteed by the caller.
                                unsafe { out.add(i).write(key(bits) ^ flip) };
                            }
                        } else {
                            for i in 0..count {
                                // SAFETY: guaranteed by the caller.
                                let bits = <$word>::from(unsafe { from.add(i * step).cast::<$t>().read_unaligned() });
                                lost |= is_lost(bits);
                                // SAFETY: guaranteed by the caller.
                                unsafe { out.add(i).write(key(bits) ^ flip) };
                            }
                        }
                        lost
                    }};
                }
                let top = ((codec.mask >> 1) + 1) as $word;
                return match (codec.encoding, codec.order) {
                    (Encoding::Unsigned, _) => each!(|bits: $word| bits, |_: $word| false),
                    (Encoding::Signed, _) => each!(|bits: $word| bits ^ top, |_: $word| false),
                    (Encoding::Float { nan: Nan::Above(_), .. }, KeyOrder::Total) => {
                        let all = codec.mask as $word;
                        each!(|bits: $word| if bits & top != 0 { bits ^ all } else { bits ^ top }, |_: $word| false)
                    }
                    (Encoding::Float { nan: Nan::Above(limit), .. }, KeyOrder::Numeric) => {
                        let (all, limit) = (codec.mask as $word, limit as $word);
                        each!(
                            |bits: $word| {
                                let key = if bits & top != 0 { bits ^ all } else { bits ^ top };
                                let key = if bits == top { top } else { key };
                                if bits & !top > limit { all } else { key }
                            },
                            |bits: $word| (bits == top) | (bits & !top > limit)
                        )
                    }
                    _ => each!(|bits: $word| (codec.encode(bits.into()) as $word) ^ flip, |_: $word| true),
                };
            })*
            unreachable!("a key of {} bytes", codec.size)
        }
    };
}
encoder!(encode_narrow_body, u32, u8, u16, u32);
encoder!(encode_wide_body, u64, u64);

multiversion! {
    /// Writes the keys of `count` elements whose compared parts are `step` bytes apart, starting at `from`,
    /// for parts of up to 4 bytes. Returns `true` if [`KeyCodec::decode`] cannot restore some element.
    ///
    /// # Safety
    /// All these parts must be readable (alignment is not required), and `out` must be writable for `count`
    /// keys.
    pub(super) unsafe fn encode_narrow(codec: &KeyCodec, from: *const u8, step: usize, out: *mut u32, count: usize) -> bool
        = encode_narrow_body
}

multiversion! {
    /// Performs [`encode_narrow`] for parts of 8 bytes.
    ///
    /// # Safety
    /// See [`encode_narrow`].
    pub(super) unsafe fn encode_wide(codec: &KeyCodec, from: *const u8, step: usize, out: *mut u64, count: usize) -> bool
        = encode_wide_body
}

/// Returns the bits of the `size` bytes at the start of `bytes`, little-endian.
#[inline(always)]
pub(super) fn read_bits(bytes: &[u8], size: usize) -> u64 {
    let mut word = [0u8; 8];
    word[..size].copy_from_slice(&bytes[..size]);
    u64::from_le_bytes(word)
}
