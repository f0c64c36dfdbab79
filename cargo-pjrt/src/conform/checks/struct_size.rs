//! Checks that no function accesses memory past its caller's struct.

use super::calls::{CALLS, Call, Objects};
use crate::conform::harness::{Check, Context, Finding, Source, Verdict, ensure};
use crate::host::{Code, Fence, fenced};
use pjrt_sys::SLOTS;

/// Returns a check for each function: with each size that its struct had, with a larger one, and with an
/// invalid `extension_start`.
pub(super) fn by_function() -> Vec<Check> {
    let of_function = |(function, call, older): &(&'static str, Call, &'static [usize])| {
        let (function, call, older) = (*function, *call, *older);
        let sizes: Vec<String> = older.iter().map(ToString::to_string).collect();
        let sizes = if sizes.is_empty() {
            String::new()
        } else {
            format!(" (in older versions {} bytes)", sizes.join(", "))
        };
        Check {
            name: format!("struct_size/{function}"),
            rule: format!(
                "{function} accesses nothing past the struct_size of its caller{sizes}, even if that is larger than the size that it knows, and does not dereference extension_start."
            ),
            source: Source::Header {
                place: "PJRT_API_MINOR",
                text: "Implementations can use the `struct_size` fields to detect how many struct fields the caller is aware of.",
            },
            is_of_the_table: false,
            since: 0,
            needed_by: &[],
            needed_since: 0,
            fault: format!("{function} write_past"),
            also: &[],
            run: Box::new(move |context| watched(context, function, call, older)),
        }
    };
    CALLS.iter().map(of_function).collect()
}

fn watched(context: &Context, function: &'static str, call: Call, older: &[usize]) -> Verdict {
    let client = context.client()?;
    let objects = Objects { plugin: context.plugin, client: &client, context };
    let newest = SLOTS.iter().find(|slot| slot.name == function).map_or(0, |slot| slot.args.struct_size);
    let sizes = older.iter().copied().chain([newest]).map(Fence::Guarded);
    // A failure that does not depend on the size is not a failure of this check.
    if let Err(error) = call(&objects) {
        return Err(match error.code {
            Code::UNIMPLEMENTED => error.into(),
            _ => Finding::NotApplicable(format!("the function fails with any struct_size: {error}")),
        });
    }
    for fence in [Fence::Enlarged, Fence::WildExtension].into_iter().chain(sizes) {
        let (outcome, touched, used) = fenced(function, fence, || call(&objects));
        if let Some(at) = touched {
            return Err(Finding::Wrong(format!(
                "with {fence}, the function wrote past the end of the struct: byte {} after the end changed",
                at + 1
            )));
        }
        if let Err(error) = outcome {
            return Err(Finding::Wrong(format!("with {fence}: {error}")));
        }
        ensure!(used, "the check did not call the function");
    }
    Ok(())
}
