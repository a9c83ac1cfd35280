"""Templates of a configuration: instructions and conditions, in Jinja2 over `input` and `state`.

Jinja2's sandbox, narrowed: text, ``{{ }}`` expressions, ``if``, ``for``, comparisons, arithmetic, the filters in
`FILTERS` and `_Sandbox.OWN_FILTERS`, Jinja2's tests, `range`, and the methods in `METHODS`. Everything else (``set``,
macros, includes, powers, other calls, names that begin with an underscore) is refused before it runs. A template sees
plain JSON data; attributes are keys of that data.

Every operation costs steps by the size of its operands. A template that takes too many stops with an error, the same on
every machine, so no configuration can keep a process busy. Nothing here changes its data, reads a clock or draws a
random number.

A missing key is empty in instructions, and false in a condition. A condition is an expression, with or
without braces; ``""``, ``false``, ``no``, ``off``, ``0``, ``none`` and ``null`` as text are false.

Raises `TemplateFailed`. Source: Jinja2, "Sandbox" (security considerations of the published documentation).
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError, Undefined, UndefinedError, nodes, pass_context
from jinja2.environment import Template
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS as JINJA_TESTS, test_in
from jinja2.visitor import NodeTransformer

from ctxsteward.schemas import InputError
from ctxsteward.schemas.cascade import MAX_CONDITION_CHARS, MAX_INSTRUCTIONS_CHARS

FILTERS = frozenset(
    (
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
        "unique",
        "upper",
    )
)
METHODS = frozenset(
    ("endswith", "get", "items", "keys", "lower", "split", "startswith", "strip", "title", "upper", "values")
)
MAX_STEPS, MAX_CONDITION_STEPS = 5_000_000, 200_000
CHARS_PER_STEP = 16
"""Characters read or copied in one step. Each character of the output costs a step of its own."""
NODE_STEPS = 4
"""Steps for a value in a list or mapping; counting it takes longer than an ordinary step."""
MAX_PLAIN_SEARCH_CHARS = 100
"""Python searches a longer text in linear time. A shorter one is compared at each place in the worst case."""
MAX_RANGE = 1_000
MAX_NUMBER = 10**18
MAX_DEPTH = 100
FALSE_WORDS = frozenset(("", "false", "no", "off", "0", "none", "null"))

_NODES = (
    nodes.Expr,
    nodes.Template,
    nodes.Output,
    nodes.If,
    nodes.For,
    nodes.Operand,
    nodes.Pair,
    nodes.Keyword,
)
_REFUSED_NODES = {"Pow": "the power operator", "Assign": "{% set %}", "AssignBlock": "{% set %}", "Block": "a block"}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "lteq": operator.le,
    "gt": operator.gt,
    "gteq": operator.ge,
    "in": test_in,
    "notin": lambda left, right: left not in right,
}
_LOOP_NAMES = frozenset(
    ("index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem")
)
TESTS: dict[str, Any] = {**JINJA_TESTS}
_PLAIN = (str, int, float, bool, type(None), list, tuple, dict)
_ALLOWED_HINT = "keep to expressions, if, for, and the filters of the documentation"


class TemplateFailed(Exception):
    """A template was refused or failed; the caller adds the place."""

    def __init__(self, found: str, hint: str) -> None:
        self.found: str = found
        self.hint: str = hint
        super().__init__(f"{found}; {hint}")


def check_template(text: str, *, is_condition: bool = False) -> TemplateFailed | None:
    """Return the error in a template that shows without data; None if it may be rendered."""
    try:
        if is_condition or "{" in text:
            _Sandbox(is_condition).prepare(text)
    except TemplateFailed as error:
        return error
    return None


def render(text: str, *, input: object, state: Mapping[str, Any]) -> str:
    """Render instructions with their data."""
    return _Sandbox(is_condition=False).rendered(text, input, state) if "{" in text else text


def holds(condition: str, *, input: object, state: Mapping[str, Any]) -> bool:
    """Return whether a condition is true."""
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
    """Return the value if all of it is JSON data; else raise `InputError` with the place."""
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
    """Turn every failure inside into `TemplateFailed`."""
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


def _problem(node: nodes.Node) -> str | None:
    """Return a name for what this node does if templates may not do it, else None."""
    if not isinstance(node, _NODES) or isinstance(node, nodes.Pow):
        kind = type(node).__name__
        return _REFUSED_NODES.get(kind, f"{{% {kind.removesuffix('Block').removesuffix('Import').lower()} %}}")
    match node:
        case nodes.Getattr(attr=name) if name.startswith("_"):
            return f"the attribute {name[:40]!r}"
        case nodes.Name(name=name) if name.startswith("_") or name in ("self", "caller", "context"):
            return f"the name {name[:40]!r}"
        case nodes.Getitem(arg=nodes.Const(value=key)) if _is_hidden(key):
            return f"the key {key[:40]!r}"
        case nodes.Filter(name=name) if name not in FILTERS and name not in _Sandbox.OWN_FILTERS:
            return f"a filter {name[:40]!r}"
        case nodes.For(recursive=True):
            return "a recursive loop"
        case nodes.Call(dyn_args=None, dyn_kwargs=None, node=nodes.Getattr(attr=name)):
            return None if name in METHODS else f"a call of {name[:40]!r}"
        case nodes.Call(dyn_args=None, dyn_kwargs=None, node=called):
            name = called.name if isinstance(called, nodes.Name) else "this"
            return None if name == "range" else f"a call of {name[:40]!r}"
        case nodes.Call():
            return "a call with unpacked arguments"
    return None


def _is_hidden(key: object) -> bool:
    return isinstance(key, str) and key.startswith("__")


class _StepCounting(NodeTransformer):
    """Replaces operations that Jinja2 compiles to bare Python by filters that count their steps."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 (the visitor's own naming)
        self.generic_visit(node)
        body_nodes = sum(1 for part in node.body for _ in (part, *part.find_all(nodes.Node)))
        node.iter = _filter("each_", node.iter, nodes.Const(1 + body_nodes))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter("join", nodes.List(node.nodes, lineno=node.lineno))

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter(
            "compare_", node.expr, *(part for pair in node.ops for part in (nodes.Const(pair.op), pair.expr))
        )

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter("copied_", node) if isinstance(node.arg, nodes.Slice) else node


def _filter(name: str, value: nodes.Node, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(value, name, list(arguments), [], None, None, lineno=value.lineno)


class _Sandbox(ImmutableSandboxedEnvironment):
    """One rendering, and the steps left for it. It looks up keys of plain data, never attributes of objects."""

    intercepted_binops = frozenset(("+", "*", "%"))
    OWN_FILTERS = ("join", "tojson", "round", "sum", "trim", "truncate")

    def __init__(self, is_condition: bool) -> None:
        # Without `pass_context` and with `optimized`, Jinja2 would call `_show` for constants while it compiles.
        super().__init__(optimized=False, cache_size=0, finalize=pass_context(lambda _, value: self._show(value)))
        self.is_condition = is_condition
        self.left = self.max_steps = MAX_CONDITION_STEPS if is_condition else MAX_STEPS
        self.shown: list[Any] = []
        self.globals.clear()
        self.filters = {name: self._counted(JINJA_FILTERS[name]) for name in FILTERS}
        self.filters |= {name: getattr(self, f"_{name}") for name in self.OWN_FILTERS}
        self.filters |= {"each_": self._each, "compare_": self._compare, "copied_": self._copied}
        compared = {name: partial(self._compared, test) for name, test in TESTS.items() if test in _OPERATORS.values()}
        self.tests = {**TESTS, **compared} | {name: self._counted(TESTS[name]) for name in ("lower", "upper")}

    def prepare(self, text: str) -> Template:
        """Return the template, ready to run; a condition may name only its data."""
        text = _braced(text) if self.is_condition else text
        limit = MAX_CONDITION_CHARS if self.is_condition else MAX_INSTRUCTIONS_CHARS
        if len(text) > limit + 6:
            raise TemplateFailed(f"{len(text):,} characters", f"write at most {limit:,}")
        with _failures():
            tree = self.parse(text)
            for node in (tree, *tree.find_all(nodes.Node)):
                if (problem := _problem(node)) is not None:
                    what = f"{problem} is not allowed (line {node.lineno} of the template)"
                    raise TemplateFailed(what, _ALLOWED_HINT)
            unknown = find_undeclared_variables(tree) - {"input", "state", "range"} if self.is_condition else ()
            for name in sorted(unknown):
                raise TemplateFailed(f"the name {name[:40]!r} is not known", "write input.KEY or state.KEY")
            _StepCounting().visit(tree)
            tree.set_environment(self)
            return Template.from_code(self, self.compile(tree), {"range": _range})

    def rendered(self, text: str, input: object, state: Mapping[str, Any]) -> str:
        """Return the text rendered with its data."""
        template = self.prepare(text)
        data = {"input": plain(input, "input"), "state": plain(state, "state")}
        pieces: list[str] = []
        with _failures():
            for piece in template.generate(data):
                self._spend(len(piece))
                pieces.append(piece)
        return "".join(pieces)

    # -- cost of operations ---------------------------------------------------------------------------------------

    def _spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TemplateFailed(f"more than {self.max_steps:,} steps of work", "loop over less, or write less")

    def _size(self, value: Any, depth: int = 0) -> int:
        """Return the steps to read plain data once."""
        if type(value) not in _PLAIN or depth > MAX_DEPTH:
            raise TemplateFailed(f"a value of type {type(value).__name__}", "show data of `input` and `state` alone")
        if isinstance(value, str):
            return 1 + len(value) // CHARS_PER_STEP
        if not isinstance(value, (dict, list, tuple)):
            return 1
        total = NODE_STEPS
        for child in (*value, *value.values()) if isinstance(value, dict) else value:
            total += NODE_STEPS + self._size(child, depth + 1)
            if total > self.left:
                self._spend(total)
        return total

    def _read(self, value: Any) -> Any:
        """Return the value after spending the steps to read it; an iterator becomes a list."""
        value = list(self._each(value)) if isinstance(value, (Iterator, range)) else value
        self._spend(self._size(value))
        return value

    def _each(self, items: Iterable[Any], steps: int = 1) -> Iterator[Any]:
        for item in items:
            self._spend(steps)
            yield item

    def _copied(self, value: Any) -> Any:
        self._spend(1 + len(value) // (CHARS_PER_STEP if isinstance(value, str) else 1))
        return value

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a filter or test of Jinja2 that spends the steps to read its plain arguments once."""

        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._spend(1 + sum(self._size(value) for value in args if isinstance(value, _PLAIN)))
            return function(*args, **kwargs)

        return counted

    def _compare(self, left: Any, *operands: Any) -> bool:
        """Compare `left` with operators and values in turn: ``1 < x <= 5`` has ``"lt", x, "lteq", 5``."""
        for name, right in zip(operands[::2], operands[1::2], strict=True):
            if not self._compared(_OPERATORS[name], left, right):
                return False
            left = right
        return True

    def _compared(self, compare: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
        collections = (str, list, tuple, dict)
        if compare in (test_in, _OPERATORS["notin"]) and not isinstance(right, dict):
            right = self._read(right) if not isinstance(right, Undefined) else right
            if isinstance(left, str) and isinstance(right, str):
                self._spend(len(right) * min(len(left), MAX_PLAIN_SEARCH_CHARS) // 256)
        elif isinstance(left, collections) and isinstance(right, collections):
            self._spend(self._size(min(left, right, key=len)))
        return bool(compare(left, right))

    # -- texts and own filters ------------------------------------------------------------------------------------

    def _show(self, value: Any) -> str:
        """Return the text for ``{{ value }}``."""
        if isinstance(value, Undefined):
            self.shown.append(None)
            return ""
        self.shown.append(value)
        return self._text_of(value)

    def _text_of(self, value: Any) -> str:
        """Return scalars as Jinja2 writes them, lists and mappings as JSON."""
        value = self._read(value)
        if isinstance(value, (dict, list, tuple)):
            return json.dumps(value, ensure_ascii=False)
        return str(value)

    def _join(self, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
        pieces: list[str] = []
        for item in self._each(value):
            shown = item if attribute is None else self.getitem(item, attribute)
            pieces.append("" if isinstance(shown, Undefined) else self._text_of(shown))
            self._spend(len(d) // CHARS_PER_STEP)
        return d.join(pieces)

    def _tojson(self, value: Any) -> str:
        return json.dumps(self._read(value), ensure_ascii=False)

    def _round(self, value: float, precision: int = 0) -> float:
        if not isinstance(value, (int, float)) or not 0 <= precision <= 15:
            found = f"round of {value!r:.40} to {precision!r:.20} places"
            raise TemplateFailed(found, "round a number, 0 to 15 places")
        return round(float(value), precision)

    def _sum(self, value: Iterable[Any]) -> Any:
        numbers = list(self._each(value))
        if not all(isinstance(number, (int, float)) for number in numbers):
            raise TemplateFailed("a sum of what is not a number", "sum numbers; join texts")
        return sum(numbers)

    def _trim(self, value: Any, chars: str | None = None) -> str:
        text = self._text_of(value)
        self._spend(len(text) * len(chars or "") // CHARS_PER_STEP)  # each character is searched among `chars`
        return text.strip(chars)

    def _truncate(self, value: str, length: int = 255) -> str:
        return value if len(value) <= length else f"{value[: max(0, length)]}..."

    # -- hooks of Jinja2 ------------------------------------------------------------------------------------------

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
        if isinstance(owner, str) and __obj.__name__ == "strip":
            return __self._trim(owner, *args)
        if owner is not None:
            __self._copied(owner)
        kwargs = {name: value for name, value in kwargs.items() if not name.startswith("_")}  # Jinja2's own
        result = __obj(*args, **kwargs)
        return result if isinstance(result, (*_PLAIN, range)) else list(result)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            return super().call_binop(context, operator, left, right)  # raises and names the undefined variable
        both = all(isinstance(side, (int, float)) for side in (left, right))
        if both and max(abs(left), abs(right)) <= MAX_NUMBER:
            return super().call_binop(context, operator, left, right)
        if not both and operator == "+" and isinstance(left, (str, list, tuple)) and type(left) is type(right):
            return self._copied(left + right)  # type: ignore[operator]
        kinds = f"{type(left).__name__} {operator} {type(right).__name__}"
        raise TemplateFailed(f"{kinds} is not allowed", f"{operator} takes numbers up to {MAX_NUMBER:,}")


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers) > MAX_RANGE:
        raise TemplateFailed(f"a range of {len(numbers):,}", f"keep to {MAX_RANGE:,}")
    return numbers
