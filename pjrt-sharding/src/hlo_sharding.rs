//! Parses shardings in XLA's text form (`mhlo.sharding`), which occurs in programs for XLA's GSPMD partitioner and in programs
//! that were converted from HLO.

use crate::cut::{Cut, product};
use crate::error::{Error, Result};
use crate::sharding::{Sharding, Subgroup, TileAssignment};

/// The content of an `mhlo.sharding`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HloSharding {
    /// `{unknown}`: the text states no sharding.
    Unknown,
    /// Every partition holds the whole array.
    Replicated,
    /// The array is split.
    Tiled(Sharding),
}

/// Parses a sharding such as `{devices=[2,1,2]<=[4] last_tile_dim_replicate}` of an array of these dimensions.
///
/// # Errors
/// Returns an error if the sharding does not fit the array or the number of partitions, or if its form is not supported.
pub(crate) fn parse(text: &str, dims: &[usize], partitions: usize) -> Result<HloSharding> {
    parse_with(text, dims, partitions, &["replicated"])
}

/// The same as [`parse`] for an array of a manual region, of which the partitions of a subgroup `manual` hold different ones.
pub(crate) fn parse_in_region(text: &str, dims: &[usize], partitions: usize) -> Result<HloSharding> {
    parse_with(text, dims, partitions, &["replicated", "manual"])
}

/// Parses a sharding that may have subgroups of these kinds.
fn parse_with(text: &str, dims: &[usize], partitions: usize, allowed: &[&str]) -> Result<HloSharding> {
    let (tiles, kinds) = match scan(text, partitions)? {
        Scanned::Tiles(tiles, kinds) => (tiles, kinds),
        Scanned::Word("replicated") => return Ok(HloSharding::Replicated),
        Scanned::Word("unknown") => return Ok(HloSharding::Unknown),
        Scanned::Word("maximal") if partitions == 1 => return Ok(HloSharding::Replicated),
        Scanned::Word(other) => return Err(unsupported(text, other)),
    };
    if let Some(kind) = kinds.iter().find(|kind| !allowed.contains(kind)) {
        return Err(unsupported(text, kind));
    }
    let tiles = TileAssignment { subgroups: vec![Subgroup::Replicated; kinds.len()], ..tiles };
    let sharding = tiles.sharding(dims.len()).map_err(|error| {
        let why = format!("the sharding does not fit an array {dims:?}: {}", error.message);
        invalid(text, partitions, &why)
    })?;
    let is_whole = sharding.parts.iter().all(|parts| *parts == 1);
    Ok(if is_whole { HloSharding::Replicated } else { HloSharding::Tiled(sharding) })
}

/// Parses the manual part of a sharding such as `{manual}` or `{devices=[1,4,2]<=[8] last_tile_dims={manual, replicated}}`: the
/// split of the partitions into those that share arrays. Its parts are numbered in the order of their first partitions. Returns
/// `None` if no part is manual.
///
/// # Errors
/// Returns an error if the sharding is malformed or does not fit the number of partitions.
pub(crate) fn parse_manual(text: &str, partitions: usize) -> Result<Option<Cut>> {
    let (tiles, kinds) = match scan(text, partitions)? {
        Scanned::Tiles(tiles, kinds) => (tiles, kinds),
        Scanned::Word(word) => return Ok((word == "manual").then(|| Cut::single_partitions(partitions))),
    };
    if !kinds.contains(&"manual") {
        return Ok(None);
    }
    // The partitions of a tile that have the same index along a subgroup differ in the others only. As an array of one more
    // dimension for each subgroup, the sharding splits along all of them.
    let rank = tiles.dimensions.len();
    let sharding = tiles.sharding(rank).map_err(|error| invalid(text, partitions, &error.message))?;
    let first = rank - kinds.len();
    let manual: Vec<usize> = (first..rank).filter(|dim| kinds[dim - first] == "manual").collect();
    let cut = |dim: &usize| {
        let of_partition = sharding.position.iter().map(|position| position[*dim]).collect();
        Cut { parts: sharding.parts[*dim], of_partition }
    };
    let cuts: Vec<Cut> = manual.iter().map(cut).collect();
    Ok(product(&cuts.iter().collect::<Vec<_>>()).map(|cut| cut.renumbered()))
}

fn invalid(text: &str, partitions: usize, why: &str) -> Error {
    Error::invalid(format!("invalid mhlo.sharding {text:?} on {partitions} partitions: {why}"))
}

fn unsupported(text: &str, what: &str) -> Error {
    Error::unsupported(format!(
        "{what:?} in the mhlo.sharding {text:?} is not supported: it must be replicated, unknown or tiled, with \
         replicated subgroups"
    ))
}

/// The syntax of a sharding.
enum Scanned<'a> {
    /// A form without a list of devices, such as `replicated`.
    Word(&'a str),
    /// Tiles, whose last dimensions are the subgroups of these kinds.
    Tiles(TileAssignment, Vec<&'a str>),
}

/// Parses the syntax of a sharding. The tiles have no subgroups, but the last dimensions that these are.
fn scan(text: &str, partitions: usize) -> Result<Scanned<'_>> {
    let wrong = |why: &str| invalid(text, partitions, why);
    let form = || wrong("the list of devices is malformed");
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let inner = inner.ok_or_else(|| wrong("the text is not enclosed in braces"))?;
    let mut scanner = Scanner { rest: inner };
    match scanner.word() {
        "devices" => {}
        "" => return Ok(Scanned::Word(inner)),
        word => return Ok(Scanned::Word(word)),
    }
    scanner.eat("=").then_some(()).ok_or_else(form)?;
    let dimensions = scanner.list("[", "]").ok_or_else(form)?;
    let devices = if scanner.eat("<=") {
        let sizes = scanner.list("[", "]").ok_or_else(form)?;
        let order = match scanner.eat("T") {
            true => scanner.list("(", ")").ok_or_else(form)?,
            false => (0..sizes.len()).collect(),
        };
        transposed(&sizes, &order, partitions)
            .ok_or_else(|| wrong("the iota list of devices does not contain each partition once"))?
    } else {
        scanner.numbers().ok_or_else(form)?
    };
    let kinds = subgroups(&mut scanner).ok_or_else(form)?.map_err(|word| unsupported(text, word))?;
    if kinds.len() > dimensions.len() {
        return Err(wrong("there are more subgroups than dimensions"));
    }
    if devices.len() != partitions {
        return Err(wrong(&format!(
            "expected {partitions} devices, one for each partition, found {}",
            devices.len()
        )));
    }
    Ok(Scanned::Tiles(TileAssignment { dimensions, devices, subgroups: vec![] }, kinds))
}

/// Returns the kinds of the trailing tile dimensions, which are subgroups; `Some(Err)` with the keyword if it is not supported,
/// and `None` if the text is malformed.
fn subgroups<'a>(scanner: &mut Scanner<'a>) -> Option<Result<Vec<&'a str>, &'a str>> {
    let mut kinds = vec![];
    loop {
        match scanner.word() {
            "" | "metadata" => return Some(Ok(kinds)),
            "last_tile_dim_replicate" => kinds = vec!["replicated"],
            "last_tile_dims" => kinds = scanner.words("={", "}")?,
            other => return Some(Err(other)),
        }
    }
}

/// Returns the numbers from 0 as an array of these dimensions, transposed by `order` and read in row-major order. Returns
/// `None` if there are not `count` of them, or if `order` is not a permutation.
fn transposed(sizes: &[usize], order: &[usize], count: usize) -> Option<Vec<usize>> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    let numbers = sizes.iter().try_fold(1usize, |numbers, n| numbers.checked_mul(*n));
    if numbers != Some(count) || !sorted.into_iter().eq(0..sizes.len()) {
        return None;
    }
    let number = |mut index: usize| {
        let mut number = 0;
        for d in order.iter().rev() {
            number += index % sizes[*d] * sizes[d + 1..].iter().product::<usize>();
            index /= sizes[*d];
        }
        number
    };
    Some((0..count).map(number).collect())
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn eat(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix(token) else { return false };
        self.rest = rest;
        true
    }

    /// Returns the next identifier or number; empty if there is none.
    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Returns one or more numbers that are separated by commas.
    fn numbers(&mut self) -> Option<Vec<usize>> {
        let mut numbers = vec![];
        while numbers.is_empty() || self.eat(",") {
            numbers.push(self.word().parse().ok()?);
        }
        Some(numbers)
    }

    fn list(&mut self, open: &str, close: &str) -> Option<Vec<usize>> {
        let numbers = if self.eat(open) { self.numbers() } else { None };
        numbers.filter(|_| self.eat(close))
    }

    fn words(&mut self, open: &str, close: &str) -> Option<Vec<&'a str>> {
        if !self.eat(open) {
            return None;
        }
        let mut words = vec![];
        while words.is_empty() || self.eat(",") {
            words.push(self.word());
        }
        self.eat(close).then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(text: &str, dims: &[usize]) -> Vec<Vec<usize>> {
        match parse(text, dims, 4).unwrap() {
            HloSharding::Tiled(sharding) => sharding.position,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn tiles_are_on_the_devices_that_the_text_names() {
        assert_eq!(positions("{devices=[4,1]<=[4]}", &[8, 3]), [[0, 0], [1, 0], [2, 0], [3, 0]]);
        assert_eq!(positions("{devices=[2,2]0,2,1,3}", &[2, 2]), [[0, 0], [1, 0], [0, 1], [1, 1]]);
        assert_eq!(positions("{devices=[2,2]<=[2,2]T(1,0)}", &[2, 2]), [[0, 0], [1, 0], [0, 1], [1, 1]]);
    }

    #[test]
    fn last_dimensions_of_copies_are_none_of_the_array() {
        let expected = [[0], [0], [1], [1]];
        assert_eq!(positions("{devices=[2,2]<=[4] last_tile_dim_replicate}", &[2]), expected);
        assert_eq!(positions("{devices=[2,2]<=[4] last_tile_dims={replicated}}", &[2]), expected);
        assert_eq!(
            positions("{devices=[2,2]<=[4] last_tile_dim_replicate metadata={op_name=\"x\"}}", &[2]),
            expected
        );
    }

    #[test]
    fn arrays_may_be_whole_or_split_in_any_way() {
        assert_eq!(parse("{replicated}", &[3], 4), Ok(HloSharding::Replicated));
        assert_eq!(
            parse("{devices=[1,4]<=[4] last_tile_dim_replicate}", &[3], 4),
            Ok(HloSharding::Replicated)
        );
        assert_eq!(parse("{unknown}", &[3], 4), Ok(HloSharding::Unknown));
    }

    #[test]
    fn what_does_not_fit_or_is_not_supported_is_an_error() {
        for text in [
            "",
            "{",
            "{devices}",
            "{devices=[4]}",
            "{devices=[4]0,1,2}",
            "{devices=[4]0,1,2,2}",
            "{devices=[4]0,1,2,4}",
            "{devices=[2]<=[2]}",
            "{devices=[2,2]<=[4]}",
            "{devices=[4]<=[2,2]T(0,0)}",
            "{devices=[4]<=[4] last_tile_dims={manual}}",
            "{devices=[2,2]<=[4] last_tile_dims={manual}}",
            "{devices=[18446744073709551615,4]<=[4]}",
            "{devices=[0]<=[4]}",
            "{manual}",
            "{maximal device=0}",
            "{{replicated}, {replicated}}",
        ] {
            assert!(parse(text, &[4], 4).is_err(), "{text}");
        }
    }

    #[test]
    fn manual_subgroups_are_the_partitions_that_the_program_cuts_for() {
        let cut = |of_partition: &[usize], parts| Ok(Some(Cut { parts, of_partition: of_partition.into() }));
        let manual = |text| parse_manual(text, 8);
        assert_eq!(manual("{manual}"), cut(&[0, 1, 2, 3, 4, 5, 6, 7], 8));
        assert_eq!(
            manual("{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dims={manual, manual}}"),
            manual("{manual}")
        );
        assert_eq!(manual("{replicated}"), Ok(None));
        assert_eq!(manual("{devices=[2,4]<=[8] last_tile_dim_replicate}"), Ok(None));
        let major = &[0, 0, 1, 1, 2, 2, 3, 3];
        assert_eq!(manual("{devices=[1,4,2]<=[8] last_tile_dims={manual, replicated}}"), cut(major, 4));
        assert_eq!(
            manual("{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dims={replicated, manual}}"),
            cut(major, 4)
        );
        assert_eq!(manual("{devices=[2,4]<=[4,2]T(1,0) last_tile_dims={manual}}"), cut(major, 4));
        assert_eq!(manual("{devices=[2,4]1,3,5,7,0,2,4,6 last_tile_dims={manual}}"), cut(major, 4));
        assert!(manual("{devices=[2,4]<=[4] last_tile_dims={manual}}").is_err());
        assert!(manual("{devices=[2]<=[8] last_tile_dims={manual}}").is_err());
        assert!(manual("{devices=[8]<=[8] last_tile_dims={manual, replicated}}").is_err());
    }

    #[test]
    fn arrays_may_be_split_unevenly() {
        assert_eq!(positions("{devices=[4]<=[4]}", &[6]), [[0], [1], [2], [3]]);
    }
}
