//! Checks of orders of destruction, and of leaks.

use super::entry::{ALL, Entry, check};
use crate::conform::harness::{
    Context, Finding, LEAKED_OUTPUT, Verdict, compile_add, ensure, equal, numbers, patience, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::host::Client;

pub(super) const CHECKS: &[Entry] = &[
    check(
        "lifetime/buffer_after_its_client",
        "A buffer can be destroyed after its client, as go-xla's finalizers do.",
        buffer_after_client,
        "PJRT_Buffer_Destroy when buffer!=0 since PJRT_Client_Destroy crash",
    )
    .host("go-xla, TestBufferDestroyAfterClient", "Destroys a buffer after its client, as finalizers may.")
    .needed_by(&[Profile::Gomlx])
    .also(&["lifetime/*", "layouts/readback_by_strides_at_rank_3"]),
    check(
        "lifetime/executable_after_its_client",
        "A loaded program can be destroyed after its client.",
        executable_after_client,
        "PJRT_LoadedExecutable_Destroy when executable!=0 since PJRT_Client_Destroy crash",
    )
    .host("go-xla, finalizers", "Run in any order, so that a program may be destroyed after its client.")
    .needed_by(&[Profile::Gomlx]),
    check(
        "lifetime/event_after_its_client",
        "An event can be used and destroyed after its client.",
        event_after_client,
        "PJRT_Event_IsReady since PJRT_Client_Destroy fail INTERNAL",
    )
    .advice("The header does not say that events end with their client; a host that waits for one must not crash."),
    check(
        "lifetime/event_after_its_buffer",
        "An event can be used after its buffer is destroyed.",
        event_after_buffer,
        "PJRT_Event_IsReady since PJRT_Buffer_Destroy fail INTERNAL",
    )
    .host("XLA's client, PjRtCApiBuffer::GetReadyFuture", "The event's callback destroys the event, possibly after the buffer is destroyed.")
    .also(&[
        "event/is_ready_after_waiting",
        "lifetime/event_after_its_client",
        "outputs/PJRT_Event_IsReady",
        "struct_size/PJRT_Event_IsReady",
    ])
    .needed_by(ALL),
    check(
        "lifetime/deleted_while_in_use",
        "A buffer can be destroyed while a program reads it.",
        destroyed_argument,
        "PJRT_Buffer_Destroy since PJRT_Client_CreateAliasBuffer crash",
    )
    .header("PJRT_Buffer_Delete", "The device memory will be freed when all async operations using the buffer have completed.")
    .also(&[
        "special/*",
        "event/*",
        "execute/destroyed_while_it_runs",
        "struct_size/PJRT_Client_CreateAliasBuffer",
        "struct_size/PJRT_Client_FulfillAliasBuffer",
        "outputs/PJRT_Client_CreateAliasBuffer",
        "failures/event_of_a_later_failure",
        "waiting/await_waits_for_data",
        "waiting/event_comes_after_the_execution",
        "waiting/outputs_are_ready_after_the_execution",
    ])
    .needed_by(ALL)
    .since(77)
    .needed_since(77),
    check(
        "lifetime/many_clients",
        "Clients can be created and destroyed repeatedly.",
        many_clients,
        "PJRT_Client_Create call 10 fail RESOURCE_EXHAUSTED",
    )
    .host("JAX, jax/_src/xla_bridge.py, _clear_backends", "Drops all clients; the next call creates new ones.")
    .used_by(&[Profile::Gomlx]),
    check(
        "lifetime/clients_leave_no_threads",
        "The threads of a client end with it, or are reused by the next client.",
        threads,
        "PJRT_Client_Destroy leak_thread",
    )
    .advice("A process that creates clients again and again does not run out of threads."),
    check(
        "lifetime/buffers_do_not_leak",
        "Buffers that were destroyed use no memory.",
        buffers_leak,
        "PJRT_Buffer_Destroy skip",
    )
    .header("PJRT_Buffer_Destroy", "Deletes the underlying runtime objects as if 'PJRT_Buffer_Delete' were called and frees `buffer`.")
    .also(&[
        "memory/stats_count_buffers",
        "lifetime/executions_do_not_leak",
        "special/view_lets_go",
        "upload/lent_without_a_copy",
        "view/is_needed_by_executions",
        "view/of_no_elements",
    ]),
    check(
        "lifetime/executions_do_not_leak",
        "Repeated executions of a program do not increase the memory in use.",
        executions_leak,
        "PJRT_Buffer_Destroy skip",
    )
    .header("PJRT_Buffer_Destroy", "Deletes the underlying runtime objects as if 'PJRT_Buffer_Delete' were called and frees `buffer`.")
    .also(&[
        "lifetime/*",
        "memory/stats_count_buffers",
        "repeats/no_work_grows_the_process",
        "special/view_lets_go",
        "upload/lent_without_a_copy",
        "view/is_needed_by_executions",
        "view/of_no_elements",
    ]),
];

fn buffer_after_client(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    buffer.ready()?.wait()?;
    drop(client);
    drop(buffer);
    drop(context.client()?);
    Ok(())
}

fn executable_after_client(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    drop(client);
    drop(executable);
    drop(context.client()?);
    Ok(())
}

fn event_after_client(context: &Context) -> Verdict {
    let client = context.client()?;
    let event = upload_four(&client, &[1.0; 4])?.ready()?;
    event.wait()?;
    drop(client);
    equal("is_ready", event.is_ready()?, true)
}

fn event_after_buffer(context: &Context) -> Verdict {
    let client = context.client()?;
    let buffer = upload_four(&client, &[1.0; 4])?;
    let event = buffer.ready()?;
    event.wait()?;
    drop(buffer);
    equal("is_ready", event.is_ready()?, true)
}

fn destroyed_argument(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let (alias, handle) = client.alias(pjrt_testing::host::ElementType::F32, &[4], memory)?;
    let four = upload_four(&client, &[1.0; 4])?;
    let launched = compile_add(&client)?.run(&[&alias, &four])?;
    drop(four);
    drop(alias);
    client.fulfill(handle, Ok(&upload_four(&client, &[2.0; 4])?))?;
    equal("the sum", numbers(launched.output(0, 0)?)?, vec![3.0; 4])
}

fn many_clients(context: &Context) -> Verdict {
    const CLIENTS: usize = 20;
    for number in 1..=CLIENTS {
        let client = match context.client() {
            Err(error) if number > 1 => {
                return Err(Finding::Wrong(format!(
                    "client {number} of {CLIENTS} cannot be created, after the others were destroyed: {error}. The plugin \
                     probably does not free what belongs to a client"
                )));
            }
            client => client?,
        };
        ensure!(!client.devices()?.is_empty(), "client {number} has no devices");
    }
    Ok(())
}

fn num_threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

fn threads(context: &Context) -> Verdict {
    let work = || -> Verdict {
        let client = context.client()?;
        let (x, executable) = (upload_four(&client, &[1.0; 4])?, compile_add(&client)?);
        numbers(executable.run(&[&x, &x])?.output(0, 0)?)?;
        Ok(())
    };
    work()?;
    std::thread::sleep(std::time::Duration::from_millis(50));
    let Some(before) = num_threads() else {
        return Err(Finding::NotApplicable("this system does not report the number of threads".to_owned()));
    };
    const ROUNDS: usize = 10;
    for _ in 0..ROUNDS {
        work()?;
    }
    // One additional thread per client is a leak; a few additional threads in total are not.
    let settled =
        pjrt_testing::host::eventually(patience(), || num_threads().is_some_and(|now| now < before + ROUNDS));
    ensure!(settled, "there were {before} threads, and {:?} after {ROUNDS} more clients", num_threads());
    Ok(())
}

/// Runs `work`, and compares the memory in use before and after.
fn no_growth(client: &Client, work: impl Fn() -> Verdict, what: &str) -> Verdict {
    const ROUNDS: usize = 50;
    let device = client.device()?;
    work()?;
    let before = device.memory_stats()?.bytes_in_use;
    for _ in 0..ROUNDS {
        work()?;
    }
    let settled = pjrt_testing::host::eventually(patience(), || {
        device.memory_stats().is_ok_and(|stats| stats.bytes_in_use <= before)
    });
    let after = device.memory_stats()?.bytes_in_use;
    ensure!(
        settled,
        "bytes_in_use of PJRT_Device_MemoryStats went from {before} to {after} bytes in {ROUNDS} {what}"
    );
    Ok(())
}

fn buffers_leak(context: &Context) -> Verdict {
    let client = context.client()?;
    let upload = || Ok(upload_four(&client, &[1.0; 4])?.ready()?.wait()?);
    no_growth(&client, upload, "uploads of an array of 16 bytes, which was destroyed")
}

fn executions_leak(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_add(&client)?;
    let x = upload_four(&client, &[1.0; 4])?;
    let execute = || Ok(executable.run(&[&x, &x])?.output(0, 0)?.ready()?.wait()?);
    let what = format!("executions of a program with one output, which was destroyed: {LEAKED_OUTPUT}");
    no_growth(&client, execute, &what)?;
    let with_upload = || {
        let x = upload_four(&client, &[1.0; 4])?;
        Ok(executable.run(&[&x, &x])?.output(0, 0)?.ready()?.wait()?)
    };
    no_growth(
        &client,
        with_upload,
        "executions of a program whose argument was uploaded and destroyed in each round",
    )
}
