"""CHLO's scans: jaxlib's client makes composites of them, with decompositions that run forwards."""

import plugins

plugins.use("refcpu,cpu")

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jaxlib import _jax  # noqa: E402

PROGRAM = """
module @scan attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<4x2xf32>, %i: tensor<2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>) {
    %0:2 = chlo.scan(%x) inits(%i) dimension=0 attributes {is_reverse = REVERSE} {
    ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>):
      %s = stablehlo.add %a, %b : tensor<2xf32>
      stablehlo.return %s, %s : tensor<2xf32>, tensor<2xf32>
    } : (tensor<4x2xf32>, tensor<2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>)
    return %0#0, %0#1 : tensor<4x2xf32>, tensor<2xf32>
  }
}
"""


@pytest.mark.parametrize("is_reverse", [False, True])
def test_scans_run_in_their_direction(is_reverse):
    device = jax.devices("refcpu")[0]
    code = PROGRAM.replace("REVERSE", str(is_reverse).lower())
    scan = device.client.compile_and_load(code, _jax.DeviceList((device,)), _jax.CompileOptions())
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    arguments = [jax.device_put(x, device), jax.device_put(np.ones(2, np.float32), device)]
    sums, last = scan.execute_sharded(arguments).disassemble_into_single_device_arrays()
    expected = 1 + (np.cumsum(x[::-1], 0)[::-1] if is_reverse else np.cumsum(x, 0))
    np.testing.assert_array_equal(np.asarray(sums[0]), expected)
    np.testing.assert_array_equal(np.asarray(last[0]), expected[0 if is_reverse else -1])
