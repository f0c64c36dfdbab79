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


CHOICES: list[Choice] = []


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
