//! The signatures of `docs/design/traits.md` are those of the sources.

use std::fs;
use std::path::Path;

/// Removes comments and white space, and what distinguishes a definition from its declaration.
fn normalized(text: &str) -> String {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let dense: String = code.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect();
    dense.replace(",)", ")").replace("(mutself", "(self")
}

fn read_sources(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sources(&path, sources);
        } else {
            sources.push_str(&normalized(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Returns the functions of a block of code, each up to its body or semicolon.
fn signatures(code: &str) -> Vec<&str> {
    let starts = code.match_indices("fn").map(|(start, _)| start);
    let is_start =
        |start: &usize| matches!(code[..*start].chars().next_back(), Some('{' | '}' | ';' | 'b' | 't'));
    starts.filter(is_start).filter_map(|start| code[start..].split(['{', ';']).next()).collect()
}

#[test]
fn the_page_of_the_traits_has_the_signatures_of_the_sources() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = String::new();
    read_sources(&package.join("src"), &mut sources);
    let page = fs::read_to_string(package.join("../docs/design/traits.md")).unwrap();
    let blocks = page.split("```rust\n").skip(1).filter_map(|block| block.split("```").next());
    let declared: String = blocks.map(normalized).collect();
    let on_page = signatures(&declared);
    assert!(on_page.len() > 80, "only {} signatures were found on the page", on_page.len());
    let wrong: Vec<_> = on_page.into_iter().filter(|signature| !sources.contains(signature)).collect();
    assert!(wrong.is_empty(), "docs/design/traits.md has signatures that no source has: {wrong:#?}");
}

#[test]
fn the_page_of_the_traits_has_every_method_of_the_traits() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = normalized(&fs::read_to_string(package.join("../docs/design/traits.md")).unwrap());
    for file in ["client.rs", "device.rs", "buffer.rs", "executable.rs"] {
        let source = fs::read_to_string(package.join("src").join(file)).unwrap();
        let body = source.split("\npub trait Pjrt").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
        let methods = body.lines().filter_map(|line| line.strip_prefix("    fn "));
        for method in methods.map(|line| line.split(['(', '<']).next().unwrap()) {
            assert!(page.contains(&format!("fn{method}(")), "docs/design/traits.md lacks {method} of {file}");
        }
    }
}
