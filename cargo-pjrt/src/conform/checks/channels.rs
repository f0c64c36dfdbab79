//! Checks of programs that send data to the host and receive data from it, and of the host's callbacks.

use std::time::Duration;

use super::devices::{id_of, two};
use super::entry::{Entry, NONE, check};
use super::program_text::compiled;
use crate::conform::harness::{
    Context, Finding, Verdict, array_fails_with, count_of, ensure, equal, f32_bytes, fails_with, numbers,
    patience, upload_four, upload_to,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Answer, Answered, Buffer, Client, Code, DeviceChannels, Error, ExecuteOptions, Launched,
    LoadedExecutable, Sent,
};

const SENDS: &str = "PJRT_ExecuteOptions::send_callbacks";
const SENDS_TEXT: &str = "A list of callbacks for each device, in the order of the devices. The plugin passes the callback of the operation's channel the data, its total size and whether it is the last chunk, with user_arg.";
const RECVS: &str = "PJRT_ExecuteOptions::recv_callbacks";
const RECVS_TEXT: &str = "A list of callbacks for each device, in the order of the devices. The plugin passes the callback of the operation's channel a stream, which the host fills.";
const USERS: &[Profile] = &[Profile::Jax];

pub(super) const CHECKS: &[Entry] = &[
    check(
        "channels/send",
        "A program that sends two arrays passes each to the callback of its channel once, complete, in whatever order the callbacks are listed.",
        send,
        "PJRT_LoadedExecutable_Execute when options>launch_id=701 give options>num_send_ops=1",
    )
    .header(SENDS, SENDS_TEXT)
    .used_by(USERS),
    check(
        "channels/receive",
        "A program receives the bytes that the host adds to the stream, in one chunk or several, within the callback or later, also if it sends nothing; the stream counts them, and each chunk is freed once.",
        receive,
        "PJRT_CopyToDeviceStream_CurrentBytes set current_bytes=0",
    )
    .header(RECVS, RECVS_TEXT)
    .used_by(USERS),
    check(
        "channels/each_device",
        "Each device of an execution uses its own callbacks, for the data that it sends and receives.",
        each_device,
        "PJRT_LoadedExecutable_Execute when options>launch_id=702 callbacks_of_first_device",
    )
    .header(SENDS, SENDS_TEXT)
    .used_by(USERS),
    check(
        "channels/error_of_the_host",
        "If the callback for sent data returns an error, the execution fails with the code and the message of this error.",
        error_of_host,
        "PJRT_LoadedExecutable_Execute when options>launch_id=703 early_events",
    )
    .header("PJRT_SendCallback", "Returns null, or an error, with which the execution fails.")
    .used_by(USERS),
    check(
        "channels/too_long_chunk",
        "A chunk that exceeds the total size of the stream is refused, and freed once.",
        too_long,
        "PJRT_CopyToDeviceStream_AddChunk accept set transfer_complete=complete",
    )
    .header("PJRT_CopyToDeviceStream_AddChunk", "Fails if the chunk exceeds the total. The stream takes ownership of the chunk and calls its deleter.")
    .only_used_by(NONE),
];

const ARRAY: &str = "tensor<4xf32>";
const TOKEN: &str = "!stablehlo.token";

/// Returns the operation that sends a value to the host, between two tokens.
fn sends(value: &str, channel: i64, before: &str, after: &str) -> String {
    format!(
        "    {after} = \"stablehlo.send\"({value}, {before}) {{channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 2>, \
         is_host_transfer = true}} : ({ARRAY}, {TOKEN}) -> {TOKEN}\n"
    )
}

/// Returns a program with these operations, after a token `%t0` was created.
fn program(lines: &str, result: &str) -> String {
    format!(
        "module @channels {{\n  func.func public @main(%x: {ARRAY}) -> {ARRAY} {{\n    %t0 = stablehlo.create_token : {TOKEN}\n\
         {lines}    return {result} : {ARRAY}\n  }}\n}}\n"
    )
}

/// Returns a program that sends its argument through channel 1 and twice its argument through channel 5.
fn sending() -> String {
    let sum = format!("    %s = stablehlo.add %x, %x : {ARRAY}\n");
    program(&(sum + &sends("%x", 1, "%t0", "%t1") + &sends("%s", 5, "%t1", "%t2")), "%s")
}

/// Returns a program that sends its argument through channel 1, and adds what it receives through channel 2. If it does not send,
/// it has no other channel.
fn receiving(with_send: bool) -> String {
    let (send, token) =
        if with_send { (sends("%x", 1, "%t0", "%t1"), "%t1") } else { (String::new(), "%t0") };
    let receive = format!(
        "    %r:2 = \"stablehlo.recv\"({token}) {{channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>, is_host_transfer = true}} \
         : ({TOKEN}) -> ({ARRAY}, {TOKEN})\n    %s = stablehlo.add %x, %r#0 : {ARRAY}\n"
    );
    program(&(send + &receive), "%s")
}

fn launch(
    program: &LoadedExecutable,
    arguments: &[&Buffer],
    channels: &[&'static DeviceChannels],
    launch_id: i32,
) -> Result<Launched, Error> {
    let options = ExecuteOptions { launch_id, channels: channels.to_vec(), ..ExecuteOptions::default() };
    let lists: Vec<Vec<&Buffer>> = arguments.iter().map(|argument| vec![*argument]).collect();
    program.launch(&lists, &options, None, true).map_err(|refused| refused.error)
}

const FOUR: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

/// Joins the chunks of a channel, and fails unless the plugin described them as the header says.
fn complete(sent: &[Sent], channel: i64, what: &str) -> Result<Vec<u8>, Finding> {
    let chunks: Vec<&Sent> = sent.iter().filter(|sent| sent.channel == channel).collect();
    let bytes: Vec<u8> = chunks.iter().flat_map(|sent| sent.bytes.clone()).collect();
    let is_described = chunks
        .iter()
        .enumerate()
        .all(|(index, sent)| sent.total == bytes.len() && sent.done == (index + 1 == chunks.len()));
    ensure!(
        is_described && !chunks.is_empty(),
        "{what}: the callback of channel {channel} was called with {chunks:?}; expected all chunks of one array, each with the total \
         size, and `done` with the last one only"
    );
    Ok(bytes)
}

fn send(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = compiled(&client, &sending(), &CompileOptions::default())?;
    for order in [[1, 5], [5, 1]] {
        for round in 0..3 {
            let values = FOUR.map(|value| value + round as f32);
            let argument = upload_four(&client, &values)?;
            let channels = DeviceChannels::new(client.plugin(), &order, &[], None);
            let launched = launch(&program, &[&argument], &[channels], 701)?;
            launched.done[0].wait()?;
            let what = format!("run {} with callbacks for the channels {order:?}", round + 1);
            let twice = values.map(|value| 2.0 * value);
            for (channel, expected) in [(1, values), (5, twice)] {
                let bytes = complete(&channels.sent(), channel, &what)?;
                ensure!(
                    bytes == f32_bytes(&expected),
                    "{what}: channel {channel} sent the bytes {bytes:?}; expected the numbers {expected:?}. The plugin probably takes the \
                     callback of another channel, or sends memory that is not ready"
                );
            }
            equal("the output of a program that sends", numbers(launched.output(0, 0)?)?, twice.to_vec())?;
        }
    }
    Ok(())
}

/// Fails unless a stream counted its chunks, and freed them.
fn counted(answered: &[Answered], chunks: &[Vec<u8>], what: &str) -> Verdict {
    let total: usize = chunks.iter().map(Vec::len).sum();
    let mut current = vec![0];
    current.extend(chunks.iter().scan(0, |sum, chunk| {
        *sum += chunk.len() as i64;
        Some(*sum)
    }));
    let [stream] = answered else {
        return Err(Finding::Wrong(format!(
            "{what}: the callback of the receive was called {} times; expected 1",
            answered.len()
        )));
    };
    ensure!(
        stream.error.is_none(),
        "{what}: a function of the stream failed: {}",
        stream.error.clone().map_or(String::new(), |error| error.to_string())
    );
    equal(&format!("{what}: PJRT_CopyToDeviceStream_TotalBytes"), stream.total, total as i64)?;
    ensure!(
        stream.granule >= 1,
        "{what}: PJRT_CopyToDeviceStream_GranuleSize is {}; expected at least 1",
        stream.granule
    );
    equal(
        &format!("{what}: PJRT_CopyToDeviceStream_CurrentBytes at first and after each chunk"),
        stream.current.clone(),
        current,
    )?;
    let frees: Vec<String> = stream.frees.iter().map(ToString::to_string).collect();
    ensure!(
        stream.frees.iter().all(|frees| *frees == 1),
        "{what}: the deleters of the {} chunks were called {} times when their events were ready; expected once each",
        frees.len(),
        frees.join(", ")
    );
    Ok(())
}

fn receive(context: &Context) -> Verdict {
    let client = context.client()?;
    receive_in(&client, true)?;
    receive_in(&client, false)
}

/// Runs a program that receives and, unless `with_send` is false, sends.
fn receive_in(client: &Client, with_send: bool) -> Verdict {
    let program = compiled(client, &receiving(with_send), &CompileOptions::default())?;
    let sent: &[i64] = if with_send { &[1] } else { &[] };
    let answer = f32_bytes(&[10.0, 20.0, 30.0, 40.0]);
    let parts = vec![answer[..8].to_vec(), answer[8..].to_vec()];
    for chunks in [vec![answer.clone()], parts] {
        for after in [None, Some(Duration::from_millis(5))] {
            let what = format!(
                "a program that {}, and an answer of {} {}",
                if with_send { "sends and receives" } else { "only receives" },
                count_of(chunks.len(), "chunk"),
                if after.is_some() { "on another thread" } else { "within the callback" }
            );
            let argument = upload_four(client, &FOUR)?;
            let reply = Answer { channel: 2, chunks: chunks.clone(), after };
            let channels = DeviceChannels::new(client.plugin(), sent, &[reply], None);
            let launched = launch(&program, &[&argument], &[channels], 704)?;
            launched.done[0].wait()?;
            let output = numbers(launched.output(0, 0)?)?;
            counted(&channels.answered(1, patience()), &chunks, &what)?;
            equal(&format!("{what}: the output"), output, vec![11.0, 22.0, 33.0, 44.0])?;
        }
    }
    Ok(())
}

/// Compiles a program for two devices, and returns them.
fn on_two(client: &Client) -> Result<(LoadedExecutable, [Buffer; 2]), Finding> {
    let devices = two(client)?;
    let ids = devices.iter().map(|device| id_of(*device)).collect::<Result<_, _>>()?;
    let options = CompileOptions { replicas: 2, devices: ids, ..CompileOptions::default() };
    let program = compiled(client, &receiving(true), &options)?;
    let upload = |index: usize| {
        let values = FOUR.map(|value| value + 100.0 * index as f32);
        upload_to(client, &values, devices[index]).map(|uploaded| uploaded.buffer)
    };
    Ok((program, [upload(0)?, upload(1)?]))
}

fn each_device(context: &Context) -> Verdict {
    let client = context.client()?;
    let (program, arguments) = on_two(&client)?;
    let answers = [[10.0_f32; 4], [20.0; 4]];
    let channels = answers.map(|answer| {
        let reply = Answer { channel: 2, chunks: vec![f32_bytes(&answer)], after: None };
        DeviceChannels::new(client.plugin(), &[1], &[reply], None)
    });
    let launched = launch(&program, &[&arguments[0], &arguments[1]], &channels, 702)?;
    let cause =
        "the plugin probably uses the callbacks of the first device for all devices, or those of another one";
    for index in 0..2 {
        launched.done[index].wait()?;
        let sent = channels[index].sent();
        let expected = f32_bytes(&FOUR.map(|value| value + 100.0 * index as f32));
        let bytes: Vec<Vec<u8>> = sent.iter().map(|sent| sent.bytes.clone()).collect();
        ensure!(
            bytes == [expected.clone()],
            "the callback of device {index} of two for sent data was called {} times, with {bytes:?}; expected one call with {expected:?}: \
             {cause}",
            sent.len()
        );
        let calls = channels[index].answered(1, patience()).len();
        ensure!(
            calls == 1,
            "the callback of device {index} of two for a receive was called {calls} times; expected 1: {cause}"
        );
        let output = numbers(launched.output(index, 0)?)?;
        let expected: Vec<f32> =
            FOUR.iter().map(|value| value + 100.0 * index as f32 + answers[index][0]).collect();
        ensure!(
            output == expected,
            "the output of device {index} of two is {output:?}; expected {expected:?}: {cause}"
        );
    }
    Ok(())
}

fn error_of_host(context: &Context) -> Verdict {
    const TEXT: &str = "the host refuses the data";
    let client = context.client()?;
    let program = compiled(&client, &sending(), &CompileOptions::default())?;
    let argument = upload_four(&client, &FOUR)?;
    let channels = DeviceChannels::new(client.plugin(), &[1, 5], &[], Some((Code::DATA_LOSS, TEXT)));
    match launch(&program, &[&argument], &[channels], 703) {
        Err(error) => fails_with::<()>("the execution", Err(error), Code::DATA_LOSS, TEXT),
        Ok(launched) => {
            let what = "the event of an execution whose callback for sent data returned an error";
            fails_with(what, launched.done[0].wait(), Code::DATA_LOSS, TEXT)?;
            let what = "the output of an execution whose callback for sent data returned an error";
            array_fails_with(what, launched.output(0, 0)?, (Code::DATA_LOSS, TEXT))
        }
    }
}

fn too_long(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = compiled(&client, &receiving(true), &CompileOptions::default())?;
    let argument = upload_four(&client, &FOUR)?;
    let reply = Answer { channel: 2, chunks: vec![vec![7; 32]], after: None };
    let channels = DeviceChannels::new(client.plugin(), &[1], &[reply], None);
    // The execution fails, in the call or later.
    let launched = launch(&program, &[&argument], &[channels], 705);
    // After a call that failed, there is nothing to wait for.
    let limit = if launched.is_ok() { patience() } else { Duration::ZERO };
    let answered = channels.answered(1, limit);
    let [stream] = &answered[..] else {
        launched?;
        return Err(Finding::Wrong("the callback of the receive was not called".to_owned()));
    };
    let is_refused = stream.error.as_ref().is_some_and(|error| !error.is_of_success);
    ensure!(
        is_refused,
        "a chunk of 32 bytes was accepted for an array of 16 bytes; expected an error of PJRT_CopyToDeviceStream_AddChunk"
    );
    equal("the number of calls of the deleter of a chunk that was refused", stream.frees.clone(), vec![1])?;
    drop(launched);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_are_valid() {
        for text in [sending(), receiving(true)] {
            let module = pjrt_stablehlo::parse(text.as_bytes().to_vec());
            assert!(module.is_ok(), "{text}: {module:?}");
        }
    }
}
