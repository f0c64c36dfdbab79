//! Checks of the sizes of texts that a host passes: a text has a size, and need not end with a zero byte.
//!
//! All calls of the kit pass texts that are followed by other bytes. These checks repeat a call that fails with a
//! zero byte after one text, so that the message names this text.

use super::entry::{ALL, Entry, check};
use crate::conform::harness::{
    Context, Finding, Verdict, add_program, compile_add, compile_and_keep_add, ensure, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Code, CreateOption, Event, PAST_END, Program, Topology, Value, with_terminated};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "texts/format",
        "The format of a program ends after `format_size` bytes.",
        format,
        "PJRT_Client_Compile up_to_zero program>format program>format_size",
    )
    .header(
        "PJRT_Program::format_size",
        "The size of `format`, which therefore needs no zero byte at its end.",
    )
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "texts/program",
        "The text of a program ends after `code_size` bytes.",
        program,
        "PJRT_Client_Compile up_to_zero program>code program>code_size",
    )
    .header("PJRT_Program::code_size", "The size of `code`, which therefore needs no zero byte at its end.")
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "texts/option_names",
        "The name of an option of PJRT_Client_Create ends after `name_size` bytes.",
        option_names,
        "PJRT_Client_Create when create_options>name_size=14 up_to_zero create_options>name create_options>name_size",
    )
    .header(
        "PJRT_NamedValue::name_size",
        "The size of `name`, which therefore needs no zero byte at its end.",
    )
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "texts/compile_options",
        "The compile options end after `compile_options_size` bytes.",
        compile_options,
        "PJRT_Client_Compile more_bytes compile_options compile_options_size",
    )
    .header(
        "PJRT_Client_Compile_Args::compile_options_size",
        "The size of the serialized CompileOptionsProto.",
    )
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "texts/serialized_topology",
        "A serialized topology ends after `serialized_topology_size` bytes.",
        serialized_topology,
        "PJRT_TopologyDescription_Deserialize more_bytes serialized_topology serialized_topology_size",
    )
    .header(
        "PJRT_TopologyDescription_Deserialize_Args::serialized_topology_size",
        "The size of the serialized topology.",
    )
    .since(75)
    .also(&["topology/*"]),
    check(
        "texts/serialized_executable",
        "A serialized executable ends after `serialized_executable_size` bytes.",
        serialized_executable,
        "PJRT_Executable_DeserializeAndLoad more_bytes serialized_executable serialized_executable_size",
    )
    .header(
        "PJRT_Executable_DeserializeAndLoad_Args::serialized_executable_size",
        "The size of the serialized executable.",
    )
    .also(&["compile/*", "executables/*", "passed/*"]),
    check(
        "texts/error_messages",
        "The message of PJRT_Event_Set ends after `error_message_size` bytes.",
        error_messages,
        "PJRT_Event_Set up_to_zero error_message error_message_size",
    )
    .header(
        "PJRT_Event_Set_Args::error_message_size",
        "The size of `error_message`, which therefore needs no zero byte at its end.",
    )
    .since(89)
    .also(&["event/*", "error/*"]),
    check(
        "texts/returned",
        "The size of a text that the plugin returns is that of its characters, without a zero byte.",
        returned,
        "PJRT_Layouts_MemoryLayout_Serialize with_zero serialized_bytes serialized_bytes_size",
    )
    .host(
        "XLA's client, pjrt_c_api_client.cc, PjRtCApiBuffer::layout",
        "Parses the text of a layout to its end, and all other texts become strings of this size.",
    )
    .needed_by(&[Profile::Jax])
    .also(&["extension/*"]),
];

/// Makes a call. If it fails, repeats it with a zero byte after `field`.
fn by_size(function: &str, field: &'static str, call: impl Fn() -> Result<(), Finding>) -> Verdict {
    let Err(found) = call() else { return Ok(()) };
    if with_terminated(field, &call).is_err() {
        return Err(found);
    }
    let text = match found {
        Finding::Wrong(text)
        | Finding::Advice(text)
        | Finding::Unsupported(text)
        | Finding::NotApplicable(text) => text,
    };
    Err(Finding::Wrong(format!(
        "{text}. The call succeeds if a zero byte follows `{field}` of {function}; the plugin probably reads it up to a zero \
         byte, and not up to its size"
    )))
}

const COMPILE: &str = "PJRT_Client_Compile";

/// Compiles the program that adds.
fn compiles(context: &Context) -> Verdict {
    let client = context.client()?;
    client.compile(&Program::mlir(&add_program("4x")), &CompileOptions::default().encode())?;
    Ok(())
}

fn format(context: &Context) -> Verdict {
    by_size(COMPILE, "format", || compiles(context))
}

fn program(context: &Context) -> Verdict {
    by_size(COMPILE, "code", || compiles(context))
}

fn compile_options(context: &Context) -> Verdict {
    by_size(COMPILE, "compile_options", || compiles(context))
}

fn option_names(context: &Context) -> Verdict {
    // The rule does not apply if no client can be created at all.
    drop(context.client()?);
    // The message about an option that does not exist usually quotes its name.
    let option = CreateOption::new("no_such_option", Value::Int64(1));
    let said = context.plugin.create_client(&[option]).err().map(|error| error.message).unwrap_or_default();
    ensure!(
        !said.contains(PAST_END),
        "the message about an unknown option continues past the end of the option's name: {said:?}; the plugin probably reads \
         the name up to a zero byte, and not up to `name_size`"
    );
    Ok(())
}

fn serialized_topology(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = client.topology()?.serialize()?.0;
    by_size("PJRT_TopologyDescription_Deserialize", "serialized_topology", || {
        drop(Topology::deserialize(context.plugin, &bytes)?);
        Ok(())
    })
}

fn serialized_executable(context: &Context) -> Verdict {
    let client = context.client()?;
    let bytes = compile_add(&client)?.executable()?.serialize()?.bytes;
    by_size("PJRT_Executable_DeserializeAndLoad", "serialized_executable", || {
        drop(client.deserialize(&bytes)?);
        Ok(())
    })
}

fn error_messages(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    event.set(Code::ABORTED, "given up")?;
    let said = event.error().err().map(|error| error.message).unwrap_or_default();
    ensure!(
        !said.contains(PAST_END),
        "the event's message is {said:?}; expected \"given up\". The plugin probably reads `error_message` of PJRT_Event_Set up \
         to a zero byte, and not up to `error_message_size`"
    );
    Ok(())
}

fn returned(context: &Context) -> Verdict {
    let client = context.client()?;
    client.platform_name()?;
    client.platform_version()?;
    let (array, compiled) = (upload_four(&client, &[1.0; 4])?, compile_and_keep_add(&client)?);
    let device = client.device()?;
    let (description, memory) = (device.description()?, device.default_memory()?);
    if let Ok(text) = array.layout_text() {
        ensure!(
            text.starts_with('{') && text.ends_with('}'),
            "PJRT_Layouts_MemoryLayout_Serialize returned {text:?}; expected a layout in braces, such as {{1,0}}. The size of the \
             text is probably wrong"
        );
    }
    let texts = [
        ("PJRT_Layouts_MemoryLayout_Serialize", array.layout_text()),
        ("PJRT_Executable_Name", compiled.name()),
        ("PJRT_DeviceDescription_Kind", description.kind()),
        ("PJRT_DeviceDescription_ToString", description.to_text()),
        ("PJRT_DeviceDescription_DebugString", description.debug_string()),
        ("PJRT_Memory_Kind", memory.kind()),
        ("PJRT_Memory_ToString", memory.to_text()),
        ("PJRT_Memory_DebugString", memory.debug_string()),
    ];
    for (function, text) in texts {
        match text {
            Err(error) if error.code == Code::UNIMPLEMENTED => {}
            Err(error) => {
                return Err(Finding::Wrong(format!("{error}; hosts use all bytes of {function}'s text")));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}
