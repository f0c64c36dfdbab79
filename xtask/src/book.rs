//! `cargo xtask book`: builds the documentation as a book, and checks its links.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::environment::{tool, workspace};

/// Builds the book into `target/book`, and returns the number of links in it, all of which lead to a page of the book and to
/// a heading that the page has.
pub(crate) fn build() -> Result<u64> {
    let folder = workspace::target().join("book");
    let mdbook = tool::installed("mdbook", "0.5.4", &["--no-default-features"])?;
    let built = Command::new(mdbook)
        .args(["build", "--dest-dir"])
        .arg(&folder)
        .arg(workspace::root().join("docs"))
        .output()
        .context("cannot start mdbook")?;
    let messages = String::from_utf8_lossy(&built.stderr);
    if !built.status.success() || messages.contains(" WARN ") {
        bail!("mdbook reports mistakes:\n{messages}");
    }
    let mut pages = Vec::new();
    html_files(&folder, &mut pages)?;
    let (mut links, mut broken) = (0, Vec::new());
    for page in &pages {
        // The first page repeats all others, whose links are relative to their own folders. The second is shown in place of a
        // page that does not exist, and its links start at the root of the site.
        if page.ends_with("print.html") || page.ends_with("404.html") {
            continue;
        }
        let text = fs::read_to_string(page)?;
        for link in values(&text, "href") {
            links += 1;
            if let Err(reason) = check(page, link) {
                broken.push(format!("{}: {link}: {reason}", page.strip_prefix(&folder)?.display()));
            }
        }
    }
    if !broken.is_empty() {
        bail!("broken links in the book:\n{}", broken.join("\n"));
    }
    println!("{} with {} pages and {links} links", folder.join("index.html").display(), pages.len());
    Ok(links)
}

fn html_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            html_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns the values of an attribute in a page.
fn values<'page>(page: &'page str, attribute: &str) -> BTreeSet<&'page str> {
    let start = format!(" {attribute}=\"");
    page.split(start.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Checks a link to a page of the book. Links to other sites are not followed.
fn check(page: &Path, link: &str) -> Result<(), String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { page.with_file_name("").join(file) };
    if !target.is_file() {
        return Err("there is no such file".to_owned());
    }
    if fragment.is_empty() {
        return Ok(());
    }
    let text = fs::read_to_string(&target).map_err(|error| error.to_string())?;
    values(&text, "id")
        .contains(fragment)
        .then_some(())
        .ok_or_else(|| "the page has no such heading".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_and_headings_of_the_book() {
        let folder = std::env::temp_dir().join(format!("book-links-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let page = folder.join("a.html");
        fs::write(&page, "<h1 id=\"top\">A</h1> <a class=\"x\" href=\"b.html#more\">b</a>").unwrap();
        fs::write(folder.join("b.html"), "<h2 id=\"more\">B</h2>").unwrap();
        assert_eq!(values(&fs::read_to_string(&page).unwrap(), "href"), BTreeSet::from(["b.html#more"]));
        for good in ["b.html", "b.html#more", "#top", "https://example.com/x"] {
            assert_eq!(check(&page, good), Ok(()), "{good}");
        }
        for wrong in ["c.html", "b.html#less", "#more"] {
            assert!(check(&page, wrong).is_err(), "{wrong}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
