//! Checks of arrays on devices.

use super::devices::others;
use super::entry::{ALL, Entry, NONE, check};
use crate::conform::harness::{
    Context, Expected, FREED_WHILE_HELD, Finding, NOT_THE_DEFAULT, ONE_DEVICE, Verdict, array_fails_with,
    compile_add, ensure, equal, f32_bytes, is_in_memory, is_on_device, narrowest, numbers, refused_with,
    upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::host::{Code, ElementType, HostArray};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "buffer/element_type",
        "An array reports the element type that it was created with.",
        element_type,
        "PJRT_Buffer_ElementType set type_=5",
    )
    .header("PJRT_Client_BufferFromHostBuffer_Args::type", "The type of the `data`, and the type of the resulting output `buffer`.")
    .needed_by(ALL).also(&["upload/type_*", "execute/output_types", "special/uninitialized", "special/error_has_dims", "failures/outputs_have_their_dims"]),
    check("buffer/dims", "An array reports its dimensions.", dims, "PJRT_Buffer_Dimensions set num_dims=0")
    .header("PJRT_Buffer_Dimensions", "Returns the array shape of `buffer`, i.e. the size of each dimension.")
        .needed_by(ALL)
        .also(&[
            "upload/*",
            "buffer/*",
            "special/*",
            "execute/*",
            "failures/outputs_have_their_dims",
            "layouts/strides_of_no_elements",
            "programs/outputs_have_their_dims",
        ]),
    check(
        "buffer/dims_stay",
        "The dimensions of an array are at the same address each time, until it is destroyed.",
        dims_stay,
        "PJRT_Buffer_Dimensions fresh dims num_dims 8",
    )
    .header("PJRT_Buffer_Dimensions_Args::dims", "Has the lifetime of `buffer` and length `num_dims`.")
    .needed_by(ALL),
    check(
        "buffer/dims_are_of_each_array",
        "The dimensions of an array, and their address, do not change when another array is queried for its dimensions.",
        dims_of_each,
        "PJRT_Buffer_Dimensions shared dims num_dims",
    )
    .header("PJRT_Buffer_Dimensions_Args::dims", "Has the lifetime of `buffer` and length `num_dims`.")
    .needed_by(ALL),
    check(
        "buffer/dims_after_delete",
        "The dimensions of an array can be queried after its data has been deleted.",
        dims_after_delete,
        "PJRT_Buffer_Dimensions after PJRT_Buffer_Delete fail INVALID_ARGUMENT",
    )
    .host("XLA's client, PjRtCApiBuffer::dimensions", "Reads the dimensions when JAX first asks for them, and ends the process if the function fails.")
    .needed_by(&[Profile::Jax]),
    check(
        "buffer/unpadded_dims",
        "The unpadded dimensions of a static array are its dimensions.",
        unpadded,
        "PJRT_Buffer_UnpaddedDimensions set num_dims=1",
    )
    .header("PJRT_Buffer_UnpaddedDimensions", "Returns the unpadded array shape of `buffer`. This usually is equivalent to PJRT_Buffer_Dimensions.")
    .needed_by(&[Profile::TorchXla]),
    check(
        "buffer/no_dynamic_dims",
        "A static array has no dynamic dimensions.",
        dynamic,
        "PJRT_Buffer_DynamicDimensionIndices set num_dynamic_dims=1 dynamic_dim_indices=zeros",
    )
    .header("PJRT_Buffer_DynamicDimensionIndices", "Returns the indices of dynamically-sized dimensions, or an empty list if all dimensions are static."),
    check(
        "buffer/memory_layout",
        "A row-major array reports its last dimension as the most minor one: jaxlib up to 0.4.30 and R query it.",
        layout,
        "PJRT_Buffer_GetMemoryLayout fail INTERNAL",
    )
    .header("PJRT_Buffer_GetMemoryLayout", "Returns the memory layout of the data in this buffer."),
    check(
        "buffer/on_device_size",
        "The size of an array on the device is at least the size of its elements.",
        on_device_size,
        "PJRT_Buffer_OnDeviceSizeInBytes set on_device_size_in_bytes=1",
    )
    .header("PJRT_Buffer_OnDeviceSizeInBytes", "Gets the number of bytes of the buffer storage on the device.").also(&["buffer/held_data_can_be_read", "buffer/held_data_outlives_delete", "view/writes_are_seen_*"]),
    check("buffer/device", "An array reports the device that it is on.", device, "PJRT_Buffer_Device set device=null")
    .header("PJRT_Buffer_Device", "Returns this buffer's storage device.")
        .needed_by(&[Profile::Jax, Profile::TorchXla, Profile::Gomlx])
        .also(&["execute/*", "buffer/*", "failures/outputs_have_their_dims"]),
    check(
        "buffer/memory",
        "An array is in its device's default memory if the host specifies no memory. JAX rejects arrays in other memories.",
        memory,
        "PJRT_Buffer_Memory set memory=null",
    )
    .header("PJRT_Buffer_Memory", "Returns this buffer's storage memory.")
    .needed_by(&[Profile::Jax])
    .also(&["*"]),
    check(
        "buffer/is_not_deleted",
        "An array reports that it is not deleted before the host deletes it.",
        not_deleted,
        "PJRT_Buffer_IsDeleted set is_deleted=1",
    )
    .header("PJRT_Buffer_IsDeleted", "True if and only if PJRT_Buffer_Delete has previously been called.")
    .needed_by(&[Profile::Jax, Profile::TorchXla])
    .also(&[
        "execute/*",
        "buffer/*",
        "donation/other_arguments_stay",
        "failures/outputs_have_their_dims",
        "programs/returns_its_argument",
        "programs/the_same_output_twice",
    ]),
    check(
        "buffer/delete",
        "An array that was deleted reports that it was.",
        delete,
        "PJRT_Buffer_Delete skip",
    )
    .header("PJRT_Buffer_IsDeleted", "True if and only if PJRT_Buffer_Delete has previously been called.")
    .needed_by(&[Profile::Jax])
    .also(&[
        "buffer/*",
        "readback/of_a_deleted_array",
        "execute/of_a_deleted_argument",
        "failures/outputs_have_their_dims",
    ]),
    check(
        "buffer/delete_twice",
        "Deleting an array again does nothing.",
        delete_twice,
        "PJRT_Buffer_Delete after PJRT_Buffer_Delete fail FAILED_PRECONDITION",
    )
    .host("XLA's client, PjRtCApiBuffer::Delete", "Calls the function whether or not the buffer is deleted, and ends the process if it fails."),
    check(
        "buffer/ready_event_of_a_deleted_one",
        "The ready event of an array that was deleted is an error with INVALID_ARGUMENT.",
        deleted_ready,
        "PJRT_Buffer_ReadyEvent after PJRT_Buffer_Delete set event=complete",
    )
    .header("PJRT_Buffer_ReadyEvent", "If the buffer has been deleted or donated, the returned event will immediately indicate an error."),
    check(
        "buffer/is_on_cpu_stays",
        "PJRT_Buffer_IsOnCpu returns the same value on every call.",
        on_cpu,
        "PJRT_Buffer_IsOnCpu call 2 toggle is_on_cpu",
    )
    .host("JAX, jaxlib/py_array.cc, PyHostValue", "Asks several times, and expects the same memory each time.")
    .needed_by(&[Profile::Jax]),
    check(
        "buffer/unsafe_pointer",
        "An array has an address, which is the same each time.",
        pointer,
        "PJRT_Buffer_UnsafePointer set buffer_pointer=0",
    )
    .header("PJRT_Buffer_UnsafePointer", "Returns platform-dependent address for the given buffer.")
    .also(&["view/address"]),
    check(
        "buffer/pointers_differ",
        "Uploaded arrays and outputs that exist at the same time have different addresses, also if their elements are equal.",
        pointers_differ,
        "PJRT_Buffer_UnsafePointer set buffer_pointer=4096",
    )
    .header("PJRT_Buffer_UnsafePointer", "Returns platform-dependent address for the given buffer.")
    .also(&["view/address"]),
    check(
        "buffer/hold_and_release",
        "Holding an array's data and releasing it succeed.",
        hold,
        "PJRT_Buffer_DecreaseExternalReferenceCount fail INTERNAL",
    )
    .header("PJRT_Buffer_IncreaseExternalReferenceCount", "Increments the reference count for the buffer.")
    .used_by(&[Profile::Jax, Profile::Zml])
    .also(&["buffer/release_without_hold", "buffer/held_*"]),
    check(
        "buffer/release_without_hold",
        "Releasing data that is not held is refused with INVALID_ARGUMENT.",
        release,
        "PJRT_Buffer_DecreaseExternalReferenceCount accept",
    )
    .header("PJRT_Buffer_DecreaseExternalReferenceCount", "Returns an error if the reference count is zero.")
    .only_used_by(NONE),
    check(
        "buffer/held_data_has_an_address",
        "Data that is held has an address.",
        opaque,
        "PJRT_Buffer_OpaqueDeviceMemoryDataPointer set device_memory_ptr=null",
    )
    .header("PJRT_Buffer_OpaqueDeviceMemoryDataPointer", "Returns the opaque device memory data pointer of the buffer.")
    .needed_by(&[Profile::Zml])
    .also(&["buffer/held_data_can_be_read", "buffer/held_data_outlives_delete"]),
    check(
        "buffer/held_data_can_be_read",
        "If the plugin reports that an array is on the CPU, the array's bytes are at its address: JAX creates NumPy arrays from them.",
        in_place,
        "PJRT_Buffer_OpaqueDeviceMemoryDataPointer set device_memory_ptr+4",
    )
    .host("JAX, jaxlib/py_array.cc, PyHostValue", "Creates a NumPy array over the address of an array on the CPU.")
    .also(&["buffer/held_data_outlives_delete"]),
    check(
        "buffer/held_data_outlives_delete",
        "Data that is held can be read after the array was deleted.",
        held_delete,
        "PJRT_Buffer_Delete scribble_held",
    )
    .header("PJRT_Buffer_IncreaseExternalReferenceCount", "The raw buffer data is being shared with another framework (e.g. NumPy, dlpack) and should not be deleted or moved by the PJRT implementation.")
    .also(&[
        "programs/the_same_output_twice",
        "reuse/copy_in_the_same_memory",
        "reuse/inputs_of_a_running_program",
    ]),
    check(
        "buffer/copy_to_each_memory",
        "An array can be copied to every memory of its device, and the copy reports its memory.",
        copy_memory,
        "PJRT_Buffer_CopyToMemory fail INTERNAL",
    )
    .host("JAX, jax.device_put with a memory kind", "Copies arrays between memories with PJRT_Buffer_CopyToMemory, also to the memory that they are in if it has to copy.")
    .used_by(&[Profile::Zml])
    .needed_by(&[Profile::Jax])
    .also(&[
        "buffer/copies_are_copies",
        "bits/copies_to_memories",
        "donation/copy_of_the_argument",
        "reuse/copy_in_the_same_memory",
        "view/copies_stay",
    ]),
    check(
        "buffer/copies_are_copies",
        "A copy remains valid after its source is deleted.",
        copy_independent,
        "PJRT_Buffer_CopyToMemory delete_source",
    )
    .host("JAX, jax.device_put with may_alias=False", "Copies an array within its memory, and deletes the source.")
    .used_by(&[Profile::TorchXla, Profile::Zml])
    .needed_by(&[Profile::Jax])
    .also(&[
        "buffer/copy_to_each_memory",
        "bits/copies_to_memories",
        "donation/copy_of_the_argument",
        "lent/immutable_after_the_event",
        "lent/mutable_after_the_event",
        "view/copies_stay",
    ]),
    check(
        "buffer/copy_to_another_device",
        "An array can be copied to every other device of the client.",
        copy_device,
        "PJRT_Buffer_CopyToDevice fail INTERNAL",
    )
    .header("PJRT_Buffer_CopyToDevice", "Copies the buffer to device `dst_device` within the same client."),
    check(
        "buffer/bitcast",
        "PJRT_Buffer_Bitcast returns an array of another type with the same bytes.",
        bitcast,
        "PJRT_Buffer_Bitcast fail INTERNAL",
    )
    .header("PJRT_Buffer_Bitcast", "Bitcasts the buffer to a new type, dimensions, and layout.")
    .since(98)
    .also(&["buffer/bitcast_of_another_size"]),
    check(
        "buffer/bitcast_of_another_size",
        "A bitcast to a type of another size is refused with INVALID_ARGUMENT.",
        bitcast_size,
        "PJRT_Buffer_Bitcast code INTERNAL",
    )
    .advice("The header does not say what happens. An error reveals the caller's mistake.")
    .since(98),
    check(
        "buffer/donate_with_dependency",
        "PJRT_Buffer_DonateWithControlDependency moves the data to a new array, which is ready once the host completes the dependency.",
        donate,
        "PJRT_Buffer_DonateWithControlDependency fail INTERNAL",
    )
    .host("XLA's client, PjRtCApiBuffer::DonateWithControlDependency", "Uses the new buffer instead of the old one, after the dependency.")
    .only_used_by(NONE)
    .since(88)
    .also(&["buffer/donate_with_failed_dependency"]),
    check(
        "buffer/donate_with_failed_dependency",
        "If the dependency fails, the new array has the host's error.",
        donate_failed,
        "PJRT_Buffer_DonateWithControlDependency swallow_error",
    )
    .header("PJRT_Buffer_DonateWithControlDependency_Callback_Args", "The host passes an error code and a message to the callback.")
    .since(88),
];

fn element_type(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("the type", upload_four(&client, &[1.0; 4])?.element_type()?, ElementType::F32)
}

fn two_by_three(
    client: &pjrt_testing::host::Client,
) -> Result<pjrt_testing::host::Buffer, pjrt_testing::host::Error> {
    let element_type = narrowest(client)?;
    let bytes = vec![0; 6 * element_type.byte_size()];
    let array = HostArray::new(&bytes, element_type, &[2, 3]);
    client.upload(&array, Some(client.device()?), None).map(|uploaded| uploaded.buffer)
}

fn dims(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("the dimensions", two_by_three(&client)?.dims()?, vec![2, 3])
}

fn dims_stay(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = two_by_three(&client)?;
    ensure!(
        buffer.dims_address()? == buffer.dims_address()?,
        "the address of the dimensions differs on the second call"
    );
    Ok(())
}

fn dims_of_each(context: &Context) -> Verdict {
    let client = context.client()?;
    let (array, other) = (two_by_three(&client)?, upload_four(&client, &[1.0; 4])?);
    let (before, after) = array.dims_before_and_after(&other)?;
    equal("the array's dimensions", before, vec![2, 3])?;
    equal("the array's dimensions after a query for another array's dimensions", after, vec![2, 3])
}

fn dims_after_delete(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = two_by_three(&client)?;
    buffer.delete()?;
    equal("the dimensions", buffer.dims()?, vec![2, 3])
}

fn unpadded(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("the unpadded dimensions", two_by_three(&client)?.unpadded_dims()?, vec![2, 3])
}

fn dynamic(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("the dynamic dimensions", two_by_three(&client)?.dynamic_dims()?, Vec::new())
}

fn layout(context: &Context) -> Verdict {
    let client = context.client()?;
    match two_by_three(&client)?.memory_layout()? {
        Some(order) => equal("minor_to_major", order, vec![1, 0]),
        None => Ok(()),
    }
}

fn on_device_size(context: &Context) -> Verdict {
    let client = context.client()?;
    let size = upload_four(&client, &[1.0; 4])?.on_device_size()?;
    ensure!(size >= 16, "the size of four f32 is {size} bytes; expected at least 16");
    Ok(())
}

fn device(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    is_on_device("an array", &buffer, client.device()?, "The plugin probably ignores `device`")?;
    Ok(())
}

fn memory(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    let default = client.device()?.default_memory()?;
    is_in_memory(
        "an array",
        &buffer,
        default,
        &format!("The plugin probably ignores `device`, or {NOT_THE_DEFAULT}"),
    )
}

fn not_deleted(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("is_deleted", upload_four(&client, &[1.0; 4])?.is_deleted()?, false)
}

fn delete(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    buffer.delete()?;
    equal("is_deleted", buffer.is_deleted()?, true)
}

fn delete_twice(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    buffer.delete()?;
    Ok(buffer.delete()?)
}

fn deleted_ready(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    buffer.ready()?.wait()?;
    buffer.delete()?;
    let outcome = buffer.ready().and_then(|event| event.wait());
    refused_with("waiting for deleted data", outcome, &[Code::INVALID_ARGUMENT], &[])
}

fn on_cpu(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    equal("is_on_cpu on the second call", buffer.is_on_cpu()?, buffer.is_on_cpu()?)
}

fn pointer(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    let address = buffer.unsafe_pointer()?;
    ensure!(address != 0, "the address is 0");
    equal("the address on the second call", buffer.unsafe_pointer()?, address)
}

fn pointers_differ(context: &Context) -> Verdict {
    let client = context.client()?;
    let (x, y) = (upload_four(&client, &[1.0; 4])?, upload_four(&client, &[1.0; 4])?);
    let mut all =
        vec![("an array", x.unsafe_pointer()?), ("an array with equal elements", y.unsafe_pointer()?)];
    let launched = compile_add(&client)?.run(&[&x, &y])?;
    launched.output(0, 0)?.ready()?.wait()?;
    all.push(("an output", launched.output(0, 0)?.unsafe_pointer()?));
    for (at, (what, address)) in all.iter().enumerate() {
        let same = all[..at].iter().find(|(_, other)| other == address);
        ensure!(
            same.is_none(),
            "PJRT_Buffer_UnsafePointer returns {address:#x} for {what} and for {}; they would share their memory",
            same.map_or("", |(what, _)| what)
        );
    }
    Ok(())
}

fn hold(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    buffer.hold()?;
    Ok(buffer.release()?)
}

fn release(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    refused_with("releasing data that is not held", buffer.release(), &[Code::INVALID_ARGUMENT], &[])
}

fn opaque(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    buffer.hold()?;
    let address = buffer.opaque_pointer()?;
    buffer.release()?;
    ensure!(address != 0, "the address is 0");
    Ok(())
}

fn in_place(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    buffer.ready()?.wait()?;
    buffer.hold()?;
    let Some(bytes) = buffer.bytes_in_place()? else {
        return Err(Finding::NotApplicable("the host cannot read arrays in place".to_owned()));
    };
    buffer.release()?;
    equal("the bytes at the address", bytes.get(..16), Some(&f32_bytes(&[1.0, 2.0, 3.0, 4.0])[..]))
}

fn held_delete(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    buffer.ready()?.wait()?;
    buffer.hold()?;
    if !buffer.is_on_cpu()? {
        return Err(Finding::NotApplicable("the host cannot read arrays in place".to_owned()));
    }
    let held = buffer.held_bytes()?;
    buffer.delete()?;
    // This allocation would reuse the memory if it had been freed.
    let _other = upload_four(&client, &[9.0; 4])?;
    let elements = f32_bytes(&[1.0, 2.0, 3.0, 4.0]);
    Expected::floats("an array that was deleted, to which the host holds an external reference", &elements)
        .otherwise(FREED_WHILE_HELD)
        .check(&held.read())?;
    Ok(buffer.release()?)
}

fn copy_memory(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    for (device, memory) in client.places()? {
        let copy = buffer.copy_to_memory(memory)?;
        is_on_device(
            "a copy to a memory of a device",
            &copy,
            device,
            "The plugin probably ignores `dst_memory`",
        )?;
        equal("the copy", numbers(&copy)?, vec![1.0, 2.0, 3.0, 4.0])?;
        is_in_memory("a copy", &copy, memory, "The plugin probably ignores `dst_memory`")?;
    }
    Ok(())
}

fn copy_independent(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    let copy = buffer.copy_to_memory(client.device()?.default_memory()?)?;
    equal("PJRT_Buffer_IsDeleted of the source", buffer.is_deleted()?, false)?;
    drop(buffer);
    equal("the copy", numbers(&copy)?, vec![1.0, 2.0, 3.0, 4.0])
}

fn copy_device(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = others(&client)?;
    if devices.is_empty() {
        return Err(Finding::NotApplicable(ONE_DEVICE.to_owned()));
    }
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    for device in &devices {
        let copy = buffer.copy_to_device(*device)?;
        is_on_device("a copy", &copy, *device, "The plugin probably ignores `dst_device`")?;
        equal("the copy", numbers(&copy)?, vec![1.0, 2.0, 3.0, 4.0])?;
    }
    Ok(())
}

fn bitcast(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    let cast = buffer.bitcast(ElementType::S32, &[2, 2])?;
    equal("the dimensions", cast.dims()?, vec![2, 2])?;
    equal("the bytes", cast.read()?, f32_bytes(&[1.0, 2.0, 3.0, 4.0]))
}

fn bitcast_size(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    refused_with(
        "a bitcast to 8 numbers",
        buffer.bitcast(ElementType::S32, &[8]),
        &[Code::INVALID_ARGUMENT],
        &[],
    )
}

fn donate(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0, 2.0, 3.0, 4.0])?;
    let (new, dependency) = buffer.donate()?;
    equal("PJRT_Buffer_IsDeleted of the old array", buffer.is_deleted()?, true)?;
    equal(
        "PJRT_Event_IsReady of the new array before the dependency is complete",
        new.ready()?.is_ready()?,
        false,
    )?;
    dependency.finish(Ok(()));
    equal("the new array", numbers(&new)?, vec![1.0, 2.0, 3.0, 4.0])
}

fn donate_failed(context: &Context) -> Verdict {
    let client = context.client()?;
    let (new, dependency) = upload_four(&client, &[1.0; 4])?.donate()?;
    dependency.finish(Err((Code::ABORTED, "no more")));
    array_fails_with("the array that another one became", &new, (Code::ABORTED, "no more"))
}
