"""Runs PyTorch/XLA on the library that TEST_REFCPU names: set before torch_xla is imported."""

import os

os.environ["PJRT_DEVICE"] = "LIBRARY"
os.environ["PJRT_LIBRARY_PATH"] = os.environ["TEST_REFCPU"]
