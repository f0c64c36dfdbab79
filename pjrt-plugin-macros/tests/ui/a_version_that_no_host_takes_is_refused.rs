use pjrt_plugin_macros::pjrt_plugin;

trait PjrtClient {}

struct Hello;

#[pjrt_plugin(api_minor = 28)]
impl PjrtClient for Hello {}

fn main() {}
