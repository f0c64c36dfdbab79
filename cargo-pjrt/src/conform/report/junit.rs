//! The report as JUnit XML, which CI systems read.

use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::{Report, Row};
use crate::conform::harness::Status;

/// Formats the report. Failures that the host of the profile does not need are skipped tests.
pub(super) fn format(report: &Report) -> String {
    let mut suite = TestSuite::new(report.subject());
    suite.add_test_cases(report.rows.iter().map(|row| test_case(row, report.is_needed(row))));
    let mut junit = quick_junit::Report::new("cargo pjrt conform");
    junit.add_test_suite(suite);
    // Writing to a string does not fail.
    junit.to_string().unwrap_or_default()
}

/// Converts an outcome to a test case, whose class is the area of the check.
fn test_case(row: &Row, is_needed: bool) -> TestCase {
    let fails = row.status.is_failure() && is_needed;
    let mut status = match row.status {
        Status::Passed => TestCaseStatus::success(),
        _ if fails => TestCaseStatus::non_success(NonSuccessKind::Failure),
        _ => TestCaseStatus::skipped(),
    };
    if row.status != Status::Passed {
        status.set_message(xml_text(&row.message));
    }
    if fails {
        let cause = row.echo_of.as_ref().map(|cause| format!(" Probably an echo of {cause}."));
        let description = format!("{}{}", row.rule, cause.unwrap_or_default());
        status.set_type(row.status.name()).set_description(description);
    }
    let (area, rule) = row.name.split_once('/').unwrap_or(("", &row.name));
    let mut case = TestCase::new(rule, status);
    case.set_classname(area).set_time(Duration::try_from_secs_f64(row.seconds).unwrap_or_default());
    if !row.printed.is_empty() {
        case.set_system_out(xml_text(&row.printed));
    }
    case
}

/// Replaces the characters that XML forbids and that the writer lets through.
fn xml_text(text: &str) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
