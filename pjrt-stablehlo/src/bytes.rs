//! Shared, immutable bytes.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A slice of a shared, immutable byte buffer.
///
/// Cloning and slicing do not copy the bytes. Constants of a parsed [`Module`](crate::Module) are slices of the input,
/// which remains allocated as long as any slice of it exists.
///
/// ```
/// use pjrt_stablehlo::Bytes;
///
/// let bytes = Bytes::from(vec![1, 2, 3, 4]);
/// let tail = bytes.slice(2..4).unwrap();
/// assert_eq!(*tail, [3, 4]);
/// assert_eq!(tail.as_ptr(), bytes[2..].as_ptr());
/// assert!(bytes.slice(2..5).is_none());
/// ```
#[derive(Clone)]
pub struct Bytes {
    buffer: Arc<Vec<u8>>,
    start: usize,
    len: usize,
}

impl Bytes {
    /// Returns the bytes in `range`, which share the buffer; `None` if the range is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> Option<Bytes> {
        if range.start > range.end || range.end > self.len {
            return None;
        }
        Some(Bytes {
            buffer: Arc::clone(&self.buffer),
            start: self.start + range.start,
            len: range.end - range.start,
        })
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Bytes {
    /// Takes ownership of the vector without copying it.
    fn from(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Bytes { buffer: Arc::new(bytes), start: 0, len }
    }
}

impl From<Arc<Vec<u8>>> for Bytes {
    /// Shares the vector without copying it.
    fn from(buffer: Arc<Vec<u8>>) -> Self {
        let len = buffer.len();
        Bytes { buffer, start: 0, len }
    }
}

impl From<&[u8]> for Bytes {
    /// Copies the slice.
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl<const N: usize> From<&[u8; N]> for Bytes {
    /// Copies the array.
    fn from(bytes: &[u8; N]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<&str> for Bytes {
    /// Copies the string.
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<String> for Bytes {
    /// Takes ownership of the string's buffer without copying it.
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        let shown = &self[..self.len.min(SHOWN)];
        write!(f, "Bytes({} bytes: {shown:02x?}", self.len)?;
        f.write_str(if self.len > SHOWN { " ...)" } else { ")" })
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn slices_share_and_check_bounds() {
        let bytes = Bytes::from(vec![1, 2, 3, 4]);
        let inner = bytes.slice(1..4).unwrap().slice(1..3).unwrap();
        assert_eq!(&*inner, [3, 4]);
        assert_eq!(inner.as_ptr(), bytes[2..].as_ptr());
        assert!(inner.slice(0..3).is_none());
        assert!(inner.slice(usize::MAX..usize::MAX).is_none());
    }
}
