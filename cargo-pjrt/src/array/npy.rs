//! NumPy's file format `.npy`, for the element types of PJRT.

use std::path::Path;

use super::Array;
use pjrt_testing::host::ElementType;

/// NumPy's type descriptions and the matching element types. Types that NumPy lacks are stored as raw bytes,
/// as `ml_dtypes` stores them.
const TYPES: &[(&str, &str)] = &[
    ("|b1", "i1"),
    ("|i1", "i8"),
    ("<i2", "i16"),
    ("<i4", "i32"),
    ("<i8", "i64"),
    ("|u1", "ui8"),
    ("<u2", "ui16"),
    ("<u4", "ui32"),
    ("<u8", "ui64"),
    ("<f2", "f16"),
    ("<f4", "f32"),
    ("<f8", "f64"),
    ("<c8", "complex<f32>"),
    ("<c16", "complex<f64>"),
    ("<V2", "bf16"),
];

/// Reads a file. Raw bytes are read as elements of type `expected` if the sizes match.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or if its format is not supported, such as column-major
/// order.
pub fn read(path: &Path, expected: ElementType) -> Result<Array, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    parse(&bytes, expected)
}

fn parse(file: &[u8], expected: ElementType) -> Result<Array, String> {
    let rest = file.strip_prefix(b"\x93NUMPY").ok_or("not a .npy file: the magic bytes are missing")?;
    let (header, data) = match rest {
        [1, _, a, b, rest @ ..] => rest.split_at_checked(usize::from(u16::from_le_bytes([*a, *b]))),
        [2 | 3, _, a, b, c, d, rest @ ..] => {
            rest.split_at_checked(u32::from_le_bytes([*a, *b, *c, *d]) as usize)
        }
        _ => None,
    }
    .ok_or("its header is truncated or has an unknown version")?;
    let header = String::from_utf8_lossy(header);
    let field = |name: &str| {
        let start = header.find(&format!("'{name}':"))? + name.len() + 3;
        Some(header[start..].trim_start())
    };
    let descr = field("descr").and_then(|text| text.strip_prefix('\'')?.split('\'').next());
    let descr = descr.ok_or("its header has no simple type")?;
    let known = TYPES
        .iter()
        .find(|(numpy, _)| *numpy == descr)
        .and_then(|(_, name)| ElementType::by_stablehlo_name(name));
    let size_of_raw = descr.strip_prefix("|V").or(descr.strip_prefix("<V"));
    let raw = size_of_raw.filter(|size| size.parse() == Ok(expected.byte_size())).map(|_| expected);
    let element_type = raw.or(known).ok_or_else(|| format!("its type {descr} has no equivalent in PJRT"))?;
    if field("fortran_order").is_some_and(|text| text.starts_with("True")) {
        return Err(
            "it is in column-major order; convert it with numpy.ascontiguousarray before saving".to_owned()
        );
    }
    let shape = field("shape").and_then(|text| text.strip_prefix('(')?.split(')').next());
    let shape = shape.ok_or("its header has no shape")?;
    let dims: Result<Vec<i64>, _> =
        shape.split(',').map(str::trim).filter(|dim| !dim.is_empty()).map(str::parse).collect();
    let dims = dims.map_err(|_| format!("its shape ({shape}) is not a list of integers"))?;
    let size = dims.iter().try_fold(element_type.byte_size(), |size, dim| {
        usize::try_from(*dim).ok().and_then(|dim| size.checked_mul(dim))
    });
    if size != Some(data.len()) {
        return Err(format!(
            "it has {} bytes of data, which is the wrong size for {element_type}{dims:?}",
            data.len()
        ));
    }
    Ok(Array { element_type, dims, bytes: data.to_vec() })
}

/// Writes a file. Elements of types that NumPy lacks are written as raw bytes.
///
/// # Errors
///
/// Returns the system's error if the file cannot be written.
pub fn write(path: &Path, array: &Array) -> Result<(), String> {
    std::fs::write(path, format(array)).map_err(|error| format!("{}: {error}", path.display()))
}

fn format(array: &Array) -> Vec<u8> {
    let name = array.element_type.stablehlo_name();
    let known = TYPES.iter().find(|(_, ours)| *ours == name).map(|(numpy, _)| (*numpy).to_owned());
    let descr = known.unwrap_or_else(|| format!("|V{}", array.element_type.byte_size()));
    let dims: String = array.dims.iter().map(|dim| format!("{dim}, ")).collect();
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    // The data begins at a multiple of 64 bytes. The header ends with a line feed.
    const BEFORE: usize = 10;
    header.extend(std::iter::repeat_n(' ', (64 - (BEFORE + header.len() + 1) % 64) % 64));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(&array.bytes);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_read_as_they_were_written() {
        for (name, dims, size) in
            [("f32", vec![2, 3], 24), ("bf16", vec![4], 8), ("i1", vec![], 1), ("i4", vec![3], 3)]
        {
            let element_type = ElementType::by_stablehlo_name(name).unwrap();
            let array = Array { element_type, dims, bytes: (0..size).collect() };
            let file = format(&array);
            assert_eq!(file.len() % 64, usize::from(size) % 64, "{name}");
            assert_eq!(parse(&file, element_type), Ok(array));
        }
    }

    #[test]
    fn files_of_other_forms_are_refused() {
        let array = Array { element_type: ElementType::F32, dims: vec![2], bytes: vec![0; 8] };
        let file = format(&array);
        assert!(parse(&file[..20], ElementType::F32).is_err());
        assert!(parse(&file[..file.len() - 1], ElementType::F32).unwrap_err().contains("7 bytes"));
        let column_major = String::from_utf8_lossy(&file[10..]).replace("False", "True ");
        let mut other = file[..10].to_vec();
        other.extend(column_major.as_bytes());
        assert!(parse(&other, ElementType::F32).unwrap_err().contains("column-major"));
    }
}
