//! Checks of memory that the plugin owns and the host reads: it remains valid until its owner is destroyed.

use super::entry::{Entry, check};
use crate::conform::harness::{Context, Finding, ONE_MESSAGE, Verdict, compile_add, ensure, equal};
use crate::requirements::Profile;
use pjrt_testing::host::{ElementType, ReturnedBytes};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "ownership/error_messages",
        "Each error has its own message, which remains valid until the error is destroyed, even if other calls fail in the meantime.",
        error_messages,
        "PJRT_Error_Message static_message",
    )
    .header("PJRT_Error_Message_Args::message", "Has the lifetime of `error`.")
    .also(&["error/own_functions_agree"]),
    check(
        "ownership/serialized_program",
        "The bytes of PJRT_Executable_Serialize remain valid until their deleter is called, even if the executable is destroyed before.",
        serialized,
        "PJRT_Executable_Serialize dies_with_the_executable",
    )
    .header("PJRT_Executable_Serialize_Args::serialized_bytes", "Lives only as long as serialized_executable."),
    check(
        "ownership/compile_options",
        "The bytes of PJRT_Executable_GetCompileOptions remain valid until their deleter is called, even if the executable is destroyed before.",
        compile_options,
        "PJRT_Executable_GetCompileOptions dies_with_the_executable",
    )
    .header("PJRT_Executable_GetCompileOptions_Args::serialized_bytes", "Lives only as long as serialized_compile_options."),
    check(
        "ownership/device_assignment",
        "The bytes of PJRT_LoadedExecutable_GetDeviceAssignment remain valid until their deleter is called, even if the program is destroyed before.",
        device_assignment,
        "PJRT_LoadedExecutable_GetDeviceAssignment dies_with_the_executable",
    )
    .header("PJRT_LoadedExecutable_GetDeviceAssignment", "The serialized data is valid as long as `serialized_device_assignment` is alive.")
    .since(79),
    check(
        "ownership/layout_texts",
        "The text of PJRT_Layouts_MemoryLayout_Serialize remains valid until its deleter is called, even if the layout is destroyed before.",
        layout_texts,
        "PJRT_Layouts_MemoryLayout_Serialize moving serialized_bytes serialized_bytes_size 1",
    )
    .header("PJRT_Layouts_MemoryLayout_Serialize_Args::serialized_bytes", "Lives only as long as serialized_layout, which the deleter frees.")
    .used_by(&[Profile::Jax]),
];

fn layout_texts(context: &Context) -> Verdict {
    let client = context.client()?;
    for dims in [&[2, 3][..], &[4], &[5, 6, 7]] {
        let expected = client.default_layout(ElementType::F32, dims)?;
        let after = client.default_layout_after_its_end(ElementType::F32, dims, || {
            for rank in 1..6 {
                client.default_layout(ElementType::F32, &[3, 2, 5, 7, 4][..rank])?;
            }
            Ok(())
        })?;
        for (text, when) in after.into_iter().zip(["", ", and other layouts were serialized,"]) {
            ensure!(
                text == expected,
                "the text {expected:?} of a layout became {text:?} when the layout was destroyed{when} before the deleter of the text was \
                 called; the plugin probably keeps the text in the layout, or in memory that all layouts share"
            );
        }
    }
    Ok(())
}

fn error_messages(context: &Context) -> Verdict {
    let client = context.client()?;
    let unaccepted =
        || Finding::NotApplicable("PJRT_Client_LookupDevice finds devices that no one has".to_owned());
    let first = client.held_lookup_error(-2)?.ok_or_else(unaccepted)?;
    let before = first.message()?;
    let second = client.held_lookup_error(-12_345_678)?.ok_or_else(unaccepted)?;
    let other = second.message()?;
    if before == other {
        return Err(Finding::NotApplicable(format!("two errors have the same message, {before:?}")));
    }
    for (after, how) in [
        (first.message()?, "at the address that PJRT_Error_Message returned"),
        (first.message_again()?, "by a second call of PJRT_Error_Message"),
    ] {
        ensure!(
            after == before,
            "the message of an error was {before:?}, and is {after:?} {how} after a second error was created; the plugin \
             probably {ONE_MESSAGE}. `message` has the lifetime of `error`"
        );
    }
    drop(first);
    equal("the message of the second error after the first was destroyed", second.message()?, other)
}

/// Checks that bytes are the same before and after something happens to their owner.
fn stay_after(bytes: &ReturnedBytes, what: &str, end: impl FnOnce()) -> Verdict {
    let before = bytes.read()?;
    end();
    let after = bytes.read()?;
    ensure!(
        after == before,
        "{} of the {} bytes of {what} changed when their executable was destroyed before the deleter was called; the plugin \
         probably keeps the bytes in the executable. The bytes live as long as the object that the deleter destroys",
        after.iter().zip(&before).filter(|(after, before)| after != before).count(),
        before.len()
    );
    Ok(())
}

fn serialized(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = compile_add(&client)?;
    let executable = loaded.executable()?;
    let bytes = executable.returned_serialized()?;
    stay_after(&bytes, "PJRT_Executable_Serialize", || {
        drop(executable);
        drop(loaded);
        drop(compile_add(&client));
    })?;
    Ok(())
}

fn compile_options(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = compile_add(&client)?;
    let executable = loaded.executable()?;
    let bytes = executable.returned_compile_options()?;
    stay_after(&bytes, "PJRT_Executable_GetCompileOptions", || {
        drop(executable);
        drop(loaded);
        drop(compile_add(&client));
    })
}

fn device_assignment(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = compile_add(&client)?;
    let bytes = loaded.returned_device_assignment()?;
    stay_after(&bytes, "PJRT_LoadedExecutable_GetDeviceAssignment", || {
        drop(loaded);
        drop(compile_add(&client));
    })
}
