//! A position in the input, and the primitives of MLIR bytecode.

use std::ops::Range;

use crate::{Error, ErrorKind};

/// Reads primitives from a range of the input. Offsets are relative to the start of the whole input.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    input: &'a [u8],
    position: usize,
    end: usize,
}

/// Returns an error about malformed input at a byte.
pub(super) fn malformed(offset: usize, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Malformed, message).at_offset(offset)
}

impl<'a> Cursor<'a> {
    /// Creates a cursor over `range` of the input.
    ///
    /// # Panics
    /// Panics if the range is not in bounds of the input. [`Cursor::take`] returns ranges that are.
    pub(super) fn new(input: &'a [u8], range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= input.len());
        Cursor { input, position: range.start, end: range.end }
    }

    /// Creates a cursor over another part of the same input.
    pub(super) fn new_like(other: &Cursor<'a>, range: Range<usize>) -> Self {
        Cursor::new(other.input, range)
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn remaining(&self) -> usize {
        self.end - self.position
    }

    pub(super) fn is_empty(&self) -> bool {
        self.position == self.end
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        malformed(self.position, message)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        if self.is_empty() {
            return Err(self.error("expected another byte, found the end of the section"));
        }
        let byte = self.input[self.position];
        self.position += 1;
        Ok(byte)
    }

    /// Skips `len` bytes, and returns their range in the input.
    pub(super) fn take(&mut self, len: u64) -> Result<Range<usize>, Error> {
        match usize::try_from(len) {
            Ok(len) if len <= self.remaining() => {
                let start = self.position;
                self.position += len;
                Ok(start..self.position)
            }
            _ => Err(self.error(format!("expected {len} bytes, found {} before the end", self.remaining()))),
        }
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &'a [u8] {
        &self.input[range]
    }

    /// Reads a variable-width integer. The number of trailing zeros of the first byte is the number of further bytes.
    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, Error> {
        match self.input[..self.end].get(self.position) {
            Some(&first) if first & 1 == 1 => {
                self.position += 1;
                Ok(u64::from(first >> 1))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Error> {
        let first = self.byte()?;
        let further = first.trailing_zeros().min(8) as usize;
        let range = self.take(further as u64)?;
        let mut word = [0; 8];
        word[..further].copy_from_slice(&self.input[range]);
        let rest = u64::from_le_bytes(word);
        if further == 8 {
            return Ok(rest);
        }
        Ok((rest << 8 | u64::from(first)) >> (further + 1) & (u64::MAX >> (64 - 7 * (further + 1))))
    }

    /// Reads a variable-width integer whose lowest bit is a flag.
    pub(super) fn varint_with_flag(&mut self) -> Result<(u64, bool), Error> {
        let value = self.varint()?;
        Ok((value >> 1, value & 1 == 1))
    }

    /// Reads a zigzag-encoded variable-width integer.
    pub(super) fn signed(&mut self) -> Result<i64, Error> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads the length of a list whose elements take at least one byte each.
    pub(super) fn count(&mut self) -> Result<usize, Error> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.remaining() => Ok(count),
            _ => Err(self.error(format!("expected {count} elements, found {} bytes", self.remaining()))),
        }
    }

    /// Reads a list of signed integers.
    pub(super) fn signed_list(&mut self) -> Result<Vec<i64>, Error> {
        let count = self.count()?;
        (0..count).map(|_| self.signed()).collect()
    }

    /// Reads a short list of small numbers, stored either completely or as nonzero elements with their indices.
    pub(super) fn sparse_array(&mut self, len: usize) -> Result<Vec<i64>, Error> {
        let (count, sparse) = self.varint_with_flag()?;
        if count > len as u64 || (!sparse && count != len as u64) {
            return Err(self.error(format!("expected {len} numbers, found {count}")));
        }
        let mut values = vec![0; len];
        let index_bits = if sparse && count > 0 { self.varint()? } else { 0 };
        for place in 0..count {
            let word = self.varint()?;
            let (index, value) = match sparse {
                false => (place, word),
                // An index of 64 bits or more is out of bounds of any list.
                true if index_bits >= 64 => (word, 0),
                true => (word & ((1 << index_bits) - 1), word >> index_bits),
            };
            let value =
                i32::try_from(value).map_err(|_| self.error(format!("expected 32 bits, found {value}")))?;
            match usize::try_from(index).ok().and_then(|index| values.get_mut(index)) {
                Some(place) => *place = i64::from(value),
                None => return Err(self.error(format!("expected an index below {len}, found {index}"))),
            }
        }
        Ok(values)
    }

    /// Reads bytes up to a null byte.
    pub(super) fn null_terminated(&mut self) -> Result<&'a [u8], Error> {
        let rest = &self.input[self.position..self.end];
        let Some(len) = rest.iter().position(|&byte| byte == 0) else {
            return Err(self.error("expected a null byte at the end of the text, found none"));
        };
        self.position += len + 1;
        Ok(&rest[..len])
    }

    /// Skips padding up to a multiple of `alignment` from the start of the input.
    pub(super) fn align(&mut self, alignment: u64) -> Result<(), Error> {
        const PADDING: u8 = 0xcb;
        if !alignment.is_power_of_two() {
            return Err(self.error(format!("expected a power of two as alignment, found {alignment}")));
        }
        while self.position as u64 & (alignment - 1) != 0 {
            let byte = self.byte()?;
            if byte != PADDING {
                return Err(malformed(self.position - 1, format!("expected padding, found {byte:#04x}")));
            }
        }
        Ok(())
    }

    /// Reads an integer of known width: a byte up to 8 bits, a zigzag varint up to 64 bits. Wider integers are not supported.
    pub(super) fn integer(&mut self, bits: u32) -> Result<u64, Error> {
        match bits {
            0..=8 => self.byte().map(u64::from),
            9..=64 => self.signed().map(|value| value as u64),
            _ => Err(self.error(format!("integers of {bits} bits are not supported"))),
        }
    }

    /// Returns an error unless all bytes have been read.
    pub(super) fn finish(&self, what: &str) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        Err(self.error(format!("expected the end of {what}, found {} more bytes", self.remaining())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(bytes: &[u8]) -> u64 {
        let mut cursor = Cursor::new(bytes, 0..bytes.len());
        let value = cursor.varint().unwrap();
        cursor.finish("the test").unwrap();
        value
    }

    #[test]
    fn sparse_arrays_are_dense_or_pairs_of_place_and_value() {
        let array = |bytes: &[u8], len| Cursor::new(bytes, 0..bytes.len()).sparse_array(len);
        let byte = |value: u8| value << 1 | 1;
        assert_eq!(array(&[byte(2 << 1), byte(1), byte(3)], 2).unwrap(), [1, 3]);
        // One nonzero element, with indices of 2 bits: the element 5 at index 2.
        assert_eq!(array(&[byte(1 << 1 | 1), byte(2), byte(5 << 2 | 2)], 3).unwrap(), [0, 0, 5]);
        assert_eq!(array(&[byte(1)], 2).unwrap(), [0, 0]);
        for wrong in [&[byte(3 << 1), byte(1), byte(1), byte(1)][..], &[byte(1 << 1 | 1), byte(2), byte(3)]] {
            assert!(array(wrong, 2).is_err());
        }
    }

    #[test]
    fn varints_of_every_length() {
        for further in 0..=8usize {
            let bits = if further == 8 { 64 } else { 7 * (further + 1) };
            for value in [0, 1, u64::MAX >> (64 - bits), 0x0123_4567_89ab_cdef & (u64::MAX >> (64 - bits))] {
                let mut bytes = Vec::new();
                if further == 8 {
                    bytes.push(0);
                    bytes.extend(value.to_le_bytes());
                } else {
                    let word = u128::from(value) << (further + 1) | 1 << further;
                    bytes.extend(&word.to_le_bytes()[..=further]);
                }
                assert_eq!(varint(&bytes), value, "{further} further bytes");
            }
        }
    }

    #[test]
    fn zigzag() {
        for (byte, value) in [(1u8, 0i64), (3, -1), (5, 1), (7, -2)] {
            assert_eq!(Cursor::new(&[byte], 0..1).signed().unwrap(), value);
        }
    }

    #[test]
    fn counts_are_checked_against_what_remains() {
        assert!(Cursor::new(&[0x09, 0, 0], 0..3).count().is_err());
        assert_eq!(Cursor::new(&[0x05, 0, 0], 0..3).count().unwrap(), 2);
    }
}
