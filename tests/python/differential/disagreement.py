"""The disagreement of refcpu with an anchor about one operation."""

import dataclasses


@dataclasses.dataclass
class Disagreement:
    """A statement that gives something else on refcpu than on an anchor, from the same operands."""

    statement: dict
    anchor: str
    # (values, type) of each operand, and (values of refcpu, of the anchor, type, mask of wrong numbers) of each wrong result.
    operands: list
    results: list
    # The operations that the operands come from, if they are not the program's arguments.
    sources: tuple = ()
    # Whether the other anchor takes the operation and gives what refcpu does wherever this one does not.
    other_agrees: bool = False

    @property
    def types(self):
        """Element types of operands and results, as the rules' patterns see them: `f32,f32->i1`."""
        operands = ",".join(ty.element for _, ty in self.operands)
        return operands + "->" + ",".join(result[2].element for result in self.results)
