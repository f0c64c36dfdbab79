//! The report as one HTML page, which loads nothing.

use std::fmt::Write as _;

use super::cause::listed;
use super::printed::without_repetitions;
use super::{Report, Row};
use crate::conform::harness::Status;

/// The style of the page. Long words break, so that the page fits a narrow window.
const STYLE: &str = "
:root{color-scheme:light dark;--line:#8884;--bad:#c62828;--good:#2e7d32;--advice:#b26a00}
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
h1{font-size:1.4rem;margin:.2em 0}h2{font-size:1.1rem;margin:1.6em 0 .4em}
article{border:1px solid var(--line);border-left:.35rem solid var(--bad);border-radius:.4rem;padding:.6rem .9rem;margin:.8rem 0}
article.advice{border-left-color:var(--advice)}
h3{font:600 1rem/1.5 ui-monospace,monospace;margin:0}
.status{font:600 .8rem/1.5 system-ui,sans-serif;color:var(--bad);margin-right:.6em}
.advice .status{color:var(--advice)}
.counts{display:flex;flex-wrap:wrap;gap:.5rem;list-style:none;padding:0}
.counts li{border:1px solid var(--line);border-radius:.4rem;padding:.2rem .7rem}.counts b{font-size:1.15rem}
.failed b{color:var(--bad)}.passed b{color:var(--good)}
dl{display:grid;grid-template-columns:8rem 1fr;gap:.15rem .8rem;margin:.5rem 0 0}
dt{opacity:.7}dd{margin:0;min-width:0}
code,pre{font:.875rem/1.45 ui-monospace,monospace}pre{white-space:pre-wrap;margin:0}
summary{cursor:pointer;padding:.3rem 0}table{border-collapse:collapse;width:100%}
td{border-top:1px solid var(--line);padding:.25rem .6rem .25rem 0;vertical-align:top}
td.time{text-align:right;white-space:nowrap;padding-right:0}small{opacity:.75}
@media(max-width:40rem){dl{grid-template-columns:1fr}dt{margin-top:.3rem}}
";

/// Formats the report: the failures by cause, then advice, then all other checks by status.
pub(super) fn format(report: &Report) -> String {
    let title = escaped(&format!("Conformance of {}", report.subject()));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{title}</title>\n\
         <style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
    );
    page.push_str(&counts(report));
    let _ = writeln!(page, "<p><small>{}</small></p>", escaped(&report.times()));
    if let Some(advice) = report.needs_devices() {
        let _ = writeln!(page, "<p>{}</p>", escaped(&advice));
    }
    let tolerated = report.tolerated();
    page.push_str(&section("Failures", report, &report.needed()));
    let heading = format!("Failures that {} does not need", report.profile.as_deref().unwrap_or_default());
    page.push_str(&section(&heading, report, &tolerated));
    page.push_str(&section("Advice", report, &report.advice()));
    page.push_str("<h2>Other checks</h2>\n");
    for status in [Status::Unsupported, Status::NotApplicable, Status::Passed] {
        page.push_str(&others(report, status));
    }
    page.push_str("</body></html>\n");
    page
}

fn counts(report: &Report) -> String {
    let count = |class: &str, number: usize, name: &str| {
        format!("<li class=\"{class}\"><b>{number}</b> {}</li>", escaped(name))
    };
    let failed = report.failures();
    let mut items = count(if failed == 0 { "" } else { "failed" }, failed, "failed");
    let causes = report.causes();
    if causes < failed {
        items += &count("", causes, if causes == 1 { "cause" } else { "causes" });
    }
    items += &count("passed", report.count(Status::Passed), "passed");
    if let Some(profile) = &report.profile {
        items += &count("", report.tolerated().len(), &format!("failed that {profile} does not need"));
    }
    items += &count("", report.advice().len(), "advice");
    items += &count("", report.count(Status::Unsupported), "unsupported");
    items += &count("", report.count(Status::NotApplicable), "not applicable");
    format!("<ul class=\"counts\">{items}</ul>\n")
}

/// Formats failures or advice under a heading: each cause with its echoes.
fn section(heading: &str, report: &Report, rows: &[&Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let is_listed = |cause: &String| rows.iter().any(|row| row.name == *cause);
    let mut section = format!("<h2>{}</h2>\n", escaped(heading));
    for row in listed(rows) {
        let echoes = report.echoes(row);
        let echoes: Vec<&Row> = echoes.into_iter().filter(|echo| is_listed(&echo.name)).collect();
        section.push_str(&article(report, row, &echoes));
    }
    section
}

fn article(report: &Report, row: &Row, echoes: &[&Row]) -> String {
    let class = if row.status == Status::Advice { " class=\"advice\"" } else { "" };
    let mut text = format!(
        "<article{class}><h3><span class=\"status\">{}</span>{}</h3>\n<pre>{}</pre>\n<dl>",
        row.status.name(),
        escaped(&row.name),
        escaped(&row.message)
    );
    let mut item = |name: &str, value: String| _ = write!(text, "<dt>{name}</dt><dd>{value}</dd>");
    let code = |text: &str| format!("<code>{}</code>", escaped(text));
    item("rule", escaped(&row.rule));
    item("source", escaped(&row.source));
    if !row.needed_by.is_empty() {
        item("needed by", escaped(&row.needed_by.join(", ")));
    }
    item("time", format!("{:.2} s", row.seconds));
    item("again", code(&report.again(&row.name)));
    item("debugger", code(&report.debugger(&row.name)));
    if !row.printed.is_empty() {
        item("printed", format!("<pre>{}</pre>", escaped(&without_repetitions(&row.printed))));
    }
    if !row.functions.is_empty() {
        let functions = escaped(&row.functions.join(", "));
        let count = row.functions.len();
        item(
            "called",
            format!("<details><summary>{count} functions</summary><code>{functions}</code></details>"),
        );
    }
    text.push_str("</dl>\n");
    if !echoes.is_empty() {
        let noun = if echoes.len() == 1 { "echo" } else { "echoes" };
        let summary = format!("{} probable {noun} of this failure", echoes.len());
        let _ = write!(text, "<details><summary>{summary}</summary>");
        text.push_str(&table(echoes));
        text.push_str("</details>\n");
    }
    text.push_str("</article>\n");
    text
}

/// Formats the checks with a status as a list that is closed at first.
fn others(report: &Report, status: Status) -> String {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.status == status).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("<details><summary>{} {}</summary>{}</details>\n", rows.len(), status.name(), table(&rows))
}

fn table(rows: &[&Row]) -> String {
    let mut table = "<table>".to_owned();
    for row in rows {
        let reason = if row.message.is_empty() { &row.rule } else { &row.message };
        let _ = writeln!(
            table,
            "<tr><td><code>{}</code><br><small>{}</small></td><td class=\"time\">{:.2} s</td></tr>",
            escaped(&row.name),
            escaped(reason),
            row.seconds
        );
    }
    table + "</table>"
}

/// Escapes text for HTML. Control characters are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
