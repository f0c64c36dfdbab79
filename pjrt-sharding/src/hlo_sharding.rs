//! Parses shardings in XLA's text form (`mhlo.sharding`), which occurs in programs for XLA's GSPMD partitioner and in programs
//! that were converted from HLO.

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
    let wrong = |why: &str| {
        Error::invalid(format!(
            "invalid mhlo.sharding {text:?} of an array {dims:?} on {partitions} partitions: {why}"
        ))
    };
    let unsupported = |what: &str| {
        Error::unsupported(format!(
            "{what:?} in the mhlo.sharding {text:?} is not supported: it must be replicated, unknown or tiled, with \
             replicated subgroups"
        ))
    };
    let inner = text
        .trim()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(|| unsupported(text))?;
    let mut scanner = Scanner { rest: inner };
    match scanner.word() {
        "replicated" => return Ok(HloSharding::Replicated),
        "unknown" => return Ok(HloSharding::Unknown),
        "devices" => {}
        "maximal" if partitions == 1 => return Ok(HloSharding::Replicated),
        other => return Err(unsupported(if other.is_empty() { inner } else { other })),
    }
    let form = || wrong("the list of devices is malformed");
    scanner.eat("=").then_some(()).ok_or_else(form)?;
    let tiles = scanner.list("[", "]").ok_or_else(form)?;
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
    let copied = match copies(&mut scanner).ok_or_else(form)? {
        Ok(copied) => copied,
        Err(kind) => return Err(unsupported(kind)),
    };
    if devices.len() != partitions {
        return Err(wrong("the number of devices is not the number of partitions"));
    }
    let tiles = TileAssignment { dimensions: tiles, devices, subgroups: vec![Subgroup::Replicated; copied] };
    let sharding = tiles.sharding(dims.len()).map_err(|error| wrong(&error.message))?;
    let is_whole = sharding.parts.iter().all(|parts| *parts == 1);
    Ok(if is_whole { HloSharding::Replicated } else { HloSharding::Tiled(sharding) })
}

/// Returns the number of trailing tile dimensions that are replicated; `Some(Err)` with the keyword if it is not supported, and
/// `None` if the text is malformed.
fn copies<'a>(scanner: &mut Scanner<'a>) -> Option<Result<usize, &'a str>> {
    let mut copied = 0;
    loop {
        match scanner.word() {
            "" | "metadata" => return Some(Ok(copied)),
            "last_tile_dim_replicate" => copied = 1,
            "last_tile_dims" => {
                let kinds = scanner.words("={", "}")?;
                if let Some(kind) = kinds.iter().find(|kind| **kind != "replicated") {
                    return Some(Err(kind));
                }
                copied = kinds.len();
            }
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
    fn arrays_may_be_split_unevenly() {
        assert_eq!(positions("{devices=[4]<=[4]}", &[6]), [[0], [1], [2], [3]]);
    }
}
