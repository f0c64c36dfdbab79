//! Mutates MLIR bytecode without breaking its container: the lengths of sections, attributes and types stay correct.

use std::ops::Range;

use crate::random::Random;

const ENTRIES: u8 = 2;
const ENTRY_OFFSETS: u8 = 3;
const CODE: u8 = 4;

/// The maximum length of inputs whose structure is kept. Longer inputs are mutated as bytes.
const MAX_STRUCTURED: usize = 1 << 16;

/// A section: its number and contents.
struct Section {
    id: u8,
    contents: Vec<u8>,
}

/// The container: what precedes the sections, and the sections.
struct File {
    head: Vec<u8>,
    sections: Vec<Section>,
}

/// Mutates the first `size` bytes of `data`, which has room for `max_size`. Returns the new size.
///
/// `mutate` is libFuzzer's own mutation of bytes: its arguments are the buffer, its used size and its maximum size.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    mutate: fn(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut random = Random::new(seed);
    let structured = size <= MAX_STRUCTURED && random.below(8) > 0;
    let Some(mut file) = File::split(&data[..size]).filter(|_| structured) else {
        return mutate(data, size, max_size);
    };
    // Alignment is not kept, so encoding the container again is also a mutation.
    if file.mutate(&mut random, mutate).is_none() {
        return mutate(data, size, max_size);
    }
    let bytes = file.join();
    if bytes.len() > max_size {
        return mutate(data, size, max_size);
    }
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}

impl File {
    fn split(bytes: &[u8]) -> Option<File> {
        let mut rest = Reader { bytes, at: 0 };
        rest.take(4)?;
        rest.varint()?;
        while rest.byte()? != 0 {}
        let head = bytes[..rest.at].to_vec();
        let mut sections = Vec::new();
        while rest.at < bytes.len() {
            let id = rest.byte()?;
            let length = rest.varint()?;
            if id & 0x80 != 0 {
                let alignment = rest.varint()?.clamp(1, 1 << 12) as usize;
                rest.at = rest.at.next_multiple_of(alignment);
            }
            let place = rest.take(usize::try_from(length).ok()?)?;
            sections.push(Section { id: id & 0x7f, contents: bytes[place].to_vec() });
        }
        Some(File { head, sections })
    }

    fn join(&self) -> Vec<u8> {
        let mut bytes = self.head.clone();
        for section in &self.sections {
            bytes.push(section.id);
            write_varint(&mut bytes, section.contents.len() as u64);
            bytes.extend(&section.contents);
        }
        bytes
    }

    /// Changes one part of the file. Returns `None` if there is no part that can be changed.
    fn mutate(&mut self, random: &mut Random, mutate: fn(&mut [u8], usize, usize) -> usize) -> Option<()> {
        let change = |contents: &mut Vec<u8>| {
            let size = contents.len();
            let max_size = size * 2 + 16;
            contents.resize(max_size, 0);
            let size = mutate(contents, size, max_size).min(max_size);
            contents.truncate(size);
        };
        if random.below(2) == 0 {
            return self.mutate_entry(random, change);
        }
        let count = self.sections.len();
        let section = self.sections.get_mut(random.below(count))?;
        if section.id == CODE && random.below(4) > 0 {
            // Code contains sections, whose lengths stay correct if no byte moves.
            let len = section.contents.len();
            for _ in 0..=random.below(4) {
                *section.contents.get_mut(random.below(len))? = random.below(256) as u8;
            }
            return Some(());
        }
        change(&mut section.contents);
        Some(())
    }

    /// Changes one attribute or type, and its length in the section of offsets.
    fn mutate_entry(&mut self, random: &mut Random, change: impl Fn(&mut Vec<u8>)) -> Option<()> {
        let position = |id| self.sections.iter().position(|section| section.id == id);
        let (entries, offsets) = (position(ENTRIES)?, position(ENTRY_OFFSETS)?);
        let table = &self.sections[offsets].contents;
        let mut reader = Reader { bytes: table, at: 0 };
        let total = reader.varint()?.checked_add(reader.varint()?)?;
        // For each entry: the position of its length in the table, the length, and whether it has its dialect's encoding.
        let mut lengths: Vec<(Range<usize>, usize, u64)> = Vec::new();
        while (lengths.len() as u64) < total {
            reader.varint()?;
            for _ in 0..reader.varint()? {
                let start = reader.at;
                let word = reader.varint()?;
                lengths.push((start..reader.at, usize::try_from(word >> 1).ok()?, word & 1));
            }
        }
        let chosen = random.below(lengths.len());
        let start: usize = lengths.get(..chosen)?.iter().map(|(_, length, _)| length).sum();
        let (place, length, custom) = lengths.get(chosen)?.clone();
        let mut entry = self.sections[entries].contents.get(start..start + length)?.to_vec();
        change(&mut entry);
        let mut word = Vec::new();
        write_varint(&mut word, (entry.len() as u64) << 1 | custom);
        self.sections[entries].contents.splice(start..start + length, entry);
        self.sections[offsets].contents.splice(place, word);
        Some(())
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, len: usize) -> Option<Range<usize>> {
        let place = self.at..self.at.checked_add(len)?;
        self.bytes.get(place.clone())?;
        self.at = place.end;
        Some(place)
    }

    fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let further = first.trailing_zeros().min(8) as usize;
        let place = self.take(further)?;
        let mut word = [0; 16];
        word[0] = first;
        word[1..=further].copy_from_slice(&self.bytes[place]);
        Some((u128::from_le_bytes(word) >> (further + 1)) as u64)
    }
}

/// Writes an integer as one byte if it fits, otherwise in the longest form.
fn write_varint(bytes: &mut Vec<u8>, value: u64) {
    if value < 1 << 7 {
        bytes.push((value as u8) << 1 | 1);
    } else {
        bytes.push(0);
        bytes.extend(value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutated_lengths_stay_right() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/mlp_1.17.0.mlirbc");
        let program = std::fs::read(path).unwrap();
        let mut accepted = 0;
        for seed in 0..500 {
            let mut data = program.clone();
            let max_size = data.len() * 2;
            let size = data.len();
            data.resize(max_size, 0);
            let size = mutate(&mut data, size, max_size, seed, |data, size, _| {
                if let Some(byte) = data[..size].last_mut() {
                    *byte ^= 2;
                }
                size
            });
            let file = File::split(&data[..size]).expect("the container is whole");
            assert!(file.sections.len() > 5);
            accepted += usize::from(pjrt_stablehlo::parse(&data[..size]).is_ok());
        }
        assert!(accepted > 50, "{accepted} of 500 mutations still read");
    }
}
