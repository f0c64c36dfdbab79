//! The layout and the location of arrays.

use std::sync::{Arc, OnceLock};

use pjrt_plugin::Result;

use crate::ram::Ram;

/// Addresses are multiples of this many bytes.
pub(crate) const ALIGNMENT: usize = 32;

/// The layout of arrays in device memory. Rows, which consist of the elements of the last dimension, begin at
/// multiples of [`ALIGNMENT`] bytes. The padding is invisible to the host, for which arrays are dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    count: usize,
    /// The size of a row in bytes.
    size: usize,
    /// The distance between the starts of consecutive rows in bytes.
    pitch: usize,
}

impl Rows {
    /// Returns the layout of an array, or `None` if its size exceeds that of any memory.
    pub(crate) fn of(dims: &[i64], element_size: usize) -> Option<Self> {
        if dims.contains(&0) {
            return Some(Self { count: 0, size: 0, pitch: 0 });
        }
        let (last, others) = dims.split_last().unwrap_or((&1, &[]));
        let product = |product: usize, dim: &i64| product.checked_mul(usize::try_from(*dim).ok()?);
        let count = others.iter().try_fold(1, product)?;
        let size = product(element_size, last)?;
        let pitch = size.checked_next_multiple_of(ALIGNMENT)?;
        count.checked_mul(pitch)?;
        Some(Self { count, size, pitch })
    }

    /// Returns the size of the array in device memory, in bytes.
    pub(crate) fn padded_size(self) -> usize {
        self.count * self.pitch
    }

    /// Returns the size of the array without padding, in bytes.
    pub(crate) fn dense_size(self) -> usize {
        self.count * self.size
    }
}

/// An array, as commands refer to it. Clones refer to the same array.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) rows: Rows,
    pub(crate) place: Place,
}

/// The location of an array.
#[derive(Clone)]
pub(crate) enum Place {
    /// The array is in device memory at this address, in padded rows.
    Device(usize),
    /// The array is in host memory that the device can access, dense. It is written once.
    Host(Arc<OnceLock<Vec<u8>>>),
}

impl Array {
    /// Reads the array, dense and row-major.
    pub(crate) fn read(&self, ram: &Ram) -> Result<Vec<u8>> {
        match &self.place {
            Place::Device(address) => ram.with(*address, self.rows.padded_size(), |padded| {
                let mut dense = Vec::with_capacity(self.rows.dense_size());
                for row in padded.chunks(self.rows.pitch.max(1)) {
                    dense.extend_from_slice(&row[..self.rows.size]);
                }
                dense
            }),
            Place::Host(bytes) => Ok(bytes.get().cloned().unwrap_or_default()),
        }
    }

    /// Writes the array from dense, row-major bytes, whose number must be the size of the array.
    pub(crate) fn write(&self, ram: &Ram, dense: Vec<u8>) -> Result<()> {
        match &self.place {
            Place::Device(address) => ram.with(*address, self.rows.padded_size(), |padded| {
                let rows = padded.chunks_mut(self.rows.pitch.max(1)).zip(dense.chunks(self.rows.size.max(1)));
                rows.for_each(|(row, dense)| row[..self.rows.size].copy_from_slice(dense));
            }),
            Place::Host(bytes) => {
                // Only the command that the array was created for writes it, so it is empty.
                let _ = bytes.set(dense);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_padded_to_the_alignment() {
        let rows = Rows::of(&[2, 3, 5], 4).unwrap();
        assert_eq!((rows.padded_size(), rows.dense_size()), (6 * 32, 120));
        assert_eq!(Rows::of(&[], 4).unwrap().padded_size(), 32);
        assert_eq!(Rows::of(&[0, i64::MAX, i64::MAX], 4).unwrap().padded_size(), 0);
        assert_eq!(Rows::of(&[i64::MAX, 3], 4), None);
        assert_eq!(Rows::of(&[i64::MAX / 4, 1], 1), None, "dense it would fit");
    }

    #[test]
    fn what_is_written_is_read() {
        let ram = Ram::new(1024).unwrap();
        for dims in [&[][..], &[3, 5], &[0, 4], &[4, 0], &[2, 2, 16]] {
            let rows = Rows::of(dims, 2).unwrap();
            let dense: Vec<u8> = (0..rows.dense_size() as u8).collect();
            for place in [Place::Device(64), Place::Host(Arc::default())] {
                let array = Array { rows, place };
                array.write(&ram, dense.clone()).unwrap();
                assert_eq!(array.read(&ram).unwrap(), dense, "{dims:?}");
            }
        }
    }

    #[test]
    fn an_access_beyond_the_end_of_memory_is_a_fault() {
        let array = Array { rows: Rows::of(&[16], 4).unwrap(), place: Place::Device(1000) };
        let error = array.write(&Ram::new(1024).unwrap(), vec![0; 64]).unwrap_err();
        assert!(error.message().contains("the memory ends at byte 1024"), "{error}");
    }
}
