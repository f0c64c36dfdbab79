//! The structure of the workspace: imports point one way, functions fit a screen, and files are short.
//!
//! `cargo test --package pjrt-tests --test structure -- --nocapture` prints the figures. The exceptions are in
//! `exceptions.rs`.

#![forbid(unsafe_code)]

mod exceptions;
mod graph;
mod source;
mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use exceptions::{Cycle, FILE_CYCLES, FOLDER_CYCLES, LONG_FILES, LONG_FUNCTIONS};
use graph::{Graph, between_folders, cycles};
use workspace::{Workspace, root};

/// The number of lines of a function that fits a screen.
const SCREEN: usize = 60;

/// The maximum number of lines of a file.
const MAX_FILE: usize = 800;

/// Returns the differences between the cycles of a graph and a list of exceptions, and prints the cycles.
fn unexpected_cycles(title: &str, graph: &Graph, exceptions: &[Cycle]) -> Vec<String> {
    let found = cycles(graph);
    let mut problems = Vec::new();
    for cycle in &found {
        let exception = exceptions.iter().find(|exception| cycle.is_subset(&exception.nodes()));
        println!("cycle of {} {title}: {}", cycle.len(), exception.map_or("unexpected", |e| e.reason));
        for node in cycle {
            let targets: Vec<&String> = graph[node].intersection(cycle).collect();
            println!("  {node} -> {targets:?}");
        }
        if exception.is_none() {
            let nodes: Vec<&str> = cycle.iter().map(String::as_str).collect();
            problems.push(format!(
                "these {title} import each other: {}. Move what they share below them; --nocapture prints the imports",
                nodes.join(", ")
            ));
        }
    }
    for node in exceptions.iter().flat_map(Cycle::nodes) {
        if !found.iter().any(|cycle| cycle.contains(&node)) {
            problems.push(format!("{node} is in no cycle: remove it from exceptions.rs"));
        }
    }
    println!("{} cycles of {title}", found.len());
    problems
}

/// Fails if there are problems.
fn report(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn imports_between_folders_point_one_way() {
    let folders = Workspace::get().imports_of_folders();
    assert!(folders.len() > 30, "the sources are not where this test looks");
    report(&unexpected_cycles("folders", &folders, FOLDER_CYCLES));
}

#[test]
fn imports_between_files_point_one_way() {
    let files = Workspace::get().imports();
    assert!(files.len() > 300, "the sources are not where this test looks");
    report(&unexpected_cycles("files", &files, FILE_CYCLES));
}

#[test]
fn functions_fit_a_screen() {
    let workspace = Workspace::get();
    let mut longest: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for file in workspace.files.values() {
        for (name, lines) in &file.functions {
            let longest = longest.entry((&file.path, name)).or_default();
            *longest = (*longest).max(*lines);
        }
    }
    assert!(longest.len() > 3000, "the sources are not where this test looks");
    let mut long: Vec<_> = longest.iter().filter(|(_, lines)| **lines > SCREEN).collect();
    long.sort_by_key(|(_, lines)| std::cmp::Reverse(**lines));
    let mut problems = Vec::new();
    for ((file, name), lines) in &long {
        println!("    ({file:?}, {name:?}, {lines}),");
        let exception = LONG_FUNCTIONS.iter().find(|(path, function, _)| (path, function) == (file, name));
        let limit = exception.map_or(SCREEN, |(.., lines)| *lines);
        if **lines > limit {
            problems.push(format!("{file}: {name} has {lines} lines; the limit is {limit}: divide it"));
        }
    }
    for (file, name, _) in LONG_FUNCTIONS {
        if longest.get(&(*file, *name)).is_none_or(|lines| *lines <= SCREEN) {
            problems.push(format!("{file}: {name} is not too long: remove it from exceptions.rs"));
        }
    }
    println!("{} of {} functions have more than {SCREEN} lines", long.len(), longest.len());
    report(&problems);
}

/// Adds the numbers of lines of the Rust and Python files in a folder, except those of generated files.
fn lengths(folder: &Path, found: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !name.starts_with("target") && name != "book" && name != "dist" {
                lengths(&path, found);
            }
        } else if name.ends_with(".rs") || name.ends_with(".py") {
            let text = fs::read_to_string(&path).unwrap();
            if !text.lines().next().is_some_and(|line| line.contains("enerated by `cargo xtask")) {
                let path = path.strip_prefix(root()).unwrap().display().to_string();
                found.insert(path, text.lines().count());
            }
        }
    }
}

#[test]
fn files_are_short() {
    let mut found = BTreeMap::new();
    lengths(&root(), &mut found);
    assert!(found.len() > 600, "the sources are not where this test looks");
    println!("{} files, {} lines", found.len(), found.values().sum::<usize>());
    let mut problems = Vec::new();
    for (file, lines) in found.iter().filter(|(_, lines)| **lines > MAX_FILE) {
        println!("    ({file:?}, {lines}),");
        let exception = LONG_FILES.iter().find(|(path, _)| path == file);
        let limit = exception.map_or(MAX_FILE, |(_, lines)| *lines);
        if *lines > limit {
            problems.push(format!("{file} has {lines} lines; the limit is {limit}: divide it"));
        }
    }
    for (file, _) in LONG_FILES {
        if found.get(*file).is_none_or(|lines| *lines <= MAX_FILE) {
            problems.push(format!("{file} is not too long: remove it from exceptions.rs"));
        }
    }
    report(&problems);
}

#[test]
fn cycles_are_found() {
    let edges =
        [("a/1", "a/2"), ("a/2", "a/1"), ("a/2", "b/3"), ("b/3", "c/4"), ("c/4", "b/3"), ("c/4", "d/5")];
    let mut graph = Graph::default();
    for (from, to) in edges {
        graph.entry(from.to_owned()).or_default().insert(to.to_owned());
    }
    let set = |nodes: [&str; 2]| BTreeSet::from(nodes.map(str::to_owned));
    assert_eq!(cycles(&graph), [set(["a/1", "a/2"]), set(["b/3", "c/4"])]);
    assert_eq!(cycles(&between_folders(&graph)), [set(["b", "c"])]);
}

#[test]
fn paths_are_found_in_macros_and_skipped_in_tests() {
    let text = "use crate::a::B;\nmod child;\n#[cfg(test)]\nmod tests;\n#[cfg(all(unix, test))]\nmod more { use crate::c::D; }\n\
                fn f() { child::g!(super::x, crate::e::f()); }";
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<String>>();
    let crates = BTreeSet::from(["own".to_owned()]);
    let file = source::read("own/src/m/mod.rs".to_owned(), text, path("own::m"), &crates);
    assert_eq!(file.names, BTreeSet::from([path("own::a::B"), path("own::e::f"), path("own::x")]));
    assert_eq!(file.names_of_children, BTreeSet::from([path("own::m::child::g")]));
    assert_eq!(file.test_modules, [path("own::m::tests")]);
    assert_eq!(file.functions, [("f".to_owned(), 1)]);
}

/// The maximum number of lines of code of the accelerator, which is read as the model of a plugin.
const ACCELERATOR: usize = 1500;

/// Lines of code are those with more than a comment, outside of tests.
#[test]
fn the_accelerator_is_short_enough_to_read() {
    let mut lines = 0;
    for entry in fs::read_dir(root().join("examples/accelerator/src")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        lines +=
            code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count();
    }
    println!("{lines} lines of code");
    assert!(
        lines <= ACCELERATOR,
        "{lines} lines of code; the limit is {ACCELERATOR}: move what every plugin needs into the SDK"
    );
    assert!(lines > ACCELERATOR / 2, "the accelerator is not where this test looks");
}
