//! The primitives of MLIR bytecode, for writing. [`Cursor`](super::cursor::Cursor) reads them.

/// Bytes that are being written.
#[derive(Clone, Default)]
pub(super) struct Output(Vec<u8>);

impl Output {
    /// Creates the output of an attribute or type, which begins with its code.
    pub(super) fn with_code(code: u64) -> Self {
        let mut output = Output::default();
        output.varint(code);
        output
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn append(&mut self, other: &Output) {
        self.bytes(&other.0);
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Writes a variable-width integer in as few bytes as possible.
    pub(super) fn varint(&mut self, value: u64) {
        let bits = 64 - value.leading_zeros().min(63);
        let further = (bits - 1) / 7;
        if further >= 8 {
            self.byte(0);
            self.bytes(&value.to_le_bytes());
            return;
        }
        let word = value << (further + 1) | 1 << further;
        self.bytes(&word.to_le_bytes()[..=further as usize]);
    }

    /// Writes a variable-width integer whose lowest bit is a flag.
    pub(super) fn varint_with_flag(&mut self, value: u64, flag: bool) {
        self.varint(value << 1 | u64::from(flag));
    }

    /// Writes the number of elements of a list.
    pub(super) fn count(&mut self, count: usize) {
        self.varint(count as u64);
    }

    /// Writes a zigzag-encoded variable-width integer.
    pub(super) fn signed(&mut self, value: i64) {
        self.varint((value as u64) << 1 ^ (value >> 63) as u64);
    }

    /// Writes a list of signed integers.
    pub(super) fn signed_list(&mut self, values: &[i64]) {
        self.count(values.len());
        values.iter().for_each(|&value| self.signed(value));
    }

    /// Writes a short list of small numbers completely.
    pub(super) fn sparse_array(&mut self, values: &[i64]) {
        self.varint_with_flag(values.len() as u64, false);
        values.iter().for_each(|&value| self.varint(u64::from(value as u32)));
    }

    /// Writes an integer of known width of at most 64 bits. The bits above the width are zero.
    pub(super) fn integer(&mut self, bits: u32, value: u64) {
        let raw = value & (u64::MAX >> (64 - bits.clamp(1, 64)));
        if bits <= 8 { self.byte(raw as u8) } else { self.signed(raw as i64) }
    }

    pub(super) fn double(&mut self, value: f64) {
        self.integer(64, value.to_bits());
    }

    /// Writes bytes after their number.
    pub(super) fn blob(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes(bytes);
    }

    /// Writes a section without alignment.
    pub(super) fn section(&mut self, id: u8, contents: &Output) {
        self.byte(id);
        self.blob(&contents.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::cursor::Cursor;
    use super::*;

    #[test]
    fn the_cursor_reads_what_is_written() {
        let values =
            [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), 1 << 55, 1 << 56, 1 << 63, u64::MAX];
        let mut output = Output::default();
        for value in values {
            output.varint(value);
            output.signed(value as i64);
            output.varint_with_flag(value >> 1, value & 1 == 1);
        }
        output.sparse_array(&[1, 0, 3]);
        output.signed_list(&[-1, i64::MIN]);
        output.integer(8, -1i64 as u64);
        output.integer(32, -1i64 as u64);
        output.double(1.5);
        let bytes = output.into_bytes();
        let mut cursor = Cursor::new(&bytes, 0..bytes.len());
        for value in values {
            assert_eq!(cursor.varint().unwrap(), value);
            assert_eq!(cursor.signed().unwrap(), value as i64);
            assert_eq!(cursor.varint_with_flag().unwrap(), (value >> 1, value & 1 == 1));
        }
        assert_eq!(cursor.sparse_array(3).unwrap(), [1, 0, 3]);
        assert_eq!(cursor.signed_list().unwrap(), [-1, i64::MIN]);
        assert_eq!(cursor.integer(8).unwrap(), 0xff);
        assert_eq!(cursor.integer(32).unwrap(), 0xffff_ffff);
        assert_eq!(f64::from_bits(cursor.integer(64).unwrap()), 1.5);
        cursor.finish("the test").unwrap();
    }
}
