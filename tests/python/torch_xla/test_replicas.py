"""Programs of PyTorch/XLA on four devices without SPMD: each device launches its replica of a program by itself."""

import copy
import os

os.environ["REFCPU_NUM_DEVICES"] = "4"

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
            # With a pinned layout, the program of each device would contain its number.
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
