"""The parts that the Python packages of all PJRT plugins share.

`cargo pjrt wheel` puts a private copy of this package into each wheel, as `jax_plugins/NAME/_support`, so that plugins with
different versions of it work in one process. Importing this module imports no host.
"""
