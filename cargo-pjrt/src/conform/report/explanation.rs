//! Decides whether one failure explains another.

use std::collections::HashMap;

use super::Row;
use crate::array::strided::WRAPPED;
use crate::conform::harness::{
    ACCORDING_TO, BYTES_COME_LATER, CHANGED_ARGUMENT, CHANGED_BY_CALLBACK, CHANGES_WITH_RUNS,
    COMPLETE_FROM_THE_START, CONVERTED, Check, DEVICE_CONTRADICTED, DIFFER, DURING, EARLIER_ARGUMENT,
    EARLIER_PROGRAM, ENDS_WITH_ANOTHER, FREED_IN_USE, FREED_PROGRAM, FREED_WHILE_HELD, HAZARD, HOST_MEMORY,
    KEPT_ERROR, KEPT_POINTER, KEPT_TEXT, LEAKED_OUTPUT, LOST_BY_CALLBACK, LOST_BY_EXECUTION, LOST_CALLBACK,
    MEMORY_OF_ANOTHER_DEVICE, MISSED_CALLBACKS, NEVER_COMPLETE, NO_CALLBACK_OF_FAILED, NO_FAILURE, NO_HAZARD,
    NOT_CALLED, NOT_IN_READY_EVENT, NOT_SPREAD, NOT_THE_DEFAULT, NOT_WAITED, OF_ANOTHER_DEVICE,
    OFFSET_IGNORED, ONE_CODE, ONE_MESSAGE, ORDER_IGNORED, OUT_OF_ORDER, OVERWRITTEN_OUTPUT, PLANAR,
    READBACK_SIZE, RIGHT_ON_ANOTHER, SAME_ARRAY_TWICE, SAME_ID, STALE, Source, Status, TOO_EARLY, UNKNOWN,
    WRONG_DEFAULT, WRONG_TRANSFER, matches, runs_again,
};
use pjrt_testing::host::ElementType;

/// Returns `true` if the failure of a check explains another failure, which is so if
///
/// * the table of checks says that a plugin which breaks the rule of the first breaks that of the second too
///   ([`Check::also`]; a pattern such as `compile/*` counts only if at least half of the checks that it matches failed,
///   because a plugin may have two bugs in one area),
/// * both name the same [fault](FAULTS),
/// * both exceeded the time limit,
/// * the first says that an object [ends with another](ENDS_WITH_ANOTHER), and the second crashed, or had an error in this function,
/// * the first says that bytes [come after the event](BYTES_COME_LATER), when the memory may be freed, and the second called
///   the function and crashed,
/// * in both the process ended during the same call,
/// * in both the callback of an event was not called, or the same function says that an array is elsewhere,
/// * both use several threads, and the second calls the function that the first one is about,
/// * both are about wrong elements of a type with which few checks deal, or the first one names a conversion of the elements of
///   the type that the second one is about,
/// * both have the same message, which is about what the plugin did, or the message of the second contains that of the
///   first and says where it happened, or the message of the first names a cause of the error with which the message of
///   the second ends,
/// * the message of the first is the error of a function that fails in almost every check, and that of the second contains it,
/// * the first says that callbacks [receive no errors](LOST_BY_CALLBACK), or that [ready events](NOT_IN_READY_EVENT) have none, and
///   the second received success instead of one,
/// * the first says that outputs are in the [order of other dimensions](ORDER_IGNORED), and the second found wrong values,
/// * the first says that a function [answers for an earlier object](STALE), and the second called this function,
/// * the first names a fault that makes many values [wrong](PERVASIVE), and the second found wrong values after it had called the
///   function,
/// * the first says that the simplest transfer is [wrong](WRONG_TRANSFER), and the second found wrong values in an array,
/// * a control of the second showed that it is not about what the check tests, and the first names a cause,
/// * the first says that an event is [never complete](NEVER_COMPLETE), and the second waited for one in vain,
///   or exceeded the time limit,
/// * the first says that the plugin keeps the messages of all errors in [one place](ONE_MESSAGE), and the second is about a message,
/// * the first says that all errors have [one code](ONE_CODE), and the second is about an error with this code,
/// * the first says that one device computes wrong numbers and [another one does not](RIGHT_ON_ANOTHER), and the second is about
///   devices,
/// * both found the same value instead of the same expected one, or both an empty list, and the second called the function that
///   the first one is about,
/// * both are about one function, with which few checks deal, and the first one calls nothing that the second does not call too,
/// * both are checks that run other checks again with the same variation, such as another thread,
/// * the second is a random sequence of calls that names no cause, and called the function that the first one is about, or
/// * the second is the scenario of a host, which called the function that the first one is about.
pub(super) fn explains(rows: &[Row], table: &Table<'_>, cause: &Row, other: &Row) -> bool {
    let check = table.check(&cause.name);
    let breaks = |check: &Check| {
        let counts = |pattern: &&&str| !pattern.ends_with('*') || mostly_failed(rows, pattern);
        check.also.iter().filter(counts).any(|pattern| matches(pattern, &other.name))
    };
    let calls = |check: &Check| {
        is_scenario(&other.name)
            && !is_scenario(&check.name)
            && other.functions.iter().any(|called| called == function(check))
    };
    let is_stale = is_stale(cause, other);
    let is_lost = is_lost(cause, other);
    // A random sequence of calls meets the errors that other checks find, and often cannot tell what they are.
    let is_found_again = |check: &Check| {
        other.name.starts_with("random/")
            && !names_a_cause(&other.message)
            && !is_indirect(&cause.name)
            && other.functions.iter().any(|called| called == function(check))
    };
    // A race or a random sequence of calls is no explanation of a failure whose cause is known.
    let is_less_certain =
        is_indirect(&cause.name) && !is_indirect(&other.name) && !other.message.contains(ALONE);
    // One function that hangs makes many checks hang, each of which would fail for this reason alone.
    let both_hang = cause.status == Status::TimedOut && other.status == Status::TimedOut;
    say_the_same(cause, other)
        || is_stale
        || check.is_some_and(|check| {
            is_corrupted(cause, check, other) || is_in_another_order(cause, check, other)
        })
        || breaks_the_interface(&cause.message) && other.message.contains(&cause.message)
        || check.is_some_and(|check| is_of_values(cause, check, other))
        || is_of_transfers(cause, other)
        || cause.message.contains(ONE_MESSAGE) && is_of_messages(other)
        || cause.message.contains(ONE_CODE) && is_of_codes(cause, other)
        || is_refuted(other) && !is_indirect(&cause.name) && names_a_cause(&cause.message)
        || cause.message.contains(NEVER_COMPLETE)
            && (other.status == Status::TimedOut || other.message.contains("not complete"))
        || is_lost
        || [RIGHT_ON_ANOTHER, OF_ANOTHER_DEVICE].iter().any(|text| cause.message.contains(text))
            && is_of_devices(other)
        || name_one_fault(&cause.message, &other.message)
        || loses_callback(cause) && loses_callback(other)
        || observer(cause).is_some_and(|function| observer(other) == Some(function))
        || check.is_some_and(|check| is_race(cause, check, other) || finds_the_same(cause, check, other))
        || is_simpler(table, cause, other)
        || are_of_one_type(cause, other)
        || is_converted(cause, other)
        || are_of_one_variation(&cause.name, &other.name)
        || both_hang && !is_less_certain
        || !(is_less_certain && other.message.to_lowercase().contains("probabl"))
            && check.is_some_and(|check| breaks(check) || calls(check))
        || check.is_some_and(is_found_again)
}

/// Returns `true` if both failures have the same message, or that of the second repeats or is an error that the first one explains.
fn say_the_same(cause: &Row, other: &Row) -> bool {
    // The message of a crash says something about the plugin only if it names the last function. A message that
    // quotes another one also says why.
    let is_same_error = || {
        is_only_an_error(&cause.message)
            && without_addresses(&cause.message) == without_addresses(&other.message)
    };
    cause.status == other.status
        && (cause.message == other.message
            || is_same_error()
            || quotes(&cause.message, &other.message)
            || repeats(&other.message, &cause.message))
        && !cause.message.is_empty()
        && (cause.status == Status::Wrong || !cause.functions.is_empty())
        || ended_in(cause).is_some_and(|call| ended_in(other) == Some(call))
}

/// Returns `true` if the message of a failure says that an object ends with another one, and the other check crashed, hung or had
/// an error in the function that the first one is about, or that bytes come later, and the other check called the function and
/// crashed.
fn is_corrupted(cause: &Row, check: &Check, other: &Row) -> bool {
    let uses_it =
        || is_of_an_error(&other.message) && other.functions.iter().any(|called| called == function(check));
    let calls = |function: &str| other.functions.iter().any(|called| called == function);
    let writes_to_freed =
        !is_indirect(&cause.name) && other.status == Status::Crashed && blamed(cause).is_some_and(calls);
    writes_to_freed
        || cause.message.contains(ENDS_WITH_ANOTHER)
            && (matches!(other.status, Status::Crashed | Status::TimedOut)
                || other.status == Status::Wrong && uses_it())
}

/// The table of checks, by their names, and the number of checks that are about each function.
pub(super) struct Table<'c> {
    checks: HashMap<&'c str, &'c Check>,
    about: HashMap<&'c str, usize>,
}

impl<'c> Table<'c> {
    pub(super) fn new(checks: &'c [Check]) -> Self {
        let mut about = HashMap::new();
        checks.iter().for_each(|check| *about.entry(function(check)).or_default() += 1);
        Self { checks: checks.iter().map(|check| (check.name.as_str(), check)).collect(), about }
    }

    pub(super) fn check(&self, name: &str) -> Option<&'c Check> {
        self.checks.get(name).copied()
    }

    /// Returns the function that a check is about, unless so many checks are about it that two of them hardly fail for one reason.
    fn rare_function(&self, name: &str) -> Option<&'c str> {
        const MOST: usize = 20;
        self.check(name).map(function).filter(|function| self.about[function] <= MOST)
    }
}

/// Returns the calls during which the process of a check ended.
fn ended_in(row: &Row) -> Option<&str> {
    let (_, calls) = row.message.split_once(DURING).filter(|_| row.status == Status::Crashed)?;
    Some(calls.split([';', '.']).next().unwrap_or(calls))
}

/// Returns `true` if the message of a failure says that a function answers for an earlier object, and the other check called this
/// function. What the other check says of the cause may be wrong then, because it compares values.
fn is_stale(cause: &Row, other: &Row) -> bool {
    let function = cause.message.split(' ').next().filter(|_| cause.message.contains(STALE));
    other.status == Status::Wrong
        && function.is_some_and(|name| other.functions.iter().any(|called| called == name))
}

/// Phrases of messages about faults that make the values wrong which other checks find after they called the function. What these
/// checks say of the cause may be wrong then.
const PERVASIVE: &[&str] = &[
    TOO_EARLY,
    BYTES_COME_LATER,
    CHANGED_ARGUMENT,
    OUT_OF_ORDER,
    COMPLETE_FROM_THE_START,
    EARLIER_ARGUMENT,
    EARLIER_PROGRAM,
    SAME_ID,
    READBACK_SIZE,
    CHANGES_WITH_RUNS,
    NOT_WAITED,
    FREED_PROGRAM,
    OF_ANOTHER_DEVICE,
    SAME_ARRAY_TWICE,
    OVERWRITTEN_OUTPUT,
    WRONG_DEFAULT,
    MISSED_CALLBACKS,
];

/// Returns `true` if the message of a failure names a fault that makes many values wrong.
pub(super) fn is_pervasive(row: &Row) -> bool {
    let is_named = row.message.contains(HAZARD) || PERVASIVE.iter().any(|text| row.message.contains(text));
    is_named && !is_indirect(&row.name) && !is_refuted(row)
}

/// Returns `true` if the message of a failure names a fault in the order of operations, for which it has evidence. What other checks
/// say of wrong values may follow from it.
pub(super) fn is_of_order(row: &Row) -> bool {
    [HAZARD, TOO_EARLY, BYTES_COME_LATER, COMPLETE_FROM_THE_START, NOT_WAITED]
        .iter()
        .any(|text| row.message.contains(text))
}

/// Returns `true` if the first failure shows with an array whose data the host withholds what the second one concludes from times.
fn is_controlled(cause: &Row, other: &Row) -> bool {
    cause.message.contains(NOT_WAITED) && other.message.contains(HAZARD)
}

/// Returns `true` if a control of the check showed that the failure is not about what the check tests.
fn is_refuted(row: &Row) -> bool {
    [NO_HAZARD, NO_FAILURE].iter().any(|control| row.message.contains(control))
}

/// Returns `true` if a failure may follow from a fault that makes many values wrong.
fn is_of_values(cause: &Row, check: &Check, other: &Row) -> bool {
    is_pervasive(cause)
        && (!is_pervasive(other) || is_of_order(cause) && !is_of_order(other) || is_controlled(cause, other))
        && other.status == Status::Wrong
        && !is_only_an_error(&other.message)
        && other.functions.iter().any(|called| called == blamed(cause).unwrap_or(function(check)))
}

/// Returns the function that a message about late bytes begins with, whatever the check is about.
fn blamed(row: &Row) -> Option<&str> {
    let (name, _) = row.message.split_once(": ").filter(|_| row.message.contains(BYTES_COME_LATER))?;
    name.starts_with("PJRT_").then_some(name)
}

/// Returns `true` if the first failure says that the simplest transfer is wrong, from which wrong values of arrays follow, whatever
/// the second one says of their cause.
fn is_of_transfers(cause: &Row, other: &Row) -> bool {
    const READ: &str = "PJRT_Buffer_ToHostBuffer";
    const VALUES: [&str; 5] = [DIFFER, "]; expected [", "wrong elements", "wrong results", "element 0 of"];
    cause.message.contains(WRONG_TRANSFER)
        && !other.message.contains(WRONG_TRANSFER)
        && other.status == Status::Wrong
        && VALUES.iter().any(|words| other.message.contains(words))
        && other.functions.iter().any(|called| called == READ)
}

/// Returns `true` if a failure is about an error with the only code that a plugin has.
fn is_of_codes(cause: &Row, other: &Row) -> bool {
    let only = cause.message.split_once("returns ").and_then(|(_, code)| code.split(' ').next());
    other.functions.iter().any(|called| called == "PJRT_Error_GetCode")
        && only.is_some_and(|code| other.message.contains(code))
}

/// Returns `true` if a failure is about the text of an error.
fn is_of_messages(row: &Row) -> bool {
    let is_named =
        ["message", "the error of", "reports PJRT_Event_Await"].iter().any(|text| row.message.contains(text));
    row.status == Status::Wrong
        && is_named
        && row.functions.iter().any(|called| called == "PJRT_Error_Message")
}

/// Returns `true` if the message of a failure says that callbacks, or ready events, do not receive errors, and the other check
/// received none.
fn is_lost(cause: &Row, other: &Row) -> bool {
    let receives_none =
        ["success", "no error", "without an error"].iter().any(|text| other.message.contains(text));
    let calls = |function: &str| other.functions.iter().any(|called| called == function);
    let is_cause = cause.message.contains(LOST_BY_CALLBACK) && calls("PJRT_Event_OnReady")
        || cause.message.contains(NOT_IN_READY_EVENT) && calls("PJRT_Buffer_ReadyEvent");
    is_cause && receives_none && other.status == Status::Wrong
}

/// Returns `true` if the message of a failure says that the outputs of programs are in the order of other dimensions, and the other
/// check found wrong values after an execution.
fn is_in_another_order(cause: &Row, check: &Check, other: &Row) -> bool {
    const EXECUTE: &str = "PJRT_LoadedExecutable_Execute";
    cause.message.contains(ORDER_IGNORED)
        && function(check) == EXECUTE
        && !is_indirect(&cause.name)
        && other.status == Status::Wrong
        && !is_only_an_error(&other.message)
        && other.functions.iter().any(|called| called == EXECUTE)
}

/// Returns `true` if a failure may follow from wrong results of some devices.
fn is_of_devices(row: &Row) -> bool {
    let is_about = ["placement/", "random/"].iter().any(|area| row.name.starts_with(area));
    row.status == Status::Wrong
        && (is_about || [&row.name, &row.message].iter().any(|text| text.contains("device")))
}

/// Returns `true` if both failures found the same value where they expected the same other one, or both found an empty list,
/// after a call of the function that the first one is about.
fn finds_the_same(cause: &Row, check: &Check, other: &Row) -> bool {
    let found = found_and_expected(&cause.message).zip(found_and_expected(&other.message));
    let is_same = found.is_some_and(|(first, second)| first == second || [first.0, second.0] == ["[]", "[]"]);
    is_same && !is_indirect(&cause.name) && other.functions.iter().any(|called| called == function(check))
}

/// Returns `true` if both checks are about one function, with which few checks deal, and the first one is simpler: it calls only
/// functions that the second one calls too.
fn is_simpler(table: &Table<'_>, cause: &Row, other: &Row) -> bool {
    let are_wrong = cause.status == Status::Wrong && other.status.is_failure();
    let is_part = || cause.functions.iter().all(|called| other.functions.contains(called));
    are_wrong
        && !is_indirect(&cause.name)
        && cause.functions.len() < other.functions.len()
        && table.rare_function(&cause.name).is_some_and(|of| table.rare_function(&other.name) == Some(of))
        && is_part()
}

/// Returns the values `a` and `b` of a message with the words `is a; expected b`.
fn found_and_expected(message: &str) -> Option<(&str, &str)> {
    let (before, after) = message.split_once("; expected ")?;
    let found = before.rsplit_once(" is ").map(|(_, found)| found)?;
    Some((found, after.split([';', ':', '.', ',']).next().unwrap_or(after)))
}

/// Returns `true` if both checks run other checks again, with the same variation. A check of such an area fails only if it passes
/// without the variation.
fn are_of_one_variation(first: &str, second: &str) -> bool {
    let variation = |name: &str| name.split_once('/').map(|(variation, _)| variation.to_owned());
    runs_again(first) && runs_again(second) && variation(first) == variation(second)
}

/// The part of a message about a check that fails, and passes in a process of its own.
pub(crate) const ALONE: &str = "In a process of its own, the check passes";

/// The sentences about a plugin that fails a check only after others, or only sometimes.
pub(crate) const AFTER_OTHERS: &str =
    "the plugin probably shares state between clients, keeps state of earlier calls, or has a data race";
pub(crate) const SOMETIMES: &str = "the outcome depends on timing, and the plugin probably has a data race, or an operation does not \
                                    wait for another one";

pub(crate) const SLOW: &str = "the check takes about as long as its time limit, which --timeout changes, or an operation hangs \
                               sometimes";

/// Phrases of messages that name one fault of a plugin, which many checks notice.
const FAULTS: &[&str] = &[
    HOST_MEMORY,
    "the elements are packed",
    "a conversion",
    "of which true is 1",
    "shares state between clients",
    LOST_BY_CALLBACK,
    CHANGED_BY_CALLBACK,
    NOT_IN_READY_EVENT,
    NO_CALLBACK_OF_FAILED,
    LOST_BY_EXECUTION,
    LOST_CALLBACK,
    NOT_CALLED,
    NOT_THE_DEFAULT,
    MEMORY_OF_ANOTHER_DEVICE,
    DEVICE_CONTRADICTED,
    "the layout was ignored",
    "the strides were ignored",
    KEPT_POINTER,
    FREED_IN_USE,
    "includes a terminating zero byte",
    "are the kit's initial bytes: the plugin did not write them",
    MISSED_CALLBACKS,
    KEPT_TEXT,
    KEPT_ERROR,
    LEAKED_OUTPUT,
    FREED_WHILE_HELD,
    OFFSET_IGNORED,
    NOT_SPREAD,
    PLANAR,
    ENDS_WITH_ANOTHER,
    WRAPPED,
];

/// Returns `true` if both messages name the same fault. Two hazards may be two faults.
pub(super) fn name_one_fault(first: &str, second: &str) -> bool {
    FAULTS.iter().chain(PERVASIVE).any(|fault| first.contains(fault) && second.contains(fault))
}

/// Returns the function according to which an array is elsewhere than the check expects.
pub(super) fn observer(row: &Row) -> Option<&str> {
    let starts = |name: &&str| row.message.starts_with(*name);
    if let Some(name) = ["PJRT_Buffer_Device of ", "PJRT_Buffer_Memory of "].iter().find(|name| starts(name))
    {
        return name.split(' ').next();
    }
    let (_, observer) = row.message.split_once(ACCORDING_TO)?;
    observer.split([';', ' ']).next().filter(|name| name.starts_with("PJRT_"))
}

/// Returns `true` if one function that several threads call at once explains the failure of a check with several threads, which
/// calls this function too.
fn is_race(cause: &Row, check: &Check, other: &Row) -> bool {
    cause.name.starts_with("threads/")
        && !other.name.starts_with("threads/")
        && depends_on_timing(&other.name)
        && other.functions.iter().any(|called| called == function(check))
}

/// Returns `true` if the plugin did not call the callback of an event.
fn loses_callback(row: &Row) -> bool {
    let is_lost = |text: &str| {
        ["the callback", "callback "].iter().any(|of| text.contains(of))
            && ["not called", "does not call its callback"].iter().any(|lost| text.contains(lost))
    };
    row.status == Status::Wrong
        && row.functions.iter().any(|called| called == "PJRT_Event_OnReady")
        && is_lost(&row.message)
}

/// Returns `true` if both failures are wrong elements of one element type, with which only few checks deal.
fn are_of_one_type(cause: &Row, other: &Row) -> bool {
    let differs = |row: &Row| row.status == Status::Wrong && row.message.contains(DIFFER);
    differs(cause) && differs(other) && family(cause).is_some_and(|of| family(other) == Some(of))
}

/// Returns `true` if the message of a failure names a conversion of the elements, and the other one, which names no cause, is
/// about the same element type.
fn is_converted(cause: &Row, other: &Row) -> bool {
    let from = cause.message.split_once(CONVERTED).and_then(|(_, from)| from.split(' ').next());
    let is_named = |name: &str| words(&other.message).any(|word| word.eq_ignore_ascii_case(name));
    let names_another = names_a_cause(&other.message) && !other.message.contains(CONVERTED);
    other.status == Status::Wrong && !names_another && from.is_some_and(is_named)
}

/// Returns the kind of the elements of the array that a failure is about: the type that its message names first, or that of the
/// check. Returns `None` for the types of most arrays, which have nothing in common.
fn family(row: &Row) -> Option<&'static str> {
    let named = |text: &str| words(text).find_map(ElementType::by_name);
    let element_type = named(&row.message).or_else(|| named(row.name.rsplit('_').next()?))?;
    let name = element_type.stablehlo_name();
    match name {
        _ if !element_type.fills_bytes() => Some("less than a byte"),
        "complex<f32>" | "complex<f64>" => Some("complex"),
        "i1" | "f16" | "bf16" => Some(name),
        _ if name.starts_with("f8") => Some(name),
        // Two faults that the kit does not recognize hardly have the same type by accident.
        _ if row.message.contains(UNKNOWN) && element_type != ElementType::F32 => Some(name),
        _ => None,
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric())
}

/// Returns `true` if a message names a probable cause of an error of the plugin, with which the other message ends.
pub(super) fn quotes(message: &str, other: &str) -> bool {
    let other = other.split_once(ALONE).map_or(other, |(before, _)| before.trim_end_matches(['.', ' ']));
    // Several functions may return one error.
    let error = other.find("PJRT_").and_then(|at| other[at..].split_once(": "));
    let error = error.map_or("", |(_, error)| error);
    error.contains(": ")
        && message.contains("probably")
        && message != other
        && (message.contains(error) || without_addresses(message).contains(&without_addresses(error)))
}

/// Returns a message with a mark in place of each long number, which may be an address.
fn without_addresses(message: &str) -> String {
    const LONG: usize = 7;
    let parts = message.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_address = |part: &&str| {
        part.len() >= LONG
            && part.bytes().all(|byte| byte.is_ascii_hexdigit())
            && part.bytes().any(|byte| byte.is_ascii_digit())
    };
    parts.filter(is_address).fold(message.to_owned(), |text, number| text.replacen(number, "#", 1))
}

/// Returns `true` if a message is the error of a function that fails in almost every check that calls it. A check with a more
/// special rule then names a cause that it cannot tell from this one.
pub(super) fn fails_everywhere(rows: &[Row], message: &str) -> bool {
    let Some((function, _)) = message.split_once(": ").filter(|_| is_only_an_error(message)) else {
        return false;
    };
    let calls = |row: &&Row| row.functions.iter().any(|called| called == function);
    let passed = rows.iter().filter(calls).filter(|row| row.status == Status::Passed).count();
    let failed = rows.iter().filter(calls).filter(|row| row.status.is_failure()).count();
    // Checks that expect an error pass.
    failed > 4 * passed
}

/// Returns `true` if a message contains an error of the plugin.
fn is_of_an_error(message: &str) -> bool {
    message.split("PJRT_").skip(1).any(|call| {
        let mut parts = call.splitn(3, ": ").map(|part| part.bytes());
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        parts.next().is_some_and(|mut name| name.all(is_name))
            && parts.next().is_some_and(|mut code| code.all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
    })
}

/// Returns `true` if a message is only that a function returned something which is no valid result, such as a null pointer. What
/// checks say of the cause of this is no better than that.
fn breaks_the_interface(message: &str) -> bool {
    message.starts_with("PJRT_") && message.contains(": it succeeded, but ") && !names_a_cause(message)
}

/// Returns `true` if a message contains a whole other one, which is about a function, and names no cause of its own: it says in
/// which of many steps the other one happened.
fn repeats(message: &str, whole: &str) -> bool {
    ["PJRT_", "the process ended with "].iter().any(|start| whole.starts_with(start))
        && message.contains(whole)
        && names_a_cause(message) == names_a_cause(whole)
        && message != whole
}

/// Returns `true` if the message consists of an error of the plugin, such as `PJRT_X: INTERNAL: failed`, and does not say what
/// the plugin did wrong.
pub(super) fn is_only_an_error(message: &str) -> bool {
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_code = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let parts: Vec<&str> = message.splitn(3, ": ").collect();
    matches!(parts[..], [function, code, _] if function.starts_with("PJRT_") && is_name(function) && is_code(code))
        && !names_a_cause(message)
}

/// Returns `true` if the message says what the plugin probably did.
pub(super) fn names_a_cause(message: &str) -> bool {
    ["probabl", NEVER_COMPLETE, BYTES_COME_LATER, WRONG_TRANSFER].iter().any(|words| message.contains(words))
        || message.contains("Probable cause: ") && !message.contains(UNKNOWN)
}

/// Returns `true` if the outcome of the check depends on the timing of threads.
pub(super) fn depends_on_timing(name: &str) -> bool {
    name.ends_with("threads") || name.starts_with("threads/") || name.contains("races")
}

/// Returns `true` if the check calls so much that other checks say more about the cause of a failure.
pub(super) fn is_indirect(name: &str) -> bool {
    // A huge upload crashes plugins for many reasons, because the host's memory is only reserved.
    depends_on_timing(name)
        || name == "memory/too_large_upload"
        || name.starts_with("random/")
        || runs_again(name)
}

/// Returns `true` if the message names the field that the rule's source is about.
pub(super) fn names_its_field(row: &Row, checks: &[Check]) -> bool {
    let check = checks.iter().find(|check| check.name == row.name);
    let place = check.and_then(|check| match check.source {
        Source::Header { place, .. } => place.split_once("_Args::"),
        Source::Host { .. } | Source::Advice { .. } => None,
    });
    place.is_some_and(|(_, field)| row.message.contains(field))
}

/// Returns `true` if at least half of the checks that match the pattern, and applied, failed.
fn mostly_failed(rows: &[Row], pattern: &str) -> bool {
    let matching = || rows.iter().filter(|row| matches(pattern, &row.name));
    let failed = matching().filter(|row| row.status.is_failure()).count();
    let passed = matching().filter(|row| row.status == Status::Passed).count();
    failed >= passed
}

/// Returns `true` if the message names the function that the check is about.
pub(super) fn names_its_function(row: &Row, checks: &[Check]) -> bool {
    let check = checks.iter().find(|check| check.name == row.name);
    check.is_some_and(|check| row.message.contains(function(check)))
}

/// Returns the function that the check is about: the one in which its fault is.
pub(super) fn function(check: &Check) -> &str {
    check.fault.split(' ').next().unwrap_or_default()
}

/// Returns `true` if the check plays all calls of a host, and so depends on most other rules.
fn is_scenario(name: &str) -> bool {
    name.starts_with("host/")
}
