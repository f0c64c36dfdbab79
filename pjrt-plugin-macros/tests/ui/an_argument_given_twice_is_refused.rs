use pjrt_plugin_macros::pjrt_plugin;

trait PjrtClient {}

struct Hello;

#[pjrt_plugin(api_minor = 112, api_minor = 113)]
impl PjrtClient for Hello {}

fn main() {}
