"""The package in PyTorch/XLA: each test is a program of its own, because a process selects its devices once."""

import os
import subprocess
import sys

import pytest

LAUNCH = """
import torch, torch_xla, torch_xla.core.xla_model as xm, torch_xla.runtime as runtime
import torch_xla.distributed.xla_multiprocessing as xmp

def exchange(*index):
    rank = runtime.global_ordinal()
    assert runtime.world_size() == 4 and index in ((), (rank,))
    # An addition on the device would contain the rank, and the programs of the devices would differ.
    value = (torch.arange(3.0) + rank).to(torch_xla.device())
    total = xm.all_reduce(xm.REDUCE_SUM, value)
    torch.testing.assert_close(total.cpu(), 4 * torch.arange(3.0) + 6)

if __name__ == "__main__":
    START
"""

FSDP = """
import copy, numpy as np, torch, torch_xla, torch_xla.runtime as runtime
import torch_xla.distributed.spmd as spmd
from torch import nn
from torch_xla.experimental.spmd_fully_sharded_data_parallel import SpmdFullyShardedDataParallel as FSDPv2

runtime.use_spmd()
mesh = spmd.Mesh(np.arange(4), (4, 1), ("fsdp", "tensor"))
torch.manual_seed(0)
whole = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
sharded = FSDPv2(copy.deepcopy(whole).to(torch_xla.device()), mesh=mesh)
data, losses = torch.randn(8, 16), []
for model, device in ((whole, "cpu"), (sharded, torch_xla.device())):
    x, optimizer = data.to(device), torch.optim.AdamW(model.parameters(), 1e-2)
    if model is sharded:
        spmd.mark_sharding(x, mesh, ("fsdp", None))
    losses.append([])
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses[-1].append(loss.item())
np.testing.assert_allclose(*losses, rtol=1e-5)
spec = torch_xla._XLAC._get_xla_sharding_spec(next(sharded.parameters()))
assert "devices=[4,1]" in spec, spec
"""

COMPILED = """
import copy, torch, torch_xla
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()
x = torch.randn(3, 8)
with torch.no_grad():
    expected = model(x)
    compiled = torch.compile(copy.deepcopy(model).to("xla"), backend="openxla")
    for _ in range(2):
        torch.testing.assert_close(compiled(x.to("xla")).cpu(), expected, rtol=1e-5, atol=1e-5)
"""

SAVED = """
import torch, torch_xla, torch_xla.core.xla_model as xm
from torch import nn

model = nn.Linear(4, 3).to("xla")
xm.save(model.state_dict(), "model.pt")
loaded = nn.Linear(4, 3)
loaded.load_state_dict(torch.load("model.pt"))
loaded = loaded.to("xla")
x = torch.randn(2, 4).to("xla")
torch.testing.assert_close(loaded(x).cpu(), model(x).cpu())
"""

PROGRAMS = {
    "torch_xla.launch": LAUNCH.replace("START", "torch_xla.launch(exchange)"),
    "xmp.spawn": LAUNCH.replace("START", "xmp.spawn(exchange)"),
    "FSDPv2": FSDP,
    "torch.compile": COMPILED,
    "save and load": SAVED,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs(name, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAMS[name])
    environment = os.environ | {"REFCPU_NUM_DEVICES": "4"}
    done = subprocess.run([sys.executable, path], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_the_device_is_refcpu_and_jax_is_not_imported():
    program = "import sys, torch_xla; print(torch_xla.core.xla_model.xla_device_hw(torch_xla.device()), 'jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["REFCPU", "False"], done.stderr
