"""Refuse an argument of a wrong type, or of an unknown name, when it is passed, not when a later call uses it.

If an option of a wrong type were accepted, it would fail far from the line that set it, often inside code that ignores
our failures. So every public constructor checks its options.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

from .errors import InputError

ParamsT = ParamSpec("ParamsT")
ResultT = TypeVar("ResultT")


def check_argument(
    name: str, value: object, kinds: type | tuple[type, ...], hint: str, *, optional: bool = False
) -> None:
    """Raise `InputError` unless the value is of one of these types; `hint` says what to pass.

    In Python a bool is an int, but it is never a number of tokens, so it is refused unless `kinds` contains `bool`.

    >>> check_argument("max_open", True, int, "pass a number of sessions")
    Traceback (most recent call last):
    ctxsteward.schemas.errors.InputError: max_open is bool; pass a number of sessions
    """
    if optional and value is None:
        return
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    if isinstance(value, allowed) and (not isinstance(value, bool) or bool in allowed):
        return
    raise InputError(f"{name} is {_named(value)}; {hint}")


def check_callable(name: str, value: object, hint: str, *, optional: bool = False) -> None:
    """Raise `InputError` unless the value is callable; a class instead of its instance is refused, too."""
    if optional and value is None:
        return
    if not callable(value) or isinstance(value, type):
        raise InputError(f"{name} is {_named(value)}; {hint}")


def check_options(callee: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise `InputError` for a name of an option that `callee` does not have.

    >>> check_options("wrap", ["budgts"], ["budgets", "builder"])
    Traceback (most recent call last):
    ctxsteward.schemas.errors.InputError: wrap has no option 'budgts'; did you mean budgets?
    """
    for name in given:
        if name not in known:
            raise InputError(f"{callee} has no option {name!r:.40}; {guess(name, known)}")


def guess(name: str, known: Collection[str]) -> str:
    """Return the nearest known name as a question, or a list of all of them if none is near."""
    from difflib import get_close_matches  # here, so that importing the room stays cheap

    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"one of: {', '.join(known)}"


def known_options(*more: str) -> Callable[[Callable[ParamsT, ResultT]], Callable[ParamsT, ResultT]]:
    """Return a decorator whose function refuses keyword arguments of unknown names by `check_options`.

    `more` are the names that the function takes as ``**options``.
    """

    def decorate(function: Callable[ParamsT, ResultT]) -> Callable[ParamsT, ResultT]:
        callee = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
        own = signature(function).parameters.values()
        named = [part.name for part in own if part.kind is not Parameter.VAR_KEYWORD and part.name != "self"]
        known = (*named, *more)

        @wraps(function)
        def checked(*args: ParamsT.args, **options: ParamsT.kwargs) -> ResultT:
            check_options(callee, options, known)
            return function(*args, **options)

        return checked

    return decorate


def _named(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


__all__ = ["check_argument", "check_callable", "check_options", "guess", "known_options"]
