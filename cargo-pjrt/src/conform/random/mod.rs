//! Checks with random sequences of calls, and a model that knows what each call must yield.
//!
//! A check of one rule uses a few arrays, programs and orders of calls. These checks combine the features: each theme makes random
//! plans from seeds, performs them, and shortens a plan that fails, so that the message contains only the calls that matter.

mod arrays;
mod facts;
mod plan;
mod promise;
mod steps;
mod values;
mod world;

use crate::conform::harness::{Check, Context, Source, Verdict};
use crate::requirements::Profile;

/// A theme of random sequences.
struct Listed {
    name: &'static str,
    rule: &'static str,
    /// The function of the header that the theme is about, and its sentence.
    source: (&'static str, &'static str),
    fault: &'static str,
    also: &'static [&'static str],
    run: fn(&Context) -> Verdict,
}

const THEMES: &[Listed] = &[
    Listed {
        name: "arrays",
        rule: "Random sequences of uploads with strides and layouts, copies, readbacks, raw copies, deletions and descriptions of arrays on all devices and memories yield the elements and properties that the calls imply.",
        source: ("PJRT_Client_BufferFromHostBuffer", "Asynchronously copies a buffer stored on host to device memory; copies and readbacks have its elements."),
        fault: "PJRT_Buffer_CopyRawToHost rank_from 4 give offset=0",
        also: &[],
        run: |context| {
            let client = context.client()?;
            let world = world::World::new(context, &client)?;
            plan::run_plans(&world, context.sequences, 40, &arrays::Arrays(&world))
        },
    },
];

/// Returns a check for each theme.
pub(super) fn by_theme() -> Vec<Check> {
    let check = |theme: &'static Listed| Check {
        name: format!("random/{}", theme.name),
        rule: theme.rule.to_owned(),
        source: Source::Header { place: theme.source.0, text: theme.source.1 },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        used_by: Profile::ALL.to_vec(),
        needed_since: 0,
        fault: theme.fault.to_owned(),
        also: theme.also,
        run: Box::new(theme.run),
    };
    THEMES.iter().map(check).collect()
}
