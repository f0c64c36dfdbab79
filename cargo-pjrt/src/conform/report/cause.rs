//! Groups failures that probably have one cause.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::Row;
use super::explanation::{
    ALONE, Table, explains, fails_everywhere, function, is_indirect, is_of_order, is_only_an_error,
    is_pervasive, name_one_fault, names_a_cause, names_its_field, names_its_function, observer, quotes,
};
use crate::conform::harness::{
    AFTER_THE_CALL, CLIENT, CONVERTED, Check, DURING, HAZARD, INITIALIZES, LAYOUT_IGNORED, MISSED_CALLBACKS,
    NEVER_COMPLETE, PAST_THE_END, PLANAR, STALE, STRIDES_IGNORED, Status, WRONG_TRANSFER,
};

/// Sets [`Row::echo_of`] of each failure that another failure [explains](explains).
///
/// The failure that explains most others is a cause, and the others are its echoes. This is repeated with the
/// failures that remain, so that the report has few causes.
pub(crate) fn group(rows: &mut [Row], checks: &[Check]) {
    group_failures(rows, checks);
    explain_crashes(rows);
    // A crash of what every check calls is no reason for advice.
    for at in 0..rows.len() {
        let Row { status, message, .. } = &rows[at];
        let explains = |row: &&Row| row.status.is_failure() && row.message == *message && !message.is_empty();
        if *status == Status::Advice {
            let cause = rows.iter().find(explains);
            rows[at].echo_of = cause.map(|row| row.echo_of.as_ref().unwrap_or(&row.name).clone());
        }
    }
}

/// Adds to the messages of crashes the cause that another check names for a crash in the same function. That check may be advice,
/// because hosts need not do what it does.
fn explain_crashes(rows: &mut [Row]) {
    let explained = |row: &&Row| row.message.contains(PAST_THE_END);
    let known: Vec<(String, String)> = rows
        .iter()
        .filter(explained)
        .filter_map(|row| Some((function_of_crash(row)?.to_owned(), row.name.clone())))
        .collect();
    for row in rows.iter_mut().filter(|row| row.status == Status::Crashed && !explained(&&**row)) {
        let name = known.iter().find(|(function, _)| Some(function.as_str()) == function_of_crash(row));
        if let Some((_, name)) = name {
            row.message = format!("{}. As in {name}, {PAST_THE_END}", row.message);
        }
    }
}

/// Returns the function during whose call the process of a check ended.
fn function_of_crash(row: &Row) -> Option<&str> {
    row.message.split_once(DURING)?.1.split([' ', ';', '.']).next()
}

fn group_failures(rows: &mut [Row], checks: &[Check]) {
    let table = Table::new(checks);
    let mut left: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].status.is_failure()).collect();
    let fails_everywhere: Vec<bool> = rows.iter().map(|row| fails_everywhere(rows, &row.message)).collect();
    while !left.is_empty() {
        let echoes = |cause: usize| -> Vec<usize> {
            let contains =
                |i: usize| fails_everywhere[cause] && rows[i].message.contains(&rows[cause].message);
            let suspects = |i: usize| fails_everywhere[i] && quotes(&rows[cause].message, &rows[i].message);
            let is_explained = |i: usize| !suspects(i) && explains(rows, &table, &rows[cause], &rows[i]);
            let echo = |&i: &usize| i != cause && (contains(i) || is_explained(i));
            left.iter().copied().filter(echo).collect()
        };
        // An error is no cause if another failure says what causes this error.
        let is_quoted = |i: usize| {
            !fails_everywhere[i] && left.iter().any(|by| quotes(&rows[*by].message, &rows[i].message))
        };
        let unexplained: Vec<usize> = left.iter().copied().filter(|i| !is_quoted(*i)).collect();
        let candidates = if unexplained.is_empty() { &left } else { &unexplained };
        let by_cause = candidates.iter().map(|&cause| (cause, echoes(cause)));
        // A transfer that is wrong comes first. Of those that explain equally many, one that fails alone, that is direct, that says more than the plugin's error, of
        // the function and the field that the message names, that most hosts need, that calls the fewest functions, or else
        // the first.
        let rank = |(cause, echoes): &(usize, Vec<usize>)| {
            let row = &rows[*cause];
            (
                row.message.contains(WRONG_TRANSFER),
                echoes.len(),
                is_pervasive(row),
                [NEVER_COMPLETE, MISSED_CALLBACKS].iter().any(|text| row.message.contains(text)),
                !row.message.contains(ALONE),
                !is_indirect(&row.name),
                !is_only_an_error(&row.message),
                names_its_function(row, checks),
                names_its_field(row, checks),
                checks.iter().find(|check| check.name == row.name).map(|check| check.needed_by.len()),
                Reverse(row.functions.len()),
            )
        };
        let most = by_cause.reduce(|most, next| if rank(&next) > rank(&most) { next } else { most });
        let Some((cause, echoes)) = most.map(|most| led_by_an_exact_one(rows, most)) else { return };
        left.retain(|i| *i != cause && !echoes.contains(i));
        blame_observer(rows, checks, cause, &echoes);
        let name = rows[cause].name.clone();
        echoes.into_iter().for_each(|echo| rows[echo].echo_of = Some(name.clone()));
    }
}

/// Adds to the message of a cause that the function which says where arrays are is probably wrong, if several functions that
/// create arrays seem to put them elsewhere.
fn blame_observer(rows: &mut [Row], checks: &[Check], cause: usize, echoes: &[usize]) {
    const LEAST: usize = 3;
    let Some(observer) = observer(&rows[cause]).map(str::to_owned) else { return };
    let creates = |name: &str| {
        ["PJRT_Client_", "PJRT_Buffer_CopyTo"].iter().any(|start| name.starts_with(start))
            && !name.starts_with("PJRT_Client_Compile")
    };
    let check_of = |at: usize| checks.iter().find(|check| check.name == rows[at].name);
    let functions: BTreeSet<&str> = echoes
        .iter()
        .copied()
        .chain([cause])
        .filter_map(check_of)
        .map(function)
        .filter(|name| creates(name))
        .collect();
    if functions.len() >= LEAST {
        let count = functions.len();
        rows[cause].message += &format!(
            ". Checks of {count} functions that create arrays find this: {observer} itself probably answers wrongly"
        );
    }
}

/// Returns a cause and its echoes, of which one that names the fault exactly is the cause, if there is one.
fn led_by_an_exact_one(rows: &[Row], (cause, mut echoes): (usize, Vec<usize>)) -> (usize, Vec<usize>) {
    let is_exact = |at: &usize| EXACT.iter().any(|fault| rows[*at].message.contains(fault));
    let is_transfer = rows[cause].message.contains(WRONG_TRANSFER);
    let leads = |at: &usize| {
        is_exact(at) && !is_indirect(&rows[*at].name) && !(is_transfer && is_of_order(&rows[*at]))
    };
    let exact = || echoes.iter().position(leads);
    // Of several messages that name one fault, the shortest one guesses least.
    let len = |at: usize| rows[at].message.len();
    let same =
        |at: &usize| is_pervasive(&rows[*at]) && name_one_fault(&rows[cause].message, &rows[*at].message);
    let shortest = || {
        let at = (0..echoes.len()).filter(|at| same(&echoes[*at])).min_by_key(|at| len(echoes[*at]))?;
        (len(echoes[at]) < len(cause)).then_some(at)
    };
    // An answer for an earlier object looks like other faults.
    let is_told = is_exact(&cause) || rows[cause].message.contains(STALE);
    let Some(at) = exact().filter(|_| !is_told).or_else(shortest) else { return (cause, echoes) };
    let exact = std::mem::replace(&mut echoes[at], cause);
    (exact, echoes)
}

/// Phrases of messages that name a fault more exactly than the other messages about the same fault.
const EXACT: &[&str] = &[CONVERTED, STRIDES_IGNORED, LAYOUT_IGNORED, PLANAR, AFTER_THE_CALL, HAZARD];

/// Returns the failures of which no other one in the list is the cause, in the order in which a report lists them: those that
/// every check depends on, then those whose messages say most, and of these the ones that explain most others.
pub(super) fn listed<'r>(failures: &[&'r Row]) -> Vec<&'r Row> {
    let is_listed = |cause: &String| failures.iter().any(|row| row.name == *cause);
    let stands_alone = |row: &&Row| !row.echo_of.as_ref().is_some_and(is_listed);
    let mut causes: Vec<&Row> = failures.iter().copied().filter(stands_alone).collect();
    causes.sort_by_key(|cause| {
        let is_of_all = [INITIALIZES, CLIENT].contains(&cause.name.as_str());
        let is_uncertain = is_indirect(&cause.name);
        let echoes = failures.iter().filter(|row| row.echo_of.as_ref() == Some(&cause.name)).count();
        let (is_error, is_unexplained) = (is_only_an_error(&cause.message), !names_a_cause(&cause.message));
        (!is_of_all, is_uncertain, is_error, is_unexplained, Reverse(echoes))
    });
    causes
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;
    use crate::conform::checks;
    use crate::conform::harness::{
        ACCORDING_TO, BYTES_COME_LATER, DIFFER, ENDS_WITH_ANOTHER, NOT_WAITED, ONE_CODE, ORDER_IGNORED,
        RIGHT_ON_ANOTHER,
    };

    /// Returns the causes of failures with these names and messages, each with its echoes.
    fn causes(failures: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        let mut rows: Vec<Row> =
            failures.iter().map(|(name, message)| row(name, Status::Wrong, message)).collect();
        group(&mut rows, &checks());
        let echoes = |cause: &Row| {
            let of_cause = |row: &&Row| row.echo_of.as_deref() == Some(cause.name.as_str());
            rows.iter().filter(of_cause).map(|row| row.name.clone()).collect()
        };
        let is_cause = |row: &&Row| row.echo_of.is_none();
        rows.iter().filter(is_cause).map(|row| (row.name.clone(), echoes(row))).collect()
    }

    #[test]
    fn a_failure_that_breaks_other_checks_is_their_cause() {
        let all = checks();
        let breaks = |check: &&Check| check.also.iter().any(|other| !other.ends_with('*'));
        for cause in all.iter().filter(breaks) {
            let broken = cause.also.iter().find(|other| !other.ends_with('*')).unwrap();
            let found = causes(&[(broken, "one"), (&cause.name, "two")]);
            assert_eq!(found.len(), 1, "{}: {found:?}", cause.name);
        }
    }

    #[test]
    fn failures_with_the_same_message_have_one_cause_and_others_have_their_own() {
        let found = causes(&[("area/a", "one"), ("area/b", "two"), ("area/c", "one")]);
        assert_eq!(
            found,
            [("area/a".to_owned(), vec!["area/c".to_owned()]), ("area/b".to_owned(), Vec::new())]
        );
    }

    #[test]
    fn a_message_that_names_the_cause_of_an_error_explains_failures_with_this_error() {
        let error = "PJRT_LoadedExecutable_Execute: INTERNAL: not loaded";
        let named = format!("the other does not run: {error}; the plugin probably frees both");
        let found = causes(&[("execute/by_many_threads", error), ("area/b", error), ("area/named", &named)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "area/named");
    }

    #[test]
    fn a_function_that_always_fails_is_the_cause_of_what_special_checks_suspect() {
        let error = "PJRT_LoadedExecutable_Execute: INTERNAL: device lost";
        let named = format!("the other does not run: {error}; the plugin probably frees both");
        let messages = [("executables/a", named.as_str()), ("execute/adds", error), ("execute/b", error)];
        let mut rows = messages.map(|(name, message)| row(name, Status::Wrong, message));
        rows.iter_mut().for_each(|row| row.functions = vec!["PJRT_LoadedExecutable_Execute".into()]);
        group(&mut rows, &checks());
        assert_eq!(rows[1].echo_of, None);
        assert!([0, 2].iter().all(|at| rows[*at].echo_of.as_deref() == Some("execute/adds")), "{rows:?}");
    }

    #[test]
    fn failures_that_name_one_fault_have_one_cause() {
        let found = causes(&[
            ("area/a", "all elements are 1: the plugin still reads the host's memory"),
            ("area/b", "the plugin still reads the host's memory after the event"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn an_ignored_order_is_one_cause_whatever_check_finds_it() {
        for one in [STRIDES_IGNORED, LAYOUT_IGNORED] {
            let found = causes(&[("area/a", one), ("area/b", ORDER_IGNORED)]);
            assert_eq!(found.len(), 1, "{found:?}");
        }
        assert_eq!(causes(&[("area/a", STRIDES_IGNORED), ("area/b", LAYOUT_IGNORED)]).len(), 2);
    }

    #[test]
    fn a_hazard_leads_the_wrong_values_that_it_explains() {
        let hazard =
            format!("an execution has 9 of 9 wrong elements, {HAZARD}: the plugin probably does not wait");
        let found = causes(&[
            ("passed/argument_lists", "the sum is [0.0]; expected [3.0]"),
            ("area/b", "the sum is [0.0]; expected [3.0]"),
            ("hazards/read_after_write", &hazard),
        ]);
        assert_eq!(found[0].0, "hazards/read_after_write", "{found:?}");
    }

    #[test]
    fn a_simple_transfer_that_stays_wrong_leads_all_wrong_values() {
        let hazard = format!("9 of 9 wrong elements, {HAZARD}: the plugin probably does not wait");
        let transfer = format!("the array: 4 of 5 {DIFFER} 1 is 0; expected 42. {WRONG_TRANSFER}");
        let messages = [
            (
                "waiting/copies_wait_for_data",
                format!("the copy is [1.0, 0.0]; expected [1.0, 2.0]: {NOT_WAITED}"),
            ),
            ("upload/numbers_arrive", transfer),
            ("hazards/read_after_write", hazard),
            ("upload/with_gaps", format!("the array: 2 of 3 {DIFFER} 1: {STRIDES_IGNORED}")),
            ("codes/differ", "the code is always UNKNOWN".to_owned()),
        ];
        let mut rows = messages.each_ref().map(|(name, message)| row(name, Status::Wrong, message));
        rows[..4].iter_mut().for_each(|row| row.functions = vec!["PJRT_Buffer_ToHostBuffer".into()]);
        group(&mut rows, &checks());
        let echoes = rows.each_ref().map(|row| row.echo_of.as_deref());
        // Ignored strides are a more exact name of the fault.
        let strides = Some("upload/with_gaps");
        assert_eq!(echoes, [strides, strides, strides, None, None]);
        rows.iter_mut().for_each(|row| row.echo_of = None);
        let mut rows = [0, 1, 2, 4].map(|at| rows[at].clone());
        group(&mut rows, &checks());
        let transfer = Some("upload/numbers_arrive");
        assert_eq!(rows.each_ref().map(|row| row.echo_of.as_deref()), [transfer, None, transfer, None]);
        assert_eq!(listed(&rows.each_ref())[0].name, "upload/numbers_arrive");
    }

    #[test]
    fn an_error_whose_cause_is_named_is_no_cause() {
        let error = "PJRT_Client_Compile: INVALID_ARGUMENT: unsupported program format";
        let named = format!("{error}. The plugin probably reads `format` up to a zero byte");
        let later = format!("the client cannot be used afterwards: {error}");
        let found = causes(&[
            ("memory/too_large_array", &later),
            ("compile/name", error),
            ("texts/serialized_executable", error),
            ("area/named", &named),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "area/named");
    }

    #[test]
    fn a_failure_explains_those_that_say_in_which_step_it_happened() {
        let message = "PJRT_Buffer_ToHostBuffer: it succeeded, but its event is a null pointer";
        let many = format!("52 of 1053 programs fail: abs f32 empty: {message}");
        let random = format!("{message}. The calls: upload F32[0]");
        let found = causes(&[("results/operations", &many), ("area/a", message), ("area/b", &random)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "area/a");
        let named = format!("the copy cannot be read: {message}. The plugin probably freed it");
        let found = causes(&[("area/a", message), ("area/b", &named)]);
        assert_eq!(found, [("area/a".to_owned(), vec!["area/b".to_owned()])]);
    }

    #[test]
    fn an_error_with_an_address_is_one_error() {
        let [first, second] = ["94021", "13777"].map(|end| {
            format!("PJRT_LoadedExecutable_Execute: INTERNAL: range end index 119705732253156{end} out of range for 6")
        });
        let found = causes(&[("area/a", &first), ("area/b", &second)]);
        assert_eq!(found.len(), 1, "{found:?}");
        let others = ["argument 1", "argument 2"].map(|what| format!("PJRT_Buffer_Delete: INTERNAL: {what}"));
        assert_eq!(causes(&[("area/a", &others[0]), ("area/b", &others[1])]).len(), 2);
    }

    #[test]
    fn an_object_that_ends_with_another_explains_crashes() {
        let named = format!("the loaded executable does not run: {ENDS_WITH_ANOTHER}");
        let mut rows = [
            row("waiting/many_launches_ahead", Status::Crashed, "the process ended with an abort"),
            row("executables/two_references", Status::Wrong, &named),
            row("area/b", Status::Wrong, "the name is empty"),
        ];
        group(&mut rows, &checks());
        let echoes = rows.each_ref().map(|row| row.echo_of.as_deref());
        assert_eq!(echoes, [Some("executables/two_references"), None, None]);
    }

    #[test]
    fn errors_of_the_plugin_are_told_from_messages_of_checks() {
        assert!(is_only_an_error("PJRT_Buffer_Delete: INVALID_ARGUMENT: the buffer: deleted"));
        assert!(!is_only_an_error("PJRT_Buffer_Delete: it succeeded, but the event is a null pointer"));
        assert!(!is_only_an_error("the copy cannot be read: PJRT_Buffer_ToHostBuffer: INTERNAL: deleted"));
        assert!(!is_only_an_error("PJRT_Buffer_Delete: INTERNAL: deleted. The plugin probably shares it"));
    }

    #[test]
    fn bytes_that_come_after_their_event_explain_crashes() {
        let later = format!("PJRT_Buffer_ToHostBuffer: it reported that {BYTES_COME_LATER}");
        let mut rows = [
            row("lent/a", Status::Crashed, "the process ended with an abort during PJRT_Buffer_Destroy"),
            row("upload/of_each_rank", Status::Wrong, &later),
            row("event/b", Status::Wrong, "the event has no error"),
            row("compile/c", Status::Crashed, "the process ended with a segmentation fault"),
        ];
        rows[0].functions = vec!["PJRT_Buffer_ToHostBuffer".into(), "PJRT_Buffer_Destroy".into()];
        group(&mut rows, &checks());
        let echoes = rows.each_ref().map(|row| row.echo_of.as_deref());
        assert_eq!(echoes, [Some("upload/of_each_rank"), None, None, None]);
    }

    #[test]
    fn advice_with_the_message_of_a_failure_is_its_echo() {
        let mut rows = [("area/a", Status::Crashed), ("area/b", Status::Advice), ("area/c", Status::Advice)]
            .map(|(name, status)| row(name, status, "the process ended with an abort"));
        rows[2].message = "the code is INTERNAL".to_owned();
        group(&mut rows, &[]);
        let echoes = rows.each_ref().map(|row| row.echo_of.as_deref());
        assert_eq!(echoes, [None, Some("area/a"), None]);
    }

    #[test]
    fn a_race_does_not_explain_a_failure_whose_cause_is_known() {
        let found = causes(&[
            ("execute/by_many_threads", "3"),
            ("waiting/many_launches_ahead", "4; probably reused"),
        ]);
        assert_eq!(found[0].0, "waiting/many_launches_ahead", "{found:?}");
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_pattern_explains_failures_only_where_most_checks_fail() {
        let all = checks();
        let cause = all.iter().find(|check| check.also.contains(&"compile/*")).unwrap();
        let names = |status| move |number| row(&format!("compile/{number}"), status, "other");
        let passed: Vec<Row> = (0..3).map(names(Status::Passed)).collect();
        let mut rows = vec![row(&cause.name, Status::Crashed, ""), row("compile/own", Status::Wrong, "own")];
        group(&mut rows, &all);
        assert_eq!(rows[1].echo_of.as_ref(), Some(&cause.name));
        rows[1].echo_of = None;
        rows.extend(passed);
        group(&mut rows, &all);
        assert_eq!(rows[1].echo_of, None);
    }

    #[test]
    fn a_function_that_answers_for_an_earlier_object_explains_what_follows() {
        let stale = format!("PJRT_Buffer_ToHostBuffer of an array is 1; expected 2: {STALE}");
        let messages = [
            ("area/copy", "element 0 is 1; the plugin probably shares the memory"),
            ("reports/of_new_arrays", stale.as_str()),
            ("area/other", "the name is empty"),
        ];
        let mut rows = messages.map(|(name, message)| row(name, Status::Wrong, message));
        rows[..2].iter_mut().for_each(|row| row.functions = vec!["PJRT_Buffer_ToHostBuffer".into()]);
        group(&mut rows, &checks());
        assert_eq!(rows[0].echo_of.as_deref(), Some("reports/of_new_arrays"));
        assert!(rows[1..].iter().all(|row| row.echo_of.is_none()), "{rows:?}");
    }

    #[test]
    fn a_function_that_returns_an_empty_list_is_one_cause() {
        let messages = [
            "the dimensions is []; expected [2, 3]",
            "the dimensions of array 69 is []; expected [3]",
            "it is [1]; expected [4]",
        ];
        let names = ["buffer/dims", "area/b", "area/c"];
        let mut rows = [0, 1, 2].map(|at| row(names[at], Status::Wrong, messages[at]));
        rows.iter_mut().for_each(|row| row.functions = vec!["PJRT_Buffer_Dimensions".into()]);
        group(&mut rows, &checks());
        assert_eq!(rows.each_ref().map(|row| row.echo_of.as_deref()), [None, Some("buffer/dims"), None]);
    }

    #[test]
    fn areas_that_fail_with_one_variation_have_one_cause() {
        let found = causes(&[
            ("another_thread/upload", "1"),
            ("another_thread/buffer", "2"),
            ("last_device/buffer", "3"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn hangs_have_one_cause_which_is_no_random_sequence() {
        let mut rows = ["random/arrays", "area/a", "area/b"].map(|name| row(name, Status::TimedOut, name));
        group(&mut rows, &[]);
        assert_eq!(rows[1].echo_of, None);
        assert!([0, 2].iter().all(|at| rows[*at].echo_of.as_deref() == Some("area/a")));
    }

    #[test]
    fn a_hang_that_does_not_occur_alone_is_the_echo_of_one_that_does() {
        let after_others = format!("no progress for 60 s. {ALONE}");
        let messages = [("struct_size/a", after_others.as_str()), ("execute/by_many_threads", "no progress")];
        let mut rows = messages.map(|(name, message)| row(name, Status::TimedOut, message));
        group(&mut rows, &[]);
        assert_eq!(rows[0].echo_of.as_deref(), Some("execute/by_many_threads"));
    }

    #[test]
    fn the_cause_is_the_check_of_the_function_that_the_message_names() {
        let message = "PJRT_Buffer_Dimensions: INTERNAL: an injected fault";
        let found = causes(&[("upload/scalar", message), ("buffer/dims", message)]);
        assert_eq!(found, [("buffer/dims".to_owned(), vec!["upload/scalar".to_owned()])]);
    }

    #[test]
    fn crashes_have_one_cause_only_if_it_is_known_which_function_was_called_last() {
        let mut rows = [row("area/a", Status::Crashed, "abort"), row("area/b", Status::Crashed, "abort")];
        group(&mut rows, &[]);
        assert!(rows.iter().all(|row| row.echo_of.is_none()));
        rows.iter_mut().for_each(|row| row.functions = vec!["PJRT_Buffer_Destroy".into()]);
        group(&mut rows, &[]);
        assert_eq!(rows[1].echo_of.as_deref(), Some("area/a"));
    }

    #[test]
    fn a_crash_has_the_cause_that_advice_names_for_the_same_function() {
        let of = |risk: &str, call: &str| format!("{risk}the process ended with an abort during {call}");
        let risk = format!("{PAST_THE_END}: the host passed a struct, and ");
        let mut rows = [
            row("area/a", Status::Crashed, &of("", "PJRT_X of the PJRT_Y that PJRT_Z returned")),
            row("area/b", Status::Advice, &of(&risk, "PJRT_X")),
            row("area/c", Status::Crashed, &of("", "PJRT_W")),
        ];
        group(&mut rows, &[]);
        assert!(rows[0].message.contains("As in area/b, the plugin accessed memory"), "{}", rows[0].message);
        assert!(!rows[2].message.contains(PAST_THE_END));
    }

    #[test]
    fn a_function_that_says_the_same_of_all_arrays_is_blamed() {
        let elsewhere =
            |what: &str| format!("{what} is in memory 0{ACCORDING_TO}PJRT_Buffer_Memory; expected memory 1");
        let names = ["placement/aliases", "placement/uninitialized", "placement/errors"];
        let messages = names.map(elsewhere);
        let mut rows = [0, 1, 2].map(|at| row(names[at], Status::Wrong, &messages[at]));
        group(&mut rows, &checks());
        assert_eq!(rows.iter().filter(|row| row.echo_of.is_none()).count(), 1);
        assert!(
            rows.iter().any(|row| row.message.contains("PJRT_Buffer_Memory itself probably")),
            "{rows:?}"
        );
        // Copies alone may be elsewhere.
        let mut rows = [row("placement/copies_to_memories", Status::Wrong, &messages[0])];
        group(&mut rows, &checks());
        assert!(!rows[0].message.contains("itself probably"), "{rows:?}");
    }

    #[test]
    fn a_function_that_threads_call_at_once_explains_other_checks_with_threads() {
        let names = ["threads/large_uploads", "compile/different_programs_by_many_threads", "threads/copies"];
        let mut rows = names.map(|name| row(name, Status::Wrong, name));
        rows[1].functions = vec!["PJRT_Client_BufferFromHostBuffer".into()];
        group(&mut rows, &checks());
        let echoes = rows.each_ref().map(|row| row.echo_of.as_deref());
        assert_eq!(echoes, [None, Some("threads/large_uploads"), None]);
    }

    #[test]
    fn an_operation_that_does_not_wait_explains_wrong_values() {
        let early = format!("an execution has 3 wrong elements, {HAZARD}: the plugin probably does not wait");
        let messages = [
            ("repeats/after_a_failure", "the sum is 1; expected 2; the plugin probably keeps an argument"),
            ("hazards/read_after_write", early.as_str()),
            ("execute/name", "PJRT_Executable_Name: INTERNAL: no name"),
        ];
        let mut rows = messages.map(|(name, message)| row(name, Status::Wrong, message));
        rows.iter_mut().for_each(|row| row.functions = vec!["PJRT_LoadedExecutable_Execute".into()]);
        group(&mut rows, &checks());
        let echoes = rows.each_ref().map(|row| row.echo_of.as_deref());
        assert_eq!(echoes, [Some("hazards/read_after_write"), None, None]);
    }

    #[test]
    fn an_event_that_is_never_complete_explains_checks_that_hang() {
        let never = format!("the event of an array {NEVER_COMPLETE}");
        let mut rows = [
            row("shapes/a", Status::TimedOut, "the check made no progress for 2 s"),
            row("upload/no_elements", Status::Wrong, &never),
            row("shapes/b", Status::TimedOut, "the check made no progress for 6 s"),
        ];
        group(&mut rows, &[]);
        assert!(
            [0, 2].iter().all(|at| rows[*at].echo_of.as_deref() == Some("upload/no_elements")),
            "{rows:?}"
        );
    }

    #[test]
    fn a_device_that_computes_wrong_numbers_explains_other_checks_of_devices() {
        let sum = format!("the sum on the device 1 is [0.0]; expected [2.0], and {RIGHT_ON_ANOTHER}");
        let found = causes(&[
            (
                "repeats/on_each_device",
                "run 1 of a program, between runs on other devices, is 1; expected 111",
            ),
            ("devices/program_for_the_second", &sum),
            (
                "last_device/memory",
                "memory/unpinned fails with the last of 2 devices, and passes with the first",
            ),
            ("upload/of_each_rank", "the array is 0; expected 1"),
        ]);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["devices/program_for_the_second", "upload/of_each_rank"]);
    }

    #[test]
    fn checks_that_find_the_same_value_after_one_function_have_one_cause() {
        let messages = [
            ("buffer/element_type", "the type is U16; expected S16"),
            (
                "random/arrays",
                "PJRT_Buffer_ElementType of an array S16[4] is U16; expected S16. The calls: a",
            ),
            ("shapes/uploads", "the type is S16; expected U16"),
        ];
        let mut rows = messages.map(|(name, message)| row(name, Status::Wrong, message));
        rows.iter_mut().for_each(|row| row.functions = vec!["PJRT_Buffer_ElementType".into()]);
        group(&mut rows, &checks());
        let echoes = rows.each_ref().map(|row| row.echo_of.as_deref());
        assert_eq!(echoes, [None, Some("buffer/element_type"), None]);
    }

    #[test]
    fn of_two_checks_of_a_rare_function_the_simpler_one_is_the_cause() {
        let names = ["special/alias_fails", "isolation/aliases", "codes/of_aliases"];
        let mut rows = names.map(|name| row(name, Status::Wrong, name));
        for (row, count) in rows.iter_mut().zip([2, 3, 3]) {
            let functions = ["PJRT_Client_FulfillAliasBuffer", "PJRT_Event_Await", "PJRT_Buffer_Delete"];
            row.functions = functions[..count].iter().map(|name| (*name).to_owned()).collect();
        }
        group(&mut rows, &checks());
        let echoes = rows.each_ref().map(|row| row.echo_of.as_deref());
        assert_eq!(echoes, [None, Some("special/alias_fails"), Some("special/alias_fails")]);
    }

    #[test]
    fn one_code_for_all_errors_explains_failures_with_this_code() {
        let only = format!("PJRT_Error_GetCode returns UNKNOWN {ONE_CODE}");
        let messages = [
            ("memory/too_large_array", "it was refused with PJRT_X: UNKNOWN: no room"),
            ("codes/differ", only.as_str()),
            ("memory/other", "it was refused with PJRT_X: INTERNAL: no room"),
        ];
        let mut rows: Vec<Row> =
            messages.iter().map(|(name, message)| row(name, Status::Wrong, message)).collect();
        rows.extend(["area/a", "area/b", "area/c", "area/d"].map(|name| row(name, Status::Passed, "")));
        rows.iter_mut().for_each(|row| row.functions = vec!["PJRT_Error_GetCode".into()]);
        group(&mut rows, &checks());
        let echoes: Vec<_> = rows.iter().map(|row| row.echo_of.as_deref()).collect();
        assert_eq!(echoes[..3], [Some("codes/differ"), None, None]);
    }

    #[test]
    fn an_answer_for_an_earlier_object_leads_what_looks_like_another_fault() {
        let stale = format!("PJRT_Buffer_ToHostBuffer of an array is 1; expected 2: {STALE}");
        let ignored = format!("the array differs. Probable cause: {STRIDES_IGNORED}");
        let messages = [("upload/with_gaps", ignored.as_str()), ("reports/of_new_arrays", stale.as_str())];
        let mut rows = messages.map(|(name, message)| row(name, Status::Wrong, message));
        rows.iter_mut().for_each(|row| row.functions = vec!["PJRT_Buffer_ToHostBuffer".into()]);
        group(&mut rows, &checks());
        let echoes = rows.each_ref().map(|row| row.echo_of.as_deref());
        assert_eq!(echoes, [Some("reports/of_new_arrays"), None]);
    }

    #[test]
    fn wrong_elements_of_a_rare_type_have_one_cause() {
        let differs = |of: &str| format!("{of}: 1 of 7 {DIFFER} 6 is 0; expected 6");
        let [packed, of_name, float, other] =
            ["an upload of U4[7]", "the array", "an array F32[2]", "another F32[3]"].map(differs);
        let found = causes(&[
            ("area/a", &packed),
            ("upload/type_S4", &of_name),
            ("area/b", &float),
            ("area/c", &other),
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], ("upload/type_S4".to_owned(), vec!["area/a".to_owned()]));
    }

    #[test]
    fn a_message_that_names_a_conversion_exactly_is_the_cause_of_the_others() {
        let exact = format!("an array F64[2]: {CONVERTED}F64 to F32 and back");
        let found = causes(&[
            (
                "bits/denormals",
                "an array of F64: denormal numbers were flushed: an instruction or a conversion",
            ),
            ("results/operations", "1 of 9 programs fail: bitcast_convert f64 to i64: expected 1, found 2"),
            ("layouts/strides_of_large_types", &exact),
            ("results/other", "1 of 9 programs fail: add f32: expected 1, found 2"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].0, "layouts/strides_of_large_types");
    }

    #[test]
    fn crashes_during_one_call_have_one_cause() {
        let crash = |name, call| {
            row(name, Status::Crashed, &format!("the process ended with an abort during {call}"))
        };
        let destroys = [
            "PJRT_Event_Destroy; the check performed: a",
            "PJRT_Event_Destroy. Probably",
            "PJRT_Event_Await",
        ];
        let mut rows =
            [crash("area/a", destroys[0]), crash("area/b", destroys[1]), crash("area/c", destroys[2])];
        group(&mut rows, &[]);
        let echoes = rows.each_ref().map(|row| row.echo_of.as_deref());
        assert_eq!(echoes, [None, Some("area/a"), None]);
    }
}
