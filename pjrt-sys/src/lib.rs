//! The PJRT C API as Rust declarations: structs, enums, the function table and its extensions.
