"""Prints facts about a Python environment as JSON: the hosts, the plugins that they discover, and the platform that JAX chooses.

    python environment.py facts | jax

It runs in the environment that is examined, so it imports nothing but the standard library and, in its last step, the host.
"""

import importlib
import importlib.metadata
import json
import os
import pkgutil
import sys
import traceback

MARK = "PJRT-DOCTOR:"


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def entry_points(group):
    found = importlib.metadata.entry_points()
    found = found.select(group=group) if hasattr(found, "select") else found.get(group, [])
    result = {}
    for point in found:
        package = getattr(getattr(point, "dist", None), "name", None)
        result[(point.name, point.value)] = {"name": point.name, "value": point.value, "package": package}
    return list(result.values())


def namespace():
    """The modules in the namespace package `jax_plugins`."""
    try:
        package = importlib.import_module("jax_plugins")
    except Exception:
        return []
    return [name for _, name, _ in pkgutil.iter_modules(package.__path__, "jax_plugins.")]


def facts():
    return {
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "packages": {name: version(name) for name in ("jax", "jaxlib", "torch", "torch_xla")},
        "jax_entry_points": entry_points("jax_plugins"),
        "jax_modules": namespace(),
        "torch_entry_points": entry_points("torch_xla.plugins"),
    }


def last_line(error):
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def registrations(names):
    """Imports each module of a plugin as JAX does, and returns what it registers."""
    from jax._src import xla_bridge

    current = []
    register = xla_bridge.register_plugin

    def recording(plugin_name, *arguments, **named):
        priority, library = named.get("priority", 400), named.get("library_path")
        current.append({"name": plugin_name, "priority": priority, "library": library and str(library)})
        return register(plugin_name, *arguments, **named)

    xla_bridge.register_plugin = recording
    modules = []
    for name in names:
        current.clear()
        error = None
        try:
            importlib.import_module(name).initialize()
        except BaseException as caught:
            error = last_line(caught)
        modules.append({"module": name, "error": error, "registered": list(current)})
    return modules, register


def jax():
    """What JAX registers, and the platform that it chooses in this environment."""
    builtin = []
    result = {"modules": [], "builtin": builtin, "platform": None, "devices": [], "error": None, "errors": {}, "priorities": {}}
    try:
        import jax
        from jax._src import xla_bridge

        builtin += list(xla_bridge._backend_factories)
        names = {point["value"] for point in entry_points("jax_plugins")} | set(namespace())
        result["modules"], xla_bridge.register_plugin = registrations(sorted(names))
        # Every module registered its plugins above; JAX must not do it again.
        if hasattr(xla_bridge, "discover_pjrt_plugins"):
            xla_bridge.discover_pjrt_plugins = lambda: None
        report(result)
        try:
            result["devices"] = [str(device) for device in jax.devices()]
            result["platform"] = jax.devices()[0].platform
        except BaseException as caught:
            result["error"] = last_line(caught)
        result["errors"] = {name: str(error) for name, error in getattr(xla_bridge, "_backend_errors", {}).items()}
        result["priorities"] = {name: factory.priority for name, factory in xla_bridge._backend_factories.items()}
    except BaseException as caught:
        result["error"] = last_line(caught)
    return result


def report(result):
    """Prints a result on a line of its own. The last one counts: a plugin may end the process after the first."""
    print("\n" + MARK + json.dumps(result), flush=True)


if __name__ == "__main__":
    report({"facts": facts, "jax": jax}[sys.argv[1]]())
    # A plugin may end badly when Python does.
    os._exit(0)
