//! Counts the events of traces of profilers.

use super::fields::{Field, field};

/// The fields of `XSpace`, `XPlane` and `XLine` that lead to the events.
const PATH: [u64; 3] = [1, 3, 4];

/// Returns the number of events in a trace (`XSpace`), or `None` if the bytes are none.
pub(crate) fn events_of_trace(bytes: &[u8]) -> Option<usize> {
    count(bytes, &PATH)
}

fn count(mut bytes: &[u8], path: &[u64]) -> Option<usize> {
    let Some((next, rest)) = path.split_first() else { return Some(1) };
    let mut found = 0;
    while !bytes.is_empty() {
        if let Field::Bytes(number, value) = field(&mut bytes)?
            && number == *next
        {
            found += count(value, rest)?;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_all_lines_are_counted() {
        let message = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
        let event = message(4, &[8, 1]);
        let line = message(3, &[event.clone(), event].concat());
        let plane = message(1, &[line.clone(), line, vec![0x19, 0, 0, 0, 0, 0, 0, 0, 0]].concat());
        assert_eq!(events_of_trace(&plane), Some(4));
        assert_eq!(events_of_trace(&[]), Some(0));
        assert_eq!(events_of_trace(&plane[..5]), None);
    }
}
