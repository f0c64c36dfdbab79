//! Programs that are written as bytecode.

use std::fs;
use std::path::Path;

use pjrt_stablehlo::ir::{Attribute, DictionaryAttribute, Location, LocationKind};
use pjrt_stablehlo::versions::{CURRENT_VERSION, Version};
use pjrt_stablehlo::{ErrorKind, Module, parse, write_bytecode, write_portable_artifact};

fn samples() -> Vec<Module> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "mlirbc"));
    let modules: Vec<_> = paths.map(|path| parse(fs::read(path).unwrap()).unwrap()).collect();
    assert!(modules.len() > 5);
    modules
}

fn module(body: &str) -> Module {
    parse(format!(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {body} return %0 : tensor<4xf32> }}"
    ))
    .unwrap()
}

#[test]
fn samples_are_the_same_after_writing() {
    for module in samples() {
        let forms = [write_bytecode(&module), write_portable_artifact(&module, CURRENT_VERSION)];
        for written in forms {
            let again = parse(written.unwrap()).unwrap();
            assert_eq!(format!("{again:#}"), format!("{module:#}"));
        }
    }
}

#[test]
fn equal_programs_are_equal_bytes() {
    for module in samples() {
        let written = write_bytecode(&module).unwrap();
        assert_eq!(write_bytecode(&parse(written.clone()).unwrap()).unwrap(), written);
    }
}

#[test]
fn an_error_names_the_operation_and_the_version_that_it_needs() {
    let highest =
        "result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>";
    let tanh =
        module(&format!("%0 = \"stablehlo.tanh\"(%x) {{{highest}}} : (tensor<4xf32>) -> tensor<4xf32>"));
    assert!(write_portable_artifact(&tanh, Version::new(1, 10, 0)).is_ok());
    let error = write_portable_artifact(&tanh, Version::new(1, 9, 4)).unwrap_err();
    assert_eq!((error.kind, error.op.as_deref()), (ErrorKind::Unsupported, Some("stablehlo.tanh")));
    assert!(error.message.contains("'result_accuracy'") && error.message.contains("VHLO 1.10.0"), "{error}");
    for version in [Version::new(0, 8, 0), Version::new(CURRENT_VERSION.major, CURRENT_VERSION.minor + 1, 0)]
    {
        assert_eq!(write_portable_artifact(&tanh, version).unwrap_err().kind, ErrorKind::Unsupported);
    }
}

#[test]
fn old_versions_have_the_first_form_of_an_operation() {
    let tanh = module("%0 = stablehlo.tanh %x : tensor<4xf32>");
    for (minor, name) in [(9, "tanh_v1"), (10, "tanh_v2")] {
        let written = write_portable_artifact(&tanh, Version::new(1, minor, 0)).unwrap();
        assert!(written.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "{name}");
        assert_eq!(parse(written).unwrap().to_string(), tanh.to_string());
    }
}

#[test]
fn deep_attributes_are_errors_and_deep_locations_are_written() {
    let mut deep = module("%0 = stablehlo.tanh %x : tensor<4xf32>");
    let attribute = (0..100).fold(Attribute::Unit, |inner, _| Attribute::Array([inner].into()));
    deep.attributes = DictionaryAttribute::new(vec![("deep".into(), attribute)]);
    assert_eq!(write_bytecode(&deep).unwrap_err().kind, ErrorKind::TooLarge);
    deep.attributes = DictionaryAttribute::default();
    let location = |depth| {
        (0..depth)
            .fold(Location::UNKNOWN, |child, _| Location::new(LocationKind::Name { name: "a".into(), child }))
    };
    deep.location = location(200);
    assert!(format!("{:#}", parse(write_bytecode(&deep).unwrap()).unwrap()) == format!("{deep:#}"));
    deep.location = location(300);
    assert_eq!(write_bytecode(&deep).unwrap_err().kind, ErrorKind::TooLarge);
}
