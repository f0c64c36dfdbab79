"""The hosts whose own tests the runner can run."""

import dataclasses
import re
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Host:
    """A host: how its tests select a plugin, and what the runner must know about them."""

    name: str
    """The name of the host's list of expected failures, without `.toml`."""
    title: str
    """The title of the host's page."""
    command: str
    """The command that writes the page."""
    conditions: str
    """The text on the page that states the conditions of the run."""
    plugin: str
    """The host's name for refcpu."""
    anchor: str
    """The host's name for XLA's CPU backend."""
    settings: Callable[[str], dict[str, str]]
    """Returns the environment of all tests on a platform."""
    file_settings: Callable[[str], dict[str, str]]
    """Returns the variables that a file needs in addition. A file that needs any has a process of its own."""
    preload: tuple[str, ...]
    """Modules that processes of tests share. They must not read variables of `file_settings` when they are imported."""
    pytest_plugin: str | None
    """A plugin of pytest for the host's tests."""
    together: int
    """How many tests of small files share a process."""
    is_script: Callable[[str], bool]
    """Returns whether a file with this text is a program that pytest cannot run. It is one test, which its exit status decides."""
    edit: Callable[[str], str] | None
    """Changes the text of each file. The tests of a host with edits run in a copy of their folder without `__init__.py`."""


def _jax_settings(platform: str) -> dict[str, str]:
    return {
        "JAX_PLATFORMS": f"{platform},cpu" if platform != "cpu" else "cpu",
        "JAX_NUM_GENERATED_CASES": "3",
        "JAX_SKIP_SLOW_TESTS": "1",
        "REFCPU_NUM_DEVICES": "8",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }


def _jax_file_settings(file: str) -> dict[str, str]:
    # These tests are about copies between the host and a device, which do not exist where the host reads the device's memory.
    # They ask for the platform's name to find out.
    return {"REFCPU_OPAQUE": "1"} if file == "transfer_guard_test" else {}


JAX = Host(
    name="jax",
    title="JAX's own tests",
    command="cargo xtask jax-tests --page",
    conditions="They ran with 8 devices, `JAX_NUM_GENERATED_CASES=3` and `JAX_SKIP_SLOW_TESTS=1`. The page counts the tests that pass"
    " on XLA's CPU backend under the same settings. A test fails if it unexpectedly compiles a program for XLA's backend. Tests of"
    " transfers run with memory that the host cannot read. Tests of programs that were exported for the platform `cpu` run with the"
    " platform name `cpu`.",
    plugin="refcpu",
    anchor="cpu",
    settings=_jax_settings,
    file_settings=_jax_file_settings,
    preload=("jax", "jax._src.test_util", "scipy.special", "scipy.linalg"),
    pytest_plugin="jax_platforms",
    together=100,
    is_script=lambda text: False,
    edit=None,
)


def _torch_xla_settings(platform: str) -> dict[str, str]:
    # torch_xla's own list of tests, test/run_tests.sh, sets the second variable.
    return {"PJRT_DEVICE": platform, "PYTORCH_TEST_WITH_SLOW": "1"}


def _torch_xla_file_settings(file: str) -> dict[str, str]:
    name = file.rsplit("/", 1)[-1]
    if file.startswith("spmd/"):
        devices = "8"
    elif name.startswith(("test_mp_", "test_torch_distributed", "test_traceable", "test_zero1", "test_fsdp", "test_ddp")):
        devices = "4"
    else:
        devices = "1"
    return {"CPU_NUM_DEVICES": devices, "REFCPU_NUM_DEVICES": devices, **_TORCH_XLA_VARIABLES.get(file, {})}


# Variables that run_tests.sh sets for single files.
_TORCH_XLA_VARIABLES = {
    "debug_tool/test_pt_xla_debug": {"PT_XLA_DEBUG": "1", "PT_XLA_DEBUG_FILE": "/tmp/pt_xla_debug.txt"},
    "dynamo/test_dynamo_graph_dump": {"XLA_SAVE_TENSORS_FILE": "/tmp/xla_test_save_ir.txt", "XLA_SAVE_TENSORS_FMT": "text"},
    "scan/test_scan_debug": {"XLA_HLO_DEBUG": "1"},
    "spmd/test_dtensor_integration3": {"XLA_DISABLE_FUNCTIONALIZATION": "1"},
    "spmd/test_spmd_graph_dump": {"XLA_SAVE_TENSORS_FILE": "/tmp/xla_test_save_ir.txt", "XLA_SAVE_TENSORS_FMT": "hlo"},
    "spmd/test_spmd_lowering_context": {"XLA_SAVE_TENSORS_FILE": "/tmp/xla_test_save_ir.txt", "XLA_SAVE_TENSORS_FMT": "hlo"},
    "stablehlo/test_stablehlo_inference": {"XLA_HLO_DEBUG": "1"},
    "stablehlo/test_stablehlo_save_load": {"XLA_HLO_DEBUG": "1"},
    "test_user_computation_debug_cache": {"XLA_IR_DEBUG": "1", "XLA_HLO_DEBUG": "1"},
}


def _is_torch_xla_script(text: str) -> bool:
    return "launch(_mp_fn" in text


def _edit_torch_xla(text: str) -> str:
    """Lets programs that launch processes run on every device: they end at once on devices that are not TPUs."""
    return re.sub(r"xm\.xla_device_hw\(dev(ice)?\)", "'TPU'", text) if _is_torch_xla_script(text) else text


TORCH_XLA = Host(
    name="torch_xla",
    title="PyTorch/XLA's own tests",
    command="cargo xtask test-torch --suite FOLDER --page",
    conditions="Files of `spmd` ran with 8 devices, files of distributed training with 4, and all others with 1. The"
    " page counts the tests that pass on XLA's CPU backend under the same settings. Programs that launch replicas"
    " do not count, because they crash on XLA's CPU backend.",
    plugin="REFCPU",
    anchor="CPU",
    settings=_torch_xla_settings,
    file_settings=_torch_xla_file_settings,
    # Not torch_xla: it reads the environment when it is imported.
    preload=("torch", "torch.testing._internal.common_utils", "numpy"),
    pytest_plugin=None,
    together=1,
    is_script=_is_torch_xla_script,
    # The tests are written as programs, whose folder is in `sys.path`. Their folders are also packages, one of them of the name
    # `test`, which is a package of Python's. pytest would import the files by the names of the packages.
    edit=_edit_torch_xla,
)

HOSTS = {host.name: host for host in (JAX, TORCH_XLA)}
