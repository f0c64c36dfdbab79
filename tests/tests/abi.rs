//! Compares the declarations of `pjrt-sys` with upstream's headers, in the version that it follows and in two old ones.
//!
//! `cargo xtask bindgen --upstream` fetches the headers, writes what bindgen understands of them into the folder that
//! `PJRT_UPSTREAM_LAYOUTS` names, one JSON file per version, and runs these tests.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// The declarations of one version.
#[derive(Deserialize)]
struct Header {
    structs: Vec<Struct>,
    constants: BTreeMap<String, i64>,
    aliases: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Struct {
    name: String,
    size: usize,
    align: usize,
    struct_size: Option<usize>,
    fields: Vec<Field>,
}

#[derive(Deserialize, Clone)]
struct Field {
    name: String,
    ty: String,
    offset: usize,
}

/// The version that `pjrt-sys` follows.
const NEWEST: &str = "0.117";

/// The prefixes of names that are only ours, because the package with the newest headers has no header for them: these
/// extensions are deprecated or not public there.
const NOT_IN_THE_NEWEST: [&str; 3] = ["PJRT_HostAllocator_", "PJRT_Megascale_", "PJRT_Triton"];

impl Header {
    fn read(version: &str) -> Self {
        let folder = std::env::var_os("PJRT_UPSTREAM_LAYOUTS")
            .expect("PJRT_UPSTREAM_LAYOUTS names no folder; run `cargo xtask bindgen --upstream`");
        let path = PathBuf::from(folder).join(format!("{version}.json"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn find(&self, name: &str) -> Option<&Struct> {
        self.structs.iter().find(|item| item.name == name)
    }

    /// A type without the names of parameters, and with the strong integers of upstream's C++ as the integers they are.
    fn plain_type(&self, ty: &str) -> String {
        let mut words: Vec<_> =
            ty.split(' ').filter(|word| !is_parameter_name(word)).map(str::to_owned).collect();
        for word in &mut words {
            if let Some((start, parameter)) = word.rsplit_once('(')
                && is_parameter_name(parameter)
            {
                *word = format!("{start}(");
            }
            if word.starts_with("xla_")
                && let Some(integer) = self.aliases.get(word)
            {
                word.clone_from(integer);
            }
        }
        words.join(" ").replace("( ", "(")
    }
}

/// Returns `true` if a word of a type is a parameter's name with its colon.
fn is_parameter_name(word: &str) -> bool {
    word.strip_suffix(':').is_some_and(|name| !name.is_empty() && !name.ends_with(':'))
}

/// Returns the differences between an upstream version and ours, which may have more declarations.
fn differences(version: &str, ours: &Header) -> Vec<String> {
    let upstream = Header::read(version);
    let mut found = Vec::new();
    for theirs in &upstream.structs {
        let name = &theirs.name;
        let Some(own) = ours.find(name) else {
            found.push(format!("{name} is missing"));
            continue;
        };
        for (index, field) in theirs.fields.iter().enumerate() {
            let place = format!("{name}, field {index}");
            let Some(own) = own.fields.get(index) else {
                found.push(format!("{place}: {} is missing", field.name));
                continue;
            };
            if own.name != field.name || own.offset != field.offset {
                found.push(format!(
                    "{place}: {} at {}, ours {} at {}",
                    field.name, field.offset, own.name, own.offset
                ));
            }
            let (their_type, own_type) = (upstream.plain_type(&field.ty), ours.plain_type(&own.ty));
            // A pointer that became one to const in a later version is the same on the wire.
            let same = if version == NEWEST {
                their_type == own_type
            } else {
                their_type.replace("*mut", "*const") == own_type.replace("*mut", "*const")
            };
            if !same {
                found.push(format!("{place}: {} is {their_type}, ours {own_type}", field.name));
            }
        }
        if version == NEWEST {
            let their_size = (theirs.size, theirs.align, theirs.struct_size, theirs.fields.len());
            let own_size = (own.size, own.align, own.struct_size, own.fields.len());
            if their_size != own_size {
                found.push(format!(
                    "{name}: size, align, STRUCT_SIZE, fields {their_size:?}, ours {own_size:?}"
                ));
            }
        }
    }
    for (name, value) in &upstream.constants {
        let is_version = name.ends_with("_VERSION") || name == "PJRT_API_MINOR";
        if (version == NEWEST || !is_version) && ours.constants.get(name) != Some(value) {
            found.push(format!("{name} is {value}, ours {:?}", ours.constants.get(name)));
        }
    }
    for (name, ty) in upstream.aliases.iter().filter(|(name, _)| !name.starts_with("xla_")) {
        let own = ours.aliases.get(name).map(|ty| ours.plain_type(ty));
        if own.as_ref() != Some(&upstream.plain_type(ty)) {
            found.push(format!("{name} is {}, ours {own:?}", upstream.plain_type(ty)));
        }
    }
    if version == NEWEST {
        let own_names = ours.structs.iter().map(|item| &item.name);
        for name in own_names.chain(ours.aliases.keys()) {
            let is_theirs = upstream.find(name).is_some() || upstream.aliases.contains_key(name);
            if !is_theirs && !NOT_IN_THE_NEWEST.iter().any(|prefix| name.starts_with(prefix)) {
                found.push(format!("{name} is only ours"));
            }
        }
    }
    found
}

/// Fails with the list of the differences.
fn assert_same(version: &str) {
    let found = differences(version, &Header::read("ours"));
    assert!(found.is_empty(), "{} differences from {version}:\n{}", found.len(), found.join("\n"));
}

#[test]
#[ignore = "needs upstream's headers: cargo xtask bindgen --upstream"]
fn version_0_54_is_a_prefix_of_ours() {
    assert_same("0.54");
}

#[test]
#[ignore = "needs upstream's headers: cargo xtask bindgen --upstream"]
fn version_0_90_is_a_prefix_of_ours() {
    assert_same("0.90");
}

#[test]
#[ignore = "needs upstream's headers: cargo xtask bindgen --upstream"]
fn version_0_117_is_ours() {
    assert_same(NEWEST);
}

/// Old declarations whose `X_STRUCT_SIZE` names a field before the last: a struct of such a version has more fields than
/// its `struct_size` says.
const UNDERSTATED: [(&str, &str, usize); 2] =
    [("0.54", "PJRT_Plugin_Attributes_Args", 24), ("0.54", "PJRT_Api", 808)];

/// Old hosts declare structs that end where one of our fields ends, so that the smallest `struct_size` of a field tells
/// exactly which fields they have.
#[test]
#[ignore = "needs upstream's headers: cargo xtask bindgen --upstream"]
fn old_struct_sizes_are_ends_of_our_fields() {
    for version in ["0.54", "0.90"] {
        for theirs in Header::read(version).structs {
            let Some(struct_size) = theirs.struct_size else { continue };
            let layout = pjrt_sys::STRUCTS.iter().find(|layout| layout.name == theirs.name);
            let layout = layout.unwrap_or_else(|| panic!("{} is missing", theirs.name));
            let last = theirs.fields.last().expect("a struct of the interface has fields");
            let end = layout.field(&last.name).map(|field| field.end);
            let known = UNDERSTATED.contains(&(version, theirs.name.as_str(), struct_size));
            assert!(
                (end == Some(struct_size)) != known,
                "{} of {version}: {struct_size}, ours ends at {end:?}",
                theirs.name
            );
        }
    }
}

#[test]
#[ignore = "needs upstream's headers: cargo xtask bindgen --upstream"]
fn the_crate_has_the_layouts_of_its_headers() {
    let ours = Header::read("ours");
    assert_eq!(ours.structs.len(), pjrt_sys::STRUCTS.len());
    for (header, layout) in ours.structs.iter().zip(pjrt_sys::STRUCTS) {
        assert_eq!(header.name, layout.name);
        assert_eq!(header.size, layout.size, "{}", layout.name);
        assert_eq!(header.fields.len(), layout.fields.len(), "{}", layout.name);
        for (header, field) in header.fields.iter().zip(layout.fields) {
            assert_eq!((header.name.as_str(), header.offset), (field.name, field.offset), "{}", layout.name);
        }
    }
    assert_eq!(ours.constants["PJRT_API_MINOR"], i64::from(pjrt_sys::PJRT_API_MINOR));
}
