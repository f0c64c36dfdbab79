//! For what the compiler makes code.

use std::fmt;

use crate::device::Device;
use crate::driver::Driver;
use crate::processor::processor_features;
use crate::status::Result;
use crate::vulkan_features::VulkanFeatures;

/// The flags of the compiler for processors.
const PROCESSOR: [&str; 3] = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
];

/// Devices for which the compiler makes code. The text identifies the code: code with another text may not run there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeTarget {
    /// The processor of the host, with all of its features.
    Processor,
    /// Vulkan devices with these features.
    Vulkan(VulkanFeatures),
    /// NVIDIA's GPUs.
    Cuda,
}

impl CodeTarget {
    /// Returns the target for all devices of a driver; for Vulkan, for those without any optional feature.
    #[must_use]
    pub fn of_driver(driver: &str) -> Self {
        match driver {
            "vulkan" => Self::Vulkan(VulkanFeatures::default()),
            "cuda" => Self::Cuda,
            _ => Self::Processor,
        }
    }

    /// Returns the target with the features that all of these devices have, which are those of the driver.
    ///
    /// # Errors
    ///
    /// Returns an error if a device cannot be asked.
    pub fn for_devices<'d>(self, devices: impl IntoIterator<Item = &'d Device>) -> Result<Self> {
        match self {
            Self::Vulkan(_) => Ok(Self::Vulkan(VulkanFeatures::common(devices)?)),
            other => Ok(other),
        }
    }

    /// Returns the target for the devices that the host has. If they cannot be used, it does not change.
    #[must_use]
    pub fn for_host(self) -> Self {
        let devices = || {
            let driver = Driver::open("vulkan")?;
            (0..driver.devices()?.len()).map(|ordinal| driver.device(ordinal)).collect::<Result<Vec<_>>>()
        };
        match self {
            Self::Vulkan(_) => devices().and_then(|devices| self.for_devices(&devices)).unwrap_or(self),
            other => other,
        }
    }

    /// Returns the features of Vulkan devices, unless flags of the compiler select another target.
    #[must_use]
    pub fn vulkan(&self, flags: &[String]) -> Option<VulkanFeatures> {
        match self {
            Self::Vulkan(features) if !VulkanFeatures::are_overridden(flags) => Some(*features),
            _ => None,
        }
    }

    /// Returns the flags of the compiler that select the target, besides others, which take precedence.
    #[must_use]
    pub fn compiler_flags(&self, others: &[String]) -> Vec<String> {
        match self {
            Self::Processor => PROCESSOR.map(str::to_owned).into(),
            Self::Vulkan(features) => features.compiler_flag(others).into_iter().collect(),
            Self::Cuda => vec!["--iree-hal-target-device=cuda".to_owned()],
        }
    }
}

impl fmt::Display for CodeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processor => write!(f, "{:016x}", processor_features()),
            Self::Vulkan(features) => write!(f, "{features}"),
            Self::Cuda => f.write_str("cuda"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_other_features_has_another_text() {
        let texts = ["local-task", "vulkan", "cuda"].map(|driver| CodeTarget::of_driver(driver).to_string());
        assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");
        assert_eq!(CodeTarget::of_driver("local-sync").to_string(), texts[0]);
    }

    #[test]
    fn a_target_of_the_user_takes_precedence() {
        let vulkan = CodeTarget::of_driver("vulkan");
        let flags = |flag: &str| vulkan.compiler_flags(&[flag.to_owned()]);
        assert!(
            flags("--other")[0].starts_with("--iree-hal-target-device=gpu=#hal.device.target<\"vulkan\"")
        );
        assert_eq!(flags("--iree-vulkan-target=ampere"), ["--iree-hal-target-device=vulkan"]);
        assert!(flags("--iree-hal-target-device=vulkan").is_empty());
        assert_eq!(vulkan.vulkan(&[]), Some(VulkanFeatures::default()));
        assert_eq!(vulkan.vulkan(&["--iree-vulkan-target=ampere".to_owned()]), None);
    }
}
