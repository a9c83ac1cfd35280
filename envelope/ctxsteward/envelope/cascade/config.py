"""A cascade's configuration: read and checked from a YAML or JSON file, and the settings in force for a phase.

`load_cascade`, `parse_cascade` and `cascade_of` read a file, a text or a dict. An error names file, line, key, what was
found and what to do. A file is JSON if its name ends in ``.json`` or its text begins like an object with quoted keys;
JSON has no line numbers. A phase may only name earlier phases: unknown phases, forward references, undefined
sub-cascades and cycles of sub-cascades are refused here, and so are templates that do not parse or use something that
the sandbox forbids.

The functions before these look up the settings of one phase. A phase inherits each setting that it does not name from
the cascade's `auto_context`. In `inter_phase`, strategy and model inside `selection` override those next to it.

Raises `InvalidCascade` and `InputTooLarge`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ctxsteward.schemas.cascade import (
    MANIFEST,
    PREVIOUS,
    Anchors,
    Cascade,
    InterPhase,
    IntraContext,
    Phase,
    Selection,
    Source,
)
from ctxsteward.schemas.errors import InvalidCascade, InvalidTranscript, counted
from ctxsteward.store.strict_yaml import (
    DocumentKind,
    Keys,
    Tree,
    explained,
    read_mapping,
    read_text,
    show,
    written,
)

from ..transcripts.strict_json import decode
from .templates import check_template

_Settings = TypeVar("_Settings", bound=BaseModel)


def phase_named(cascade: Cascade, name: str) -> Phase:
    """Return the phase of this name; otherwise raise an `InvalidCascade` that lists the names."""
    phase = cascade.phase(name)
    if phase is None:
        raise InvalidCascade(
            f"cascade {cascade.cascade_id!r}", "", f"no phase {name[:60]!r}", f"its phases: {', '.join(cascade.names)}"
        )
    return phase


def intra_context(cascade: Cascade, phase: Phase) -> IntraContext | None:
    """Return the phase's intra-context settings, or None if neither cascade nor phase has such a block."""
    outer = cascade.auto_context.intra_phase if cascade.auto_context else None
    given = [level for level in (outer, phase.intra_context) if level is not None]
    return _inherited(IntraContext, given) if given else None


def inter_phase(cascade: Cascade) -> InterPhase:
    """Return the cascade's defaults for phases with `mode: auto`."""
    own = cascade.auto_context.inter_phase if cascade.auto_context else None
    return own or InterPhase()


def anchors(cascade: Cascade, phase: Phase) -> Anchors:
    """Return the phase's anchors."""
    levels = (inter_phase(cascade).anchors, phase.context.anchors if phase.context else None)
    return _inherited(Anchors, [level for level in levels if level is not None])


def selection(cascade: Cascade, phase: Phase) -> Selection:
    """Return the phase's selection."""
    inter = inter_phase(cascade)
    beside = {name: value for name in ("strategy", "selector_model") if (value := getattr(inter, name))}
    levels = (Selection(**beside), inter.selection, phase.context.selection if phase.context else None)
    return _inherited(Selection, [level for level in levels if level is not None])


def _inherited(model: type[_Settings], levels: Sequence[_Settings]) -> _Settings:
    """Merge the levels field by field; later levels win."""
    fields: dict[str, Any] = {}
    for level in levels:
        fields |= {name: getattr(level, name) for name in level.model_fields_set}
    return model.model_validate(fields)


# -- names ---------------------------------------------------------------------------------------------------


def is_pattern(ref: str) -> bool:
    return "*" in ref


def matching(ref: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that a name or pattern matches.

    >>> matching("research_*", ["research_a", "plan", "research_b"])
    ('research_a', 'research_b')
    """
    return tuple(name for name in names if fnmatch.fnmatchcase(name, ref))  # `*` is the only wildcard in references


def sources_of(phase: Phase) -> list[tuple[str, Source]]:
    """Return the phase's sources in order, each with its place in the phase, such as ``context.from[0]``."""
    if phase.context:
        return [(f"context.from[{index}]", source) for index, source in enumerate(phase.context.from_)]
    return [(f"inject_from[{index}]", source) for index, source in enumerate(phase.inject_from or ())]


def phases_named(cascade: Cascade, phase: Phase, ref: str, ran: Collection[str]) -> tuple[str, ...]:
    """Return the phases that a reference names, in the cascade's order; a pattern matches only phases that ran.

    A phase named in full is returned even if it did not run. `exclude` applies to all of them.
    """
    left_out = excluded(cascade, phase, ran)
    if ref != PREVIOUS and not is_pattern(ref):
        return (ref,) if ref not in left_out else ()
    earlier = [name for name in before(cascade, phase) if name in ran and name not in left_out]
    return tuple(earlier[-1:]) if ref == PREVIOUS else matching(ref, earlier)


def excluded(cascade: Cascade, phase: Phase, ran: Collection[str]) -> frozenset[str]:
    """Return the phases that `exclude` names."""
    refs = phase.context.exclude if phase.context else ()
    last = [name for name in before(cascade, phase) if name in ran][-1:]
    return frozenset(name for ref in refs for name in (last if ref == PREVIOUS else matching(ref, cascade.names)))


def before(cascade: Cascade, phase: Phase) -> tuple[str, ...]:
    """Return the names of the phases before this one."""
    return cascade.names[: cascade.names.index(phase.name)]


MAX_YAML_BYTES = 256 * 1024
MAX_JSON_BYTES = 64 * 1024 * 1024
"""Large, because a file may contain a recorded transcript, images included."""
MAX_YAML_DEPTH = 40

_READING = DocumentKind(
    what="cascade",
    refuse=InvalidCascade,
    max_bytes=MAX_YAML_BYTES,
    max_depth=MAX_YAML_DEPTH,
    expected="write a mapping with: cascade_id, phases",
)
_SECOND_NAMES = {"messages_filter": "filter", "condition": "if"}


def load_cascade(path: str | Path) -> Cascade:
    """Read a YAML or JSON file."""
    return cascade_of_tree(load_tree(path))


def parse_cascade(text: str, source: str = "cascade") -> Cascade:
    """Read YAML or JSON text; `source` names it in errors."""
    return cascade_of_tree(parse_tree(text, source))


def cascade_of(value: Mapping[str, Any], source: str = "cascade") -> Cascade:
    """Check a dict."""
    return cascade_of_tree(Tree(dict(value), {}, source))


def cascade_of_tree(tree: Tree) -> Cascade:
    """Check the content of a file."""
    try:
        with counted("cascade"):
            cascade = Cascade.model_validate(tree.value)
    except ValidationError as error:
        raise _explained(tree, error.errors(include_url=False)[0]) from error
    _check_sub_cascades(tree, cascade)
    _check_phases(tree, cascade, ())
    return cascade


def load_tree(path: str | Path) -> Tree:
    """Read the mapping in a file."""
    text = read_text(path, _READING, max_bytes=MAX_JSON_BYTES, forms="YAML or JSON")
    return parse_tree(text, str(path), json=str(path).endswith(".json"))


def parse_tree(text: str, source: str, *, json: bool = False) -> Tree:
    """Read the mapping in a text."""
    head = text.lstrip()
    looks_like_json = head.startswith("{") and head[1:].lstrip()[:1] in ('"', "}", "")
    if not (json or looks_like_json):
        return read_mapping(text, source, _READING)
    try:
        document = decode(text.encode(), source, "")
    except InvalidTranscript as error:
        raise InvalidCascade(error.source, error.where, error.found, error.hint) from error
    except UnicodeEncodeError as error:
        raise InvalidCascade(source, "", "a lone surrogate", "write well-formed Unicode") from error
    if not isinstance(document, dict) or not document:
        raise InvalidCascade(source, "", show(document), _READING.expected)
    return Tree(document, {}, source)


def refused(tree: Tree, keys: Keys, found: str, hint: str) -> InvalidCascade:
    """Return the error for a place in the file."""
    return InvalidCascade(tree.place(keys), written(keys), found, hint)


# -- validation errors ---------------------------------------------------------------------------------------


def _explained(tree: Tree, error: ErrorDetails) -> InvalidCascade:
    keys, found, todo = explained(tree.value, error, Cascade, _SECOND_NAMES)
    context = error.get("ctx", {})
    match error["type"]:
        case "unknown_key":
            return refused(tree, (*keys, context["key"]), "unknown key", error["msg"])
        case "key_clash":
            return refused(tree, keys, f"`{context['key']}` and `{context['other']}`, which say the same", error["msg"])
        case "two_ways":
            return refused(tree, keys, "`context` and `inject_from`", error["msg"])
        case "repeated":
            return refused(tree, keys, f"{context['item']!r} twice", error["msg"])
        case "literal_error" | "no_list" if keys[-1:] == ("tackle",):
            todo = f"write a list of tools, or {MANIFEST!r}"
        case "model_type" | "dict_type" if keys[-1:] and keys[-1].isdecimal():
            todo = "write a phase's name or a mapping"
    return refused(tree, keys, found, todo)


# -- references ----------------------------------------------------------------------------------------------


_Reference = tuple[Keys, str, bool]
"""Place of the reference, phase or pattern that it names, and whether it is a source."""


def _check_phases(tree: Tree, cascade: Cascade, above: Keys) -> None:
    inter = cascade.auto_context.inter_phase if cascade.auto_context else None
    for index, ref in enumerate(inter.anchors.from_phases if inter and inter.anchors else ()):
        keys = (*above, "auto_context", "inter_phase", "anchors", "from_phases", str(index))
        _check_reference(tree, cascade, len(cascade.phases), (keys, ref, True))
    seen: dict[str, int] = {}
    for index, phase in enumerate(cascade.phases):
        keys = (*above, "phases", str(index))
        if phase.name == PREVIOUS:
            raise refused(tree, (*keys, "name"), show(phase.name), "name it otherwise: this names the phase before")
        if phase.name in seen:
            hint = f"phases[{seen[phase.name]}] has this name already"
            raise refused(tree, (*keys, "name"), show(phase.name), hint)
        seen[phase.name] = index
    for index, phase in enumerate(cascade.phases):
        for reference in _references(phase, (*above, "phases", str(index))):
            _check_reference(tree, cascade, index, reference)
        _check_templates(tree, phase, (*above, "phases", str(index)))
    for index, further in enumerate(cascade.cascades):
        _check_phases(tree, further, (*above, "cascades", str(index)))


def _references(phase: Phase, keys: Keys) -> Iterator[_Reference]:
    context = phase.context
    if context is not None:
        for index, source in enumerate(context.from_):
            yield (*keys, "context", "from", str(index)), source.phase, True
        for index, ref in enumerate(context.exclude):
            yield (*keys, "context", "exclude", str(index)), ref, False
        for index, ref in enumerate(context.anchors.from_phases if context.anchors else ()):
            yield (*keys, "context", "anchors", "from_phases", str(index)), ref, True
    for index, source in enumerate(phase.inject_from or ()):
        yield (*keys, "inject_from", str(index)), source.phase, True


def _check_reference(tree: Tree, cascade: Cascade, index: int, reference: _Reference) -> None:
    (keys, ref, as_source), names = reference, cascade.names
    if ref in (PREVIOUS, "*"):
        return
    matched = matching(ref, names)
    earlier = ", ".join(names[:index]) or "none"
    if not matched:
        what = "matches no phase" if is_pattern(ref) else "is no phase of this cascade"
        raise refused(tree, keys, f"{ref!r} {what}", f"phases before this one: {earlier}")
    if not as_source or any(name in names[:index] for name in matched):
        return
    phase_name = names[index] if index < len(names) else ""
    what = "is this phase itself" if matched == (phase_name,) else f"comes after {phase_name!r}"
    raise refused(tree, keys, f"{ref!r} {what}", f"name a phase that has run by then: {earlier}")


def _check_templates(tree: Tree, phase: Phase, keys: Keys) -> None:
    templates = [((*keys, "instructions"), phase.instructions, False)]
    taken = phase.context.from_ if phase.context else ()
    sources: tuple[tuple[Keys, Sequence[Source]], ...] = (
        (("inject_from",), phase.inject_from or ()),
        (("context", "from"), taken),
    )
    for path, entries in sources:
        for index, source in enumerate(entries):
            if source.condition is not None:
                templates.append(((*keys, *path, str(index), "condition"), source.condition, True))
    for index, sub in enumerate(phase.sub_cascades):
        for key, text in sub.input_map.items():
            templates.append(((*keys, "sub_cascades", str(index), "input_map", key), text, False))
    for path, text, is_condition in templates:
        problem = check_template(text, is_condition=is_condition)
        if problem is not None:
            raise refused(tree, path, problem.found, problem.hint)


def _check_sub_cascades(tree: Tree, root: Cascade) -> None:
    defined: dict[str, Cascade] = {}
    for keys, cascade in _all_cascades(root, ()):
        if cascade.cascade_id in defined:
            raise refused(tree, (*keys, "cascade_id"), f"{cascade.cascade_id!r} twice", "give each cascade its own id")
        defined[cascade.cascade_id] = cascade
    for keys, cascade in _all_cascades(root, ()):
        for at, sub, phase in _subs(cascade):
            if sub not in defined:
                hint = f"define it under `cascades`; defined: {', '.join(defined)}"
                raise refused(tree, (*keys, *at), f"no cascade {sub!r}", hint)
            trail = _way_back(defined, sub, cascade.cascade_id)
            if trail is not None:
                shown = " -> ".join((cascade.cascade_id, *trail))
                raise refused(tree, (*keys, *at), f"a cycle: {shown}", f"phase {phase!r} would never end; cut it")


def _all_cascades(cascade: Cascade, keys: Keys) -> Iterator[tuple[Keys, Cascade]]:
    yield keys, cascade
    for index, further in enumerate(cascade.cascades):
        yield from _all_cascades(further, (*keys, "cascades", str(index)))


def _subs(cascade: Cascade) -> Iterator[tuple[Keys, str, str]]:
    for number, phase in enumerate(cascade.phases):
        for index, sub in enumerate(phase.sub_cascades):
            yield ("phases", str(number), "sub_cascades", str(index), "ref"), sub.ref, phase.name


def _way_back(defined: Mapping[str, Cascade], start: str, goal: str) -> tuple[str, ...] | None:
    """Return the ids from `start` to `goal` along sub-cascades, or None."""
    queue: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while queue:
        trail = queue.pop(0)
        if trail[-1] == goal:
            return trail
        for _, ref, _ in _subs(defined[trail[-1]]) if trail[-1] in defined else ():
            if ref not in seen:
                seen.add(ref)
                queue.append((*trail, ref))
    return None
