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
        folder: "pjrt-plugin",
        names: &["src", "src/core"],
        reason: "core uses the error type, which is public and in the root",
    },
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
    Cycle {
        folder: "refcpu-kernels/src",
        names: &["region", "tile"],
        reason: "regions run the kernels of tiles, which are selected by the operations of regions",
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
        names: &[
            "buffer.rs",
            "client_state.rs",
            "device.rs",
            "executable.rs",
            "execute.rs",
            "exit.rs",
            "loaded.rs",
            "memory_usage.rs",
            "topology.rs",
        ],
        reason: "handles lead to the state of their client, which lists the handles",
    },
    Cycle {
        folder: "pjrt-plugin/src/ext/custom_partitioner",
        names: &["partitioner.rs", "registry.rs"],
        reason: "the partitioner of a call is looked up in the registry, which holds partitioners",
    },
    Cycle {
        folder: "pjrt-plugin/src/ext/ffi",
        names: &["call.rs", "registry.rs", "runtime.rs"],
        reason: "a call looks up its handler in the registry, whose handlers are called with a call",
    },
    Cycle {
        folder: "pjrt-stablehlo/src/bytecode",
        names: &[
            "builtin.rs",
            "chlo.rs",
            "entries.rs",
            "quant.rs",
            "sdy.rs",
            "stablehlo.rs",
            "tensor.rs",
            "vhlo.rs",
        ],
        reason: "an entry of the attribute table refers to entries of any dialect by number",
    },
    Cycle {
        folder: "pjrt-stablehlo/src/ir",
        names: &[
            "attribute.rs",
            "body.rs",
            "error.rs",
            "literal.rs",
            "location.rs",
            "module.rs",
            "op.rs",
            "op_attributes.rs",
            "ops.rs",
            "quantized.rs",
            "replica_groups.rs",
            "sharding.rs",
            "types.rs",
        ],
        reason: "types, attributes, locations and operations contain each other",
    },
    Cycle {
        folder: "pjrt-stablehlo/src/text",
        names: &["aliases.rs", "dense.rs", "elements.rs", "parser.rs", "scopes.rs"],
        reason: "the parser of a value calls the parsers of its parts, which call it",
    },
    Cycle {
        folder: "pjrt-stablehlo/src/text",
        names: &["operations.rs", "regions.rs"],
        reason: "operations contain regions, which contain operations",
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
    Cycle {
        folder: "refcpu-kernels/src/conv",
        names: &["mod.rs", "patches.rs"],
        reason: "the driver calls the kernel for patches, which takes the driver's specification",
    },
    Cycle {
        folder: "refcpu-kernels/src/region",
        names: &["builder.rs", "lower.rs"],
        reason: "a builder ends with the lowering, which takes the builder",
    },
];

/// The functions that do not fit a screen: the file, the function, and the maximum number of its lines.
pub(crate) const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[
    ("refcpu-kernels/src/region/lower.rs", "compile", 310),
    ("pjrt-stablehlo/src/print/attribute.rs", "Attribute::fmt", 159),
    ("refcpu-engine/src/compile/lower/lapack.rs", "Scope::routine", 149),
    ("refcpu-engine/src/compile/emit/small_loop.rs", "Lowering::node", 136),
    ("refcpu-kernels/src/linalg/op.rs", "LinalgOp::results", 112),
    ("refcpu-kernels/src/conv/mod.rs", "typed", 111),
    ("refcpu-kernels/src/machine/exec.rs", "Machine::run", 108),
    ("refcpu-kernels/src/region/exec.rs", "Frame::tiles_in", 107),
    ("refcpu-kernels/src/window/cumulative.rs", "Cumulative::run", 105),
    ("refcpu-kernels/src/machine/instr.rs", "scalar_op", 104),
    ("pjrt-stablehlo/src/bytecode/stablehlo.rs", "attribute", 102),
    ("pjrt-stablehlo/src/infer/mod.rs", "results", 100),
    ("pjrt-stablehlo/src/bytecode/ops.rs", "from_vhlo", 99),
    ("refcpu-engine/src/compile/lower/manual.rs", "Scope::manual_computation", 99),
    ("pjrt-plugin/src/abi/execute.rs", "loaded_executable_execute", 96),
    ("refcpu-kernels/src/index/scatter.rs", "scatter", 90),
    ("refcpu-kernels/src/region/gather.rs", "gather_as", 90),
    ("refcpu-kernels/src/linalg/pivoted_qr.rs", "factor", 89),
    ("refcpu-engine/src/compile/lower/dynamic.rs", "Scope::dynamic_op", 86),
    ("refcpu-engine/src/graph/builder.rs", "Builder::simplified_movement", 86),
    ("pjrt-stablehlo/src/hlo/opcodes.rs", "Reader::leaves_of", 85),
    ("refcpu-kernels/src/conv/patches.rs", "Patches::by_rows", 83),
    ("pjrt-stablehlo/src/bytecode/code.rs", "Reader::read_op_head", 81),
    ("pjrt-stablehlo/src/verify/interface.rs", "interface", 80),
    ("pjrt-stablehlo/src/bytecode/sdy.rs", "attribute", 79),
    ("refcpu-kernels/src/region/lower.rs", "geometry", 76),
    ("examples/accelerator/src/interpreter.rs", "Interpreter::compute", 75),
    ("pjrt-stablehlo/src/hlo/module.rs", "read", 74),
    ("refcpu-kernels/src/tile/mod.rs", "kernel", 74),
    ("refcpu-kernels/src/dot/gemm.rs", "Task::run", 72),
    ("pjrt-stablehlo/src/text/quantized.rs", "Parser::quantized", 71),
    ("pjrt-stablehlo/src/verify/ragged_dot.rs", "check", 71),
    ("refcpu-engine/src/compile/lower/array.rs", "Scope::reduction_op", 71),
    ("refcpu-kernels/src/machine/assembler.rs", "Assembler::compute", 71),
    ("pjrt-stablehlo/src/bytecode/builtin.rs", "attribute", 70),
    ("refcpu-engine/src/compile/emit/mod.rs", "emit_nested", 70),
    ("refcpu-engine/src/compile/optimise/region.rs", "Emission::computed", 69),
    ("pjrt-stablehlo/src/text/operations.rs", "Parser::kind", 68),
    ("refcpu-kernels/src/index/gather.rs", "check", 68),
    ("refcpu-kernels/src/region/bytes.rs", "Region::from_bytes", 68),
    ("refcpu-kernels/src/conv/patches.rs", "Patches::by_columns", 67),
    ("refcpu-kernels/src/dot/int8.rs", "multiply", 67),
    ("refcpu-kernels/src/reduce/types.rs", "dispatch", 67),
    ("refcpu-kernels/src/fft.rs", "run", 66),
    ("pjrt-stablehlo/src/passes/rules/select_and_scatter.rs", "select_and_scatter", 65),
    ("refcpu-engine/src/compile/lower/mod.rs", "Scope::values_of", 65),
    ("refcpu-engine/src/exec/collective.rs", "groups", 65),
    ("refcpu-kernels/src/tile/cast.rs", "convert", 65),
    ("pjrt-stablehlo/src/text/dialect_attributes.rs", "Parser::stablehlo_attribute", 64),
    ("refcpu-engine/src/compile/emit/control.rs", "Emitter::loop_steps", 64),
    ("refcpu-kernels/src/reduce/arg.rs", "Task::find", 64),
    ("pjrt-stablehlo/src/text/assembly_regions.rs", "Parser::reduce", 63),
    ("refcpu-engine/src/plan/display.rs", "Program::fmt", 63),
    ("refcpu-kernels/src/dot/gemm.rs", "one", 63),
    ("refcpu-kernels/src/math/complex.rs", "atan2", 63),
    ("refcpu-kernels/src/sort/top_k.rs", "top_k", 63),
    ("pjrt-stablehlo/src/text/functions.rs", "Parser::generic_function", 62),
    ("pjrt-stablehlo/src/verify/structure.rs", "scopes", 62),
    ("refcpu-kernels/src/linalg/svd.rs", "tall_svd", 62),
    ("refcpu-kernels/src/region/builder.rs", "Builder::simplified", 62),
    ("refcpu-engine/src/compile/emit/control.rs", "Emitter::while_loop", 61),
    ("refcpu-kernels/src/reduce/driver.rs", "reduce_columns", 61),
];

/// The files that are too long, and the maximum number of their lines.
pub(crate) const LONG_FILES: &[(&str, usize)] = &[("refcpu-engine/tests/engine.rs", 890)];
