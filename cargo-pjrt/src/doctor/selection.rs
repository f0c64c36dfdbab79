//! The platform that JAX chooses, and the reason.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::environment::{Environment, Jax};
use super::finding::Finding;

/// The platform that JAX chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The platform, or `None` if JAX has no device.
    pub platform: Option<String>,
    /// The reason.
    pub because: String,
}

impl Choice {
    pub(super) fn nothing(because: impl Into<String>) -> Self {
        Self { platform: None, because: because.into() }
    }
}

/// Examines what JAX chooses. `plugin` is the library that the user asks about; `platforms` are the platform names that the
/// clients of libraries report.
pub(super) fn findings(
    facts: &Environment,
    plugin: Option<&Path>,
    platforms: &[(PathBuf, Option<String>)],
) -> (Vec<Finding>, Choice) {
    let mut findings = variables(facts);
    let Some(jax) = &facts.jax else {
        return (
            findings,
            Choice::nothing("JAX is not installed in this environment, or cannot be imported"),
        );
    };
    for (name, error) in &jax.errors {
        if facts.registered().iter().any(|registered| registered.name == *name) {
            findings.push(Finding::problem(
                format!("JAX skips {name}, because it cannot create a client: {error}"),
                "the message is the plugin's; cargo pjrt doctor with the path of its library examines it",
            ));
        }
    }
    let choice = choice(facts, jax);
    if let Some(error) = &jax.error {
        let fix = if facts.variable("JAX_PLATFORMS").is_some() {
            "correct JAX_PLATFORMS, or unset it so that JAX skips platforms that fail"
        } else {
            "see the problems above"
        };
        findings.push(Finding::problem(format!("JAX has no device: {error}"), fix));
    }
    if let Some(path) = plugin {
        findings.extend(not_chosen(facts, jax, path, platforms, &choice));
    }
    (findings, choice)
}

/// Examines the variables that choose a platform.
fn variables(facts: &Environment) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in ["JAX_PLATFORMS", "PJRT_NAMES_AND_LIBRARY_PATHS", "PJRT_DEVICE", "PJRT_LIBRARY_PATH"] {
        if let Some(value) = facts.variable(name) {
            findings.push(Finding::ok(format!("{name}={value}")));
        }
    }
    if let Some(value) = facts.variable("JAX_PLATFORM_NAME") {
        findings.push(Finding::warning(
            format!("JAX_PLATFORM_NAME={value} selects the default platform, and is deprecated"),
            "use JAX_PLATFORMS instead",
        ));
    }
    if let Some(minor) = facts.variable("PJRT_PLUGIN_API_MINOR") {
        findings.push(Finding::warning(
            format!(
                "PJRT_PLUGIN_API_MINOR={minor}: plugins of this SDK report an older version of the C API"
            ),
            "unset it, unless you test an old host",
        ));
    }
    findings
}

fn choice(facts: &Environment, jax: &Jax) -> Choice {
    let Some(platform) = &jax.platform else {
        let error = jax.error.clone().unwrap_or_else(|| "it has no device".to_owned());
        return Choice::nothing(error);
    };
    let because = match facts.variable("JAX_PLATFORMS").filter(|value| !value.is_empty()) {
        Some(value) => format!("JAX_PLATFORMS={value} selects it"),
        None => {
            let mut usable: Vec<(&String, &i64)> =
                jax.priorities.iter().filter(|(name, _)| !jax.errors.contains_key(*name)).collect();
            usable.sort_by_key(|(_, priority)| std::cmp::Reverse(**priority));
            let usable: Vec<String> =
                usable.iter().map(|(name, priority)| format!("{name} {priority}")).collect();
            format!(
                "JAX_PLATFORMS is not set, and it has the highest priority of the platforms with devices (registered: {})",
                usable.join(", ")
            )
        }
    };
    let because = format!("{because}; its devices are {}", jax.devices.join(", "));
    Choice { platform: Some(platform.clone()), because }
}

/// Finds the reason why JAX does not choose the plugin that the user asks about.
fn not_chosen(
    facts: &Environment,
    jax: &Jax,
    path: &Path,
    platforms: &[(PathBuf, Option<String>)],
    choice: &Choice,
) -> Option<Finding> {
    let platform = platforms.iter().find(|(of, _)| of == path).and_then(|(_, platform)| platform.as_deref());
    let names: Vec<String> = facts
        .registered()
        .into_iter()
        .filter(|plugin| plugin.is_of(path))
        .map(|plugin| plugin.name)
        .collect();
    let Some(name) = names.first() else {
        let name = platform.unwrap_or("my_chip").to_lowercase();
        let same = facts.registered().into_iter().find(|plugin| plugin.name.eq_ignore_ascii_case(&name));
        return Some(match same.and_then(|plugin| plugin.library) {
            Some(library) => Finding::warning(
                format!("JAX uses another library for {name}: {}", library.display()),
                "install the wheel of this build, or set PJRT_NAMES_AND_LIBRARY_PATHS in an environment without that wheel",
            ),
            None => Finding::problem(
                format!("JAX does not know {}: no package and no variable names it", path.display()),
                format!(
                    "build and install a wheel (cargo pjrt wheel), or set PJRT_NAMES_AND_LIBRARY_PATHS={name}:{}",
                    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display()
                ),
            ),
        });
    };
    let is_chosen = |chosen: &String| chosen.eq_ignore_ascii_case(name) || Some(chosen.as_str()) == platform;
    if choice.platform.as_ref().is_some_and(is_chosen) {
        return Some(Finding::ok(format!("JAX chooses {name}")));
    }
    let excluded = facts.variable("JAX_PLATFORMS").filter(|value| !value.is_empty());
    Some(match (excluded, jax.errors.contains_key(name)) {
        (Some(value), _) if value.split(',').any(|platform| platform == name) => Finding::problem(
            format!("JAX_PLATFORMS={value} does not name {name} first, so JAX does not choose it"),
            format!("set JAX_PLATFORMS={name}, or put it first"),
        ),
        (Some(value), _) => Finding::problem(
            format!("JAX_PLATFORMS={value} excludes {name}"),
            format!("unset JAX_PLATFORMS, or set JAX_PLATFORMS={name}"),
        ),
        (None, true) => return None,
        (None, false) => Finding::problem(
            format!("JAX knows {name}, but chooses another platform"),
            format!("set JAX_PLATFORMS={name}, or register the plugin with a higher priority"),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::environment::{Module, Registered};
    use super::super::finding::Level;
    use super::*;

    /// Returns an environment with a plugin whose library is this program.
    fn with(
        variables: &[(&'static str, &str)],
        platform: Option<&str>,
        errors: &[(&str, &str)],
    ) -> Environment {
        let library = std::env::current_exe().ok();
        let registered = vec![Registered { name: "chip".into(), library }];
        let module = Module { module: "jax_plugins.chip".into(), registered, error: None };
        let jax = Jax {
            modules: vec![module],
            platform: platform.map(str::to_owned),
            error: platform.is_none().then(|| "RuntimeError: no".to_owned()),
            errors: errors.iter().map(|(name, error)| ((*name).to_owned(), (*error).to_owned())).collect(),
            priorities: [("cpu".to_owned(), 0), ("chip".to_owned(), 400)].into(),
            ..Jax::default()
        };
        let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Environment { jax: Some(jax), variables, ..Environment::default() }
    }

    fn asked(facts: &Environment) -> (Vec<Finding>, Choice) {
        let path = std::env::current_exe().unwrap();
        findings(facts, Some(&path), &[(path.clone(), Some("chip".to_owned()))])
    }

    fn problems(found: &[Finding]) -> Vec<&str> {
        let problems = found.iter().filter(|finding| finding.level == Level::Problem);
        problems.map(|finding| finding.message.as_str()).collect()
    }

    #[test]
    fn a_plugin_that_is_chosen_is_no_problem() {
        let (found, choice) = asked(&with(&[], Some("chip"), &[]));
        assert_eq!(problems(&found), [""; 0]);
        assert!(choice.because.contains("chip 400, cpu 0"), "{choice:?}");
        let (found, choice) = asked(&with(&[("JAX_PLATFORMS", "chip")], Some("chip"), &[]));
        assert!(problems(&found).is_empty() && choice.because.contains("JAX_PLATFORMS=chip"));
    }

    #[test]
    fn the_reason_why_a_plugin_is_not_chosen_is_found() {
        for (variables, platform, errors, expected) in [
            (&[("JAX_PLATFORMS", "cpu")][..], Some("cpu"), &[][..], "JAX_PLATFORMS=cpu excludes chip"),
            (&[("JAX_PLATFORMS", "cpu,chip")], Some("cpu"), &[], "does not name chip first"),
            (&[], Some("cpu"), &[("chip", "no driver")], "no driver"),
            (&[], Some("cpu"), &[], "chooses another platform"),
            (&[("JAX_PLATFORMS", "chip")], None, &[], "JAX has no device"),
        ] {
            let (found, _) = asked(&with(variables, platform, errors));
            assert!(
                problems(&found).iter().any(|problem| problem.contains(expected)),
                "{expected}: {found:?}"
            );
        }
    }

    #[test]
    fn a_library_that_no_package_registers_is_a_problem_with_the_command() {
        let path = Path::new("/bin/sh");
        let (found, _) =
            findings(&with(&[], Some("chip"), &[]), Some(path), &[(path.into(), Some("Other".into()))]);
        let finding = found.iter().find(|finding| finding.level == Level::Problem).unwrap();
        assert!(finding.fix.contains("PJRT_NAMES_AND_LIBRARY_PATHS=other:/"), "{finding:?}");
    }
}
