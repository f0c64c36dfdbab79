#![forbid(unsafe_code)]

// The attribute refers to a crate of this name.
extern crate self as pjrt_plugin;

pub trait PjrtClient {
    const PLATFORM_NAME: &'static str;
}

pub mod __private {
    pub struct PJRT_Api(pub &'static str);

    pub fn export(table: &'static PJRT_Api) -> *const PJRT_Api {
        table
    }
}

#[macro_export]
macro_rules! api_table {
    ($client:ty, api_minor = 112) => {
        const { &$crate::__private::PJRT_Api(<$client as $crate::PjrtClient>::PLATFORM_NAME) }
    };
}

struct Client<T>(T);

#[pjrt_plugin_macros::pjrt_plugin(api_minor = 112)]
impl PjrtClient for Client<u8> {
    const PLATFORM_NAME: &'static str = "concrete";
}

fn main() {
    let _ = Client(0_u8).0;
}
