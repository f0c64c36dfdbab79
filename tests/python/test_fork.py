"""Forked processes: the plugin's threads stay in the parent, so what a child asks of the plugin is an error at once."""

import plugins
import pytest

START = """
import multiprocessing, os, sys, time, warnings
warnings.simplefilter("ignore")
import jax, jax.numpy as jnp, numpy as np

def outcome(what):
    try:
        return f"worked: {what()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def fork(body):
    "The exit status of a child, which hangs if it has not ended after 40 seconds."
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        body()
        sys.stdout.flush()
        os._exit(0)
    for _ in range(4000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    return "hangs"
"""

# What uses the plugin before the fork: programs that run on the caller's thread, and one that needs all threads.
USED = """
x = jnp.arange(1024.0)
big = jnp.ones((512, 512))
jitted = jax.jit(lambda x: x * 2 + 1)
# JAX verifies programs of several functions on threads of its own.
nested = jax.jit(lambda x: jax.nn.relu(jnp.where(x > 0, x, 2)))
from jax.experimental import serialize_executable
serialized = serialize_executable.serialize(jitted.lower(x).compile())
jax.block_until_ready((jitted(x), nested(x), big @ big))
"""


def run(code: str) -> str:
    return plugins.run_python(START + code, JAX_PLATFORMS="refcpu", PJRT_NAMES_AND_LIBRARY_PATHS=None)


@pytest.mark.parametrize(
    "use",
    [
        "jitted(x)",
        "big @ big",
        "jax.jit(lambda x: x - 3)(x)",
        "jax.device_put(np.ones(5))",
        "np.asarray(x + 0)",
        "x.block_until_ready()",
        "jax.device_get(big)",
        "jax.device_put(x, jax.devices()[0]) + 1",
        "nested(np.ones(9, np.float32))",
        "nested.lower(np.ones(9, np.float32))",
        "jax.random.normal(jax.random.key(0), 7)",
        "serialize_executable.deserialize_and_load(*serialized)",
    ],
)
def test_work_in_a_forked_child_is_an_error_that_says_what_to_do(use):
    output = run(USED + f"print(fork(lambda: print(outcome(lambda: {use}))))")
    for text in ("FAILED_PRECONDITION", "forked", "refcpu", "spawn"):
        assert text in output, output
    assert output.splitlines()[-1] == "0", output


def test_multiprocessing_with_fork_reports_the_error():
    output = run(
        USED
        + """
def work(number):
    return outcome(lambda: float(jitted(x + number)[0]))

with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map_async(work, range(3)).get(timeout=40))
"""
    )
    assert output.count("FAILED_PRECONDITION") == 3 and "spawn" in output, output


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "None", "exec('global x, big; del x, big, jitted'); sys.exit(0)"])
@pytest.mark.parametrize("use", ["None", "outcome(lambda: jitted(x))", "[repr(d) for d in jax.devices()]"])
def test_a_forked_child_ends_as_others_do(use, end):
    code = f"""
sys.stdout.flush()
child = os.fork()
if child == 0:
    {use}
    {end}
else:
    for _ in range(4000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
    print("child:", os.waitstatus_to_exitcode(status) if ended else "hangs")
    print(jitted(x)[1])
"""
    output = run(USED + code)
    assert output.splitlines()[-2:] == ["child: 0", "3.0"], output


def test_arrays_that_a_child_drops_are_the_parents_still():
    code = """
def drop():
    global x, big
    x.delete()
    del x, big
    jax.clear_caches()

print(fork(drop), float(x[1]), float((big @ big)[0, 0]))
"""
    assert run(USED + code) == "0 1.0 512.0"


def test_the_plugin_works_in_a_child_that_is_forked_before_it_is_used():
    code = """
def work():
    print(float((jnp.ones((512, 512)) @ jnp.ones((512, 512)))[0, 0]))

print(fork(work))
print(float(jnp.ones(3).sum()))
"""
    assert run(code).split() == ["512.0", "0", "3.0"]


def test_children_that_are_spawned_work():
    output = run(
        """
import subprocess
print(float(jnp.ones(3).sum()))
child = subprocess.run([sys.executable, "-c", "import jax; print(jax.numpy.ones(2).sum())"], capture_output=True, timeout=60)
print(child.stdout.decode())
"""
    )
    assert output.split() == ["3.0", "2.0"], output


def test_a_forked_child_can_print_programs():
    code = """
lowered = nested.lower(x)
print(fork(lambda: print("printed", len(lowered.as_text()) > 0, len(nested.lower(x).as_text()) > 0)))
"""
    output = run(USED + code)
    assert "printed True True" in output and output.splitlines()[-1] == "0", output


def test_a_trace_in_a_forked_child_is_no_crash(tmp_path):
    output = run(USED + f"print(fork(lambda: outcome(lambda: jax.profiler.start_trace({str(tmp_path)!r}))))")
    assert output.splitlines()[-1] == "0", output


def test_a_child_of_a_process_without_refcpu_is_left_alone():
    code = """
with jax.default_device(jax.devices("cpu")[0]):
    (jnp.ones(3) + 1).block_until_ready()
from jax._src.interpreters import mlir
print(fork(lambda: print(mlir.lower_jaxpr_to_module.__name__)))
"""
    output = plugins.run_python(START + code, JAX_PLATFORMS="cpu", PJRT_NAMES_AND_LIBRARY_PATHS=None)
    assert "lower_jaxpr_to_module" in output, output
