//! Reads the fields of messages.

/// A field of a message: its number and its value.
pub(super) enum Field<'a> {
    Number(u64, u64),
    Bytes(u64, &'a [u8]),
    /// A number of fixed width, which no decoder of this folder needs.
    Fixed,
}

/// Reads an integer of variable length from the start of the bytes.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads a field from the start of the bytes. Returns `None` if there is none.
pub(super) fn field<'a>(bytes: &mut &'a [u8]) -> Option<Field<'a>> {
    let key = varint(bytes)?;
    let mut taken = |size: usize| {
        let (value, rest) = bytes.split_at_checked(size)?;
        *bytes = rest;
        Some(value)
    };
    match key & 7 {
        0 => Some(Field::Number(key >> 3, varint(bytes)?)),
        1 => taken(8).map(|_| Field::Fixed),
        5 => taken(4).map(|_| Field::Fixed),
        2 => {
            let size = usize::try_from(varint(bytes)?).ok()?;
            let (value, rest) = bytes.split_at_checked(size)?;
            *bytes = rest;
            Some(Field::Bytes(key >> 3, value))
        }
        _ => None,
    }
}
