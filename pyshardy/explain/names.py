"""Readable names of the values and ops of a program."""

from __future__ import annotations

from pyshardy.core.scopes import OF_JAX, is_gradient, scope_path, user_scopes
from pyshardy.explain.subject import Label, Subject
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.propagation.trace import GROUP_STEP, MAIN_RESULT
from pyshardy.rules.properties import EDGES
from pyshardy.source.cells import file_name

MANUAL = "sdy.manual_computation"
_REGIONS = {
    "stablehlo.while": "loop",
    "stablehlo.case": "conditional",
    "stablehlo.if": "conditional",
    MANUAL: "manual computation",
    "sdy.named_computation": "call",
    "stablehlo.optimization_barrier": "barrier",
    "func.func": "function",
}
_FAR = 4
"""The number of ops to go back in search of a source line."""


def short_label(label: Label) -> str:
    """The last part of the name that JAX gave an op, or the op's own name without the dialect.

    >>> short_label(Label("stablehlo.dot_general", "jit(step)/mlp/dot_general")), short_label(Label("stablehlo.add"))
    ('dot_general', 'add')
    """
    own = label.name.rpartition(".")[2]
    if label.name == CONSTRAINT or label.name in _REGIONS:
        return _REGIONS.get(label.name, own)
    return (label.scope or "").rpartition("/")[2] or own


def named_scope(label: Label) -> str | None:
    """The innermost user-defined scope in the name that JAX gave an op; None if there is none.

    >>> named_scope(Label("stablehlo.dot_general", "jit(step)/jvp(mlp)/dot_general"))
    'mlp'
    """
    scopes = user_scopes(label.scope)
    return scopes[-1] if scopes else None


def around(label: Label) -> str:
    """The user's scopes around an op as a path, or else the user's function with its class; empty if neither is known.

    >>> around(Label("stablehlo.dot_general", "jit(step)/decoder/mlp/dot_general"))
    'decoder/mlp'
    >>> around(Label("stablehlo.dot_general", "jit(step)/dot_general", "step.<locals>.loss"))
    'loss'
    >>> around(Label("stablehlo.dot_general", "jit(step)/dot_general", "Attention.__call__"))
    'Attention.__call__'
    """
    inside = scope_path(label.scope) or (label.function or "").rpartition("<locals>.")[2]
    return "" if inside.startswith("<") or inside in OF_JAX else inside


def place_text(label: Label) -> str:
    """The source line of an op as a phrase, " at model.py:41"; empty if unknown.

    >>> place_text(Label("stablehlo.add", file="src/model.py", line=41))
    ' at model.py:41'
    """
    return "" if label.file is None else f" at {file_name(label.file)}:{label.line}"


class Names:
    """Names for the values and ops of a program.

    Args:
        subject: The program.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._ops: dict[int, str] = {}
        self._values: dict[int, str] = {}

    def label(self, op: int) -> Label:
        """The label of an op, of the return of the main function, or of a sharding group."""
        if op == GROUP_STEP:
            return Label("sdy.sharding_group", "sharding group")
        if op == MAIN_RESULT or op >= self.subject.op_count:
            return Label("func.return", "return")
        return self.subject.labels[op]

    def op(self, op: int) -> str:
        """An op in words: "dot_general in mlp at model.py:41"."""
        found = self._ops.get(op)
        if found is None:
            found = self._ops[op] = self._op(op)
        return found

    def _op(self, op: int) -> str:
        label = self.label(op)
        if label.name in EDGES:
            return self._edge(op)
        if label.name == "func.return":
            return "the return"
        inside = around(label)
        is_name = inside and label.name not in _REGIONS
        gradient = is_gradient(label.scope)
        scope = f" in {'the gradient of ' if gradient else ''}`{inside}`" if is_name else " in the gradient" * gradient
        found = f"`{short_label(label)}`{scope}{place_text(label)}"
        return found if label.file is not None else found + self._near(op)

    def _near(self, op: int) -> str:
        """For an op without a source line, the nearest op with one among those that compute its operands."""
        program, at = self.subject.program, op
        for _ in range(_FAR):
            owners = [program.owners[value] for value in (program.operands[at] if at < self.subject.op_count else ())]
            makers = [owner for owner in owners if owner >= 0 and program.operands[owner]]
            if not makers:
                break
            at = makers[0]
            if self.label(at).file is not None and self.label(at).name not in EDGES:
                return f" behind {self.op(at)}"
        return ""

    def _edge(self, op: int) -> str:
        owner = self.subject.program.operands[op][0]
        around = self.subject.program.owners[owner]
        label = self.label(around)
        return f"the {_REGIONS.get(label.name, label.name)}{place_text(label)}"

    def value(self, value: int) -> str:
        """A value in words: "`params['w2']`", "the result of `dot_general` at model.py:41"."""
        found = self._values.get(value)
        if found is None:
            found = self._values[value] = self._value(value)
        return found

    def _value(self, value: int) -> str:
        subject = self.subject
        if value in subject.names:
            return f"`{subject.names[value]}`"
        program = subject.program
        result = subject.main_result(value)
        if result is not None:
            return f"result {result}"
        owner = program.owners[value]
        if owner < 0:
            return f"value {value}"
        label, results = self.label(owner), program.results[owner]
        if label.name in EDGES:
            return self._carried(owner)
        if value not in results:
            return self._inside(value, owner)
        which = "the result" if len(results) == 1 else f"result {results.index(value)}"
        return f"{which} of {self.op(owner)}"

    def argument_number(self, value: int) -> int:
        """The number of a block argument among the arguments of its op."""
        program, first = self.subject.program, value
        owner = program.owners[value]
        while first > 0 and program.owners[first - 1] == owner and first - 1 not in program.results[owner]:
            first -= 1
        return value - first

    def _inside(self, value: int, owner: int) -> str:
        label = self.label(owner)
        what = f"{_REGIONS.get(label.name, label.name)}{place_text(label)}"
        return f"argument {self.argument_number(value)} of the {what}"

    def _carried(self, edge: int) -> str:
        program = self.subject.program
        owner = program.operands[edge][0]
        around = program.owners[owner]
        label, results = self.label(around), program.results[around]
        what = f"{_REGIONS.get(label.name, label.name)}{place_text(label)}"
        if owner not in results:
            return self._inside(owner, around)
        index = results.index(owner)
        return (
            f"value {index} that the {what} carries"
            if label.name == "stablehlo.while"
            else f"result {index} of the {what}"
        )
