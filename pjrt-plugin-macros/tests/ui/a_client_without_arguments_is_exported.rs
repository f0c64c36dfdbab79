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
    ($client:ty) => {
        const { &$crate::__private::PJRT_Api(<$client as $crate::PjrtClient>::PLATFORM_NAME) }
    };
}

struct Client;

#[pjrt_plugin_macros::pjrt_plugin]
impl PjrtClient for Client {
    const PLATFORM_NAME: &'static str = "without";
}

fn main() {
    let _ = Client;
}
