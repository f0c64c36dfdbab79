//! StableHLO's enumerations, defined in one table.

use std::fmt;

macro_rules! enums {
    ($($(#[$doc:meta])* $name:ident = $mlir:literal { $($(#[$case_doc:meta])* $case:ident = $text:literal $code:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            #[non_exhaustive]
            pub enum $name {
                $($(#[$case_doc])* $case,)*
            }

            impl $name {
                /// Every case, in the order of their codes.
                pub const ALL: &'static [$name] = &[$($name::$case),*];

                /// The MLIR name of the enumeration's attribute, without the dialect.
                pub const MLIR_NAME: &'static str = $mlir;

                /// Returns the spelling of the case in StableHLO programs.
                pub fn name(self) -> &'static str {
                    match self { $($name::$case => $text,)* }
                }

                /// Returns the case with this spelling; `None` if there is none.
                pub fn from_name(name: &str) -> Option<Self> {
                    match name { $($text => Some($name::$case),)* _ => None }
                }

                /// Returns the number of the case in VHLO and StableHLO bytecode.
                pub fn code(self) -> u64 {
                    match self { $($name::$case => $code,)* }
                }

                /// Returns the case with this number; `None` if there is none.
                pub fn from_code(code: u64) -> Option<Self> {
                    match code { $($code => Some($name::$case),)* _ => None }
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(self.name())
                }
            }
        )*

        /// A case of any of StableHLO's enumerations, as it occurs in an [`Attribute`](super::Attribute).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum EnumValue {
            $(
                #[doc = concat!("A [`", stringify!($name), "`].")]
                $name($name),
            )*
        }

        $(
            impl From<$name> for EnumValue {
                fn from(value: $name) -> Self {
                    EnumValue::$name(value)
                }
            }

            impl TryFrom<EnumValue> for $name {
                type Error = EnumValue;

                fn try_from(value: EnumValue) -> Result<Self, EnumValue> {
                    match value {
                        EnumValue::$name(value) => Ok(value),
                        other => Err(other),
                    }
                }
            }
        )*

        impl EnumValue {
            /// Returns the MLIR name of the enumeration, and the spelling of the case.
            pub fn names(self) -> (&'static str, &'static str) {
                match self { $(EnumValue::$name(value) => ($name::MLIR_NAME, value.name()),)* }
            }

            /// Returns the number of the case in VHLO and StableHLO bytecode.
            pub(crate) fn code(self) -> u64 {
                match self { $(EnumValue::$name(value) => value.code(),)* }
            }

            /// Returns the case with this number of the enumeration with this MLIR name.
            pub(crate) fn from_code(name: &str, code: u64) -> Option<EnumValue> {
                match name { $($mlir => $name::from_code(code).map(Into::into),)* _ => None }
            }
        }
    };
}

enums! {
    /// The comparison that `compare` performs.
    ComparisonDirection = "comparison_direction" {
        /// Equal.
        Eq = "EQ" 0,
        /// Not equal.
        Ne = "NE" 1,
        /// Greater or equal.
        Ge = "GE" 2,
        /// Greater.
        Gt = "GT" 3,
        /// Less or equal.
        Le = "LE" 4,
        /// Less.
        Lt = "LT" 5,
    }
    /// The order that `compare` uses.
    ComparisonType = "comparison_type" {
        /// Not given: the default order of the element type.
        NoType = "NOTYPE" 0,
        /// IEEE 754: NaN compares unequal to everything.
        Float = "FLOAT" 1,
        /// IEEE 754 total order: `-NaN < -Inf < ... < -0 < +0 < ... < Inf < NaN`.
        TotalOrder = "TOTALORDER" 2,
        /// Signed integers.
        Signed = "SIGNED" 3,
        /// Unsigned integers and booleans.
        Unsigned = "UNSIGNED" 4,
    }
    /// The calling convention of a `custom_call`.
    CustomCallApiVersion = "custom_call_api_version" {
        /// Not specified.
        Unspecified = "API_VERSION_UNSPECIFIED" 0,
        /// Version 1: the target receives buffers only.
        Original = "API_VERSION_ORIGINAL" 1,
        /// Version 2: the target returns a status.
        StatusReturning = "API_VERSION_STATUS_RETURNING" 2,
        /// Version 3: the target returns a status, with the same signature on every platform.
        StatusReturningUnified = "API_VERSION_STATUS_RETURNING_UNIFIED" 3,
        /// Version 4: XLA's typed foreign function interface.
        TypedFfi = "API_VERSION_TYPED_FFI" 4,
    }
    /// The kind of a fast Fourier transform.
    FftType = "fft_type" {
        /// Forward, complex to complex.
        Fft = "FFT" 0,
        /// Inverse, complex to complex.
        Ifft = "IFFT" 1,
        /// Forward, real to complex.
        Rfft = "RFFT" 2,
        /// Inverse, complex to real.
        Irfft = "IRFFT" 3,
    }
    /// The precision that a dot product or convolution uses for an operand.
    Precision = "precision" {
        /// The fastest computation.
        Default = "DEFAULT" 0,
        /// A compromise between speed and precision.
        High = "HIGH" 1,
        /// The full precision of the element type.
        Highest = "HIGHEST" 2,
    }
    /// The accuracy that an elementwise function requests.
    ResultAccuracyMode = "result_accuracy_mode" {
        /// The implementation's choice.
        Default = "DEFAULT" 0,
        /// The best that the implementation has.
        Highest = "HIGHEST" 1,
        /// The tolerances of [`ResultAccuracy`](super::ResultAccuracy).
        Tolerance = "TOLERANCE" 2,
    }
    /// The algorithm of `rng_bit_generator`.
    RngAlgorithm = "rng_algorithm" {
        /// The implementation's choice.
        Default = "DEFAULT" 0,
        /// Threefry 2x32.
        ThreeFry = "THREE_FRY" 1,
        /// Philox 4x32.
        Philox = "PHILOX" 2,
    }
    /// The distribution of `rng`.
    RngDistribution = "rng_distribution" {
        /// Uniform between `a` (inclusive) and `b` (exclusive).
        Uniform = "UNIFORM" 1,
        /// Normal with mean `a` and standard deviation `b`.
        Normal = "NORMAL" 2,
    }
    /// The operation that `triangular_solve` applies to its matrix `a` before solving.
    TransposeKind = "transpose" {
        /// Invalid. The verifier rejects it.
        Invalid = "TRANSPOSE_INVALID" 0,
        /// No operation.
        NoTranspose = "NO_TRANSPOSE" 1,
        /// Transposition.
        Transpose = "TRANSPOSE" 2,
        /// Conjugate transposition.
        Adjoint = "ADJOINT" 3,
    }
}
