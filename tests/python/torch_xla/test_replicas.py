"""Programs of PyTorch/XLA on four devices without SPMD: each device launches its replica of a program by itself."""

import copy
import os
import subprocess
import sys

os.environ["REFCPU_NUM_DEVICES"] = "4"

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.core.xla_model as xm  # noqa: E402
import torch_xla.runtime as runtime  # noqa: E402
from torch import nn  # noqa: E402
from torch_xla._internal import pjrt  # noqa: E402


def on_each_device(function):
    """Calls a function on a thread for each device, as `torch_xla.launch` does. Returns the results by device."""
    results = pjrt._run_thread_per_device(0, 1, function, pjrt.initialize_multiprocess)
    return [result for _, result in sorted(results.items())]


def test_a_program_without_collectives_runs_on_one_device_alone():
    for index in range(4):
        ones = torch.ones(3, device=f"xla:{index}") + index
        torch.testing.assert_close(ones.cpu(), torch.ones(3) + index)


def test_devices_of_all_threads_take_part_in_collectives():
    def exchange():
        device, rank = torch_xla.device(), runtime.global_ordinal()
        value = (torch.arange(8, dtype=torch.float32).reshape(4, 2) + 10 * rank).to(device)
        results = [
            xm.all_reduce(xm.REDUCE_SUM, value),
            xm.all_gather(value, dim=1, pin_layout=False),
            xm.reduce_scatter(xm.REDUCE_SUM, value, 1.0, scatter_dim=0, shard_count=4),
            xm.collective_permute(value, [[0, 1], [1, 2], [2, 3], [3, 0]]),
        ]
        torch_xla.sync()
        return [result.cpu() for result in results]

    value = torch.arange(8, dtype=torch.float32).reshape(4, 2)
    total = 4 * value + 60
    for rank, (sums, gathered, scattered, permuted) in enumerate(on_each_device(exchange)):
        torch.testing.assert_close(sums, total)
        torch.testing.assert_close(gathered, torch.cat([value + 10 * other for other in range(4)], 1))
        torch.testing.assert_close(scattered, total[rank : rank + 1])
        torch.testing.assert_close(permuted, value + 10 * ((rank - 1) % 4))


def test_replicas_learn_as_one_device_with_all_data():
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    data, states = torch.randn(16, 8), copy.deepcopy(whole.state_dict())

    def train():
        device, rank = torch_xla.device(), runtime.global_ordinal()
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        model.load_state_dict(states)
        model, x = model.to(device), data[4 * rank : 4 * rank + 4].to(device)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(5):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            xm.optimizer_step(optimizer)
            torch_xla.sync()
        return [parameter.detach().cpu() for parameter in model.parameters()]

    optimizer = torch.optim.SGD(whole.parameters(), 0.1)
    for _ in range(5):
        optimizer.zero_grad()
        whole(data).square().mean().backward()
        optimizer.step()
    for replica in on_each_device(train):
        for expected, found in zip(whole.parameters(), replica):
            torch.testing.assert_close(found, expected.detach(), rtol=1e-5, atol=1e-6)


def test_replicas_whose_programs_differ_take_part_in_the_same_collectives():
    def exchange():
        device, rank = torch_xla.device(), runtime.global_ordinal()
        value = torch.arange(6, dtype=torch.float32).reshape(2, 3).to(device) + rank
        # With a pinned layout, the program of each device contains its number.
        gathered = [xm.all_gather(value, dim=dim) for dim in (0, 1)]
        # Groups of two, and a program that has more operations the higher the number.
        for _ in range(rank):
            value = value * 2
        sums = xm.all_reduce(xm.REDUCE_SUM, value, groups=[[0, 3], [1, 2]])
        torch_xla.sync()
        return [result.cpu() for result in (*gathered, sums)]

    value = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    parts = [value + rank for rank in range(4)]
    scaled = [part * 2**rank for rank, part in enumerate(parts)]
    for _ in range(3):
        for rank, (rows, columns, sums) in enumerate(on_each_device(exchange)):
            torch.testing.assert_close(rows, torch.cat(parts, 0))
            torch.testing.assert_close(columns, torch.cat(parts, 1))
            torch.testing.assert_close(sums, scaled[rank] + scaled[3 - rank])


def test_values_of_the_host_are_reduced_over_all_threads():
    def reduce():
        rank = runtime.global_ordinal()
        return xm.mesh_reduce("loss", float(rank + 1), np.mean), xm.mesh_reduce("sum", rank, sum)

    assert on_each_device(reduce) == [(2.5, 6)] * 4


SCRIPT = """
import torch, torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as runtime
from torch_xla.experimental import plugins
from torch_xla_refcpu import Plugin

class Refcpu(Plugin):
    def client_create_options(self):
        return {"num_devices": 4, "collective_timeout": 1}

plugins.register_plugin("REFCPU", Refcpu())
plugins.use_dynamic_plugins()
runtime.set_device_type("REFCPU")
"""

LAUNCH = """
def main(index, factor):
    value = torch.ones(2, device=torch_xla.device()) * (index + 1) * factor
    total = xm.all_reduce(xm.REDUCE_SUM, value)
    gathered = xm.all_gather(value)
    print(f"{index} {total.tolist()} {gathered[::2].tolist()}\\n", end="", flush=True)

if __name__ == "__main__":
    torch_xla.launch(main, args=(10,))
"""

MISSING = """
def main(index):
    value = torch.ones(2, device=torch_xla.device()) * index
    if index < 2:
        try:
            xm.all_gather(value).cpu()
        except RuntimeError as error:
            print(f"{index} {error}\\n", end="", flush=True)

if __name__ == "__main__":
    torch_xla.launch(main)
"""


@pytest.fixture
def run_script(tmp_path):
    """Runs the functions of a script with `torch_xla.launch`, and returns the lines that they print, in order."""

    def run(functions):
        path = tmp_path / "script.py"
        path.write_text(SCRIPT + functions)
        result = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stderr
        return sorted(line for line in result.stdout.splitlines() if line)

    return run


def test_launch_starts_a_thread_for_each_device(run_script):
    line = "[100.0, 100.0] [10.0, 20.0, 30.0, 40.0]"
    assert run_script(LAUNCH) == [f"{index} {line}" for index in range(4)]


def test_a_replica_that_does_not_come_is_an_error(run_script):
    lines = run_script(MISSING)
    assert [line[0] for line in lines] == ["0", "1"]
    for line in lines:
        assert "all_reduce of f32[8] at " in line
        assert "needs all of the devices [0, 1, 2, 3]" in line
        assert "did not within 1s: device 2 (not launched), device 3 (not launched)" in line
        assert "REFCPU_COLLECTIVE_TIMEOUT" in line
