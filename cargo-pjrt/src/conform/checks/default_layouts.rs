//! Checks of the layouts that the extension Layouts reports, for arrays of every element type and of many shapes.

use super::entry::{Entry, check};
use super::program_text::{compiled, launch, sums};
use super::samples::{Shaped, for_each_sample};
use crate::conform::harness::{Context, Finding, Verdict, equal};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Code, ElementType, Error};

const LAYOUTS: &str = "pjrt_c_api_layouts_extension.h";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "shapes/default_layouts",
        "The default layout that Layouts reports for an array of each element type and rank is that of an uploaded array without a layout.",
        default_layouts,
        "PJRT_Layouts_PJRT_Client_GetDefaultLayout when type_=15 num_dims=3 give num_dims=2",
    )
    .header(LAYOUTS, "Returns the default layout of an array of a type and dimensions.")
    .used_by(&[Profile::Jax]),
    check(
        "shapes/default_layouts_of_the_topology",
        "The default layout that Layouts reports for an array of each element type and rank is the same for the client and for its topology.",
        topology_layouts,
        "PJRT_Layouts_PJRT_Topology_GetDefaultLayout when type_=15 num_dims=3 give num_dims=2",
    )
    .header(LAYOUTS, "Returns the layout that a topology's devices use by default.")
    .used_by(&[Profile::Jax]),
    check(
        "shapes/layouts_of_arrays",
        "Layouts and PJRT_Buffer_GetMemoryLayout report the same order of dimensions for an array of each element type and rank.",
        layouts_of_arrays,
        "PJRT_Layouts_PJRT_Buffer_MemoryLayout of_type 14 of_rank 3 fail INTERNAL",
    )
    .header(LAYOUTS, "Returns the layout of a buffer's data on the device.")
    .used_by(&[Profile::Jax]),
    check(
        "shapes/layouts_of_programs",
        "Layouts reports a layout for each output and for each parameter of a program of several ranks, which are those of the outputs and of uploaded arrays.",
        layouts_of_programs,
        "PJRT_Layouts_PJRT_Executable_GetParameterLayouts set num_parameters=1",
    )
    .header(LAYOUTS, "Returns the layouts of a program's outputs and parameters.")
    .used_by(&[Profile::Jax]),
];

/// Returns the order of dimensions, from minor to major, of a layout as text, such as `{1,0}` or `{1,0:T(8,128)}`.
fn minor_to_major(text: &str) -> Option<Vec<i64>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?.split(':').next()?;
    let dims = inner.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    dims.map(|dim| dim.parse().ok()).collect()
}

fn default_layouts(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_sample(context, &client, |_, sample, array| {
        let default = client.default_layout(sample.element_type, &sample.dims)?;
        let what =
            format!("the layout of an uploaded array {sample} (left), compared with the default layout");
        equal(&what, array.layout_text()?, default)
    })
}

fn topology_layouts(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_sample(context, &client, |_, sample, _| {
        let what = format!(
            "the default layout of the topology for {sample} (left), compared with that of the client"
        );
        let default = client.default_layout(sample.element_type, &sample.dims)?;
        equal(&what, client.default_layout_of_topology(sample.element_type, &sample.dims)?, default)
    })
}

fn layouts_of_arrays(context: &Context) -> Verdict {
    let client = context.client()?;
    for_each_sample(context, &client, |_, sample, array| {
        let text = array.layout_text()?;
        let Some(order) = minor_to_major(&text) else {
            return Err(Finding::Unsupported(format!("the layout {text:?} is not one that the kit reads")));
        };
        let mut sorted = order.clone();
        sorted.sort_unstable();
        let dims: Vec<i64> = (0..sample.dims.len() as i64).collect();
        equal(&format!("the dimensions of the layout {text} of {sample}"), sorted, dims)?;
        match array.memory_layout().ok().flatten() {
            Some(own) => equal(
                &format!("PJRT_Buffer_GetMemoryLayout of {sample}, which has the layout {text},"),
                own,
                order,
            ),
            None => Ok(()),
        }
    })
}

fn layouts_of_programs(context: &Context) -> Verdict {
    const TYPES: [(&str, &[i64]); 4] =
        [("2x3xf32", &[2, 3]), ("f32", &[]), ("2x3x4xf32", &[2, 3, 4]), ("5xf32", &[5])];
    let client = context.client()?;
    let of = [("%p2", "%p2", TYPES[2].0), ("%p1", "%p1", TYPES[1].0), ("%p0", "%p0", TYPES[0].0)];
    let text = sums(&TYPES.map(|(ty, _)| ty), &of);
    let program = compiled(&client, &text, &CompileOptions::default())?;
    let executable = program.executable()?;
    let upload = |dims: &[i64]| {
        let sample = Shaped::new(ElementType::F32, dims, 0);
        Ok(client.upload(&sample.host(), Some(client.device()?), None)?.buffer)
    };
    let arguments = TYPES.iter().map(|(_, dims)| upload(dims)).collect::<Result<Vec<_>, Error>>()?;
    let launched = launch(&program, &arguments.iter().collect::<Vec<_>>(), 0)?;
    let texts = |arrays: &[Buffer]| arrays.iter().map(Buffer::layout_text).collect::<Result<Vec<_>, _>>();
    let what =
        "PJRT_Layouts_PJRT_Executable_GetOutputLayouts of a program with outputs of the ranks 3, 0 and 2";
    equal(what, executable.output_layouts()?, texts(launched.outputs_of(0, 3)?)?)?;
    let what = "PJRT_Layouts_PJRT_Executable_GetParameterLayouts of a program with parameters of the ranks 2, 0, 3 and 1";
    match executable.parameter_layouts() {
        Err(error) if error.code == Code::UNIMPLEMENTED => Ok(()),
        layouts => equal(what, layouts?, texts(&arguments)?),
    }
}
