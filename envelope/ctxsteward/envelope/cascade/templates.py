"""Templates of a configuration: instructions and conditions, Jinja2 over `input` and `state` in a closed sandbox.

Allowed: text, ``{{ }}`` expressions, ``if``, ``for``, comparisons, arithmetic, the filters in `FILTERS`, Jinja2's
tests, `range`, and the methods in `METHODS`. Everything else (``set``, macros, includes, powers, calls of anything
else, names that begin with an underscore) is refused before it runs. What a template sees is plain JSON data;
attributes are keys of that data, and nothing is reachable beside it. All work is metered: an iteration costs what its
body holds, a text its characters; a template that costs more than its `TemplateLimits` stops with an error. Nothing
here
changes its data, reads a clock or draws a random number.

A missing key is empty in instructions (and reported), and false in a condition. A condition is an expression, with or
without braces; ``""``, ``false``, ``no``, ``off``, ``0``, ``none`` and ``null`` as text are false.

Raises `TemplateFailed`. Source: Jinja2, "Sandbox" (security considerations of the published documentation).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from typing import Any, NamedTuple

from jinja2 import TemplateError, TemplateSyntaxError, Undefined, UndefinedError, nodes, pass_context
from jinja2 import filters as jinja_filters
from jinja2.environment import Template
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from ctxsteward.schemas import InputError
from ctxsteward.schemas.cascade import MAX_CONDITION_CHARS, MAX_INSTRUCTIONS_CHARS

FILTERS = (
    "abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last", "length",
    "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "select", "selectattr", "sort", "string",
    "title", "trim", "unique", "upper",
)  # fmt: skip
"""Taken from Jinja2; `join`, `tojson`, `round`, `sum` and `truncate` are here too, bounded."""
METHODS = frozenset(
    ("endswith", "get", "items", "keys", "lower", "split", "startswith", "strip", "title", "upper", "values")
)
MAX_RANGE = 1_000
MAX_NUMBER = 10**18
MAX_DEPTH = 100
FALSE_WORDS = frozenset(("", "false", "no", "off", "0", "none", "null"))

_NODES: tuple[type[nodes.Node], ...] = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem,
    nodes.Slice, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr, nodes.Test,
    nodes.Filter, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Concat, nodes.Add, nodes.Sub, nodes.Mul,
    nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos, nodes.Call, nodes.Keyword, nodes.If, nodes.For,
)  # fmt: skip
_WORDS = {
    nodes.Pow: "the power operator", nodes.Assign: "{% set %}", nodes.AssignBlock: "{% set %}",
    nodes.Macro: "a macro", nodes.Include: "{% include %}", nodes.Import: "{% import %}",
    nodes.FromImport: "{% from %}", nodes.Extends: "{% extends %}", nodes.Block: "a block",
    nodes.FilterBlock: "{% filter %}", nodes.CallBlock: "{% call %}", nodes.With: "{% with %}",
}  # fmt: skip
_LOOP_NAMES = frozenset(
    ("index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem")
)
_NAMES = frozenset(("input", "state", "range"))
_PLAIN = (str, int, float, bool, type(None), list, tuple, dict)
_ALLOWED_HINT = "keep to expressions, if, for, and the filters of the documentation"


class TemplateFailed(Exception):
    """A template that is refused or fails; its caller adds the place."""

    def __init__(self, found: str, hint: str) -> None:
        self.found, self.hint = found, hint
        super().__init__(f"{found}; {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateLimits:
    """How much a template may be and do."""

    max_chars: int
    max_cost: int
    """Steps, with characters of text counted as steps."""


INSTRUCTIONS = TemplateLimits(max_chars=MAX_INSTRUCTIONS_CHARS, max_cost=5_000_000)
CONDITION = TemplateLimits(max_chars=MAX_CONDITION_CHARS, max_cost=200_000)


class RenderedTemplate(NamedTuple):
    """A text, and the names in it that stood for nothing."""

    text: str
    missing: tuple[str, ...]


class Problem(NamedTuple):
    found: str
    hint: str


def check_template(text: str, *, is_condition: bool = False) -> Problem | None:
    """What is wrong with a template before it has any data; None where it may be rendered."""
    try:
        if is_condition:
            _Sandbox(CONDITION).prepare(_braced(text), names=_NAMES)
        elif "{" in text:
            _Sandbox(INSTRUCTIONS).prepare(text)
    except TemplateFailed as error:
        return Problem(error.found, error.hint)
    return None


def render(text: str, *, input: object, state: Mapping[str, Any]) -> RenderedTemplate:
    """Instructions with their data."""
    if "{" not in text:
        return RenderedTemplate(text, ())
    sandbox = _Sandbox(INSTRUCTIONS)
    rendered = sandbox.render(text, input, state)
    return RenderedTemplate(rendered, tuple(dict.fromkeys(sandbox.missing)))


def holds(condition: str, *, input: object, state: Mapping[str, Any]) -> bool:
    """Whether a condition is true."""
    sandbox = _Sandbox(CONDITION)
    text = sandbox.render(_braced(condition), input, state, _NAMES)
    if sandbox.shown == 1 and not isinstance(sandbox.last, str) and text.strip():
        return bool(sandbox.last)
    return text.strip().lower() not in FALSE_WORDS


def _braced(condition: str) -> str:
    if "{{" in condition or "{%" in condition:
        return condition
    if "}}" in condition or "%}" in condition or "{#" in condition:
        raise TemplateFailed("a condition with half of a pair of braces", "write {{ expression }}, or no braces")
    return "{{ " + condition + " }}"


class _Sandbox:
    """One rendering: an environment of its own, and what it may still cost."""

    def __init__(self, limits: TemplateLimits) -> None:
        self.limits = limits
        self.left = limits.max_cost
        self.missing: list[str] = []
        self.shown, self.last = 0, None
        self.environment = _Environment(self)

    def spend(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise TemplateFailed(f"more than {self.limits.max_cost:,} steps of work", "loop over less, or write less")

    def prepare(self, text: str, names: frozenset[str] | None = None) -> Template:
        """The template, ready to run; with `names`, no others may stand in it."""
        if len(text) > self.limits.max_chars + 6:
            raise TemplateFailed(f"{len(text):,} characters", f"write at most {self.limits.max_chars:,}")
        with _template_errors():
            tree = self.environment.parse(text)
            _refuse_what_is_not_allowed(tree)
            for name in sorted(find_undeclared_variables(tree) - names if names else ()):
                raise TemplateFailed(f"the name {name[:40]!r} is not known", "write input.KEY or state.KEY")
            _MeterInserter().visit(tree)
            tree.set_environment(self.environment)
            code = self.environment.compile(tree)
            return Template.from_code(self.environment, code, {"range": _range})

    def render(self, text: str, input: object, state: Mapping[str, Any], names: frozenset[str] | None = None) -> str:
        template = self.prepare(text, names)
        data = {"input": plain(input, "input"), "state": plain(state, "state")}
        with _template_errors():
            return template.render(data)

    def show(self, value: Any) -> str:
        """What ``{{ value }}`` puts into the text."""
        self.shown, self.last = self.shown + 1, value
        if isinstance(value, Undefined):
            self.missing.append(str(value._undefined_name))
            self.last = None
            return ""
        text = value if isinstance(value, str) else self.text_of(value)
        self.spend(len(text))
        return text

    def text_of(self, value: Any) -> str:
        """Scalars as Jinja2 writes them, lists and mappings as JSON."""
        value = list(self.counted(value)) if isinstance(value, Iterator) else value
        self.spend(self.size(value))
        if isinstance(value, (dict, list, tuple)):
            return json.dumps(value, ensure_ascii=False)
        return str(value)

    def size(self, value: Any, depth: int = 0) -> int:
        """Nodes and characters of plain data."""
        if type(value) not in _PLAIN or depth > MAX_DEPTH:
            raise TemplateFailed(f"a value of type {type(value).__name__}", "show data of `input` and `state` alone")
        if isinstance(value, str):
            return 1 + len(value)
        if not isinstance(value, (dict, list, tuple)):
            return 1
        total = 1
        children = [*value, *value.values()] if isinstance(value, dict) else value
        for child in children:
            total += self.size(child, depth + 1)
            if total > self.left:
                self.spend(total)
        return total

    def counted(self, items: Iterable[Any], body: int = 1) -> Iterator[Any]:
        """The items, each paid for with what a loop does with it."""
        for item in items:
            self.spend(1 + body)
            yield item


class _template_errors:  # noqa: N801 (a context manager, used like a function)
    """Every failure inside becomes `TemplateFailed`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case None | TemplateFailed():
                return
            case TemplateSyntaxError():
                found = f"does not parse: {str(error.message)[:120]} (line {error.lineno} of the template)"
                raise TemplateFailed(found, "write Jinja2, such as {{ state.ready }}") from error
            case SecurityError():
                raise TemplateFailed(f"reaches outside its data: {error}"[:160], _ALLOWED_HINT) from error
            case UndefinedError():
                raise TemplateFailed(f"fails: {error}"[:160], "ask `is defined` first, or give it a default") from error
            case RecursionError() | MemoryError() | SyntaxError():
                raise TemplateFailed("nested too deep", "write it flat") from error
            case TemplateError() | ArithmeticError() | LookupError() | TypeError() | ValueError() | AttributeError():
                found = f"fails: {type(error).__name__}: {error}"[:160]
                raise TemplateFailed(found, "correct the template, or the data it is given") from error


def plain(value: object, where: str) -> Any:
    """The value, if it is JSON data through and through; raises `InputError` naming the place."""
    stack: list[tuple[object, str, int]] = [(value, where, 1)]
    while stack:
        node, path, depth = stack.pop()
        if isinstance(node, float) and not math.isfinite(node):
            raise InputError(f"{path} is {node}; write a finite number")
        if type(node) not in _PLAIN:
            raise InputError(f"{path} is of type {type(node).__name__}; templates take JSON data")
        if depth > MAX_DEPTH:
            raise InputError(f"{path[:80]} is nested deeper than {MAX_DEPTH} levels; flatten it")
        if isinstance(node, dict):
            for key, child in node.items():
                if type(key) is not str:
                    raise InputError(f"{path} has the key {key!r:.40}; keys are text")
                stack.append((child, f"{path}.{key[:40]}", depth + 1))
        elif isinstance(node, (list, tuple)):
            stack.extend((child, f"{path}[{index}]", depth + 1) for index, child in enumerate(node))
    return value


# -- what is allowed -----------------------------------------------------------------------------------------


def _refuse_what_is_not_allowed(tree: nodes.Template) -> None:
    stack: list[nodes.Node] = [tree]
    while stack:
        node = stack.pop()
        problem = _problem(node)
        if problem is not None:
            raise TemplateFailed(f"{problem} (line {node.lineno} of the template)", _ALLOWED_HINT)
        stack.extend(node.iter_child_nodes())


def _problem(node: nodes.Node) -> str | None:
    if type(node) not in _NODES:
        return f"{_WORDS.get(type(node), f'`{type(node).__name__.lower()}`')} is not allowed"
    if isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
        return f"the attribute {node.attr[:40]!r} is not allowed"
    if isinstance(node, nodes.Name) and (node.name.startswith("_") or node.name in ("self", "caller", "context")):
        return f"the name {node.name[:40]!r} is not allowed"
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and _is_hidden(node.arg.value):
        return f"the key {node.arg.value[:40]!r} is not allowed"
    if isinstance(node, nodes.Filter) and node.name not in _OUR_FILTERS and node.name not in FILTERS:
        return f"no filter {node.name[:40]!r} is allowed"
    if isinstance(node, nodes.For) and node.recursive:
        return "a recursive loop is not allowed"
    if isinstance(node, nodes.Call):
        return _call_problem(node)
    return None


def _is_hidden(key: object) -> bool:
    return isinstance(key, str) and key.startswith("__")


def _call_problem(node: nodes.Call) -> str | None:
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        return "a call with unpacked arguments is not allowed"
    called = node.node
    if isinstance(called, nodes.Getattr) and called.attr in METHODS:
        return None
    if isinstance(called, nodes.Name) and called.name == "range":
        return None
    name = called.attr if isinstance(called, nodes.Getattr) else getattr(called, "name", "this")
    return f"a call of {str(name)[:40]!r} is not allowed"


class _MeterInserter(NodeTransformer):
    """Puts a meter on each loop, by what its body holds, and on each ``~``."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 (the visitor's own naming)
        self.generic_visit(node)
        weight = nodes.Const(sum(map(_weight, node.body)))
        node.iter = nodes.Filter(node.iter, "metered_", [weight], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        pieces = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(pieces, "concat_", [], [], None, None, lineno=node.lineno)


def _weight(tree: nodes.Node) -> int:
    weight, stack = 0, [tree]
    while stack:
        node = stack.pop()
        weight += len(node.data) if isinstance(node, nodes.TemplateData) else 1
        stack.extend(node.iter_child_nodes())
    return weight


# -- the environment -----------------------------------------------------------------------------------------


class _Environment(ImmutableSandboxedEnvironment):
    """Knows the filters above and nothing else; looks up keys of plain data, never attributes of objects."""

    intercepted_binops = frozenset(("+", "*", "%"))

    def __init__(self, sandbox: _Sandbox) -> None:
        super().__init__(optimized=False, cache_size=0, finalize=pass_context(lambda _, value: sandbox.show(value)))
        self.sandbox = sandbox
        self.globals.clear()
        taken = {name: _metered(jinja_filters.FILTERS[name], sandbox) for name in FILTERS}
        ours = {name: make(sandbox) for name, make in _OUR_FILTERS.items()}
        self.filters = {**taken, **ours, "metered_": sandbox.counted, "concat_": ours["join"]}

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        if isinstance(obj, LoopContext) and attribute in _LOOP_NAMES:
            return getattr(obj, attribute)
        if type(obj) in (str, dict) and attribute in METHODS and hasattr(obj, attribute):
            return getattr(obj, attribute)
        return self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if _is_hidden(argument):
            raise SecurityError(f"the key {argument[:40]!r} is not allowed")
        if isinstance(obj, (dict, list, tuple, str)):
            try:
                return obj[argument]
            except (LookupError, TypeError):
                return self.undefined(obj=obj, name=argument)
        return self.undefined(obj=obj, name=argument)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 (as Jinja2 has it)
        owner = getattr(__obj, "__self__", None)
        if __obj is not _range and type(owner) not in (str, dict):
            raise SecurityError(f"{type(__obj).__name__} is not callable")
        __self.sandbox.spend(1 + (len(owner) if isinstance(owner, (str, dict)) else 0) // 16)
        kwargs = {name: value for name, value in kwargs.items() if not name.startswith("_")}  # Jinja2's own
        found = __obj(*args, **kwargs)
        return list(found) if type(owner) is dict and not isinstance(found, _PLAIN) else found

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            return super().call_binop(context, operator, left, right)  # which says what is undefined
        both = all(isinstance(side, (int, float)) for side in (left, right))
        if both and max(abs(left), abs(right)) <= MAX_NUMBER:
            return super().call_binop(context, operator, left, right)
        if not both and operator == "+" and isinstance(left, (str, list, tuple)) and type(left) is type(right):
            self.sandbox.spend(len(left) + len(right))
            return left + right  # type: ignore[operator]
        kinds = f"{type(left).__name__} {operator} {type(right).__name__}"
        raise TemplateFailed(f"{kinds} is not allowed", f"{operator} takes numbers up to {MAX_NUMBER:,}")


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers) > MAX_RANGE:
        raise TemplateFailed(f"a range of {len(numbers):,}", f"keep to {MAX_RANGE:,}")
    return numbers


def _metered(made: Callable[..., Any], sandbox: _Sandbox) -> Callable[..., Any]:
    """A filter of Jinja2 that pays for the plain data it is given."""

    @wraps(made)
    def paid(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if type(value) in _PLAIN:
                sandbox.spend(sandbox.size(value))
            elif isinstance(value, range):
                sandbox.spend(len(value))
        return made(*args, **kwargs)

    return paid


def _join(sandbox: _Sandbox) -> Callable[..., str]:
    def join(value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
        pieces: list[str] = []
        for item in sandbox.counted(value):
            found = item if attribute is None else sandbox.environment.getitem(item, attribute)
            piece = "" if isinstance(found, Undefined) else found if type(found) is str else sandbox.text_of(found)
            sandbox.spend(len(piece) + len(d))
            pieces.append(piece)
        return d.join(pieces)

    return join


def _tojson(sandbox: _Sandbox) -> Callable[[Any], str]:
    def tojson(value: Any) -> str:
        value = list(sandbox.counted(value)) if isinstance(value, Iterator) else value
        sandbox.spend(sandbox.size(value))
        return json.dumps(value, ensure_ascii=False)

    return tojson


def _round(sandbox: _Sandbox) -> Callable[..., float]:
    def rounded(value: float, precision: int = 0) -> float:
        if not isinstance(value, (int, float)) or not 0 <= precision <= 15:
            raise TemplateFailed(
                f"round of {value!r:.40} to {precision!r:.20} places", "round a number, 0 to 15 places"
            )
        return round(float(value), precision)

    return rounded


def _sum(sandbox: _Sandbox) -> Callable[[Iterable[Any]], Any]:
    def total(value: Iterable[Any]) -> Any:
        numbers = list(sandbox.counted(value))
        if not all(isinstance(number, (int, float)) for number in numbers):
            raise TemplateFailed("a sum of what is not a number", "sum numbers; join texts")
        return sum(numbers)

    return total


def _truncate(sandbox: _Sandbox) -> Callable[..., str]:
    def truncate(value: str, length: int = 255) -> str:
        text = "".join(islice(value, max(0, length)))
        return text if len(text) == len(value) else f"{text}..."

    return truncate


_OUR_FILTERS: dict[str, Callable[[_Sandbox], Callable[..., Any]]] = {
    "join": _join, "tojson": _tojson, "round": _round, "sum": _sum, "truncate": _truncate,
}  # fmt: skip
