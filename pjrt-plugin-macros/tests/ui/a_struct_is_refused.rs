use pjrt_plugin_macros::pjrt_plugin;

trait PjrtClient {}

struct Hello;

#[pjrt_plugin]
struct Other;

impl PjrtClient for Hello {}

impl PjrtClient for Other {}

fn main() {}
