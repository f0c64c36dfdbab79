//! The functions that no plugin of this version of the crate can offer: each answers UNIMPLEMENTED with its own name, which
//! every host puts up with.

use crate::abi::args::shims;
use crate::abi::guard::function_name;
use crate::error::Error;

macro_rules! unimplemented_slots {
    ($($(#[$attribute:meta])* $name:ident($args:ident))*) => {
        shims! {$(
            $(#[$attribute])*
            $name($args) |_args, C| {
                let function = function_name::<pjrt_sys::$args>();
                Err(Error::unimplemented(format!("{function} is not implemented by this plugin")))
            }
        )*}
    };
}

unimplemented_slots! {
    /// Slot 136.
    topology_description_make_canonical_shape_for_memory_space(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args)
    /// Slot 137.
    topology_description_get_memory_space_kind_ids(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args)
}
