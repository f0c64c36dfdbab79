//! The hosts in a Python environment, and the plugins that they discover.

use std::collections::BTreeMap;

use super::environment::Environment;
use super::finding::Finding;

/// The oldest release of JAX that the SDK supports, and the last one that needs `ENABLE_PJRT_COMPATIBILITY`.
const OLDEST_JAX: [u32; 3] = [0, 4, 30];
/// The newest release of JAX that was tested.
const NEWEST_JAX: [u32; 3] = [0, 10, 2];
/// The release of PyTorch/XLA that was tested.
const TORCH_XLA: [u32; 2] = [2, 9];

/// Names that JAX gives to platforms itself, whether it registers them in this environment or not.
const BUILTIN: [&str; 8] = ["cpu", "gpu", "tpu", "cuda", "rocm", "oneapi", "interpreter", "metal"];

/// Examines the versions of the hosts and the plugins that they discover.
pub(super) fn findings(facts: &Environment) -> Vec<Finding> {
    let mut findings =
        vec![Finding::ok(format!("Python {} ({})", facts.facts.python, facts.facts.executable))];
    findings.extend(jax(facts));
    findings.extend(discovered(facts));
    findings.extend(clashes(facts));
    findings.extend(torch_xla(facts));
    findings
}

fn jax(facts: &Environment) -> Vec<Finding> {
    let Some(version) = facts.version("jax") else {
        let python = &facts.facts.executable;
        return vec![Finding::warning("JAX is not installed", format!("{python} -m pip install jax"))];
    };
    let mut findings = Vec::new();
    let numbers = numbers(version);
    if numbers.as_slice() < OLDEST_JAX.as_slice() {
        findings.push(Finding::problem(
            format!("JAX {version} is older than 0.4.30, the oldest release that this SDK supports"),
            "install a newer JAX: pip install --upgrade jax",
        ));
    } else if numbers == OLDEST_JAX && facts.variable("ENABLE_PJRT_COMPATIBILITY").is_none() {
        findings.push(Finding::problem(
            "JAX 0.4.30 accepts only plugins with its own version of the C API",
            "set ENABLE_PJRT_COMPATIBILITY=1, or install a newer JAX",
        ));
    } else if numbers.as_slice() > NEWEST_JAX.as_slice() {
        findings.push(Finding::warning(
            format!("JAX {version} is newer than 0.10.2, the newest release that was tested with this tool"),
            "no action is needed if it works",
        ));
    } else {
        findings.push(Finding::ok(format!("JAX {version}")));
    }
    match facts.version("jaxlib") {
        None => findings.push(Finding::problem(
            "JAX is installed without jaxlib",
            format!("pip install jax=={version}, which installs the jaxlib that belongs to it"),
        )),
        Some(lib) if lib != version => findings.push(Finding::warning(
            format!("jaxlib {lib} and JAX {version} are different releases; JAX accepts only some pairs"),
            format!("pip install jax=={version} jaxlib=={version}"),
        )),
        Some(_) => {}
    }
    findings
}

/// Lists the plugins that JAX discovers, and how.
fn discovered(facts: &Environment) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(jax) = &facts.jax else { return findings };
    for module in &jax.modules {
        let names: Vec<&str> = module.registered.iter().map(|plugin| plugin.name.as_str()).collect();
        let point = facts.facts.jax_entry_points.iter().find(|point| point.value == module.module);
        let is_in_namespace = facts.facts.jax_modules.contains(&module.module);
        let mut from = Vec::new();
        if let Some(point) = point {
            let package = point.package.as_deref().unwrap_or("an unknown package");
            from.push(format!("the entry point {:?} of {package}", point.name));
        }
        if is_in_namespace {
            from.push("the namespace package jax_plugins".to_owned());
        }
        let from = from.join(" and ");
        findings.push(match &module.error {
            Some(error) if error.starts_with("ModuleNotFoundError") => Finding::problem(
                format!("{from} names the module {}, which cannot be imported: {error}", module.module),
                "reinstall the package, or correct the entry point in its metadata",
            ),
            Some(error) => Finding::problem(
                format!("the module {} from {from} fails: {error}", module.module),
                format!("run python -c 'import {0}; {0}.initialize()' to see the whole error", module.module),
            ),
            None if names.is_empty() => Finding::warning(
                format!("the module {} from {from} registers no plugin", module.module),
                "its function initialize must call jax._src.xla_bridge.register_plugin",
            ),
            None => Finding::ok(format!("JAX discovers {} through {from}", names.join(", "))),
        });
    }
    for plugin in &facts.named {
        findings
            .push(Finding::ok(format!("JAX discovers {} through PJRT_NAMES_AND_LIBRARY_PATHS", plugin.name)));
    }
    findings
}

/// Finds plugins with the same name, and plugins with names of JAX's own platforms.
fn clashes(facts: &Environment) -> Vec<Finding> {
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    for plugin in facts.registered() {
        *by_name.entry(plugin.name).or_default() += 1;
    }
    let mut findings = Vec::new();
    let builtin = facts.jax.as_ref().map_or(&[][..], |jax| &jax.builtin);
    for (name, count) in by_name {
        if count > 1 {
            findings.push(Finding::problem(
                format!("{count} plugins are registered as {name:?}; JAX uses only one of them"),
                "uninstall one of the packages, rename it, or remove its entry from PJRT_NAMES_AND_LIBRARY_PATHS",
            ));
        }
        // The plugins of JAX itself have these names.
        let is_builtin = BUILTIN.contains(&name.as_str()) || builtin.contains(&name);
        let is_jaxs = ["cuda", "rocm", "oneapi", "tpu"].contains(&name.as_str());
        if is_builtin && !is_jaxs {
            findings.push(Finding::warning(
                format!("a plugin is registered as {name:?}, which is the name of a platform of JAX itself"),
                "give the plugin a name of its own, unless it is meant to replace that platform",
            ));
        }
    }
    findings
}

fn torch_xla(facts: &Environment) -> Vec<Finding> {
    let Some(version) = facts.version("torch_xla") else { return Vec::new() };
    let mut findings = Vec::new();
    findings.push(if numbers(version)[..2] < TORCH_XLA[..] {
        Finding::warning(
            format!("PyTorch/XLA {version} is older than 2.9, the release that was tested with this tool"),
            "pip install torch==2.9.1 torch_xla==2.9.0",
        )
    } else {
        Finding::ok(format!("PyTorch/XLA {version}"))
    });
    let points = &facts.facts.torch_entry_points;
    for point in points {
        let device = point.name.to_uppercase();
        findings.push(Finding::ok(format!(
            "PyTorch/XLA discovers {}; PJRT_DEVICE={device} selects it",
            point.name
        )));
    }
    let is_known = |device: &str| {
        ["CPU", "TPU", "CUDA", "NEURON", "LIBRARY"].contains(&device)
            || points.iter().any(|point| point.name.to_uppercase() == device)
    };
    match facts.variable("PJRT_DEVICE") {
        Some(device) if !is_known(device) => findings.push(Finding::problem(
            format!(
                "PJRT_DEVICE is {device:?}, and no package has an entry point torch_xla.plugins of this name"
            ),
            "install the plugin's wheel, correct the name, or set PJRT_DEVICE=LIBRARY and PJRT_LIBRARY_PATH",
        )),
        Some("LIBRARY") if facts.variable("PJRT_LIBRARY_PATH").is_none() => findings.push(Finding::problem(
            "PJRT_DEVICE is LIBRARY, but PJRT_LIBRARY_PATH is not set",
            "set PJRT_LIBRARY_PATH to the path of the plugin's library",
        )),
        _ => {}
    }
    match facts.variable("PJRT_LIBRARY_PATH") {
        Some(path) if !std::path::Path::new(path).exists() => findings.push(Finding::problem(
            format!("PJRT_LIBRARY_PATH names {path}, which does not exist"),
            "correct the path, or unset the variable",
        )),
        _ => {}
    }
    findings
}

/// Returns the numbers of a version, at least two.
fn numbers(version: &str) -> Vec<u32> {
    let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    let mut numbers: Vec<u32> = version.split('.').take(3).map_while(digits).collect();
    numbers.resize(numbers.len().max(3), 0);
    numbers
}

#[cfg(test)]
mod tests {
    use super::super::environment::{Jax, Module, Registered};
    use super::super::finding::Level;
    use super::*;

    fn with(
        versions: &[(&str, &str)],
        variables: &[(&'static str, &str)],
        registered: &[&str],
    ) -> Environment {
        let mut facts = Environment::default();
        let packages =
            versions.iter().map(|(name, version)| ((*name).to_owned(), Some((*version).to_owned())));
        facts.facts.packages = packages.collect();
        facts.variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let module = |name: &&str| Module {
            module: format!("jax_plugins.{name}"),
            registered: vec![Registered { name: (*name).to_owned(), library: None }],
            ..Module::default()
        };
        facts.jax = Some(Jax { modules: registered.iter().map(module).collect(), ..Jax::default() });
        facts
    }

    fn worst(facts: &Environment) -> Vec<(Level, String)> {
        let bad = findings(facts).into_iter().filter(|finding| finding.level != Level::Ok);
        bad.map(|finding| (finding.level, finding.message)).collect()
    }

    #[test]
    fn releases_that_are_too_old_or_do_not_belong_together_are_found() {
        assert_eq!(worst(&with(&[("jax", "0.10.2"), ("jaxlib", "0.10.2")], &[], &["chip"])), []);
        let old = worst(&with(&[("jax", "0.4.20"), ("jaxlib", "0.4.20")], &[], &[]));
        assert!(old[0].1.contains("older than 0.4.30"), "{old:?}");
        let strict = [("jax", "0.4.30"), ("jaxlib", "0.4.30")];
        assert_eq!(worst(&with(&strict, &[], &[]))[0].0, Level::Problem);
        assert_eq!(worst(&with(&strict, &[("ENABLE_PJRT_COMPATIBILITY", "1")], &["chip"])), []);
        let apart = worst(&with(&[("jax", "0.10.2"), ("jaxlib", "0.10.0")], &[], &[]));
        assert!(apart[0].1.contains("different releases"), "{apart:?}");
        assert!(worst(&Environment::default())[0].1.contains("not installed"));
    }

    #[test]
    fn names_that_clash_are_found() {
        let versions = [("jax", "0.10.2"), ("jaxlib", "0.10.2")];
        let twice = worst(&with(&versions, &[], &["chip", "chip"]));
        assert!(twice[0].0 == Level::Problem && twice[0].1.contains("2 plugins"), "{twice:?}");
        let builtin = worst(&with(&versions, &[], &["cpu"]));
        assert!(builtin[0].1.contains("platform of JAX itself"), "{builtin:?}");
    }

    #[test]
    fn a_device_type_that_no_package_has_is_a_problem() {
        let versions = [("jax", "0.10.2"), ("jaxlib", "0.10.2"), ("torch_xla", "2.9.0")];
        let unknown = worst(&with(&versions, &[("PJRT_DEVICE", "CHIP")], &["chip"]));
        assert!(unknown[0].1.contains("\"CHIP\""), "{unknown:?}");
        let pathless = worst(&with(&versions, &[("PJRT_DEVICE", "LIBRARY")], &["chip"]));
        assert!(pathless[0].1.contains("PJRT_LIBRARY_PATH"), "{pathless:?}");
    }
}
