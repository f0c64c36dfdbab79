//! Wrong programs that differ from the right ones of their operation in the lengths of dimensions.

use super::joined::Tried;

/// The length from which dimensions count as long.
const LONG: i64 = 32;
/// The smallest numbers of wrong and right programs that are compared.
const WRONG: usize = 2;
const RIGHT: usize = 5;
/// The factor of the lengths that end with a whole part, whatever the size of the parts is.
const WHOLE: i64 = 4;

/// Returns what the wrong programs of an operation with an element type have in common, if it is a long dimension of an
/// operand: those with shorter ones are right, and of those with longer ones at most those whose length is a multiple of a
/// power of two.
pub(crate) fn lengths(wrong: &Tried<'_>, all: &[Tried<'_>]) -> Option<String> {
    let of = |is_right: bool| {
        let of_operation = |other: &&Tried<'_>| other.op == wrong.op && other.element == wrong.element;
        all.iter().filter(of_operation).filter(|other| other.steps.is_none() == is_right).collect::<Vec<_>>()
    };
    let (wrong_ones, right_ones) = (of(false), of(true));
    let dims = wrong.operands.iter().enumerate();
    dims.flat_map(|(operand, dims)| (0..dims.len()).map(move |from_end| (operand, from_end)))
        .find_map(|place| of_dimension(place, &wrong_ones, &right_ones))
}

/// Returns the length of a dimension, which is counted from the last one; 0 if the program does not have it.
fn length((operand, from_end): (usize, usize), tried: &Tried<'_>) -> i64 {
    tried.operands.get(operand).and_then(|dims| dims.iter().nth_back(from_end)).copied().unwrap_or(0)
}

fn of_dimension(place: (usize, usize), wrong: &[&Tried<'_>], right: &[&Tried<'_>]) -> Option<String> {
    let of = |tried: &[&Tried<'_>]| tried.iter().map(|tried| length(place, tried)).collect::<Vec<_>>();
    let (wrong, right) = (of(wrong), of(right));
    let shortest = *wrong.iter().min()?;
    let (longer, shorter): (Vec<i64>, Vec<i64>) = right.into_iter().partition(|length| *length >= shortest);
    let is_long = shortest >= LONG && wrong.len() >= WRONG && shorter.len() >= RIGHT;
    let limit = shorter.into_iter().max().filter(|_| is_long)?;
    let is_whole = |length: &i64| length % WHOLE == 0;
    let (except, end) = match longer.is_empty() {
        true => ("", "probably loses, repeats or mixes up parts of a long dimension"),
        false if longer.iter().all(is_whole) && !wrong.iter().any(is_whole) => (
            " that is no multiple of a power of two",
            "probably processes the last, incomplete part of a dimension wrongly, such as together with padding",
        ),
        false => return None,
    };
    let dimension = match place.1 {
        0 => "the last dimension".to_owned(),
        from_end => format!("dimension {} from the end", from_end + 1),
    };
    Some(format!(
        "the programs of this operation with up to {limit} elements in {dimension} of operand {} are right, and each wrong one has \
         {shortest} or more{except}: the plugin {end}",
        place.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(right: &[i64], wrong: &[i64]) -> Option<String> {
        let tried = |longest: &i64, is_right: bool| Tried {
            op: "reduce",
            element: "f32",
            operands: vec![vec![*longest, 2], vec![2]],
            steps: (!is_right).then(Default::default),
        };
        let all: Vec<Tried<'_>> = right
            .iter()
            .map(|longest| tried(longest, true))
            .chain(wrong.iter().map(|longest| tried(longest, false)))
            .collect();
        lengths(all.last()?, &all)
    }

    #[test]
    fn long_dimensions_are_named_if_all_shorter_ones_are_right() {
        let text = says(&[1, 2, 3, 5, 64], &[65, 300]).unwrap();
        assert!(
            text.contains("up to 64 elements in dimension 2 from the end of operand 0 are right")
                && text.contains("parts of a long"),
            "{text}"
        );
        assert_eq!(says(&[1, 2, 3, 5, 64], &[65, 3]), None, "a short one is wrong");
        assert_eq!(says(&[1, 2, 3, 5, 64, 301], &[65, 300]), None, "a long one is right");
        assert_eq!(says(&[1, 2, 64], &[65, 300]), None, "few programs are compared");
    }

    #[test]
    fn incomplete_parts_are_named_if_whole_ones_are_right() {
        let text = says(&[1, 2, 3, 5, 64, 128], &[65, 127]).unwrap();
        assert!(text.contains("incomplete part"), "{text}");
        assert_eq!(says(&[1, 2, 3, 5, 64, 128], &[65, 256]), None, "a whole one is wrong");
    }
}
