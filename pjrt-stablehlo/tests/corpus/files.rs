//! The files of the corpus.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Returns the folder that a variable names; `None`, with a note, if it is not set.
pub(crate) fn folder(variable: &str) -> Option<PathBuf> {
    match std::env::var_os(variable) {
        Some(folder) => Some(folder.into()),
        None if std::env::var_os("CI").is_some() => panic!("{variable} has to be set in CI"),
        None => {
            eprintln!("skipped: {variable} is not set");
            None
        }
    }
}

/// A record of the corpus.
pub(crate) struct Record {
    /// Group and name.
    pub(crate) name: String,
    /// The program's entry in the manifest.
    pub(crate) manifest: Value,
    /// The program's forms by name.
    pub(crate) forms: BTreeMap<String, Vec<u8>>,
}

impl Record {
    pub(crate) fn category(&self) -> &str {
        self.manifest["category"].as_str().unwrap()
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The records of the corpus, in the order of their files.
pub(crate) fn corpus(folder: &Path) -> Vec<Record> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let mut records = Vec::new();
    for path in paths {
        let blob = fs::read(path.with_extension("bin")).unwrap();
        for manifest in lines(&path) {
            let text = |key: &str| manifest[key].as_str().unwrap();
            let name = format!("{}/{}", text("group"), text("name"));
            let forms = manifest["programs"].as_object().unwrap().iter().map(|(form, place)| {
                let number = |key: &str| place[key].as_u64().unwrap() as usize;
                (form.clone(), blob[number("off")..][..number("len")].to_vec())
            });
            let forms = forms.collect();
            records.push(Record { name, manifest, forms });
        }
    }
    assert!(records.len() > 1000, "expected a corpus, found {} records", records.len());
    records
}

/// The programs of a format that hosts sent, by file.
pub(crate) fn captured(folder: &Path, format: &str) -> Vec<(String, Vec<u8>)> {
    let manifest = lines(&folder.join("manifest.jsonl"));
    let files = manifest.iter().filter(|record| record["format"] == format);
    let files = files.map(|record| record["program"].as_str().unwrap());
    let programs: Vec<_> =
        files.map(|file| (file.to_owned(), fs::read(folder.join(file)).unwrap())).collect();
    assert!(!programs.is_empty(), "{} has no programs of format {format}", folder.display());
    programs
}

/// Fails with the first of the failures.
pub(crate) fn report(what: &str, total: usize, failures: &[String]) {
    println!("{what}: {} of {total}", total - failures.len());
    let shown = &failures[..failures.len().min(60)];
    assert!(failures.is_empty(), "{} of {total} {what} failed:\n{}", failures.len(), shown.join("\n"));
}
