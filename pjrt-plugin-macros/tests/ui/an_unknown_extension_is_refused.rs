use pjrt_plugin_macros::pjrt_plugin;

trait PjrtClient {}

struct Hello;

#[pjrt_plugin(extensions(Layouts))]
impl PjrtClient for Hello {}

fn main() {}
