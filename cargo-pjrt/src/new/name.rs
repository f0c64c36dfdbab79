//! The name of a new plugin, in the forms in which its files contain it.

use super::template::Template;

/// The name of a plugin.
#[derive(Debug, PartialEq)]
pub(super) struct Name {
    /// The name of the package: `my-chip`.
    pub(super) package: String,
    /// The name of the platform and of the crate: `my_chip`.
    pub(super) platform: String,
    /// The name of types: `MyChip`.
    camel: String,
}

/// The names that have another meaning: JAX's own platforms, the crates that a plugin depends on, and the folders that Cargo
/// creates.
const RESERVED: &[&str] = &[
    "cpu",
    "gpu",
    "tpu",
    "cuda",
    "rocm",
    "metal",
    "jax",
    "torch",
    "test",
    "core",
    "std",
    "alloc",
    "target",
    "pjrt_plugin",
    "pjrt_stablehlo",
    "pjrt_testing",
];

impl Name {
    /// Checks the name of a package.
    ///
    /// # Errors
    ///
    /// Returns an error if the name has other characters than lowercase letters, digits, `-` and `_`, or if it has
    /// another meaning in Rust or in a host.
    pub(super) fn new(package: &str) -> Result<Self, String> {
        let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if !package.chars().all(is_valid) || !package.starts_with(|c: char| c.is_ascii_lowercase()) {
            return Err(format!(
                "'{package}' is not a name for a plugin; expected lowercase letters, digits, '-' and '_', with a letter first, such as \
                 my-chip"
            ));
        }
        let platform = package.replace('-', "_");
        if RESERVED.contains(&platform.as_str()) {
            return Err(format!(
                "the name '{package}' has another meaning; expected a new name, such as my-{package}"
            ));
        }
        let capital = |part: &str| {
            let mut letters = part.chars();
            letters
                .next()
                .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
                .unwrap_or_default()
        };
        let camel = platform.split('_').map(capital).collect();
        Ok(Self { package: package.to_owned(), platform, camel })
    }

    /// Returns the file name of the plugin's library.
    pub(super) fn library(&self) -> String {
        format!("{}{}{}", std::env::consts::DLL_PREFIX, self.platform, std::env::consts::DLL_SUFFIX)
    }

    /// Replaces the placeholders of a text.
    pub(super) fn fill(&self, text: &str, template: Template) -> String {
        text.replace("@NAME@", &self.package)
            .replace("@PLATFORM@", &self.platform)
            .replace("@LIBRARY@", &self.library())
            .replace("@TEMPLATE@", template.name())
            .replace("@GUIDE@", template.guide())
    }

    /// Replaces the name of the example from which a template is, in a file of its sources.
    pub(super) fn apply(&self, text: &str, template: Template) -> String {
        let example = template.example();
        let capital = Self::new(example).map(|name| name.camel).unwrap_or_default();
        // The common noun in comments stays.
        let forms = [
            (template.crate_name().to_owned(), self.platform.clone()),
            (format!("\"{example}"), format!("\"{}", self.platform)),
            (format!("={example}"), format!("={}", self.platform)),
            (format!("{example}:"), format!("{}:", self.platform)),
            (format!("the {example} "), format!("{} ", self.platform)),
            (format!("the {example}\""), format!("{}\"", self.platform)),
            (format!("{example} "), format!("{} ", self.platform)),
            (capital, self.camel.clone()),
            (example.to_uppercase(), self.platform.to_uppercase()),
        ];
        let is_noun = template == Template::Queue;
        let forms = forms.iter().filter(|(from, _)| !is_noun || *from != format!("{example} "));
        let forms: Vec<&(String, String)> = forms.collect();
        let (mut result, mut rest) = (String::new(), text);
        // In one pass, because the new name may contain the old one.
        while let Some(first) = rest.chars().next() {
            let form = forms.iter().find(|(from, _)| rest.starts_with(from.as_str()));
            let (taken, to) = match form {
                Some((from, to)) => (from.len(), to.as_str()),
                None => (first.len_utf8(), &rest[..first.len_utf8()]),
            };
            result.push_str(to);
            rest = &rest[taken..];
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_forms_of_packages_platforms_and_types() {
        let name = Name::new("my-chip2").unwrap();
        assert_eq!((name.platform.as_str(), name.camel.as_str()), ("my_chip2", "MyChip2"));
        for wrong in ["My", "2chip", "my chip", "", "my.chip", "gpu", "pjrt-plugin"] {
            assert!(Name::new(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_name_of_the_example_is_replaced_where_it_is_a_name() {
        let name = Name::new("my-chip").unwrap();
        let text = "A simulated accelerator: `libaccelerator_pjrt.so`, \"the accelerator has\", named(\"the accelerator\"), struct Accelerator, \
                    ACCELERATOR_LIMIT";
        let expected = "A simulated accelerator: `libmy_chip.so`, \"my_chip has\", named(\"my_chip\"), struct MyChip, MY_CHIP_LIMIT";
        assert_eq!(name.apply(text, Template::Queue).replace("my_chip: `", "accelerator: `"), expected);
        let name = Name::new("hello-2").unwrap();
        assert_eq!(name.apply("use hello_pjrt::Hello;", Template::Hello), "use hello_2::Hello2;");
    }
}
