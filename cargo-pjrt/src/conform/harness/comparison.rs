//! The comparison of an array that a check read with the expected one, which names the probable cause of a
//! difference.

use std::time::Duration;

use super::conversion::conversion;
use super::verdict::{Finding, Verdict, count_of};
use crate::array::element_text;
use crate::array::float_format::{FloatFormat, FloatKind};
use crate::array::strided::{displaced, order_of, wrapped};
use pjrt_testing::host::{Buffer, ElementType, OVERWRITTEN, UNWRITTEN};

/// An array that a check expects to read.
pub(crate) struct Expected<'a> {
    what: &'a str,
    bytes: &'a [u8],
    element_type: ElementType,
    dims: &'a [i64],
    suspects: Vec<(Vec<u8>, &'a str)>,
    otherwise: &'a str,
    /// The strides with which the array was uploaded.
    strides: &'a [i64],
}

/// The words between the numbers of elements that differ and the first of these.
pub(crate) const DIFFER: &str = "elements differ; element";

/// The cause of a difference that no classification explains.
pub(crate) const UNKNOWN: &str =
    "none that the kit recognizes: the values are not those of an array that this check knows";

/// The cause of elements that are as expected a moment later.
pub(crate) const TOO_EARLY: &str =
    "the plugin probably completes the event of the array before its data is there";

/// The cause of bytes that are those at the start of an array.
pub(crate) const OFFSET_IGNORED: &str =
    "the bytes are those at the offset 0: the plugin probably ignores `offset`";

/// The cause of elements of which each two changed places.
const EXCHANGED: &str = "each two neighbors changed places: the plugin probably takes the halves of a byte, or of a word, in the wrong order";

/// The cause of complex numbers whose parts are in the order of two arrays.
pub(crate) const PLANAR: &str = "all real parts come before all imaginary parts; in host memory, the two parts of a complex number are \
                                 neighbors";

/// The causes of elements that are in the order in which they would be without strides or without a layout.
pub(crate) const STRIDES_IGNORED: &str = "the strides were ignored: the plugin copied a dense array";
pub(crate) const LAYOUT_IGNORED: &str = "the layout was ignored: the elements are row-major";
pub(crate) const ORDER_IGNORED: &str = "the strides were ignored or the layout was ignored, or they apply to the wrong dimensions, or to an \
                                        array that has none";

/// Reads an array, and checks the bytes. If they are wrong, and right a moment later, the message says so.
pub(crate) fn check_array(array: &Buffer, check: impl Fn(&[u8]) -> Verdict) -> Verdict {
    const MOMENT: Duration = Duration::from_millis(50);
    let outcome = check(&array.read()?);
    let Err(Finding::Wrong(message)) = &outcome else { return outcome };
    std::thread::sleep(MOMENT);
    if array.read().is_ok_and(|again| check(&again).is_ok()) {
        let difference = message.split(PROBABLE_CAUSE).next().unwrap_or(message);
        let later = "a moment later, the array has the expected elements";
        return Err(Finding::Wrong(format!("{difference}{PROBABLE_CAUSE}{later}: {TOO_EARLY}")));
    }
    outcome
}

/// The size from which on devices move arrays in several pieces: a place beyond it is named in bytes, too.
const LARGE: usize = 4096;

const PROBABLE_CAUSE: &str = ". Probable cause: ";

impl<'a> Expected<'a> {
    /// Describes the expected array, whose elements are dense and row-major. `what` names the array in
    /// messages.
    pub(crate) fn new(what: &'a str, bytes: &'a [u8], element_type: ElementType, dims: &'a [i64]) -> Self {
        Self { what, bytes, element_type, dims, suspects: Vec::new(), otherwise: UNKNOWN, strides: &[] }
    }

    /// Describes an expected array of one dimension of f32.
    pub(crate) fn floats(what: &'a str, bytes: &'a [u8]) -> Self {
        Self::new(what, bytes, ElementType::F32, &[])
    }

    /// Adds a probable cause, if the array has these elements instead.
    pub(crate) fn suspect(mut self, bytes: impl Into<Vec<u8>>, cause: &'a str) -> Self {
        self.suspects.push((bytes.into(), cause));
        self
    }

    /// Sets the strides with which the array was uploaded.
    pub(crate) fn strides(self, strides: &'a [i64]) -> Self {
        Self { strides, ..self }
    }

    /// Sets the probable cause of all differences that have no other explanation.
    pub(crate) fn otherwise(self, cause: &'a str) -> Self {
        Self { otherwise: cause, ..self }
    }

    /// Fails the check unless the array has the expected elements, as [`check_array`] does.
    pub(crate) fn check_array(&self, array: &Buffer) -> Verdict {
        check_array(array, |read| self.check(read))
    }

    /// Fails the check unless the bytes are the expected ones.
    pub(crate) fn check(&self, read: &[u8]) -> Verdict {
        if read == self.bytes {
            return Ok(());
        }
        let what = self.what;
        if read.len() != self.bytes.len() {
            let (bytes, size) = (count_of(read.len(), "byte"), self.bytes.len());
            return Err(Finding::Wrong(format!("{what} has {bytes}; expected {size}")));
        }
        let name = self.element_type.stablehlo_name();
        let pairs: Vec<(&[u8], &[u8])> =
            read.chunks(self.size()).zip(self.bytes.chunks(self.size())).collect();
        let differ: Vec<usize> = (0..pairs.len()).filter(|at| pairs[*at].0 != pairs[*at].1).collect();
        let first = differ.first().copied().unwrap_or(0);
        let (got, expected) = pairs[first];
        Err(Finding::Wrong(format!(
            "{what}: {} of {} {DIFFER} {first} is {} ({}); expected {} ({}){PROBABLE_CAUSE}{}",
            differ.len(),
            pairs.len(),
            element_text(name, got),
            bits_text(got),
            element_text(name, expected),
            bits_text(expected),
            self.cause(read, &differ)
        )))
    }

    /// Returns the number of bytes of an element.
    fn size(&self) -> usize {
        self.element_type.byte_size().max(1)
    }

    /// Returns the probable cause of the differences.
    fn cause(&self, read: &[u8], differ: &[usize]) -> String {
        let whole = [
            Self::suspected,
            Self::unrepeated,
            Self::packed,
            Self::converted,
            Self::of_floats,
            Self::reordered,
            Self::elsewhere,
        ];
        let found = whole.iter().find_map(|classify| classify(self, read, differ));
        found.or_else(|| self.incomplete(read, differ)).unwrap_or_else(|| self.otherwise.to_owned())
    }

    /// Finds the array that the elements which differ belong to.
    fn suspected(&self, read: &[u8], differ: &[usize]) -> Option<String> {
        let element = |bytes: &'_ [u8], at: usize| {
            bytes.get(at * self.size()..(at + 1) * self.size()).map(<[u8]>::to_vec)
        };
        let (_, cause) = self
            .suspects
            .iter()
            .find(|(bytes, _)| differ.iter().all(|at| element(bytes, *at) == element(read, *at)))?;
        Some((*cause).to_owned())
    }

    /// Recognizes an array of which only one index of each dimension with the stride 0 is right.
    fn unrepeated(&self, _: &[u8], differ: &[usize]) -> Option<String> {
        let is_repeated = |dim: &usize| self.strides[*dim] == 0 && self.dims[*dim] > 1;
        let repeated: Vec<usize> = (0..self.strides.len()).filter(is_repeated).collect();
        let is_first = |at: &usize| {
            let index =
                |dim: usize| *at as i64 / self.dims[dim + 1..].iter().product::<i64>() % self.dims[dim];
            repeated.iter().all(|dim| index(*dim) == 0)
        };
        (!repeated.is_empty() && !differ.iter().any(is_first)).then(|| {
            "the elements whose index is 0 in each dimension with the stride 0 are right: the plugin probably takes this stride for \
             another one, and must repeat these elements"
                .to_owned()
        })
    }

    /// Recognizes elements of less than a byte that share bytes.
    fn packed(&self, read: &[u8], _: &[usize]) -> Option<String> {
        let bits = match self.element_type.stablehlo_name() {
            "i1s" | "ui1" => 1,
            "i2" | "ui2" => 2,
            "i4" | "ui4" | "f4E2M1FN" => 4,
            _ => return None,
        };
        let in_a_byte = 8 / bits;
        let mask = (1_u8 << bits) - 1;
        let pack = |low_first: bool| -> Vec<u8> {
            let byte = |elements: &[u8]| {
                let place = |at: usize| if low_first { at } else { in_a_byte - 1 - at };
                elements
                    .iter()
                    .enumerate()
                    .fold(0, |byte, (at, element)| byte | (element & mask) << (bits * place(at)))
            };
            self.bytes.chunks(in_a_byte).map(byte).collect()
        };
        let is_packed = [true, false].into_iter().any(|low_first| read.starts_with(&pack(low_first)));
        is_packed.then(|| {
            format!("the elements are packed, {in_a_byte} to a byte; in host memory each occupies a byte of its own")
        })
    }

    /// Recognizes elements that were converted to another type and back: all of them, or one part of an array.
    fn converted(&self, read: &[u8], differ: &[usize]) -> Option<String> {
        const LEAST: usize = 3;
        let size = self.size();
        let pairs: Vec<(&[u8], &[u8])> = read.chunks(size).zip(self.bytes.chunks(size)).collect();
        let part = || match differ {
            [first, .., last] if last - first >= LEAST => {
                conversion(self.element_type, &pairs[*first..=*last])
            }
            _ => None,
        };
        conversion(self.element_type, &pairs).or_else(part)
    }

    /// Recognizes the expected elements in a different order.
    fn reordered(&self, read: &[u8], _: &[usize]) -> Option<String> {
        let size = self.size();
        let expected: Vec<&[u8]> = self.bytes.chunks(size).collect();
        let got: Vec<&[u8]> = read.chunks(size).collect();
        if size > 1 && got.iter().zip(&expected).all(|(got, expected)| got.iter().eq(expected.iter().rev())) {
            return Some("the bytes of each element are in the opposite order".to_owned());
        }
        if self.element_type.stablehlo_name().starts_with("complex") {
            let part = |at: usize| self.bytes.chunks(size / 2).skip(at).step_by(2);
            if expected.len() > 1 && part(0).chain(part(1)).eq(read.chunks(size / 2)) {
                return Some(PLANAR.to_owned());
            }
        }
        let pairs = |of: &[&[u8]]| {
            of.chunks_exact(2).flat_map(|two| [two[1].to_vec(), two[0].to_vec()]).collect::<Vec<_>>()
        };
        let whole = expected.len() / 2 * 2;
        if whole >= 4 && got.len() >= whole && pairs(&expected).iter().eq(&got[..whole]) {
            return Some(EXCHANGED.to_owned());
        }
        if let Some(order) = self.order(&got, &expected) {
            return Some(order);
        }
        if let Some(at) = exchanged(&got, &expected) {
            return Some(format!(
                "the first {at} elements are behind the others: the plugin probably ignores the offset of a part"
            ));
        }
        for by in 1..=(got.len() / 2).min(64) {
            let end = got.len() - by;
            // A part of an array that repeats itself looks like a shifted one.
            if expected[by..] == expected[..end] {
                continue;
            }
            if got[by..] == expected[..end] || got[..end] == expected[by..] {
                return Some(format!("the elements are shifted by {by}: an offset or a size is wrong"));
            }
        }
        None
    }

    /// Recognizes elements that have the values of others, all of them at the same distance or at multiples of one.
    fn elsewhere(&self, read: &[u8], differ: &[usize]) -> Option<String> {
        let [expected, found] = [self.bytes, read].map(|bytes| bytes.chunks(self.size()).collect::<Vec<_>>());
        displaced(&expected, &found, differ).or_else(|| wrapped(&expected, &found, differ))
    }

    /// Recognizes elements in the order of other dimensions, and row-major ones that were taken for elements in such an order.
    fn order(&self, got: &[&[u8]], expected: &[&[u8]]) -> Option<String> {
        let (order, is_inverse) = order_of(self.dims, expected, got)?;
        let column_major = if order.iter().rev().is_sorted() { ", which is column-major" } else { "" };
        Some(match is_inverse {
            false => format!(
                "the elements are in the order of the dimensions {order:?}{column_major}: {ORDER_IGNORED}"
            ),
            true => format!(
                "the elements were converted from the order of the dimensions {order:?}{column_major}, in which they were not: \
                 {ORDER_IGNORED}"
            ),
        })
    }

    /// Recognizes floating-point numbers that a conversion or an arithmetic operation changed.
    fn of_floats(&self, read: &[u8], _: &[usize]) -> Option<String> {
        let format = FloatFormat::of(self.element_type)?;
        let mut causes = Vec::new();
        for (got, expected) in format.split(read).into_iter().zip(format.split(self.bytes)) {
            if got == expected {
                continue;
            }
            // A change of these kinds keeps the kind, or makes the number zero.
            let cause = match (format.kind(expected), format.kind(got)) {
                (Some(FloatKind::Zero), Some(FloatKind::Zero)) => "the sign of zeros was lost",
                (Some(FloatKind::Denormal), Some(FloatKind::Zero)) => "denormal numbers were flushed to zero",
                (Some(FloatKind::Nan), Some(FloatKind::Nan)) => match format.quiet() {
                    Some(quiet) if got & !format.sign() == expected & !format.sign() | quiet => {
                        "signaling NaNs became quiet"
                    }
                    _ => "the payload or the sign of NaNs was lost",
                },
                _ => return None,
            };
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
        let numbers = "a copy moved the elements through floating-point instructions or a conversion";
        Some(format!("{}: {numbers}", causes.join(" and ")))
    }

    /// Recognizes elements that were not copied.
    fn incomplete(&self, read: &[u8], differ: &[usize]) -> Option<String> {
        let size = self.size();
        let all = |byte: u8| {
            differ.iter().all(|at| read[at * size..(at + 1) * size].iter().all(|got| *got == byte))
        };
        let state = match () {
            () if all(UNWRITTEN) => "are the kit's initial bytes: the plugin did not write them",
            () if all(OVERWRITTEN) => {
                "are the bytes with which the host overwrote its memory as soon as it was permitted to: the plugin still \
                 reads the host's memory"
            }
            () if all(0) => {
                "are zero: the plugin did not copy them, copied them from elsewhere, or cleared them"
            }
            () if is_one_part(differ, read.len() / size) => {
                "are wrong, and all others are right: a part of the copy is missing, comes later, or is from elsewhere"
            }
            () => return None,
        };
        let elements = read.len() / size;
        let part = match (differ.first(), differ.last()) {
            _ if differ.len() == elements => "all elements".to_owned(),
            (Some(first), Some(last)) if first * size >= LARGE => {
                format!("elements, from number {first} to {last} (from byte {} on),", first * size)
            }
            (Some(first), Some(last)) => {
                format!("elements, from number {first} to {last},{}", self.slice_of(*first, *last))
            }
            _ => return None,
        };
        Some(format!("{part} {state}"))
    }

    /// Returns a description of the elements from one on to the last one of the array, if they are all but the first slices of a
    /// dimension.
    fn slice_of(&self, first: usize, last: usize) -> String {
        if last + 1 != self.bytes.len() / self.size() || self.dims.len() < 2 {
            return String::new();
        }
        let rest: usize = self.dims[1..].iter().map(|dim| *dim as usize).product();
        match first.checked_rem(rest) {
            Some(0) if rest > 1 => {
                format!(" which are those from index {} of the first dimension on,", first / rest)
            }
            _ => String::new(),
        }
    }
}

/// Returns `true` if the elements that differ are some neighbors at the end or at the beginning of the array.
fn is_one_part(differ: &[usize], elements: usize) -> bool {
    let (Some(&first), Some(&last)) = (differ.first(), differ.last()) else { return false };
    let is_at_an_end = first == 0 || last + 1 == elements;
    // A single right element says nothing: the first one is often right by accident.
    is_at_an_end && differ.len() > 1 && differ.len() + 1 < elements && last - first + 1 == differ.len()
}

/// Returns the number of elements before the place where the expected ones were divided, if both parts are there and
/// changed places.
fn exchanged(got: &[&[u8]], expected: &[&[u8]]) -> Option<usize> {
    const MOST: usize = 1 << 16;
    let len = got.len();
    let starts = (1..len.min(MOST)).filter(|at| expected[*at] == got[0]);
    starts.into_iter().find(|at| got[..len - at] == expected[*at..] && got[len - at..] == expected[..*at])
}

/// Formats the bits of an element as a number.
fn bits_text(element: &[u8]) -> String {
    let digits: String = element.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::harness::f32_bytes;

    /// Returns the message about an array of 2 x 3 numbers from 1 to 6.
    fn message(read: &[f32]) -> String {
        let expected = f32_bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let other = f32_bytes(&[9.0; 6]);
        let array = Expected::new("the array", &expected, ElementType::F32, &[2, 3]);
        match array.suspect(other, "the other array").check(&f32_bytes(read)) {
            Err(Finding::Wrong(message)) => message,
            verdict => format!("{verdict:?}"),
        }
    }

    #[test]
    fn the_cause_of_a_difference_is_named() {
        let cases: [(&[f32], &str); 15] = [
            (&[1.0, 5.0, 3.0, 2.0, 1.0, 6.0], "none that the kit recognizes"),
            (&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "Ok(())"),
            (
                &[9.0; 6],
                "element 0 is 9 (0x41100000); expected 1 (0x3f800000). Probable cause: the other array",
            ),
            (&[1.0, 2.0, 3.0, 4.0, 9.0, 9.0], "2 of 6 elements differ; element 4"),
            (&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0], "in the order of the dimensions [1, 0], which is column-major"),
            (&[1.0, 3.0, 5.0, 2.0, 4.0, 6.0], "converted from the order of the dimensions [1, 0]"),
            (&[1.0, 2.0, 3.0, 0.0, 0.0, 0.0], "from index 1 of the first dimension on, are zero"),
            (&[2.0, 3.0, 4.0, 5.0, 6.0, 0.0], "shifted by 1"),
            (&[5.0, 6.0, 1.0, 2.0, 3.0, 4.0], "the first 4 elements are behind the others"),
            (&[2.0, 1.0, 4.0, 3.0, 6.0, 5.0], "each two neighbors changed places"),
            (&[0.0; 6], "all elements are zero"),
            (&[1.0, 2.0, 3.0, 4.0, 0.0, 0.0], "elements, from number 4 to 5, are zero"),
            (
                &[1.0, 2.0, 3.0, 4.0, 7.5, 1.5],
                "elements, from number 4 to 5, are wrong, and all others are right",
            ),
            (&[7.0, 2.0, 3.0, 4.0, 5.0, 1.5], "none that the kit recognizes"),
            (&[1.0, 9.5, 8.5, 7.5, 6.5, 5.5], "none that the kit recognizes"),
        ];
        for (read, expected) in cases {
            assert!(message(read).contains(expected), "{}: {expected}", message(read));
        }
    }

    #[test]
    fn rows_that_overlap_are_named() {
        let numbers: Vec<f32> = (0..18).map(|number| number as f32).collect();
        let expected = f32_bytes(&numbers);
        let message = |read: &[f32]| {
            let array = Expected::new("the array", &expected, ElementType::F32, &[2, 3, 3]);
            format!("{:?}", array.check(&f32_bytes(read)))
        };
        // The last row of the first matrix is the first one of the second matrix.
        let overlapping = [&numbers[..6], &numbers[9..12], &numbers[9..]].concat();
        assert!(message(&overlapping).contains("belongs 3 places further on"), "{}", message(&overlapping));
        let reversed: Vec<f32> = numbers.iter().rev().copied().collect();
        assert!(!message(&reversed).contains("places"), "{}", message(&reversed));
    }

    #[test]
    fn packed_elements_overwritten_memory_and_missing_repetitions_are_named() {
        let of = |expected: &[u8], read: &[u8], element_type, dims: &[i64]| {
            format!("{:?}", Expected::new("the array", expected, element_type, dims).check(read))
        };
        let (i4, packed) = ([1, 7, 0xf8, 0xff, 2], [0x71, 0xf8, 2, 0, 0]);
        assert!(of(&i4, &packed, ElementType(21), &[5]).contains("packed, 2 to a byte"));
        assert!(of(&i4, &[0x17, 0x8f, 0x20, 0, 0], ElementType(21), &[5]).contains("packed, 2 to a byte"));
        let overwritten = of(&[1; 8], &[OVERWRITTEN; 8], ElementType::U8, &[8]);
        assert!(overwritten.contains("still reads the host's memory"), "{overwritten}");
        let repeated = of(&[1, 2, 1, 2], &[1, 2, 0, 0], ElementType::U8, &[2, 2]);
        assert!(
            repeated.contains("elements, from number 2 to 3, which are those from index 1"),
            "{repeated}"
        );
        let repeated = |read: &[u8]| {
            let array = Expected::new("the array", &[1, 2, 1, 2], ElementType::U8, &[2, 2]).strides(&[0, 1]);
            format!("{:?}", array.check(read))
        };
        assert!(
            repeated(&[1, 2, 0, 0]).contains("takes this stride for another one"),
            "{}",
            repeated(&[1, 2, 0, 0])
        );
        let complex = f32_bytes(&[1.0, 2.0, 3.0, 4.0]);
        let array = Expected::new("the array", &complex, ElementType::by_name("C64").unwrap(), &[2]);
        let planar = format!("{:?}", array.check(&f32_bytes(&[1.0, 3.0, 2.0, 4.0])));
        assert!(planar.contains(PLANAR), "{planar}");
        assert!(!repeated(&[0, 2, 0, 2]).contains("this stride"), "{}", repeated(&[0, 2, 0, 2]));
    }

    #[test]
    fn changed_bits_of_numbers_are_named() {
        let bits = |all: &[u32]| all.iter().flat_map(|bits| bits.to_le_bytes()).collect::<Vec<u8>>();
        let cases = [
            (0x8000_0000, 0, "the sign of zeros"),
            (0x0000_0001, 0, "flushed to zero"),
            (0x7f80_0001, 0x7fc0_0001, "became quiet"),
            (0x7fc0_1234, 0x7fc0_0000, "payload"),
        ];
        for (expected, read, cause) in cases {
            let expected = bits(&[expected, 0x3f80_0000]);
            let outcome = Expected::floats("the array", &expected).check(&bits(&[read, 0x3f80_0000]));
            assert!(format!("{outcome:?}").contains(cause), "{outcome:?}: {cause}");
        }
    }
}
