"""Programs of PyTorch/XLA whose arrays are divided among four devices."""

import copy
import os

os.environ["REFCPU_NUM_DEVICES"] = "4"

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.distributed.spmd as spmd  # noqa: E402
import torch_xla.runtime as runtime  # noqa: E402
from torch import nn  # noqa: E402

runtime.use_spmd()


def mesh():
    return spmd.Mesh(np.arange(4), (2, 2), ("x", "y"))


def test_divided_arrays_come_back_whole():
    a, b = torch.randn(8, 16), torch.randn(16, 4)
    on_devices = [a.to(torch_xla.device()), b.to(torch_xla.device())]
    spmd.mark_sharding(on_devices[0], mesh(), ("x", "y"))
    spmd.mark_sharding(on_devices[1], mesh(), ("y", None))
    product = on_devices[0] @ on_devices[1]
    torch_xla.sync()
    torch.testing.assert_close(product.cpu(), a @ b, rtol=1e-4, atol=1e-5)


def test_a_divided_model_learns_as_a_whole_one():
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    divided = copy.deepcopy(whole).to(torch_xla.device())
    spmd.mark_sharding(divided[0].weight, mesh(), ("x", "y"))
    spmd.mark_sharding(divided[2].weight, mesh(), ("y", "x"))
    data, losses = torch.randn(8, 16), []
    for model, device in ((whole, "cpu"), (divided, torch_xla.device())):
        x, optimizer = data.to(device), torch.optim.AdamW(model.parameters(), 1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            torch_xla.sync()
        losses.append(loss.item())
    assert abs(losses[0] - losses[1]) < 1e-5
    assert "devices=[2,2]" in torch_xla._XLAC._get_xla_sharding_spec(divided[0].weight)


def test_arrays_may_be_divided_into_unequal_parts():
    row = spmd.Mesh(np.arange(4), (4,), ("x",))
    for size in (1, 3, 5, 10):
        a, b = torch.randn(size, 3), torch.randn(3, size)
        on_devices = [a.to(torch_xla.device()), b.to(torch_xla.device())]
        spmd.mark_sharding(on_devices[0], row, ("x", None))
        spmd.mark_sharding(on_devices[1], row, (None, "x"))
        product, total = on_devices[0] @ on_devices[1], on_devices[0].sum(0)
        spmd.mark_sharding(product, row, ("x", None))
        torch_xla.sync()
        torch.testing.assert_close(product.cpu(), a @ b, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(total.cpu(), a.sum(0), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close((product * 2).cpu(), 2 * (a @ b), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(on_devices[0].cpu(), a)


def test_results_keep_unequal_parts():
    row = spmd.Mesh(np.arange(4), (4,), ("x",))
    weights = torch.randn(10, 3)
    on_devices = weights.to(torch_xla.device())
    spmd.mark_sharding(on_devices, row, ("x", None))
    updated, doubled = on_devices - 0.1, on_devices * 2
    torch_xla.sync()
    assert "devices=[4,1]" in torch_xla._XLAC._get_xla_sharding_spec(updated)
    torch.testing.assert_close(updated.cpu(), weights - 0.1)
    torch.testing.assert_close(doubled.cpu(), weights * 2)


def test_manual_regions_have_padding_and_use_their_own_results():
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        row = spmd.Mesh(np.array(order), (4,), ("x",))
        for size in (3, 5, 8):
            whole = torch.randn(size, 3)
            part = spmd.enable_manual_sharding(whole.to(torch_xla.device()), ("x", None), mesh=row).global_tensor
            assert part.shape == (-(-size // 4), 3)
            squares = spmd.disable_manual_sharding(part * part, ("x", None), whole.shape, mesh=row).global_tensor
            again = spmd.enable_manual_sharding(squares + 1, ("x", None), mesh=row).global_tensor
            total = spmd.disable_manual_sharding(part + again, ("x", None), whole.shape, mesh=row).global_tensor
            torch.testing.assert_close(total.cpu(), whole + whole * whole + 1)
