//! Arrays whose elements of less than a byte share bytes, as devices store them. In host memory, each element occupies a byte.

/// Converts an array from the form of host memory to that of another array of the same packed bytes, with `count` elements of
/// `to` bits instead of `from` bits. Each number is that of [`ElementType::packed_bits`](crate::ElementType).
pub(crate) fn reinterpret(elements: Vec<u8>, from: usize, to: usize, count: usize) -> Vec<u8> {
    if from == to {
        return elements;
    }
    let bytes = if from < 8 { pack(&elements, from) } else { elements };
    if to < 8 { unpack(&bytes, to, count) } else { bytes }
}

/// Packs elements of `bits` bits, which must divide 8. The first element of a byte is in its lowest bits. Unused bits of the
/// last byte are zero.
fn pack(elements: &[u8], bits: usize) -> Vec<u8> {
    let mask = mask(bits);
    let byte = |elements: &[u8]| {
        elements
            .iter()
            .enumerate()
            .fold(0, |byte, (index, element)| byte | (element & mask) << (index * bits))
    };
    elements.chunks(8 / bits).map(byte).collect()
}

/// Unpacks the first `count` elements of `bits` bits, which must divide 8. The upper bits of each element's byte are zero.
fn unpack(bytes: &[u8], bits: usize, count: usize) -> Vec<u8> {
    let mask = mask(bits);
    let of_byte = |byte: &u8| {
        let byte = *byte;
        (0..8 / bits).map(move |index| (byte >> (index * bits)) & mask)
    };
    bytes.iter().flat_map(of_byte).take(count).collect()
}

/// Returns the byte whose lowest `bits` bits are set.
fn mask(bits: usize) -> u8 {
    u8::MAX >> (8 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_element_is_in_the_lowest_bits() {
        assert_eq!(unpack(&[0xe1, 0x47], 4, 4), [1, 0xe, 7, 4]);
        assert_eq!(pack(&[1, 0xfe, 7, 4], 4), [0xe1, 0x47]);
        assert_eq!(unpack(&[0b1110_0100], 2, 4), [0, 1, 2, 3]);
        assert_eq!(pack(&[0, 1, 2, 3, 1], 2), [0b1110_0100, 1]);
        assert_eq!(unpack(&[0b1000_0001], 1, 8), [1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(unpack(&[0xe1], 4, 1), [1]);
    }

    #[test]
    fn bytes_stay_the_same_between_widths() {
        assert_eq!(reinterpret(vec![0xe1, 0x47], 8, 4, 4), [1, 0xe, 7, 4]);
        assert_eq!(reinterpret(vec![1, 0xe, 7, 4], 4, 2, 8), [1, 0, 2, 3, 3, 1, 0, 1]);
        assert_eq!(reinterpret(vec![1, 0xe, 7, 4], 4, 16, 1), [0xe1, 0x47]);
        assert_eq!(reinterpret(vec![1, 2], 16, 8, 2), [1, 2]);
    }
}
