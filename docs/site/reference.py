"""Reference pages, made from the code: doors of rooms, commands, JSON Schemas.

Names come from the imports in each package's `__init__.py`; signatures, types and docstrings are read from the sources
by griffe, which imports nothing. Commands are those of the command line. What a docstring does not say, no page says.
Types are as annotated; errors are what docstrings name.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
import griffe
from pages import ROOT, SitePage, slug
from ruamel.yaml import YAML

ROOMS = ("schemas", "envelope", "summarizers", "steward", "evals", "flows", "console")
OPEN_MODULES = ("ctxsteward.envelope.aio", "ctxsteward.envelope.testing")
"""Entered by their own name: every public class and function of these is promised."""
SHORT_VALUE = 72


class DoorName(NamedTuple):
    """A name that a door gives, and where it is defined."""

    name: str
    module: str
    original: str


def source_of(module: str) -> Path | None:
    """The file of a module or package of ours."""
    parts = module.split(".")
    for room in ROOMS:
        path = ROOT / room / Path(*parts)
        if path.with_suffix(".py").is_file():
            return path.with_suffix(".py")
        if (path / "__init__.py").is_file():
            return path / "__init__.py"
    return None


def doors() -> list[str]:
    """Packages that promise names."""
    found = [path for room in ROOMS for path in sorted((ROOT / room).glob("ctxsteward/**/__init__.py"))]
    named = [".".join(path.parent.parts[path.parent.parts.index("ctxsteward") :]) for path in found]
    return [door for door in named if list(names_of(door))]


def names_of(door: str) -> Iterator[DoorName]:
    """Names that a package's `__init__` imports from our modules, with the modules that define them."""
    source = source_of(door)
    assert source is not None, door
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("ctxsteward.")):
            base = door.split(".")[: len(door.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield DoorName(alias.asname or alias.name, *_defined(module, alias.name))


def _defined(module: str, name: str) -> tuple[str, str]:
    """The module that defines a name, and its name there; '' where it is a module itself."""
    if source_of(f"{module}.{name}") is not None:
        return f"{module}.{name}", ""
    source = source_of(module)
    if source is not None and source.name == "__init__.py":
        for further in names_of(module):
            if further.name == name:
                return further.module, further.original
    return module, name


@cache
def read(module: str) -> griffe.Module:
    """A module's sources, as griffe reads them."""
    source = source_of(module)
    assert source is not None, module
    parent: griffe.Module | None = None
    for name in module.split(".")[:-1]:  # relative imports are told from the modules above
        parent = griffe.Module(name, filepath=Path("__init__.py"), parent=parent)
    read_from: griffe.Module = griffe.visit(
        module.rpartition(".")[2], filepath=source, code=source.read_text(encoding="utf-8"), parent=parent
    )
    return read_from


@cache
def assigned(module: str) -> frozenset[str]:
    """Names that a module's top level gives a value."""
    source = source_of(module)
    assert source is not None, module
    tree = ast.parse(source.read_text(encoding="utf-8"))
    stored = (node for part in tree.body if isinstance(part, ast.Assign | ast.AnnAssign) for node in ast.walk(part))
    return frozenset(node.id for node in stored if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


# -- docstrings ----------------------------------------------------------------------------------------------------


def prose(text: str | None) -> str:
    """A docstring as Markdown: ``x`` and `x` are code, sessions of the interpreter are fences."""
    said = re.sub(r"``(.+?)``", r"`\1`", inspect.cleandoc(text or ""))
    said = re.sub(r"(?<=\S):\n\n(?= {4})", ":\n\n", said)
    lines, fenced = [], False
    for line in said.splitlines():
        if line.startswith(">>>") and not fenced:
            lines += ["", "```python"]
            fenced = True
        elif fenced and not line.strip():
            lines.append("```")
            fenced = False
        lines.append(line)
    return "\n".join([*lines, *(["```"] if fenced else [])])


def errors_of(module: str) -> str:
    """The paragraphs of a module's docstring that say what it raises."""
    docstring = read(module).docstring
    blocks = re.split(r"\n\s*\n", prose(docstring.value)) if docstring is not None else []
    return "\n\n".join(block for block in blocks if re.match(r"(Raises|Errors?)\b", block))


# -- one name ------------------------------------------------------------------------------------------------------


def signature(function: griffe.Function, name: str, *, method: bool = False) -> str:
    """As it would be written, over several lines where it is long."""
    parts, kinds = [], griffe.ParameterKind
    given = [one for one in function.parameters if not (method and one.name in ("self", "cls"))]
    positional = [one for one in given if one.kind is kinds.positional_only]
    starred = any(one.kind is kinds.var_positional for one in given)
    for at, one in enumerate(given):
        if one.kind is kinds.keyword_only and not starred:
            parts.append("*")
            starred = True
        mark = {kinds.var_positional: "*", kinds.var_keyword: "**"}.get(one.kind, "")
        text = f"{mark}{one.name}" + (f": {one.annotation}" if one.annotation is not None else "")
        if one.default is not None and not mark:
            text += f" = {one.default}" if one.annotation is not None else f"={one.default}"
        parts.append(text)
        if positional and at == len(positional) - 1:
            parts.append("/")
    returned = f" -> {function.returns}" if function.returns is not None else ""
    begin = "async def " if "async" in function.labels else "def "
    short = f"{begin}{name}({', '.join(parts)}){returned}"
    if len(short) <= 100:
        return short
    return f"{begin}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returned}"


def shown_value(value: Any) -> str:
    text = " ".join(str(value).split()) if value is not None else ""
    return text if len(text) <= SHORT_VALUE else ""


def cell(text: str) -> str:
    """Text for a table."""
    return " ".join(text.replace("|", "\\|").split())


def function_part(function: griffe.Function, name: str, door: str, *, method: bool = False) -> Iterator[str]:
    short = name.rpartition(".")[2]
    yield f"{'###' if method else '##'} {name}\n"
    marks = [f"@{mark}\n" for mark in ("classmethod", "staticmethod") if mark in function.labels]
    written = signature(function, short, method=method)
    yield f"```python\n{''.join(marks)}{written}\n```\n"
    yield types_in(written, door)
    yield prose(function.docstring.value if function.docstring else None) + "\n"


@cache
def places() -> dict[str, str]:
    """Where each name that a door gives has its part; the first door that gives it."""
    found: dict[str, str] = {}
    for door in doors():
        for name in names_of(door):
            found.setdefault(name.name, f"{page_of(door)}#{slug(name.name)}")
    return found


def page_of(door: str) -> str:
    return f"{door.removeprefix('ctxsteward.')}.md"


def types_in(text: str, door: str, besides: str = "") -> str:
    """Links to the classes that a signature names."""
    names = dict.fromkeys(re.findall(r"\b[A-Z]\w+\b", re.sub(r"'[^']*'|\"[^\"]*\"", "", text)))
    links = [
        f"[{name}]({places()[name].removeprefix(page_of(door))})"
        for name in names
        if name in places() and name != besides
    ]
    return f"Types: {', '.join(links)}.\n" if links else ""


def class_part(owner: griffe.Class, name: str, door: str) -> Iterator[str]:
    bases = ", ".join(str(base) for base in owner.bases)
    yield f"## {name}\n"
    made = owner.members.get("__init__")
    if isinstance(made, griffe.Function):
        written = signature(made, name, method=True).replace("def ", "class ", 1).removesuffix(" -> None")
        yield f"```python\n{written}\n```\n"
        yield types_in(written, door, name)
    else:
        yield f"```python\nclass {name}({bases})\n```\n" if bases else f"```python\nclass {name}\n```\n"
    yield prose(owner.docstring.value if owner.docstring else None) + "\n"
    if isinstance(made, griffe.Function) and made.docstring:
        yield prose(made.docstring.value) + "\n"
    rows = []
    for member in owner.members.values():
        if not isinstance(member, griffe.Attribute) or member.name.startswith("_") or member.name == "model_config":
            continue
        if member.annotation is not None or "property" in member.labels:
            said = prose(member.docstring.value if member.docstring else None)
            default = shown_value(member.value) if "property" not in member.labels else ""
            shown_default = f"`{cell(default)}`" if default else ""
            rows.append(f"| `{member.name}` | `{cell(str(member.annotation))}` | {shown_default} | {cell(said)} |")
    if rows:
        yield "\n".join(["| field | type | default | |", "|---|---|---|---|", *rows]) + "\n"
    for member in owner.members.values():
        if isinstance(member, griffe.Function) and not member.name.startswith("_"):
            yield from function_part(member, f"{name}.{member.name}", door, method=True)


def part_of(door: str, name: DoorName) -> Iterator[str]:
    if not name.original:
        docstring = read(name.module).docstring
        yield f"## {name.name}\n\nThe module `{name.module}`.\n"
        yield prose(docstring.value if docstring else None) + "\n"
        return
    module = read(name.module)
    member = module.members.get(name.original)
    if isinstance(member, griffe.Alias):  # taken over from another module by an import
        module_path, _, original = member.target_path.rpartition(".")
        yield from part_of(door, DoorName(name.name, *_defined(module_path, original)))
        return
    if isinstance(member, griffe.Class):
        yield from class_part(member, name.name, door)
    elif isinstance(member, griffe.Function):
        yield from function_part(member, name.name, door)
    elif isinstance(member, griffe.Attribute | griffe.TypeAlias):
        value, annotation = shown_value(member.value), getattr(member, "annotation", None)
        yield f"## {name.name}\n"
        yield f"```python\n{name.name}{f': {annotation}' if annotation else ''}{f' = {value}' if value else ''}\n```\n"
        yield prose(member.docstring.value if member.docstring else None) + "\n"
    elif name.original in assigned(name.module):  # with others in one line, of which griffe says nothing
        yield f"## {name.name}\n\n```python\n{name.name}\n```\n"
    else:
        raise LookupError(f"{door}: {name.name} is not in {name.module}: {member!r}")
    raised = errors_of(name.module) if not isinstance(member, griffe.Attribute) else ""
    yield f"*Defined in `{name.module}`.*{' ' + raised if raised else ''}\n"


def open_names(module: str) -> Iterator[DoorName]:
    """Public classes and functions that a module itself defines."""
    for member in read(module).members.values():
        if isinstance(member, griffe.Class | griffe.Function) and not member.name.startswith("_"):
            yield DoorName(member.name, module, member.name)


def api_pages() -> Iterator[SitePage]:
    """A page for each door."""
    told: list[tuple[str, list[DoorName]]] = [(door, list(names_of(door))) for door in doors()]
    told += [(module, list(open_names(module))) for module in OPEN_MODULES if source_of(module) is not None]
    for door, names in told:
        docstring = read(door).docstring
        body = [f"# {door}\n", prose(docstring.value if docstring else None) + "\n"]
        body.append(" · ".join(f"[{name.name}](#{slug(name.name)})" for name in names) + "\n")
        for name in names:
            body += part_of(door, name)
        yield SitePage(f"reference/api/{page_of(door)}", door, "\n".join(body), None)


# -- commands ------------------------------------------------------------------------------------------------------


def command_part(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    # With the group's context and settings, as on the command line: click keeps the help option that it makes for the
    # first context, so another context here would change what `--help` prints for the rest of this process.
    context = click.Context(command, parent=parent, info_name=name, **command.context_settings)
    path = context.command_path.split()
    yield f"{'#' * min(len(path), 4)} {' '.join(path)}\n"
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    yield f"```text\n{usage}\n```\n"
    yield re.sub(r"``(.+?)``", r"`\1`", inspect.cleandoc(command.help or "").replace("\b\n", "")) + "\n"
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            rows.append(f"| `{cell(record[0])}` | {cell(record[1])} |".replace("<", "&lt;"))
    if rows:
        yield "\n".join(["| option | |", "|---|---|", *rows]) + "\n"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            further = command.get_command(context, inner)
            if further is not None and not further.hidden:
                yield from command_part(further, inner, context)


def command_page() -> SitePage:
    """Every command and option."""
    from ctxsteward.console.cli import cli

    return SitePage("reference/cli.md", "Command line", "\n".join(command_part(cli, "ctxsteward")), None)


# -- telemetry -----------------------------------------------------------------------------------------------------

MOST_VALUES = 4
SUFFIX = {"counter": "_total", "gauge": "", "histogram": "_seconds_bucket"}


def label_values(values: tuple[str, ...] | int) -> str:
    if isinstance(values, int):
        return f"at most {values}"
    more = f" and {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES + 1 else ""
    return ", ".join(values[:MOST_VALUES] if more else values) + more


def alert_row(alert: dict[str, Any]) -> str:
    """When a shipped alert fires, and what to do, as the file of alerts says it."""
    (limit,) = re.findall(r" ([<>] [\d.]+)$", alert["expr"])
    lasting = "" if alert["for"] == "0m" else f", for {alert['for']}"
    summary = alert["annotations"]["summary"].removeprefix("{{ $labels.job }}: ")
    remedy = alert["annotations"]["description"].removeprefix("At {{ $value }}. What to do: ").removesuffix(".")
    return f"| `{alert['alert']}` | {summary} ({limit}{lasting}; {alert['labels']['severity']}) | {remedy} |"


def telemetry_page() -> SitePage:
    """Every instrument of the rooms, and every shipped alert."""
    from ctxsteward.envelope import instruments as builds
    from ctxsteward.envelope.audit import auditor as audits
    from ctxsteward.evals import telemetry as evals
    from ctxsteward.steward.night import telemetry as nights

    body = ["# Instruments and alerts\n", "## Instruments\n"]
    rows = ["| instrument | in Prometheus | labels | |", "|---|---|---|---|"]
    for one in (
        *builds.INSTRUMENTS,
        builds.BUILD_DURATION,
        builds.SELECTION_DURATION,
        *audits.INSTRUMENTS,
        *nights.INSTRUMENTS,
        *evals.INSTRUMENTS,
    ):
        labels = "; ".join(f"`{name}`: {label_values(values)}" for name, values in one.labels.items())
        rows.append(f"| `{one.name}` | `{one.name.replace('.', '_')}{SUFFIX[one.kind]}` | {labels} | {one.about} |")
    alerts = YAML(typ="safe").load(ROOT / "docs" / "dashboards" / "alerts.yml")["groups"][0]["rules"]
    body += ["\n".join(rows) + "\n", "## Alerts\n"]
    body.append("\n".join(["| alert | when | what to do |", "|---|---|---|", *map(alert_row, alerts)]) + "\n")
    return SitePage("reference/telemetry.md", "Instruments and alerts", "\n".join(body), None)


# -- schemas -------------------------------------------------------------------------------------------------------


def type_text(schema: Mapping[str, Any]) -> str:
    """The type of a value in a few words; parts that have a name of their own are links."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{slug(name)})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(type_text(one) for one in schema[key])
    if "const" in schema:
        return f"`{json.dumps(schema['const'], ensure_ascii=False)}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(one, ensure_ascii=False)}`" for one in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        items = schema.get("items") or {"type": "any"}
        return f"list of {type_text(items)}" if isinstance(items, dict) else "list"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {type_text(schema['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def object_part(schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("description"):
        yield prose(schema["description"]) + "\n"
    properties = schema.get("properties", {})
    if not properties:
        yield f"{type_text(schema)}\n"
        return
    required = set(schema.get("required", ()))
    yield (
        "\n".join(
            [
                "| property | type | | |",
                "|---|---|---|---|",
                *(
                    f"| `{name}` | {cell(type_text(value))} | {'required' if name in required else ''} "
                    f"| {cell(prose(value.get('description')))} |"
                    for name, value in properties.items()
                ),
            ]
        )
        + "\n"
    )


def schema_pages() -> Iterator[SitePage]:
    """A page for each published JSON Schema."""
    for path in sorted((ROOT / "schemas" / "ctxsteward" / "schemas" / "json").glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        name = path.name.removesuffix(".json")
        short = name.partition(".")[0]
        body = [f"# {short}\n", f"`ctxsteward schema {short}` prints it; as a file: [{path.name}]({path.name}).\n"]
        body += object_part(schema)
        for part, further in schema.get("$defs", {}).items():
            body += [f"## {part}\n", *object_part(further)]
        yield SitePage(f"reference/schemas/{short}.md", short, "\n".join(body), None)


def reference_pages() -> list[SitePage]:
    """All of it, with a page that leads to the others."""
    pages = [command_page(), *api_pages(), telemetry_page(), *schema_pages()]
    rows = ["# Reference\n", "Made from the code by every build of these pages.\n"]
    rows += [f"- [{page.title}]({page.path.removeprefix('reference/')})" for page in pages]
    return [SitePage("reference/index.md", "Reference", "\n".join(rows) + "\n", None), *pages]
