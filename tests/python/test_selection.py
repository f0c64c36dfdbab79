"""All ways to choose refcpu, each in a fresh Python."""

import plugins

PRINT_PLATFORM = "import jax.numpy as jnp; x = jnp.add(1, 1); print(x, next(iter(x.devices())).platform)"
PRINT_COUNT = "import jax; print(jax.device_count(), jax.default_backend())"


def test_the_environment_variable_selects_it():
    assert plugins.run_python(PRINT_PLATFORM, JAX_PLATFORMS="refcpu") == "2 refcpu"


def test_the_configuration_selects_it():
    code = "import jax; jax.config.update('jax_platforms', 'refcpu')\n" + PRINT_PLATFORM
    assert plugins.run_python(code, JAX_PLATFORMS=None) == "2 refcpu"


def test_its_priority_selects_it_before_the_cpu_backend():
    assert plugins.run_python(PRINT_PLATFORM, JAX_PLATFORMS=None) == "2 refcpu"


def test_another_platform_can_still_be_selected():
    assert plugins.run_python(PRINT_PLATFORM, JAX_PLATFORMS="cpu") == "2 cpu"


def test_the_library_alone_is_enough():
    """The package, which is installed here, keeps out of the way of a library named in the environment."""
    path = plugins.library("TEST_REFCPU")
    code = PRINT_PLATFORM + f"\nassert {path!r} in open('/proc/self/maps').read()"
    output = plugins.run_python(code, JAX_PLATFORMS="refcpu", PJRT_NAMES_AND_LIBRARY_PATHS=f"refcpu:{path}")
    assert output == "2 refcpu"


def test_both_ways_of_discovery_register_it_once():
    code = """
from importlib.metadata import entry_points
import jax_plugins, pkgutil
assert [entry.value for entry in entry_points(group="jax_plugins")].count("jax_plugins.refcpu") == 1
assert "refcpu" in [module.name for module in pkgutil.iter_modules(jax_plugins.__path__)]
from jax_plugins import refcpu
refcpu.initialize()
refcpu.initialize()
import jax
print(jax.default_backend())
"""
    assert plugins.run_python(code, JAX_PLATFORMS="refcpu") == "refcpu"


def test_the_environment_sets_the_number_of_devices():
    assert plugins.run_python(PRINT_COUNT, JAX_PLATFORMS="refcpu", REFCPU_NUM_DEVICES="3") == "3 refcpu"


def test_the_package_sets_the_number_of_devices():
    code = "from jax_plugins import refcpu; refcpu.set_num_devices(2)\n" + PRINT_COUNT
    assert plugins.run_python(code, JAX_PLATFORMS="refcpu", REFCPU_NUM_DEVICES="3") == "2 refcpu"


def test_a_create_option_sets_the_number_of_devices():
    code = "import jax; jax.config.update('jax_pjrt_client_create_options', 'num_devices:2')\n" + PRINT_COUNT
    assert plugins.run_python(code, JAX_PLATFORMS="refcpu") == "2 refcpu"


def test_setting_the_number_of_devices_too_late_is_an_error():
    code = """
import jax
from jax_plugins import refcpu
jax.devices()
try:
    refcpu.set_num_devices(2)
except RuntimeError as error:
    print(error)
"""
    assert "before the first use of JAX" in plugins.run_python(code, JAX_PLATFORMS="refcpu")


def test_a_wrong_number_of_devices_is_an_error():
    code = """
from jax_plugins import refcpu
for count in (0, -1, "2", 1.5, True):
    try:
        refcpu.set_num_devices(count)
    except (TypeError, ValueError) as error:
        print(error)
"""
    assert len(plugins.run_python(code).splitlines()) == 5


def test_an_opaque_device_computes_the_same():
    """Hosts then copy results back instead of reading memory in place, as with a real accelerator."""
    code = "import jax, numpy as np, jax.numpy as jnp; print(np.asarray(jnp.arange(4) * 2), jax.default_backend())"
    assert plugins.run_python(code, JAX_PLATFORMS="refcpu", REFCPU_OPAQUE="1") == "[0 2 4 6] refcpu"
