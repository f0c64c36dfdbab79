"""Differences that are known and accepted: where an anchor is not right, or nobody can say what is right.

A rule is about one operation on its own (the driver takes programs apart), against one anchor. It has the operation's name and
the element types of operands and results as patterns, at times a condition, and the reason. Conditions are functions of the
disagreement, below.
"""

import dataclasses
import re

import numpy as np
from arrays import COMPLEX, FLOATS, precision


@dataclasses.dataclass
class Disagreement:
    """A statement that gives something else on refcpu than on an anchor, from the same operands."""

    statement: dict
    anchor: str
    # (values, type) of each operand, and (values of refcpu, of the anchor, type, mask of wrong elements) of each wrong result.
    operands: list
    results: list

    @property
    def types(self):
        """Element types of operands and results, as the rules' patterns see them: `f32,f32->i1`."""
        operands = ",".join(ty.element for _, ty in self.operands)
        return operands + "->" + ",".join(result[2].element for result in self.results)


def small(values, ty):
    """Which numbers are below the smallest normal one of their type, without being zero."""
    if ty.element not in FLOATS and ty.element not in COMPLEX:
        return np.zeros(values.shape, bool)
    normal = precision(ty.element)[1]
    with np.errstate(all="ignore"):
        return (np.abs(values) < normal) & (values != 0)


def has_denormals(disagreement):
    """A denormal number is among the operands or the results that differ."""
    operands = any(small(values, ty).any() for values, ty in disagreement.operands)
    return operands or any(
        small(found, ty).any() or small(expected, ty).any() for found, expected, ty, _ in disagreement.results
    )


@dataclasses.dataclass(frozen=True)
class Rule:
    name: str
    anchor: str
    op: str
    types: str
    reason: str
    condition: object = None

    def accepts(self, disagreement):
        return (
            re.fullmatch(self.anchor, disagreement.anchor)
            and re.fullmatch(self.op, disagreement.statement["op"].removeprefix("stablehlo."))
            and re.fullmatch(self.types, disagreement.types)
            and (self.condition is None or self.condition(disagreement))
        )


RULES = [
    Rule(
        "denormals",
        "xla",
        ".*",
        ".*(f32|f64|bf16|f16).*",
        "XLA's CPU backend takes denormal numbers for zero; refcpu and the interpreter keep them",
        has_denormals,
    ),
]


def accepting(disagreement):
    return next((rule for rule in RULES if rule.accepts(disagreement)), None)
