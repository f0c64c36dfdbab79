//! The features of Vulkan devices on which code depends.
//!
//! The default target of IREE 3.13 has memory with words of 32 bits. Its code for narrower elements is wrong: it loses those that
//! do not fill a word. The target of this module has the element types of the device. It has no operations between the
//! invocations of a subgroup, because the known targets with narrow elements need subgroups of a size that the device may not
//! have.

use std::fmt;

use crate::device::Device;
use crate::status::Result;

/// The features: their names in IREE's queries and in Vulkan, and those of the storage and of the numbers in IREE's targets.
const FEATURES: [(&str, &str, &str, &str); 7] = [
    ("storage_buffer_8bit_access", "storageBuffer8BitAccess", "b8", ""),
    ("storage_buffer_16bit_access", "storageBuffer16BitAccess", "b16", ""),
    ("shader_int8", "shaderInt8", "", "int8"),
    ("shader_int16", "shaderInt16", "", "int16"),
    ("shader_int64", "shaderInt64", "b64", "int64"),
    ("shader_float16", "shaderFloat16", "", "fp16"),
    ("shader_float64", "shaderFloat64", "b64", "fp64"),
];

/// The flags of the compiler that select a target of Vulkan.
const DEVICE: &str = "--iree-hal-target-device";
const TARGET: &str = "--iree-vulkan-target";

/// The limits that Vulkan guarantees on all devices.
const LIMITS: &str = "max_workgroup_sizes = [128, 128, 64], max_thread_count_per_workgroup = 128, \
                      max_workgroup_memory_bytes = 16384, max_workgroup_counts = [65535, 65535, 65535]";

/// The features of Vulkan devices on which code depends. The default has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VulkanFeatures([bool; FEATURES.len()]);

impl VulkanFeatures {
    /// Returns the features that all of these Vulkan devices have; all, if there are no devices.
    ///
    /// # Errors
    ///
    /// Returns NOT_FOUND if a device is not one of Vulkan.
    pub fn common<'d>(devices: impl IntoIterator<Item = &'d Device>) -> Result<Self> {
        let mut common = [true; FEATURES.len()];
        for device in devices {
            for ((name, ..), has) in FEATURES.iter().zip(&mut common) {
                *has &= device.query("vulkan.feature", name)? != 0;
            }
        }
        Ok(Self(common))
    }

    /// Returns `true` if flags of the compiler select another target.
    pub(crate) fn are_overridden(flags: &[String]) -> bool {
        flags.iter().any(|flag| flag.starts_with(DEVICE) || flag.starts_with(TARGET))
    }

    /// Returns the flag that selects the target with these features, unless other flags select one.
    pub(crate) fn compiler_flag(&self, others: &[String]) -> Option<String> {
        if others.iter().any(|flag| flag.starts_with(DEVICE)) {
            return None;
        }
        if Self::are_overridden(others) {
            return Some(format!("{DEVICE}=vulkan"));
        }
        let (mut numbers, mut storage) = (vec!["fp32", "int32"], vec!["b32"]);
        for (_, _, stored, number) in self.names() {
            numbers.extend((!number.is_empty()).then_some(number));
            storage.extend((!stored.is_empty() && !storage.contains(&stored)).then_some(stored));
        }
        let (numbers, storage) = (numbers.join("|"), storage.join("|"));
        Some(format!(
            "{DEVICE}=gpu=#hal.device.target<\"vulkan\", [#hal.executable.target<\"vulkan-spirv\", \"vulkan-spirv-fb\", \
             {{iree_codegen.target_info = #iree_gpu.target<arch = \"\", features = \"spirv:v1.3,cap:Shader\", wgp = <\
             compute = {numbers}, storage = {storage}, subgroup = none, \
             subgroup_size_choices = [64], {LIMITS}>>}}>]> : !hal.device"
        ))
    }

    /// Returns `true` if arrays can have elements with this number of bits. `has_float_operations` is `false` for integers, and
    /// for floats that are computed with others, as bf16 is.
    #[must_use]
    pub fn have_elements(&self, bits: u32, has_float_operations: bool) -> bool {
        let needed: &[&str] = match (bits, has_float_operations) {
            (..=8, _) => &["storageBuffer8BitAccess", "shaderInt8"],
            (16, false) => &["storageBuffer16BitAccess", "shaderInt16"],
            (16, true) => &["storageBuffer16BitAccess", "shaderFloat16"],
            _ => &[],
        };
        needed.iter().all(|needed| self.names().any(|(_, name, ..)| name == *needed))
    }

    /// Returns Vulkan's names of the features for elements of less than 32 bits that are missing, or an empty text.
    #[must_use]
    pub fn missing_for_narrow_elements(&self) -> String {
        let features = FEATURES.iter().zip(self.0).filter(|((.., number), _)| !number.ends_with("64"));
        let missing: Vec<&str> =
            features.filter_map(|((_, name, ..), has)| (!has).then_some(*name)).collect();
        missing.join(", ")
    }

    /// Returns the rows of [`FEATURES`] that the devices have.
    fn names(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str, &'static str)> {
        FEATURES.into_iter().zip(self.0).filter_map(|(names, has)| has.then_some(names))
    }
}

/// The names in Vulkan.
impl fmt::Display for VulkanFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().map(|(_, name, ..)| name).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_has_the_types_of_the_features() {
        let all = VulkanFeatures([true; FEATURES.len()]).compiler_flag(&[]).unwrap();
        let numbers =
            "compute = fp32|int32|int8|int16|int64|fp16|fp64, storage = b32|b8|b16|b64, subgroup = none";
        assert!(all.contains(numbers), "{all}");
        let none = VulkanFeatures::default().compiler_flag(&[]).unwrap();
        assert!(none.contains("compute = fp32|int32, storage = b32,"), "{none}");
    }

    #[test]
    fn narrow_elements_need_their_features() {
        let mut features = VulkanFeatures([true; FEATURES.len()]);
        assert!(features.have_elements(1, false) && features.have_elements(16, true));
        assert_eq!(features.missing_for_narrow_elements(), "");
        features.0[5] = false;
        assert!(!features.have_elements(16, true) && features.have_elements(16, false));
        assert_eq!(features.missing_for_narrow_elements(), "shaderFloat16");
        let none = VulkanFeatures::default();
        assert!(!none.have_elements(8, true) && none.have_elements(64, true));
    }
}
