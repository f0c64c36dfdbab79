//! The documents: the targets of links exist, and the list of dependencies is complete.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Markdown files of the repository's own folders.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !name.starts_with("target") && name != "book" && name != "dist" {
                documents(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let mut found = Vec::new();
    documents(&root(), &mut found);
    assert!(found.len() > 8, "the documents are not where this test looks");
    let mut broken = Vec::new();
    for document in found {
        let text = fs::read_to_string(&document).unwrap();
        for (start, _) in text.match_indices("](") {
            let rest = &text[start + 2..];
            let Some(target) = rest.find(')').map(|end| &rest[..end]) else { continue };
            let file = target.split('#').next().unwrap_or_default();
            if !file.is_empty() && !target.contains("://") && !document.parent().unwrap().join(file).exists()
            {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// The anchors of a page's headings.
fn anchors(page: &str) -> Vec<String> {
    let headings =
        page.lines().filter_map(|line| line.strip_prefix('#')).map(|line| line.trim_start_matches('#'));
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|heading| {
            heading.trim().to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-")
        })
        .collect()
}

#[test]
fn every_answer_to_a_question_is_two_clicks_from_the_introduction() {
    assert!(read("docs/introduction.md").contains("](questions.md)"));
    let page = read("docs/questions.md");
    let questions: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && line.contains("](")).collect();
    let rows = page.lines().filter(|line| line.starts_with("| ")).count();
    assert!(
        questions.len() >= 20 && questions.len() + 1 == rows,
        "{} of {rows} have a link",
        questions.len()
    );
    for question in questions {
        for (start, _) in question.match_indices("](") {
            let target = question[start + 2..].split(')').next().unwrap();
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let found = anchors(&read(Path::new("docs").join(file)));
            assert!(anchor.is_empty() || found.iter().any(|known| known == anchor), "{target}: {found:?}");
        }
    }
}

#[test]
fn every_chapter_is_in_the_summary() {
    let summary = read("docs/SUMMARY.md");
    let mut chapters = Vec::new();
    documents(&root().join("docs"), &mut chapters);
    for chapter in chapters {
        let name = chapter.strip_prefix(root().join("docs")).unwrap().to_string_lossy().into_owned();
        assert!(
            name == "SUMMARY.md" || summary.contains(&format!("({name})")),
            "{name} is not in docs/SUMMARY.md"
        );
    }
}

/// Returns lines without the indentation that they share.
fn unindented<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let indentation = |line: &&&str| line.len() - line.trim_start().len();
    let shared =
        lines.iter().filter(|line| !line.is_empty()).map(|line| indentation(&line)).min().unwrap_or(0);
    lines.iter().map(|line| line.get(shared..).unwrap_or_default()).collect()
}

#[test]
fn the_code_in_the_tutorial_is_that_of_its_steps() {
    let folder = root().join("examples/tutorial");
    let mut blocks = 0;
    let mut chapters = Vec::new();
    documents(&root().join("docs/tutorial"), &mut chapters);
    for chapter in chapters {
        let text = fs::read_to_string(&chapter).unwrap();
        let steps = text
            .split("(https://")
            .filter_map(|link| link.split_once("examples/tutorial/")?.1.split(')').next());
        let mut sources: Vec<String> = steps
            .filter(|path| path.ends_with(".rs"))
            .map(|path| fs::read_to_string(folder.join(path)).unwrap())
            .collect();
        if text.contains("src/lib.rs") {
            sources.extend(
                ["src/program.rs", "src/processor.rs"]
                    .map(|path| fs::read_to_string(folder.join(path)).unwrap()),
            );
        }
        for block in text.split("```rust,ignore\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let block: Vec<&str> = block.lines().collect();
            let is_part = |source: &String| {
                let source: Vec<&str> = source.lines().collect();
                source.windows(block.len()).any(|lines| unindented(lines) == block)
            };
            assert!(
                sources.iter().any(is_part),
                "{}: not in its step:\n{}",
                chapter.display(),
                block.join("\n")
            );
            blocks += 1;
        }
    }
    assert!(blocks > 20, "the code of the tutorial is not where this test looks");
}

/// Adds the texts of the Rust files in a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn the_messages_of_the_chapter_on_debugging_exist() {
    let mut text = String::new();
    for folder in ["pjrt-plugin/src", "pjrt-stablehlo/src", "cargo-pjrt/src"] {
        sources(&root().join(folder), &mut text);
    }
    // A long message continues in the next line.
    let text = text.split("\\\n").map(str::trim_start).collect::<String>();
    let chapter = read("docs/debugging.md");
    let table = chapter.split("| message | cause and fix |\n|---|---|\n").nth(1).unwrap();
    let mut messages = 0;
    for row in table.lines() {
        let cell = row.split('|').nth(1).unwrap();
        for message in cell.split('`').skip(1).step_by(2) {
            for part in
                message.split("...").map(str::trim).filter(|part| part.len() > 10 && part.contains(' '))
            {
                assert!(
                    text.contains(part),
                    "no message contains '{part}', which docs/debugging.md explains"
                );
                messages += 1;
            }
        }
    }
    assert!(messages > 20, "{messages}");
}

#[test]
fn every_dependency_has_its_reason() {
    let manifest = read("Cargo.toml");
    let table = manifest.split("[workspace.dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let names: Vec<&str> = table
        .lines()
        .filter(|line| !line.contains("path = "))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .collect();
    assert!(names.len() > 10, "the dependencies are not where this test looks");
    let listed = read("docs/dependencies.md");
    let listed: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter_map(|line| line.split(" |").next())
        .flat_map(|names| names.split(", "))
        .collect();
    let missing: Vec<&&str> = names.iter().filter(|name| !listed.contains(name)).collect();
    assert!(missing.is_empty(), "without a reason in docs/dependencies.md: {missing:?}");
}
