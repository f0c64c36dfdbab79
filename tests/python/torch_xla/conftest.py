"""Selects refcpu, which the entry point of its wheel registers, before torch_xla is imported."""

import os

os.environ["PJRT_DEVICE"] = "REFCPU"
