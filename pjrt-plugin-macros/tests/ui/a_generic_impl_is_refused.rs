use pjrt_plugin_macros::pjrt_plugin;

trait PjrtClient {}

struct Hello;

#[pjrt_plugin]
impl<T> PjrtClient for Vec<T> {}

impl PjrtClient for Hello {}

fn main() {}
