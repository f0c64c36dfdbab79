#![forbid(unsafe_code)]

// The attribute refers to a crate of this name.
extern crate self as pjrt_plugin;

pub trait PjrtClient {}

pub mod ext {
    pub struct Extension;
}

pub mod __private {
    pub struct PJRT_Api;

    pub struct Export;

    impl Export {
        pub const fn new() -> Self {
            Self
        }

        pub fn get<C: crate::PjrtClient>(
            &self,
            api_minor: Option<i32>,
            extensions: &[crate::ext::Extension],
        ) -> *const PJRT_Api {
            assert_eq!(extensions.len(), 0);
            assert_eq!(api_minor, None);
            std::ptr::null()
        }
    }
}

struct Client;

#[pjrt_plugin_macros::pjrt_plugin]
impl PjrtClient for Client {}

fn main() {
    let _ = Client;
}
