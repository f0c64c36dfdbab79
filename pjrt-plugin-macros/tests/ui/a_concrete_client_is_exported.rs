#![forbid(unsafe_code)]

// Stands for the crate that the attribute names.
extern crate self as pjrt_plugin;

pub trait PjrtClient {
    const ANSWER: usize;
}

pub mod __private {
    pub struct PJRT_Api;

    pub struct Export;

    impl Export {
        pub const fn new() -> Self {
            Self
        }

        pub fn get<C: crate::PjrtClient>(&self, api_minor: Option<i32>) -> *const PJRT_Api {
            assert_eq!(C::ANSWER, 42);
            assert_eq!(api_minor, Some(112));
            std::ptr::null()
        }
    }
}

struct Client<T>(T);

#[pjrt_plugin_macros::pjrt_plugin(api_minor = 112, extensions())]
impl PjrtClient for Client<u8> {
    const ANSWER: usize = 42;
}

fn main() {
    let _ = Client(0_u8).0;
}
