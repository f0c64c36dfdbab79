//! Modules that a pass rebuilds function by function.

use pjrt_stablehlo::Module;

/// Returns a module with the name, attributes, location and meshes of another, but without functions.
pub(crate) fn without_functions(module: &Module) -> Module {
    let mut program = Module::new();
    program.name.clone_from(&module.name);
    program.attributes.clone_from(&module.attributes);
    program.location.clone_from(&module.location);
    for mesh in module.meshes() {
        program.add_mesh(mesh.clone());
    }
    program
}
