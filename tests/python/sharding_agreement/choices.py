"""Differences of output shardings from XLA's that are choices, each with its reason."""

import re
from dataclasses import dataclass


@dataclass
class Choice:
    """A reason for differences of the programs whose names match a pattern."""

    partitioner: str
    programs: str
    reason: str
    used: bool = False


CHOICES = [
    Choice(
        ".*",
        "(solve|solve_batch|solve_triangular|cho_solve|expm)/.*",
        "Each column of the right-hand side of a triangular system is a system of its own, so refcpu keeps its split, as "
        "Shardy's rule of stablehlo.triangular_solve does. XLA's CPU backend calls BLAS through a custom call without a rule.",
    ),
    Choice("shardy", "erf/.*", "refcpu keeps the split, as for all elementwise functions. XLA has no rule for erf's custom call."),
    Choice(
        "shardy|gspmd",
        "(grad_scan|rnn|fori_matmul|fori_new_carry|power_iteration)/.*",
        "A loop multiplies its state by a square matrix, so one axis may split either of two dimensions of the state. refcpu "
        "splits the one that the first product gives in program order, and XLA the other one.",
    ),
    Choice(
        "gspmd",
        "(flip|flip_axis1|rot90|pad_reflect)/.*",
        "XLA's GSPMD partitioner leaves the parts of a reversed array where they were, on devices in reversed order, which JAX "
        "cannot describe as a NamedSharding. refcpu moves them, as XLA does with Shardy.",
    ),
    Choice(
        "gspmd",
        r"(conv\w*|grad_conv\w*|grad_cnn|patches)/.*",
        "XLA's GSPMD partitioner gathers a convolution's input that is split along features and along another dimension, and "
        "a gradient with respect to the kernel. refcpu splits the result along all dimensions that it can, as with Shardy.",
    ),
    Choice(
        "gspmd",
        "(depth_to_space|index|unstack)/.*",
        "XLA's GSPMD partitioner splits the result along a part of an axis. refcpu splits along whole axes, so that JAX can "
        "describe the sharding as a NamedSharding.",
    ),
]


def choice_for(partitioner: str, program: str) -> Choice | None:
    """Returns the first choice that explains a difference, and notes that it did."""
    for choice in CHOICES:
        if re.fullmatch(choice.partitioner, partitioner) and re.fullmatch(choice.programs, program):
            choice.used = True
            return choice
    return None


def unused_choices() -> list[str]:
    """Returns the choices that explained no difference."""
    return [f"{choice.partitioner} {choice.programs}" for choice in CHOICES if not choice.used]
