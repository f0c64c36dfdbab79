#![forbid(unsafe_code)]

// The attribute refers to a crate of this name.
extern crate self as pjrt_plugin;

pub trait PjrtClient {
    const ANSWER: usize;
}

pub mod ext {
    pub struct Extension;

    pub trait Shardings: crate::PjrtClient {}

    impl Extension {
        pub fn shardings<C: Shardings>() -> Self {
            Self
        }
    }
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
            assert_eq!(extensions.len(), 1);
            assert_eq!(C::ANSWER, 42);
            assert_eq!(api_minor, Some(112));
            std::ptr::null()
        }
    }
}

struct Client<T>(T);

#[pjrt_plugin_macros::pjrt_plugin(api_minor = 112, extensions(Shardings))]
impl PjrtClient for Client<u8> {
    const ANSWER: usize = 42;
}

impl pjrt_plugin::ext::Shardings for Client<u8> {}

fn main() {
    let _ = Client(0_u8).0;
}
