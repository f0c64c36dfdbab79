"""Runs the programs of `cargo pjrt test` in a host, compares their results, and reports the outcomes.

The modules `jax_host` and `torch_xla_host` call `run`. Standard input is the pipe to `cargo pjrt test`, to which each line is a
JSON object; standard output and standard error are those of the host and of the plugin.
"""

import json
import math
import os
import sys

PIPE = os.fdopen(os.dup(0), "w")
# Programs that read from standard input do not find the pipe there.
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

# Integers for the arguments of programs: small, of both signs, and the same on each device.
INTEGERS = [(7 * i + 3) % 17 - 8 for i in range(64)]

# Remarks of the current program about behavior that is allowed.
notes = []


class Wrong(Exception):
    """The host or the plugin did something other than what the program says."""


class Refused(Exception):
    """The plugin did not compile the program."""


def send(kind, **facts):
    print(json.dumps({"kind": kind, **facts}), file=PIPE, flush=True)


def values(count, scale=0.25):
    """Numbers for an argument."""
    return [scale * INTEGERS[i % len(INTEGERS)] for i in range(count)]


def difference(actual, expected):
    """Returns the largest difference of two lists of numbers, relative to the largest expected number, or to 1 if that is larger."""
    if len(actual) != len(expected):
        raise Wrong(f"a result has {len(actual)} elements; expected {len(expected)}")
    scale = max([1.0, *(abs(number) for number in expected if math.isfinite(number))])
    worst = 0.0
    for index, (found, wanted) in enumerate(zip(actual, expected)):
        same = found == wanted or (math.isnan(found) and math.isnan(wanted))
        error = 0.0 if same else abs(found - wanted) / scale
        if not math.isfinite(error):
            raise Wrong(f"element {index} of a result is {found}; expected {wanted}")
        worst = max(worst, error)
    return worst


def outcome(program, tolerance):
    """Runs a program, which returns a list of pairs: a result and the expected one, as lists of numbers."""
    notes.clear()
    try:
        errors = [difference(actual, expected) for actual, expected in program()]
    except Wrong as error:
        return "wrong", {"message": str(error)}
    except Exception as error:
        message = str(error).strip() or type(error).__name__
        # JAX raises NotImplementedError if it has no rule for the platform.
        refused = "UNIMPLEMENTED" in message or isinstance(error, (Refused, NotImplementedError))
        return ("refused" if refused else "failed"), {"message": message}
    if not errors:
        return "failed", {"message": "the program returned no result"}
    worst = max(errors)
    facts = {"error": worst} | ({"message": "; ".join(notes)} if notes else {})
    return ("right" if worst <= tolerance else "wrong"), facts


def run(connect):
    """Connects to the host, and runs the programs that the first argument names."""
    request = json.loads(sys.argv[1])
    version, programs = connect(request)
    send("ready", version=version)
    for name in request["programs"]:
        if name not in programs:
            send("absent", program=name)
            continue
        send("begins", program=name)
        kind, facts = outcome(programs[name], request["tolerance"])
        send(kind, program=name, **facts)
    send("end")
    # A plugin may end badly when Python does. `cargo pjrt stress` examines that.
    os._exit(0)
