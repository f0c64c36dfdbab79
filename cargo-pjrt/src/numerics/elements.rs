//! The element types of the suites.

/// The element types, and the titles of their columns in reports.
pub(super) const COLUMNS: [(&str, &str); 15] = [
    ("f32", "f32"),
    ("f64", "f64"),
    ("bf16", "bf16"),
    ("f16", "f16"),
    ("i8", "i8"),
    ("i16", "i16"),
    ("i32", "i32"),
    ("i64", "i64"),
    ("ui8", "ui8"),
    ("ui16", "ui16"),
    ("ui32", "ui32"),
    ("ui64", "ui64"),
    ("i1", "i1"),
    ("complex<f32>", "c64"),
    ("complex<f64>", "c128"),
];
