"""Small mistakes that a programmer might make, as mutants of a module's source.

`mutants_of` gives each as a piece of the file's bytes and what stands there instead; all else of the file stays.
Not mutated: messages (f-strings, `raise`), annotations, assertions, and what stands outside functions: numbers there
are bounds that evals and bars hold.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    module: str
    """Path in the repository."""
    function: str
    line: int
    what: str
    was: str
    now: str
    start: int
    """Offset in the file's bytes."""
    stop: int
    place: int = 1
    """Which of those in the function that read the same."""

    @property
    def key(self) -> str:
        """The same as long as the place reads the same."""
        was, now = (" ".join(text.split()) for text in (self.was, self.now))
        return f"{self.module} {self.function}: {was} ⇒ {now}" + (f" (place {self.place})" if self.place > 1 else "")


COMPARED = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
COUNTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*"}


def mistakes(node: ast.AST, text: str, attributes: dict[str, list[str]]) -> Iterator[tuple[str, ast.AST, str]]:
    """Kind of mistake, the node in whose place it stands, and the new text."""

    def of(part: ast.AST) -> str:
        return f"({_bytes(text)[_offset(text, part) : _offset(text, part, end=True)].decode()})"

    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for other in COMPARED[type(op)]:
                yield "compared otherwise", node, f"{of(left)} {other} {of(right)}"
        case ast.BoolOp(op=op, values=values):
            word = "or" if isinstance(op, ast.And) else "and"
            yield "and for or", node, f" {word} ".join(map(of, values))
            for left_out in range(len(values)):
                rest = [of(value) for n, value in enumerate(values) if n != left_out]
                yield "guard dropped", node, (" or " if word == "and" else " and ").join(rest)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not dropped", node, of(operand)
        case ast.IfExp(body=body, orelse=other):
            yield "one branch", node, of(body)
            yield "one branch", node, of(other)
        case ast.If(test=test, body=[*_, ast.Return() | ast.Raise() | ast.Continue() | ast.Break()], orelse=[]):
            yield "guard dropped", test, "False"
        case ast.comprehension(ifs=[only]):
            yield "filter dropped", only, "True"
        case ast.Constant(value=bool() as value):
            yield "constant", node, str(not value)
        case ast.Constant(value=int() as value):
            yield "constant ± 1", node, str(value + 1)
            yield "constant ± 1", node, str(value - 1)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in COUNTED:
            if not (_is_sequence(left) or _is_sequence(right)):
                yield "arithmetic", node, f"{of(left)} {COUNTED[type(op)]} {of(right)}"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Continue() | ast.Break():
            yield "statement dropped", node, "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "nothing returned", value, "None"
        case ast.Slice(lower=lower, upper=upper, step=None):
            low, high = (of(side) if side else "" for side in (lower, upper))
            yield "slice off by one", node, f"{low or 0} + 1:{high}"
            if upper is not None:
                yield "slice off by one", node, f"{low}:{high} - 1"
        case ast.Attribute(value=ast.Name(id=base), attr=name, ctx=ast.Load()) if base not in ("self", "cls"):
            for other in attributes[base]:
                if other != name:
                    yield "other attribute", node, f"{base}.{other}"
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in CALLED:
            yield "min for max", node.func, CALLED[node.func.id]
        for one, other in itertools.pairwise(node.args):
            if not isinstance(one, ast.Starred) and not isinstance(other, ast.Starred) and of(one) != of(other):
                between = _bytes(text)[_offset(text, one, end=True) : _offset(text, other)].decode()
                whole = ast.Expr(value=one, lineno=one.lineno, col_offset=one.col_offset)
                whole.end_lineno, whole.end_col_offset = other.end_lineno, other.end_col_offset
                yield "arguments swapped", whole, f"{of(other)}{between}{of(one)}"
        for keyword in node.keywords:
            if keyword.arg is not None and isinstance(keyword.value, ast.Name | ast.Attribute):
                yield "argument dropped", keyword.value, "None"


def _is_sequence(node: ast.expr) -> bool:
    texts = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return texts or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)


@cache
def _bytes(text: str) -> bytes:
    return text.encode()


@cache
def _lines(text: str) -> list[int]:
    return [0, *itertools.accumulate(len(line) for line in text.encode().split(b"\n"))]


def _offset(text: str, node: Any, *, end: bool = False) -> int:
    line, column = (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)
    return _lines(text)[line - 1] + line - 1 + int(column)


def _parts(node: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Nodes that are mutated, with the function they are in."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or name in ("annotation", "returns", "decorator_list", "bases"):
                continue
            if isinstance(child, ast.JoinedStr | ast.Assert | ast.Raise | ast.Import | ast.ImportFrom):
                continue
            inside = function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = f"{function}.{child.name}".lstrip(".")
            if function and not isinstance(node, ast.ClassDef):
                yield child, inside
            yield from _parts(child, inside)


def mutants_of(path: Path, module: str) -> list[Mutant]:
    """Every mutant of a module; some are the source in other words, or do not compile: `is_other_code`."""
    return list(_mutants(path.read_text(encoding="utf-8"), module))


@cache
def _mutants(text: str, module: str) -> tuple[Mutant, ...]:
    data, found, seen = text.encode(), [], Counter[str]()
    for node, function in _parts(ast.parse(text)):
        for what, place, now in mistakes(node, text, _attributes(text)):
            line: int = place.lineno  # type: ignore[attr-defined]
            start, stop = _offset(text, place), _offset(text, place, end=True)
            mutant = Mutant(module, function, line, what, data[start:stop].decode(), now, start, stop)
            seen[mutant.key] += 1
            found.append(mutant._replace(place=seen[mutant.key]))
    return tuple(found)


def is_other_code(mutant: Mutant, source: bytes) -> bool:
    """Whether the mutant compiles, to something else than its source."""
    try:
        new = ast.parse(source[: mutant.start] + mutant.now.encode() + source[mutant.stop :])
    except SyntaxError:
        return False
    return ast.dump(new) != _dumped(source)


@cache
def _dumped(source: bytes) -> str:
    return ast.dump(ast.parse(source))


@cache
def _attributes(text: str) -> dict[str, list[str]]:
    """By name: what the module reads of it, methods apart."""
    tree, read = ast.parse(text), defaultdict(set)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and id(node) not in called:
            read[node.value.id].add(node.attr)
    return defaultdict(list, {name: sorted(attributes) for name, attributes in read.items()})
