use pjrt_plugin_macros::pjrt_plugin;

trait PjrtClient {}

struct Hello;

#[pjrt_plugin(extensions(Lay))]
impl PjrtClient for Hello {}

fn main() {}
