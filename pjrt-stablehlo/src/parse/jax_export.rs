//! Serialized exports of JAX, which contain a program.

use crate::Bytes;
use crate::bytecode::MAGIC;

/// The minimum size of a FlatBuffer's table of fields: the sizes of the two tables.
const FIELDS_START: usize = 4;

/// Returns the program in the result of `jax.export.Exported.serialize`; `None` if the bytes are something else.
///
/// The result is a FlatBuffer: the root table has a field with the program as MLIR bytecode, among the types of the arguments,
/// the shardings and so on. The number of the field is not the same in all releases of JAX, so the field is recognized by its
/// contents. [`parse`](crate::parse()) reads such exports, too; this function is for programs that pass the program on.
///
/// ```
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/export_0.10.2.jax");
/// let export = std::fs::read(path).unwrap();
/// let program = pjrt_stablehlo::program_of_jax_export(&export.into()).unwrap();
/// assert!(program.starts_with(b"ML\xefR"));
/// ```
pub fn program_of_jax_export(bytes: &Bytes) -> Option<Bytes> {
    let root = u32_at(bytes, 0)?;
    let table_of_fields =
        usize::try_from(i64::try_from(root).ok()? - i64::from(i32_at(bytes, root)?)).ok()?;
    let size = usize::from(u16_at(bytes, table_of_fields)?);
    if size < FIELDS_START || size % 2 != 0 {
        return None;
    }
    let mut fields = (FIELDS_START..size).step_by(2);
    fields.find_map(|at| {
        let field = usize::from(u16_at(bytes, table_of_fields + at)?);
        let vector = root.checked_add(field).filter(|_| field != 0)?;
        let vector = vector.checked_add(u32_at(bytes, vector)?)?;
        let start = vector.checked_add(4)?;
        let contents = bytes.slice(start..start.checked_add(u32_at(bytes, vector)?)?)?;
        contents.starts_with(MAGIC).then_some(contents)
    })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    array(bytes, at).map(i32::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    array(bytes, at).map(|bytes| u32::from_le_bytes(bytes) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPORTS: [&[u8]; 2] = [
        include_bytes!("../../tests/data/export_0.4.30.jax"),
        include_bytes!("../../tests/data/export_0.10.2.jax"),
    ];

    #[test]
    fn exports_of_jax_are_read_as_their_programs() {
        for export in EXPORTS {
            let module = crate::parse(export).unwrap();
            assert_eq!(module.name.as_deref(), Some("jit_add"));
            assert_eq!(module.op_counts()["stablehlo.add"], 1);
            assert!(program_of_jax_export(&Bytes::from(export)).unwrap().starts_with(MAGIC));
        }
    }

    #[test]
    fn damaged_exports_are_errors() {
        for export in EXPORTS {
            for len in 0..export.len() {
                // A shorter export may still contain the whole program.
                let _ = crate::parse(&export[..len]);
            }
            for at in 0..export.len() {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut damaged = export.to_vec();
                    damaged[at] = value;
                    let _ = crate::parse(damaged);
                }
            }
            assert!(crate::parse(&export[..40]).is_err());
        }
    }

    #[test]
    fn other_bytes_are_not_exports() {
        for bytes in
            [&b""[..], b"\0\0\0\0", b"\x04\0\0\0\xff\xff\xff\x7f", b"module {}", &[0xff; 64], &[0; 64]]
        {
            assert!(program_of_jax_export(&Bytes::from(bytes)).is_none());
        }
    }
}
