//! Checks of arrays that are transferred to a device in pieces.

use super::entry::{Entry, NONE, check};
use super::samples::Shaped;
use crate::conform::harness::{
    Context, Expected, Finding, NEVER_COMPLETE, Verdict, array_fails_with, ensure, equal, f32_bytes, hangs,
    narrowest, numbers, patience, permutations, refused_with, reordered,
};
use crate::requirements::Profile;
use pjrt_testing::host::{Buffer, Client, Code, ElementType, Layout, TransferManager};

const CREATE: &str = "PJRT_Client_CreateBuffersForAsyncHostToDevice fail INTERNAL";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "transfer/buffer_count",
        "A transfer manager reports the number of arrays that it fills.",
        count,
        "PJRT_AsyncHostToDeviceTransferManager_BufferCount set buffer_count=5",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args::buffer_count", "The number of the manager's buffers.")
    .since(62),
    check(
        "transfer/buffer_size",
        "A transfer manager reports the size of an array.",
        size,
        "PJRT_AsyncHostToDeviceTransferManager_BufferSize set buffer_size=5",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args::buffer_size", "The size of one of the manager's buffers.")
    .since(62),
    check(
        "transfer/device",
        "A transfer manager reports the device of its memory.",
        device,
        "PJRT_AsyncHostToDeviceTransferManager_Device set device_out=null",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_Device_Args::device_out", "The manager's device.")
    .since(62),
    check(
        "transfer/in_one_piece",
        "An array that is written in one piece reads back unchanged.",
        one_piece,
        CREATE,
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_TransferData_Args", "data, offset, transfer_size: the piece; is_last_transfer completes the buffer.")
    .since(62)
    .needed_by(&[Profile::Zml])
    .also(&["transfer/*"]),
    check(
        "transfer/in_pieces",
        "The pieces of an array can be written in any order; the array is ready after the last one.",
        pieces,
        "PJRT_AsyncHostToDeviceTransferManager_TransferData when offset=16 give offset=0",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_TransferData_Args", "data, offset, transfer_size: the piece; is_last_transfer completes the buffer.")
    .since(62),
    check(
        "transfer/each_piece_completes",
        "The event of a piece is complete although other pieces of the array, which come later, are missing.",
        each_piece_completes,
        "PJRT_AsyncHostToDeviceTransferManager_TransferData when is_last_transfer=0 set done_with_h2d_transfer=never",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_TransferData_Args::done_with_h2d_transfer", "The event is ready when the piece is transferred. Hosts that have one piece of memory wait for it before they read the next piece into it.")
    .since(62)
    .also(&["transfer/*", "sizes/*", "lent/*"]),
    check(
        "transfer/waits_for_the_last_piece",
        "An array is not ready before its last piece is transferred.",
        waits,
        "PJRT_AsyncHostToDeviceTransferManager_TransferData when is_last_transfer=0 transfer_size=4 give is_last_transfer=1",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_TransferData_Args", "data, offset, transfer_size: the piece; is_last_transfer completes the buffer.")
    .since(62),
    check(
        "transfer/whole_array",
        "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral writes a whole array.",
        literal,
        "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral give data=zeros",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_TransferLiteral", "Asynchronously copies a host literal to a buffer managed by a transfer manager.")
    .since(83),
    check(
        "transfer/literal_layouts",
        "A literal of two or three dimensions is read in the order of its layout.",
        literal_layouts,
        "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral when shape_num_dims=2 give shape_layout=null",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args::shape_layout", "The layout of the literal's shape.")
    .since(83),
    check(
        "transfer/error",
        "An array that the host sets to an error has that error.",
        error,
        "PJRT_AsyncHostToDeviceTransferManager_SetBufferError give error_code=13",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args", "The host passes an error code and a message for a buffer.")
    .since(62),
    check(
        "transfer/past_the_end",
        "A piece past the end of the array is refused with INVALID_ARGUMENT, in the call or through its event.",
        past_end,
        "PJRT_AsyncHostToDeviceTransferManager_TransferData when offset=12 transfer_size=16 give offset=0",
    )
    .advice("The header does not say what happens. An error reveals the caller's mistake before memory is overwritten.")
    .since(62),
    check(
        "transfer/no_such_buffer",
        "An index of no array is refused with INVALID_ARGUMENT.",
        no_buffer,
        "PJRT_AsyncHostToDeviceTransferManager_BufferSize when buffer_index=9 code INTERNAL",
    )
    .advice("The header does not say what happens. An error reveals the caller's mistake.")
    .since(62),
    check(
        "transfer/metadata",
        "PJRT_AsyncHostToDeviceTransferManager_AddMetadata succeeds, even if the plugin ignores the metadata.",
        metadata,
        "PJRT_AsyncHostToDeviceTransferManager_AddMetadata fail INTERNAL",
    )
    .host("XLA's client, PjRtCApiAsyncHostToDeviceTransferManager::AddTransferMetadata", "Ends the process if the function fails.")
    .only_used_by(NONE)
    .since(62),
    check(
        "transfer/manager_destroyed_early",
        "Arrays remain valid after their transfer manager is destroyed.",
        early,
        "PJRT_AsyncHostToDeviceTransferManager_Destroy crash",
    )
    .host("ZML, zml/io.zig", "Destroys the transfer manager and uses the buffers.")
    .since(62)
    .also(&["outputs/*", "struct_size/*", "transfer/*"]),
    check(
        "transfer/many_arrays",
        "A transfer manager fills 70 arrays of different types and sizes, of which the host retrieves some before and some after it writes them, in another order: each has its type, dimensions, size and elements.",
        many,
        "PJRT_AsyncHostToDeviceTransferManager_BufferSize when buffer_index=66 set buffer_size=1",
    )
    .header(CREATE_TABLE, "Creates a manager and the buffers that it fills, one for each shape.")
    .used_by(&[Profile::Zml])
    .since(62),
    check(
        "transfer/retrieved_twice",
        "Retrieving an array of a transfer manager a second time is refused, or returns an array of its own: the array that was retrieved first stays as it is.",
        twice,
        "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer call 2 crash",
    )
    .advice("The header does not say what a second call returns. Retrieving an array twice is a mistake of the host, which must not free the array twice.")
    .since(62),
];

const CREATE_TABLE: &str = "PJRT_Client_CreateBuffersForAsyncHostToDevice_Args::shape_specs";

fn manager(client: &Client) -> Result<TransferManager, pjrt_testing::host::Error> {
    let shapes = [(ElementType::F32, vec![4]), (ElementType::F32, vec![2, 3])];
    client.transfer_manager(&shapes, client.device()?.default_memory()?)
}

fn count(context: &Context) -> Verdict {
    let client = context.client()?;
    equal("buffer_count", manager(&client)?.buffer_count()?, 2)
}

fn size(context: &Context) -> Verdict {
    let client = context.client()?;
    let size = manager(&client)?.buffer_size(1)?;
    ensure!(size >= 24, "the size of six f32 is {size} bytes; expected at least 24");
    Ok(())
}

fn device(context: &Context) -> Verdict {
    let client = context.client()?;
    let manager = manager(&client)?;
    ensure!(manager.device()? == client.device()?, "the manager reports a different device");
    Ok(())
}

const VALUES: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

fn one_piece(context: &Context) -> Verdict {
    let client = context.client()?;
    let manager = manager(&client)?;
    let buffer = manager.retrieve(0)?;
    manager.write(0, &f32_bytes(&VALUES), 0, true)?.wait()?;
    equal("the array", numbers(&buffer)?, VALUES.to_vec())
}

/// The number of elements of each piece of an array.
const PIECES: [usize; 5] = [3, 1, 4, 2, 6];

fn pieces(context: &Context) -> Verdict {
    let client = context.client()?;
    let len: usize = PIECES.iter().sum();
    let bytes = f32_bytes(&(1..=len).map(|value| value as f32).collect::<Vec<_>>());
    let start = |piece: usize| 4 * PIECES[..piece].iter().sum::<usize>();
    let part = |piece: usize| &bytes[start(piece)..start(piece) + 4 * PIECES[piece]];
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [1, 2, 3, 4, 0]] {
        let shapes = [(ElementType::F32, vec![len as i64])];
        let manager = client.transfer_manager(&shapes, client.device()?.default_memory()?)?;
        let buffer = manager.retrieve(0)?;
        for (at, piece) in order.into_iter().enumerate() {
            let is_last = at + 1 == order.len();
            manager.write(0, part(piece), start(piece) as i64, is_last)?.wait()?;
        }
        let what = format!(
            "an array of {len} elements whose pieces of {PIECES:?} elements were transferred in the order {order:?}"
        );
        let in_calls: Vec<u8> = order.into_iter().flat_map(part).copied().collect();
        Expected::floats(&what, &bytes)
            .suspect(
                in_calls,
                "the pieces are in the order of the calls: the plugin probably ignores `offset`",
            )
            .check_array(&buffer)?;
    }
    Ok(())
}

/// The event that the check of pieces is about.
const PIECE: &str = "done_with_h2d_transfer of a piece that is not the last one of its array";

fn each_piece_completes(context: &Context) -> Verdict {
    let client = context.client()?;
    let manager = manager(&client)?;
    let buffer = manager.retrieve(0)?;
    let (mut waiting, mut events) = (None, Vec::new());
    for at in 0..VALUES.len() {
        let is_last = at + 1 == VALUES.len();
        let event = manager.write(0, &f32_bytes(&VALUES[at..=at]), 4 * at as i64, is_last)?;
        let done = event.on_ready()?;
        events.push(event);
        // After one that hangs, the others are only sent.
        if is_last || waiting.is_some() {
            continue;
        }
        match done.wait(patience()) {
            Some(outcome) => outcome?,
            None if events[at].is_ready()? => return Err(hangs(PIECE, &events[at])),
            None => waiting = Some(done),
        }
    }
    if let Some(done) = waiting {
        let cause = match done.wait(patience()) {
            Some(_) => {
                "It was complete after the last piece: the plugin probably completes the events of all pieces with the array"
            }
            None => "It is not complete after the last piece either",
        };
        return Err(Finding::Wrong(format!("{PIECE} {NEVER_COMPLETE}. {cause}")));
    }
    equal("the array", numbers(&buffer)?, VALUES.to_vec())
}

fn waits(context: &Context) -> Verdict {
    let client = context.client()?;
    let manager = manager(&client)?;
    let buffer = manager.retrieve(0)?;
    manager.write(0, &f32_bytes(&VALUES[..1]), 0, false)?.wait()?;
    equal("PJRT_Event_IsReady", buffer.ready()?.is_ready()?, false)?;
    manager.write(0, &f32_bytes(&VALUES[1..]), 4, true)?.wait()?;
    equal("the array", numbers(&buffer)?, VALUES.to_vec())
}

fn literal(context: &Context) -> Verdict {
    let client = context.client()?;
    let manager = manager(&client)?;
    let buffer = manager.retrieve(0)?;
    manager.write_array(0, &f32_bytes(&VALUES), ElementType::F32, &[4], &Layout::dense(1))?.wait()?;
    equal("the array", numbers(&buffer)?, VALUES.to_vec())
}

fn literal_layouts(context: &Context) -> Verdict {
    let client = context.client()?;
    for dims in [&[3, 5][..], &[2, 3, 7]] {
        for order in permutations(dims.len()) {
            let bytes: Vec<u8> =
                (1..=dims.iter().product::<i64>() as i32).flat_map(i32::to_le_bytes).collect();
            let literal = reordered(&bytes, 4, dims, &order);
            let memory = client.device()?.default_memory()?;
            let manager = client.transfer_manager(&[(ElementType::S32, dims.to_vec())], memory)?;
            let buffer = manager.retrieve(0)?;
            let layout = Layout::MinorToMajor(order.iter().rev().map(|dim| *dim as i64).collect());
            manager.write_array(0, &literal, ElementType::S32, dims, &layout)?.wait()?;
            let what = format!("a literal S32{dims:?} with the layout {layout:?}");
            Expected::new(&what, &bytes, ElementType::S32, dims)
                .suspect(
                    literal,
                    "the layout of the literal was ignored: the elements were copied in its order",
                )
                .check_array(&buffer)?;
        }
    }
    Ok(())
}

fn error(context: &Context) -> Verdict {
    let client = context.client()?;
    let manager = manager(&client)?;
    let buffer = manager.retrieve(0)?;
    manager.fail(0, Code::DATA_LOSS, "all gone")?;
    array_fails_with("an array of a transfer manager", &buffer, (Code::DATA_LOSS, "all gone"))
}

fn past_end(context: &Context) -> Verdict {
    let client = context.client()?;
    let manager = manager(&client)?;
    let _buffer = manager.retrieve(0)?;
    let outcome = manager.write(0, &f32_bytes(&VALUES), 12, true).and_then(|event| event.wait());
    refused_with("a piece past the end", outcome, &[Code::INVALID_ARGUMENT, Code::OUT_OF_RANGE], &[])
}

fn no_buffer(context: &Context) -> Verdict {
    let client = context.client()?;
    refused_with(
        "the index 9",
        manager(&client)?.buffer_size(9),
        &[Code::INVALID_ARGUMENT, Code::OUT_OF_RANGE],
        &[],
    )
}

fn metadata(context: &Context) -> Verdict {
    let client = context.client()?;
    Ok(manager(&client)?.add_no_metadata()?)
}

fn early(context: &Context) -> Verdict {
    let client = context.client()?;
    let manager = manager(&client)?;
    let buffer = manager.retrieve(0)?;
    manager.write(0, &f32_bytes(&VALUES), 0, true)?.wait()?;
    drop(manager);
    let got = numbers(&buffer).map_err(|error| {
        let cause = "the plugin probably ends the arrays of a transfer manager with it";
        Finding::Wrong(format!(
            "an array cannot be read after its transfer manager was destroyed: {error}; {cause}"
        ))
    });
    equal("the array", got?, VALUES.to_vec())
}

/// The number of arrays: more than the bits of a word.
const MANY: usize = 70;

fn many(context: &Context) -> Verdict {
    let client = context.client()?;
    let types = [ElementType::F32, ElementType::S32, narrowest(&client)?];
    let sample = |index: usize| {
        let dims: &[i64] = if index.is_multiple_of(2) { &[index as i64 + 1] } else { &[3, index as i64] };
        Shaped::new(types[index % types.len()], dims, index)
    };
    let samples: Vec<Shaped> = (0..MANY).map(sample).collect();
    let shapes: Vec<_> = samples.iter().map(|sample| (sample.element_type, sample.dims.clone())).collect();
    let manager = client.transfer_manager(&shapes, client.device()?.default_memory()?)?;
    equal("the number of arrays of a transfer manager", manager.buffer_count()?, MANY)?;
    for (index, sample) in samples.iter().enumerate() {
        let size = manager.buffer_size(index)?;
        ensure!(
            size >= sample.least_size(),
            "PJRT_AsyncHostToDeviceTransferManager_BufferSize of array {index}, which is {sample}, is {size}; expected at least {}",
            sample.least_size()
        );
    }
    let mut arrays: Vec<(usize, Buffer)> = Vec::new();
    for index in (0..MANY).rev().step_by(2) {
        arrays.push((index, manager.retrieve(index)?));
    }
    for index in (0..MANY).map(|number| (number * 11 + 5) % MANY) {
        manager.write(index, &samples[index].bytes, 0, true)?.wait()?;
    }
    for index in (0..MANY).rev().skip(1).step_by(2) {
        arrays.push((index, manager.retrieve(index)?));
    }
    drop(manager);
    for (index, array) in &arrays {
        let what = format!("array {index} of {MANY} of a transfer manager");
        equal(&format!("the type of {what}"), array.element_type()?, samples[*index].element_type)?;
        equal(&format!("the dimensions of {what}"), array.dims()?, samples[*index].dims.clone())?;
        samples[*index].check_array(&what, array)?;
    }
    Ok(())
}

fn twice(context: &Context) -> Verdict {
    let client = context.client()?;
    for writes_first in [true, false] {
        let manager = manager(&client)?;
        let write = || manager.write(0, &f32_bytes(&VALUES), 0, true)?.wait();
        if writes_first {
            write()?;
        }
        let first = manager.retrieve(0)?;
        let second = manager.retrieve(0);
        if !writes_first {
            write()?;
        }
        if let Ok(second) = &second {
            equal("the array that was retrieved the second time", numbers(second)?, VALUES.to_vec())?;
        }
        drop(second);
        equal("an array after it was retrieved a second time", numbers(&first)?, VALUES.to_vec())?;
    }
    Ok(())
}
