"""Record finished scenarios as JSON lines, so that a killed run can be resumed and parts of a run can be merged.

    record = RunRecord.open(Path("run.jsonl"), {"verbatim": head})
    record.finished("verbatim", ids)            # scenarios that an earlier run has played
    record.keep("verbatim", scenario_result)    # as each ends
    merged([Path("1.jsonl"), Path("2.jsonl")])  # results over all scenarios of all parts

The first line of a suite is its head: the ids of all scenarios of the whole run, and the fingerprint (name and content
of the suite, settings, subject, version of the product). A record with another fingerprint is refused, and the error
names the differences. A last line that a kill cut off is dropped. The record does not say which part (`Shard`) played a
scenario.

Raises `InputError` with file and line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from ctxsteward.schemas import InputError
from ctxsteward.schemas.eval_result import EvalResult
from ctxsteward.schemas.frozen import FrozenModel

from ..suites.gates import Gate, Gates
from ..suites.kit.suite import EvalSuite, Metric, ScenarioResult, Setup, Split
from ..suites.results import result

NAMED = 5
"""Number of ids that an error names."""
NAMED_CHARS = 60
"""Number of characters of a setting that an error quotes, from its end, where a path has its file name."""


class Shard(NamedTuple):
    """One part of a run: part `number` of `of`, 1-based."""

    number: int
    of: int

    def of_ids(self, ids: Sequence[str]) -> frozenset[str]:
        """Return the scenarios of this part: every `of`-th in the order of hashes, which spreads long ones.

        >>> ids = [f"s/{n}" for n in range(10)]
        >>> sorted(len(Shard(number, 4).of_ids(ids)) for number in (1, 2, 3, 4))
        [2, 2, 3, 3]
        """
        spread = sorted(ids, key=lambda id: hashlib.sha256(id.encode()).digest())
        return frozenset(spread[self.number - 1 :: self.of])

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse ``2/4``; raise `InputError` for other text."""
        number, slash, of = text.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= 1_000):
            raise InputError(f"--shard {text:.40}: no part of a run; write 2/4 for the second of four")
        return cls(int(number), int(of))


class RunHead(FrozenModel):
    """Head of one suite in a record."""

    record: Literal["run"] = "run"
    name: str
    about: str
    metrics: tuple[Metric, ...]
    scenarios: tuple[str, ...]
    """Ids of the whole run."""
    split: Split
    setup: dict[str, str | int | float | None]
    fingerprint: dict[str, str]
    """Everything that figures depend on, by name."""
    gates: dict[str, tuple[Gate, ...]] = Field(default_factory=dict)
    """Gates of a suite file."""
    revision: str | None = None
    reproduce: str = ""


class KeptScenario(FrozenModel):
    """One finished scenario of a record."""

    record: Literal["scenario"] = "scenario"
    suite: str
    result: ScenarioResult


_LINE: TypeAdapter[RunHead | KeptScenario] = TypeAdapter(
    Annotated[RunHead | KeptScenario, Field(discriminator="record")]
)


def run_head(
    suite: EvalSuite,
    ids: Sequence[str],
    setup: Setup,
    *,
    split: Split,
    content: str,
    gates: Gates,
    revision: str | None,
    reproduce: str,
) -> RunHead:
    """Return the head of a run; `content` and `gates` belong to a suite file and are empty for a shipped suite."""
    described = setup.describe()
    fingerprint = {
        "suite": suite.name,
        "content of the suite": content,
        "scenarios": f"{len(ids)} ({_digest(list(ids))})",
        "product": f"ctxsteward {version('ctxsteward')}",
        "revision": revision or "",
        "subject": "ours" if setup.subject is None else _with_content(setup.subject.name),
        "profile": "" if setup.profile is None else _digest(setup.profile.model_dump(mode="json")),
    } | ({"judges": ", ".join(map(_with_content, setup.judges))} if setup.judges else {})
    fingerprint |= {name: str(value) for name, value in described.items() if name not in ("subject", "judges")}
    return RunHead(
        name=suite.name,
        about=suite.about,
        metrics=suite.metrics,
        scenarios=tuple(ids),
        split=split,
        setup=described,
        fingerprint=fingerprint,
        gates=dict(gates),
        revision=revision,
        reproduce=reproduce,
    )


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _with_content(name: str) -> str:
    """Return the name of a subject or judge, followed by the digest of its Python file if it has one."""
    file = Path(name.removeprefix("inspect:").rpartition(":")[0])
    if file.suffix == ".py" and file.is_file():
        return f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"
    return name


@dataclass(slots=True)
class RunRecord:
    """A record that is being written."""

    path: Path
    earlier: dict[str, dict[str, ScenarioResult]] = field(default_factory=dict)
    """Scenarios that were in the record when it was opened, by suite and id."""

    @classmethod
    def open(cls, path: Path, heads: Iterable[RunHead]) -> RunRecord:
        """Resume a record or begin one; raise `InputError` if it belongs to another run."""
        record = cls(path)
        recorded: dict[str, RunHead] = {}
        if path.exists():
            for line in lines(path):
                if isinstance(line, RunHead):
                    recorded[line.name] = line
                else:
                    record.earlier.setdefault(line.suite, {})[line.result.id] = line.result
            data = _bytes(path)
            if not data.endswith(b"\n"):  # a kill cut off the last line; the next one must not be glued to it
                with path.open("rb+") as file:
                    file.truncate(data.rfind(b"\n") + 1)
        for head in heads:
            if head.name not in recorded:
                record._write(head)
            elif difference := differences(recorded[head.name], head):
                raise InputError(
                    f"--resume {path}: the record of another run: {difference}; name another file, or repeat that run"
                )
        return record

    def finished(self, suite: str, ids: Iterable[str]) -> list[ScenarioResult]:
        """Return the results of those scenarios that were played already."""
        earlier = self.earlier.get(suite, {})
        return [earlier[id] for id in ids if id in earlier]

    def keep(self, suite: str, scenario: ScenarioResult) -> None:
        """Write a finished scenario."""
        self._write(KeptScenario(suite=suite, result=scenario))

    def _write(self, line: RunHead | KeptScenario) -> None:
        try:
            with self.path.open("ab") as file:
                file.write(_LINE.dump_json(line) + b"\n")
        except OSError as error:
            raise InputError(f"--resume {self.path}: cannot be written ({error.strerror})") from error


def differences(was: RunHead, now: RunHead) -> str:
    """Describe how two fingerprints differ; empty if their figures may be put together."""
    names = dict.fromkeys((*was.fingerprint, *now.fingerprint))
    changed = [
        f"{name} was {was.fingerprint.get(name, 'not set')[-NAMED_CHARS:] or 'not set'} and is "
        f"{now.fingerprint.get(name, 'not set')[-NAMED_CHARS:] or 'not set'}"
        for name in names
        if was.fingerprint.get(name) != now.fingerprint.get(name)
    ]
    return ", ".join(changed)


_BEGINS = b'{"record":"run"'


def lines(path: Path) -> Iterator[RunHead | KeptScenario]:
    """Yield the lines of a record without a last line that was cut off."""
    for number, row in enumerate(_bytes(path).split(b"\n")[:-1], 1):
        try:
            yield _LINE.validate_json(row)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field_name = ".".join(str(part) for part in first["loc"][1:])
            reason = f"`{field_name}`: {first['msg'].lower()}" if field_name else "not a line of a run record"
            raise InputError(f"{path}:{number}: {reason}; name a file that --resume wrote") from error


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise InputError(f"{path}: {reason}; name a file that --resume wrote") from error
    if not data.startswith(_BEGINS[: len(data)]):
        raise InputError(f"{path}: not a run record; name a file that --resume wrote")
    return data


# -- merging parts -----------------------------------------------------------------------------------------------


MergedRun = tuple[RunHead, tuple[ScenarioResult, ...]]
"""Head of one suite, and its scenarios over all parts in the order of the whole run."""


def merged_result(run: MergedRun, gates: Gates, when: str) -> EvalResult:
    """Return the figures over all scenarios, with gates judged over the whole run."""
    head, played = run
    made = result(
        head,
        played,
        split=head.split,
        setup=head.setup,
        gates=gates,
        when=when,
        revision=head.revision,
        reproduce=head.reproduce,
    )
    return made.model_copy(update={"product": head.fingerprint["product"]})


def merged(paths: Sequence[Path]) -> list[MergedRun]:
    """Merge the parts of each suite; raise `InputError` if parts are missing or differ."""
    heads: dict[str, tuple[RunHead, Path]] = {}
    played: dict[str, dict[str, ScenarioResult]] = {}
    for path in paths:
        for line in lines(path):
            if isinstance(line, KeptScenario):
                played.setdefault(line.suite, {}).setdefault(line.result.id, line.result)
                continue
            first, where = heads.setdefault(line.name, (line, path))
            if difference := differences(first, line):
                raise InputError(f"{path}: is from another run than {where}: {difference}; merge parts of one run")
    if not heads:
        raise InputError(f"{paths[0]}: the file is empty; name files that --resume wrote")
    runs = []
    for name, (head, _) in heads.items():
        results = played.get(name, {})
        missing = [id for id in head.scenarios if id not in results]
        if missing:
            ids = ", ".join(missing[:NAMED]) + (", …" if len(missing) > NAMED else "")
            what = f"{name}: {len(missing)} of {len(head.scenarios)} scenarios are in no part: {ids}"
            raise InputError(f"{what}; run the parts that lack them, with --resume where one was killed")
        runs.append((head, tuple(results[id] for id in head.scenarios)))
    return runs
