//! The slots of the function table as data.

use core::mem::offset_of;

use crate::for_each_slot;
use crate::layout::{SizedStruct, StructLayout};

/// An entry of the function table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The name of the C function, which is also the name of the field of [`PJRT_Api`](crate::PJRT_Api).
    pub name: &'static str,
    /// The offset of the entry in [`PJRT_Api`](crate::PJRT_Api), in bytes.
    pub offset: usize,
    /// The layout of the function's argument struct.
    pub args: &'static StructLayout,
    /// `true` if the function returns a `*mut PJRT_Error`. Only `PJRT_Error_Destroy` and `PJRT_Error_Message` return
    /// nothing.
    pub returns_error: bool,
}

macro_rules! slots {
    ($($index:literal $name:ident $args:ident $shim:ident $returns:ident;)*) => {
        /// All slots of [`PJRT_Api`](crate::PJRT_Api), in the order of the table.
        pub static SLOTS: &[Slot] = &[$(
            Slot {
                name: stringify!($name),
                offset: offset_of!(crate::PJRT_Api, $name),
                args: <crate::$args as SizedStruct>::LAYOUT,
                returns_error: slots!(@ $returns),
            },
        )*];
    };
    (@ error) => { true };
    (@ nothing) => { false };
}
for_each_slot!(slots);

#[cfg(test)]
mod tests {
    use super::SLOTS;
    use crate::{PJRT_Api, SizedStruct};

    #[test]
    fn slots_fill_the_table_from_offset_40_without_gaps() {
        assert_eq!(SLOTS.len(), 138);
        for (index, slot) in SLOTS.iter().enumerate() {
            assert_eq!(slot.offset, 40 + 8 * index, "{}", slot.name);
        }
        assert_eq!(PJRT_Api::STRUCT_SIZE, 1144);
    }

    #[test]
    fn only_the_functions_that_read_an_error_return_none() {
        let without: Vec<_> = SLOTS.iter().filter(|slot| !slot.returns_error).map(|slot| slot.name).collect();
        assert_eq!(without, ["PJRT_Error_Destroy", "PJRT_Error_Message"]);
    }

    #[test]
    fn every_slot_takes_the_args_struct_of_its_name() {
        for slot in SLOTS {
            assert_eq!(slot.args.name, format!("{}_Args", slot.name));
        }
    }

    #[test]
    fn known_slots_are_where_hosts_look_for_them() {
        for (index, name) in [
            (0, "PJRT_Error_Destroy"),
            (20, "PJRT_Client_Compile"),
            (22, "PJRT_Client_BufferFromHostBuffer"),
            (33, "PJRT_Device_DefaultMemory"),
            (128, "PJRT_Device_GetAttributes"),
            (137, "PJRT_TopologyDescription_GetMemorySpaceKindIds"),
        ] {
            assert_eq!(SLOTS[index].name, name);
        }
    }
}
