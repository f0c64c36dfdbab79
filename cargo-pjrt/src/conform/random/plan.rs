//! Random plans of calls: repetition with other seeds, and shortening of plans that fail.

use std::fmt::Display;
use std::time::{Duration, Instant};

use super::world::{IN_VAIN, World};
use crate::array::random::Random;
use crate::conform::harness::{Finding, Sequences, Verdict};

/// A theme: random plans of calls, with a model that knows what each call must yield.
pub(super) trait Theme {
    type Plan: Clone + Display;

    /// Makes a plan.
    fn plan(&self, random: &mut Random) -> Self::Plan;

    /// Performs the calls of a plan, and compares their results with those of the model.
    fn run(&self, plan: &Self::Plan) -> Verdict;

    /// Returns plans that are simpler in one respect, the simplest first.
    fn simpler(&self, plan: &Self::Plan) -> Vec<Self::Plan>;
}

/// The time after which no further plans are made, unless the user chose their number.
const TIME: Duration = Duration::from_secs(4);

/// The time for which a plan that fails is shortened.
const SHORTENING: Duration = Duration::from_secs(3);

/// Runs plans of a theme with consecutive seeds. `usual` is their number, unless the user chose another one.
pub(super) fn run_plans<T: Theme>(world: &World<'_>, sequences: Sequences, usual: u64, theme: &T) -> Verdict {
    let start = Instant::now();
    let (mut passed, mut lacking) = (false, None);
    for round in 0..sequences.rounds.unwrap_or(usual) {
        let seed = sequences.seed.wrapping_add(round);
        world.begin(format!("the sequence of --seed {seed} --rounds 1"));
        let plan = theme.plan(&mut Random::new(seed, 0));
        match theme.run(&plan) {
            Ok(()) => passed = true,
            Err(Finding::Wrong(why)) => return Err(Finding::Wrong(shortened(world, theme, plan, why, seed))),
            // A lacking feature does not hide that other plans fail.
            Err(other) => drop(lacking.get_or_insert(other)),
        }
        if sequences.rounds.is_none() && start.elapsed() > TIME {
            break;
        }
    }
    match lacking {
        Some(advice @ Finding::Advice(_)) => Err(advice),
        Some(why) if !passed => Err(why),
        _ => Ok(()),
    }
}

/// Simplifies a plan as long as it fails, and returns the message about the simplest one.
fn shortened<T: Theme>(world: &World<'_>, theme: &T, plan: T::Plan, why: String, seed: u64) -> String {
    let start = Instant::now();
    let (mut plan, mut why) = (plan, why);
    // A plan that waits in vain would do so each time.
    let is_slow = |why: &str| why.contains(IN_VAIN);
    'simplify: while !is_slow(&why) {
        world.begin(format!("shorter sequences than that of --seed {seed}, which failed because {why}"));
        for simpler in theme.simpler(&plan) {
            if start.elapsed() > SHORTENING {
                break 'simplify;
            }
            if let Err(Finding::Wrong(again)) = theme.run(&simpler) {
                (plan, why) = (simpler, again);
                continue 'simplify;
            }
        }
        break;
    }
    format!("{why}. The calls, shortened from --seed {seed} --rounds 1: {plan}")
}

/// Returns copies of a list without some of its elements: first without halves, then quarters, and so on down to single ones.
pub(super) fn without_parts<S: Clone>(steps: &[S]) -> Vec<Vec<S>> {
    let mut all = Vec::new();
    let mut size = steps.len().div_ceil(2);
    while size > 0 && !steps.is_empty() {
        // The last steps are the ones that fail, and the first ones create what they need.
        for start in (0..steps.len()).step_by(size) {
            let end = (start + size).min(steps.len());
            if end - start < steps.len() {
                all.push([&steps[..start], &steps[end..]].concat());
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    all
}

/// Writes steps one after the other. Of a long list, it writes the last ones.
pub(super) fn write_steps<S: Display>(f: &mut std::fmt::Formatter<'_>, steps: &[S]) -> std::fmt::Result {
    const MOST: usize = 16;
    let hidden = steps.len().saturating_sub(MOST);
    if hidden > 0 {
        write!(f, "({hidden} earlier calls); ")?;
    }
    for (at, step) in steps[hidden..].iter().enumerate() {
        if at > 0 {
            f.write_str("; ")?;
        }
        write!(f, "{step}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_left_out_down_to_single_steps() {
        let all = without_parts(&[1, 2, 3, 4, 5]);
        assert!(all.contains(&vec![4, 5]) && all.contains(&vec![1, 2, 4, 5]), "{all:?}");
        assert!(all.iter().all(|part| !part.is_empty() && part.len() < 5));
        assert!(without_parts::<u8>(&[]).is_empty() && without_parts(&[1]).is_empty());
    }
}
