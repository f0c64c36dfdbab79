"""`jax.profiler` shows what refcpu does: compiling, running, and the operations of programs by their names."""

import gzip
import json
import pathlib

import plugins

plugins.use("refcpu", REFCPU_NUM_DEVICES="2")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

PLANE = "/device:CUSTOM:refcpu"


class Event:
    def __init__(self, event, line):
        self.name, self.start, self.end = event.name, event.start_ns, event.start_ns + event.duration_ns
        self.stats = dict(event.stats)
        self.line = line.name

    def __contains__(self, other):
        return self.line == other.line and self.start <= other.start and other.end <= self.end


def traced(run, folder):
    """What the plane of refcpu shows of a run: events by their names."""
    with jax.profiler.trace(folder):
        run()
    return events(folder)


def events(folder):
    (file,) = pathlib.Path(folder).rglob("*.xplane.pb")
    planes = jax.profiler.ProfileData.from_file(str(file)).planes
    found = {}
    for line in (line for plane in planes if plane.name == PLANE for line in plane.lines):
        for event in line.events:
            found.setdefault(event.name, []).append(Event(event, line))
    return found


def program(x):
    return jnp.tanh(x @ x) + jnp.sort(x, axis=0)


def test_a_trace_has_compilation_execution_and_operations(tmp_path):
    x = jnp.ones((32, 32))
    f = jax.jit(program)

    def run():
        for _ in range(2):
            f(x).block_until_ready()

    found = traced(run, tmp_path)
    (compilation,) = found["PJRT_Client_Compile"]
    for phase in ("parse", "core_ops", "lower", "recognise", "expand", "plan"):
        assert found[phase][0] in compilation, phase
    executions = found["PJRT_LoadedExecutable_Execute"]
    runs = found["jit_program"]
    assert len(executions) == len(runs) == 2
    for execution, run in zip(executions, runs):
        assert run in execution
    for name in ("dot_general", "sort"):
        operations = found[name]
        assert len(operations) == 2
        for run, operation in zip(runs, operations):
            assert operation in run
            assert operation.stats["op_name"].rpartition("/")[2] == name
            assert "f32[32, 32]" in operation.stats["results"]
            assert operation.end > operation.start
    assert pathlib.Path(__file__).name + ":" in found["dot_general"][0].stats["source"]
    # Fused operations are one event.
    assert "region" in " ".join(event.stats["kernel"] for event in found.get("add", []))


def test_the_calls_of_jax_lead_to_those_of_the_plugin(tmp_path):
    """JAX links its own spans with calls by numbers (`_ct`, `_c`); viewers draw them as arrows."""
    found = traced(lambda: jax.jit(program)(jnp.ones((8, 8))).block_until_ready(), tmp_path)
    (execution, *_) = found["PJRT_LoadedExecutable_Execute"]
    assert execution.stats["_c"] != 0


def test_the_trace_of_the_browser_has_them_too(tmp_path):
    jax.profiler.start_trace(str(tmp_path))
    jax.jit(program)(jnp.ones((16, 16))).block_until_ready()
    jax.profiler.stop_trace()
    (file,) = tmp_path.rglob("*.trace.json.gz")
    trace = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in trace if event.get("name") == "process_name"}
    (refcpu,) = (pid for pid, name in processes.items() if "refcpu" in name)
    names = {event["name"] for event in trace if event.get("pid") == refcpu and event.get("ph") == "X"}
    assert {"PJRT_Client_Compile", "jit_program", "dot_general"} <= names


def test_loops_host_calls_and_collectives_are_events(tmp_path):
    def looped(x):
        x = jax.lax.fori_loop(0, 3, lambda _, x: x @ x, x)
        return jax.pure_callback(np.asarray, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    summed = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "i"), mesh=mesh, in_specs=spec, out_specs=spec))

    def run():
        jax.jit(looped)(jnp.ones((64, 64))).block_until_ready()
        summed(jnp.ones(4)).block_until_ready()

    found = traced(run, tmp_path)
    assert len(found["dot_general"]) == 3
    assert len(found["pure_callback"]) >= 2
    kernels = [event.stats["kernel"] for event in sum(found.values(), []) if "kernel" in event.stats]
    for kernel in ("send to channel", "receive from channel", "AllReduce"):
        assert any(kernel in text for text in kernels), (kernel, kernels)


def test_traces_follow_each_other_and_hold_only_their_own(tmp_path):
    f = jax.jit(program)
    f(jnp.ones((4, 4))).block_until_ready()
    for number in range(2):
        found = traced(lambda: f(jnp.ones((4, 4))).block_until_ready(), tmp_path / str(number))
        assert len(found["jit_program"]) == 1
        f(jnp.ones((4, 4))).block_until_ready()


def test_two_traces_at_once_are_refused_and_the_first_goes_on(tmp_path):
    with jax.profiler.trace(tmp_path):
        with pytest.raises(Exception, match="[Pp]rofile"):
            jax.profiler.start_trace(str(tmp_path / "second"))
        jax.jit(program)(jnp.ones((5, 5))).block_until_ready()
    assert len(events(tmp_path)["jit_program"]) == 1
