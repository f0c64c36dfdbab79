"""Starts the processes of a distributed computation."""

import os
import socket
import subprocess
import sys


def free_address() -> str:
    """An address of this machine on which no process listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def environment(platform: str, devices: int) -> dict[str, str]:
    """The environment of a process with a number of devices of a platform: refcpu, or XLA's CPU backend with Gloo."""
    if platform == "refcpu":
        own = {"REFCPU_NUM_DEVICES": str(devices), "REFCPU_GLOO_HOST": "127.0.0.1"}
    else:
        own = {
            "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        }
    return {**os.environ, "JAX_PLATFORMS": platform, **own}


def start(program: list[str], processes: int, devices: int, platform: str) -> list[subprocess.Popen]:
    """Starts a Python program in several processes. Its first arguments are the address at which they meet, the index of the
    process and the number of processes."""
    address = free_address()
    script, *arguments = program
    return [
        subprocess.Popen(
            [sys.executable, script, address, str(index), str(processes)]
            + [argument.replace("INDEX", str(index)) for argument in arguments],
            env=environment(platform, devices),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for index in range(processes)
    ]


def outputs(started: list[subprocess.Popen], timeout: float = 300) -> list[str]:
    """What the processes print. Ends them if they do not end in time."""
    try:
        return [process.communicate(timeout=timeout)[0] for process in started]
    finally:
        for process in started:
            process.kill()
