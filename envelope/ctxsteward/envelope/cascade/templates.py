"""Templates of a configuration: instructions and conditions, Jinja2 over `input` and `state` in a closed sandbox.

Allowed: text, ``{{ }}`` expressions, ``if``, ``for``, comparisons, arithmetic, the filters in `FILTERS`, Jinja2's
tests, `range`, and the methods in `METHODS`. Everything else (``set``, macros, includes, powers, calls of anything
else, names that begin with an underscore) is refused before it runs. What a template sees is plain JSON data;
attributes are keys of that data, and nothing is reachable beside it. All work is metered: an iteration costs what its
body holds, a text its characters, a comparison, a search and a slice what they may read; a template that costs too much
stops with an error, the same on every machine.
Nothing here changes its data, reads a clock or draws a random number.

A missing key is empty in instructions (and reported), and false in a condition. A condition is an expression, with or
without braces; ``""``, ``false``, ``no``, ``off``, ``0``, ``none`` and ``null`` as text are false.

Raises `TemplateFailed`. Source: Jinja2, "Sandbox" (security considerations of the published documentation).
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from itertools import islice
from typing import Any, NamedTuple

from jinja2 import (
    TemplateError,
    TemplateSyntaxError,
    Undefined,
    UndefinedError,
    filters as jinja_filters,
    nodes,
    pass_context,
    tests as jinja_tests,
)
from jinja2.environment import Template
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from ctxsteward.schemas import MAX_CONDITION_CHARS, MAX_INSTRUCTIONS_CHARS, InputError

FILTERS = (
    "abs",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "first",
    "float",
    "int",
    "items",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "sort",
    "string",
    "title",
    "trim",
    "unique",
    "upper",
)
"""Taken from Jinja2, and paid for; `join`, `tojson`, `round`, `sum` and `truncate` are here too, bounded."""
METHODS = frozenset(
    ("endswith", "get", "items", "keys", "lower", "split", "startswith", "strip", "title", "upper", "values")
)
MAX_COST, MAX_CONDITION_COST = 5_000_000, 200_000
"""Steps of a rendering, with characters of text counted as steps."""
MAX_PLAIN_SEARCH_CHARS = 100
"""Python looks for a longer text in linear time, and compares a shorter one at each place in the worst case."""
NODE_COST = 4
"""Of a node of a list or mapping that is compared: counting it takes longer than an ordinary step."""
MAX_RANGE = 1_000
MAX_NUMBER = 10**18
MAX_DEPTH = 100
FALSE_WORDS = frozenset(("", "false", "no", "off", "0", "none", "null"))

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
    **dict.fromkeys(("eq", "==", "equalto"), operator.eq),
    **dict.fromkeys(("ne", "!="), operator.ne),
    **dict.fromkeys(("lt", "<", "lessthan"), operator.lt),
    **dict.fromkeys(("le", "<=", "lteq"), operator.le),
    **dict.fromkeys(("gt", ">", "greaterthan"), operator.gt),
    **dict.fromkeys(("ge", ">=", "gteq"), operator.ge),
}
"""By Jinja2's names of operators and tests."""
_TEXT_TESTS: Mapping[str, Callable[[Any], bool]] = {"lower": jinja_tests.test_lower, "upper": jinja_tests.test_upper}
_NODES: tuple[type[nodes.Node], ...] = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Const,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.CondExpr,
    nodes.Test,
    nodes.Filter,
    nodes.List,
    nodes.Tuple,
    nodes.Dict,
    nodes.Pair,
    nodes.Concat,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Neg,
    nodes.Pos,
    nodes.Call,
    nodes.Keyword,
    nodes.If,
    nodes.For,
)
_WORDS = {
    nodes.Pow: "the power operator",
    nodes.Assign: "{% set %}",
    nodes.AssignBlock: "{% set %}",
    nodes.Macro: "a macro",
    nodes.Include: "{% include %}",
    nodes.Import: "{% import %}",
    nodes.FromImport: "{% from %}",
    nodes.Extends: "{% extends %}",
    nodes.Block: "a block",
    nodes.FilterBlock: "{% filter %}",
    nodes.CallBlock: "{% call %}",
    nodes.With: "{% with %}",
}
_LOOP_NAMES = frozenset(
    ("index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem")
)
_NAMES = frozenset(("input", "state", "range"))
_PLAIN = (str, int, float, bool, type(None), list, tuple, dict)
_ALLOWED_HINT = "keep to expressions, if, for, and the filters of the documentation"


class TemplateFailed(Exception):
    """A template that is refused or fails; its caller adds the place."""

    def __init__(self, found: str, hint: str) -> None:
        self.found: str = found
        self.hint: str = hint
        super().__init__(f"{found}; {hint}")


class RenderedTemplate(NamedTuple):
    """A text, and the names in it that stood for nothing."""

    text: str
    missing: tuple[str, ...]


def check_template(text: str, *, is_condition: bool = False) -> TemplateFailed | None:
    """What is wrong with a template before it has any data; None where it may be rendered."""
    try:
        if is_condition or "{" in text:
            _Sandbox(is_condition).prepare(text)
    except TemplateFailed as error:
        return error
    return None


def render(text: str, *, input: object, state: Mapping[str, Any]) -> RenderedTemplate:
    """Instructions with their data."""
    if "{" not in text:
        return RenderedTemplate(text, ())
    sandbox = _Sandbox(is_condition=False)
    rendered = sandbox.rendered(text, input, state)
    return RenderedTemplate(rendered, tuple(dict.fromkeys(sandbox.missing)))


def holds(condition: str, *, input: object, state: Mapping[str, Any]) -> bool:
    """Whether a condition is true."""
    sandbox = _Sandbox(is_condition=True)
    text = sandbox.rendered(condition, input, state)
    if len(sandbox.shown) == 1 and not isinstance(sandbox.shown[0], str) and text.strip():
        return bool(sandbox.shown[0])
    return text.strip().lower() not in FALSE_WORDS


def _braced(condition: str) -> str:
    if "{{" in condition or "{%" in condition:
        return condition
    if "}}" in condition or "%}" in condition or "{#" in condition:
        raise TemplateFailed("a condition with half of a pair of braces", "write {{ expression }}, or no braces")
    return "{{ " + condition + " }}"


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


@contextmanager
def _failures() -> Iterator[None]:
    """Every failure inside becomes `TemplateFailed`."""
    try:
        yield
    except TemplateSyntaxError as error:
        problem = f"does not parse: {str(error.message)[:120]} (line {error.lineno} of the template)"
        raise TemplateFailed(problem, "write Jinja2, such as {{ state.ready }}") from error
    except SecurityError as error:
        raise TemplateFailed(f"reaches outside its data: {error}"[:160], _ALLOWED_HINT) from error
    except UndefinedError as error:
        raise TemplateFailed(f"fails: {error}"[:160], "ask `is defined` first, or give it a default") from error
    except (RecursionError, MemoryError, SyntaxError) as error:
        raise TemplateFailed("nested too deep", "write it flat") from error
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        problem = f"fails: {type(error).__name__}: {error}"[:160]
        raise TemplateFailed(problem, "correct the template, or the data it is given") from error


# -- what is allowed -----------------------------------------------------------------------------------------


def _refuse_what_is_not_allowed(tree: nodes.Template) -> None:
    stack: list[nodes.Node] = [tree]
    while stack:
        node = stack.pop()
        problem = _problem(node)
        if problem is not None:
            raise TemplateFailed(f"{problem} is not allowed (line {node.lineno} of the template)", _ALLOWED_HINT)
        stack.extend(node.iter_child_nodes())


def _problem(node: nodes.Node) -> str | None:
    if type(node) not in _NODES:
        return _WORDS.get(type(node), f"`{type(node).__name__.lower()}`")
    match node:
        case nodes.Getattr(attr=name) if name.startswith("_"):
            return f"the attribute {name[:40]!r}"
        case nodes.Name(name=name) if name.startswith("_") or name in ("self", "caller", "context"):
            return f"the name {name[:40]!r}"
        case nodes.Getitem(arg=nodes.Const(value=key)) if _is_hidden(key):
            return f"the key {key[:40]!r}"
        case nodes.Filter(name=name) if name not in _Sandbox.OWN_FILTERS and name not in FILTERS:
            return f"a filter {name[:40]!r}"
        case nodes.For(recursive=True):
            return "a recursive loop"
        case nodes.Call(dyn_args=None, dyn_kwargs=None, node=called):
            if isinstance(called, nodes.Getattr):
                return None if called.attr in METHODS else f"a call of {called.attr[:40]!r}"
            name = called.name if isinstance(called, nodes.Name) else "this"
            return None if name == "range" else f"a call of {name[:40]!r}"
        case nodes.Call():
            return "a call with unpacked arguments"
    return None


def _is_hidden(key: object) -> bool:
    return isinstance(key, str) and key.startswith("__")


class _MeterInserter(NodeTransformer):
    """Puts a meter on each loop, by what its body holds, on each ``~``, comparison and slice."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 (the visitor's own naming)
        self.generic_visit(node)
        weight = nodes.Const(sum(map(_weight, node.body)))
        node.iter = nodes.Filter(node.iter, "metered_", [weight], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return nodes.Filter(nodes.List(node.nodes, lineno=node.lineno), "join", [], [], None, None, lineno=node.lineno)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        """``a < b < c`` becomes ``a < b and b < c``: what stands in a template has no effects."""
        self.generic_visit(node)
        lefts = [node.expr, *(operand.expr for operand in node.ops)]
        pairs: list[nodes.Expr] = [
            _filter("compared_", left, [nodes.Const(operand.op), operand.expr])
            for left, operand in zip(lefts, node.ops, strict=False)
        ]
        found = pairs.pop()
        while pairs:
            found = nodes.And(pairs.pop(), found, lineno=node.lineno)
        return found

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = [bound or nodes.Const(None) for bound in (node.arg.start, node.arg.stop, node.arg.step)]
        return _filter("sliced_", node.node, bounds)


def _filter(name: str, value: nodes.Expr, arguments: list[nodes.Expr]) -> nodes.Filter:
    return nodes.Filter(value, name, arguments, [], None, None, lineno=value.lineno)


def _weight(tree: nodes.Node) -> int:
    own = len(tree.data) if isinstance(tree, nodes.TemplateData) else 1
    return own + sum(map(_weight, tree.iter_child_nodes()))


class _Sandbox(ImmutableSandboxedEnvironment):
    """One rendering, and what it may still cost. It looks up keys of plain data, never attributes of objects."""

    intercepted_binops = frozenset(("+", "*", "%"))
    OWN_FILTERS = ("join", "tojson", "round", "sum", "truncate")

    def __init__(self, is_condition: bool) -> None:
        super().__init__(optimized=False, cache_size=0, finalize=pass_context(lambda _, value: self._show(value)))
        self.is_condition = is_condition
        self.left = self.max_cost = MAX_CONDITION_COST if is_condition else MAX_COST
        self.missing: list[str] = []
        self.shown: list[Any] = []
        self.globals.clear()
        self.filters = {name: self._metered(jinja_filters.FILTERS[name]) for name in FILTERS}
        self.filters["trim"] = self._trim
        self.filters |= {name: getattr(self, f"_{name}") for name in self.OWN_FILTERS}
        self.filters |= {"metered_": self._counted, "compared_": self._compared, "sliced_": self._sliced}
        compared = {name: self._comparing(name) for name in _COMPARISONS}
        self.tests = {
            **jinja_tests.TESTS,
            **{name: test for name, test in compared.items() if name in jinja_tests.TESTS},
        }
        self.tests |= {name: self._metered(test) for name, test in _TEXT_TESTS.items()}

    def prepare(self, text: str) -> Template:
        """The template, ready to run; a condition names nothing but its data."""
        text = _braced(text) if self.is_condition else text
        limit = MAX_CONDITION_CHARS if self.is_condition else MAX_INSTRUCTIONS_CHARS
        if len(text) > limit + 6:
            raise TemplateFailed(f"{len(text):,} characters", f"write at most {limit:,}")
        with _failures():
            tree = self.parse(text)
            _refuse_what_is_not_allowed(tree)
            for name in sorted(find_undeclared_variables(tree) - _NAMES) if self.is_condition else ():
                raise TemplateFailed(f"the name {name[:40]!r} is not known", "write input.KEY or state.KEY")
            _MeterInserter().visit(tree)
            tree.set_environment(self)
            return Template.from_code(self, self.compile(tree), {"range": _range})

    def rendered(self, text: str, input: object, state: Mapping[str, Any]) -> str:
        """The text with its data."""
        template = self.prepare(text)
        data = {"input": plain(input, "input"), "state": plain(state, "state")}
        with _failures():
            return template.render(data)

    # -- what work costs ------------------------------------------------------------------------------------------

    def _spend(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise TemplateFailed(f"more than {self.max_cost:,} steps of work", "loop over less, or write less")

    def _show(self, value: Any) -> str:
        """What ``{{ value }}`` puts into the text."""
        if isinstance(value, Undefined):
            self.missing.append(str(value._undefined_name))
            self.shown.append(None)
            return ""
        self.shown.append(value)
        text = self._text_of(value)
        self._spend(len(text))
        return text

    def _text_of(self, value: Any) -> str:
        """Scalars as Jinja2 writes them, lists and mappings as JSON."""
        if isinstance(value, str):
            return value
        value = self._paid(value)
        return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, tuple)) else str(value)

    def _paid(self, value: Any) -> Any:
        """Plain data, paid for by its size."""
        value = list(self._counted(value)) if isinstance(value, Iterator) else value
        self._spend(self._size(value))
        return value

    def _size(self, value: Any, depth: int = 0) -> int:
        """Nodes and characters of plain data."""
        if type(value) not in _PLAIN or depth > MAX_DEPTH:
            raise TemplateFailed(f"a value of type {type(value).__name__}", "show data of `input` and `state` alone")
        if isinstance(value, str):
            return 1 + len(value)
        if not isinstance(value, (dict, list, tuple)):
            return 1
        total = 1
        for child in [*value, *value.values()] if isinstance(value, dict) else value:
            total += self._size(child, depth + 1)
            if total > self.left:
                self._spend(total)
        return total

    def _counted(self, items: Iterable[Any], body: int = 1) -> Iterator[Any]:
        """The items, each paid for with what a loop does with it."""
        for item in items:
            self._spend(1 + body)
            yield item

    def _metered(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A filter of Jinja2 that pays for the plain data it is given."""

        @wraps(function)
        def metered(*args: Any, **kwargs: Any) -> Any:
            for value in args:
                if type(value) in _PLAIN:
                    self._spend(self._size(value))
                elif isinstance(value, range):
                    self._spend(len(value))
            return function(*args, **kwargs)

        return metered

    def _compared(self, left: Any, name: str, right: Any) -> bool:
        """A comparison, paid for by what it may read."""
        if isinstance(right, Iterator) and name in ("in", "notin"):
            right = list(self._counted(right))
        if name not in ("in", "notin"):
            self._spend(self._comparing_cost(left, right))
        elif isinstance(right, str):
            needle = len(left) if isinstance(left, str) else 0
            self._spend(1 + len(right) * (16 + min(needle, MAX_PLAIN_SEARCH_CHARS)) // 256)
        elif isinstance(right, (list, tuple)):
            for item in right:
                self._spend(self._comparing_cost(left, item))
        found: bool = _COMPARISONS[name](left, right)
        return found

    def _comparing(self, name: str) -> Callable[[Any, Any], bool]:
        """The test of this name, such as ``x is in list``."""
        return lambda left, right: self._compared(left, name, right)

    def _comparing_cost(self, left: Any, right: Any) -> int:
        """Texts are compared at once, lists and mappings node by node."""
        if isinstance(left, str) and isinstance(right, str):
            return 1 + min(len(left), len(right)) // 16
        kinds = (list, tuple, dict)
        if isinstance(left, kinds) and isinstance(right, kinds):
            return 1 + NODE_COST * self._size(min(left, right, key=len))
        return 1

    def _sliced(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        """A part of a text or a list, paid for by its length."""
        found = value[start:stop:step]
        if isinstance(found, (str, list, tuple)):
            self._spend(1 + len(found) // (16 if isinstance(found, str) else 1))
        return found

    # -- filters of our own ---------------------------------------------------------------------------------------

    def _join(self, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
        pieces: list[str] = []
        for item in self._counted(value):
            found = item if attribute is None else self.getitem(item, attribute)
            pieces.append("" if isinstance(found, Undefined) else self._text_of(found))
            self._spend(len(pieces[-1]) + len(d))
        return d.join(pieces)

    def _tojson(self, value: Any) -> str:
        return json.dumps(self._paid(value), ensure_ascii=False)

    def _round(self, value: float, precision: int = 0) -> float:
        if not isinstance(value, (int, float)) or not 0 <= precision <= 15:
            found = f"round of {value!r:.40} to {precision!r:.20} places"
            raise TemplateFailed(found, "round a number, 0 to 15 places")
        return round(float(value), precision)

    def _sum(self, value: Iterable[Any]) -> Any:
        numbers = list(self._counted(value))
        if not all(isinstance(number, (int, float)) for number in numbers):
            raise TemplateFailed("a sum of what is not a number", "sum numbers; join texts")
        return sum(numbers)

    def _trim(self, value: Any, chars: str | None = None) -> str:
        text = value if isinstance(value, str) else self._text_of(value)
        self._spend(1 + len(text) * (1 + len(chars or "")) // 16)
        return text.strip(chars)

    def _truncate(self, value: str, length: int = 255) -> str:
        text = "".join(islice(value, max(0, length)))
        return text if len(text) == len(value) else f"{text}..."

    # -- what Jinja2 asks -----------------------------------------------------------------------------------------

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
            with suppress(LookupError, TypeError):
                return obj[argument]
        return self.undefined(obj=obj, name=argument)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 (as Jinja2 has it)
        owner = getattr(__obj, "__self__", None)
        if __obj is not _range and type(owner) not in (str, dict):
            raise SecurityError(f"{type(__obj).__name__} is not callable")
        __self._spend(1 + (len(owner) if isinstance(owner, (str, dict)) else 0) // 16)
        if isinstance(owner, str) and __obj.__name__ == "strip":  # each character is looked for among those
            __self._spend(len(owner) * max((len(chars) for chars in args if isinstance(chars, str)), default=0) // 16)
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
            self._spend(len(left) + len(right))
            return left + right  # type: ignore[operator]
        kinds = f"{type(left).__name__} {operator} {type(right).__name__}"
        raise TemplateFailed(f"{kinds} is not allowed", f"{operator} takes numbers up to {MAX_NUMBER:,}")


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers) > MAX_RANGE:
        raise TemplateFailed(f"a range of {len(numbers):,}", f"keep to {MAX_RANGE:,}")
    return numbers
