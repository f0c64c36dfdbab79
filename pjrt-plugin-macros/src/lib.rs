//! The #[pjrt_plugin] attribute of the pjrt-plugin crate.
