//! The exceptions from the rules of the structure. To shorten a list, resolve an exception and delete the line
//! that the test then names; the number of lines of a function may only shrink.

use std::collections::BTreeSet;

/// Files or folders that may import each other, because what they describe is recursive.
pub(crate) struct Cycle {
    /// The folder that they are in.
    pub(crate) folder: &'static str,
    /// Their names in the folder.
    pub(crate) names: &'static [&'static str],
    /// The reason why they may.
    pub(crate) reason: &'static str,
}

impl Cycle {
    /// Returns the paths.
    pub(crate) fn nodes(&self) -> BTreeSet<String> {
        self.names.iter().map(|name| format!("{}/{name}", self.folder)).collect()
    }
}

/// The folders that import each other.
pub(crate) const FOLDER_CYCLES: &[Cycle] = &[
    Cycle {
        folder: "pjrt-sharding",
        names: &["src", "src/partition", "src/propagate"],
        reason: "the root contains both the shardings and the driver of all passes",
    },
    Cycle {
        folder: "refcpu-engine/src",
        names: &["compile", "compile/emit", "compile/lower", "compile/optimise", "compile/optimise/expand"],
        reason: "the phases use the options and errors of the driver that calls them",
    },
    Cycle {
        folder: "refcpu-engine/src",
        names: &["graph", "graph/ops"],
        reason: "the operations implement a trait of the graph, which contains operations",
    },
];

/// The files that import each other.
pub(crate) const FILE_CYCLES: &[Cycle] = &[
    Cycle {
        folder: "examples/accelerator/src",
        names: &["buffer.rs", "client.rs", "executable.rs", "launch.rs"],
        reason: "the client creates buffers and executables, which hold the client's devices",
    },
    Cycle {
        folder: "examples/refcpu/src",
        names: &["call_partitioner.rs", "client.rs", "executable.rs", "host.rs", "launch.rs", "sharding.rs"],
        reason: "the client creates executables, which hold the client's runtime and options",
    },
    Cycle {
        folder: "pjrt-plugin/src/abi",
        names: &["buffer.rs", "client_state.rs", "device.rs", "memory_usage.rs"],
        reason: "buffers and devices refer to the state of their client, which refers to them",
    },
    Cycle {
        folder: "pjrt-plugin/src/ext/ffi",
        names: &["call.rs", "registry.rs", "runtime.rs"],
        reason: "a call looks up its handler in the registry, whose handlers are called with a call",
    },
    Cycle {
        folder: "pjrt-stablehlo/src/ir",
        names: &["attribute.rs", "location.rs"],
        reason: "an attribute may be a location, and a location contains attributes",
    },
    Cycle {
        folder: "pjrt-stablehlo/src/ir",
        names: &["operation.rs", "ops.rs"],
        reason: "an operation has a kind, and kinds have accessors that take the operation",
    },
    Cycle {
        folder: "refcpu-engine/src/compile",
        names: &["call_rule.rs", "lower/custom_call.rs", "lower/linalg.rs", "lower/mod.rs", "options.rs"],
        reason: "the options contain the sharding rules of custom calls, which read a call as its lowering does",
    },
    Cycle {
        folder: "refcpu-engine/src/exec",
        names: &["foreign.rs", "host.rs", "kernels.rs", "lane.rs", "manual.rs"],
        reason: "kernels run the bodies of loops and manual computations, which are plans",
    },
    Cycle {
        folder: "refcpu-engine/src/graph",
        names: &["constant.rs", "op.rs", "operation.rs"],
        reason: "operations contain constants and regions, which contain operations",
    },
];

/// The functions that do not fit a screen: the file, the function, and the maximum number of its lines.
pub(crate) const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[
    ("refcpu-engine/src/compile/lower/lapack.rs", "Scope::routine", 149),
    ("refcpu-engine/src/compile/emit/small_loop.rs", "Lowering::node", 136),
    ("refcpu-kernels/src/linalg/op.rs", "LinalgOp::results", 112),
    ("refcpu-kernels/src/machine/exec.rs", "Machine::run", 108),
    ("refcpu-kernels/src/window/cumulative.rs", "Cumulative::run", 105),
    ("refcpu-engine/src/compile/lower/manual.rs", "Scope::manual_computation", 99),
    ("pjrt-plugin/src/abi/execute.rs", "loaded_executable_execute", 96),
    ("refcpu-kernels/src/index/scatter.rs", "scatter", 90),
    ("refcpu-kernels/src/linalg/pivoted_qr.rs", "factor", 89),
    ("refcpu-engine/src/graph/builder.rs", "Builder::simplified_movement", 87),
    ("refcpu-engine/src/compile/lower/dynamic.rs", "Scope::dynamic_op", 86),
    ("examples/accelerator/src/interpreter.rs", "Interpreter::compute", 75),
    ("refcpu-engine/src/compile/lower/array.rs", "Scope::reduction_op", 71),
    ("refcpu-engine/src/compile/emit/mod.rs", "emit_nested", 70),
    ("refcpu-engine/src/compile/optimise/region.rs", "Emission::computed", 69),
    ("refcpu-engine/src/compile/emit/control.rs", "Emitter::loop_steps", 68),
    ("refcpu-kernels/src/index/gather.rs", "check", 68),
    ("refcpu-kernels/src/reduce/types.rs", "dispatch", 67),
    ("refcpu-kernels/src/fft.rs", "run", 66),
    ("refcpu-engine/src/compile/lower/mod.rs", "Scope::values_of", 65),
    ("refcpu-engine/src/exec/collective.rs", "groups", 65),
    ("refcpu-kernels/src/reduce/arg.rs", "Task::find", 64),
    ("refcpu-engine/src/plan/display.rs", "Program::fmt", 63),
    ("refcpu-kernels/src/math/complex.rs", "atan2", 63),
    ("refcpu-kernels/src/sort/top_k.rs", "top_k", 63),
    ("refcpu-kernels/src/linalg/svd.rs", "tall_svd", 62),
    ("refcpu-engine/src/compile/emit/control.rs", "Emitter::while_loop", 61),
    ("refcpu-kernels/src/reduce/driver.rs", "reduce_columns", 61),
];

/// The files that are too long, and the maximum number of their lines.
pub(crate) const LONG_FILES: &[(&str, usize)] =
    &[("pjrt-stablehlo/src/ir/ops.rs", 810), ("refcpu-engine/tests/engine.rs", 890)];
