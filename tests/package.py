"""What is published, tried as a user gets it.

    python -m tests.package dist           # `make package`: judge both files, run the demo out of the wheel
                                           # what each extra brings is tried by `tests.installed`
    python -m tests.package --notes v1.2.3 # the text of a release: that version's part of CHANGELOG.md

The demo runs with `uv tool run`, in an environment of its own, an empty home and an empty working folder; nothing but
the package index is asked. Exit code 1 and a line that says what is wrong.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from email import message_from_string
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = (
    "PATH",
    "UV_",
    "PIP_",
    "SSL_",
    "REQUESTS_",
    "HTTP_",
    "HTTPS_",
    "NO_PROXY",
    "http_",
    "https_",
    "no_proxy",
    "LANG",
)
"""Beginnings of variables that say how to reach an index; no other variable reaches the demo."""


class Refused(Exception):
    """What is published is not what it should be."""


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution in a folder, one of each."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        raise Refused(
            f"{folder}: expected one wheel and one source distribution, found {len(wheels)} and {len(sources)}"
        )
    return wheels[0], sources[0]


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


def check_metadata(wheel: Path) -> None:
    """Version, addresses, licence and Python as the project says them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = metadata(wheel)
    said = {name: told.get(name) for name in ("Name", "Version", "Requires-Python", "License-Expression")}
    asked = (project["name"], project["version"], project["requires-python"], project["license"])
    if tuple(said.values()) != asked:
        raise Refused(f"{wheel.name}: says {said}, the project {asked}")
    addresses = dict(one.split(", ", 1) for one in told.get_all("Project-URL", []))
    if addresses != project["urls"]:
        raise Refused(f"{wheel.name}: addresses {addresses}")
    if "# ctxsteward" not in str(told.get_payload()):
        raise Refused(f"{wheel.name}: no README in it")


def check_sources(wheel: Path, source: Path) -> None:
    """The source distribution holds every module of the wheel, tests, docs and locks, and nothing that was built."""
    with zipfile.ZipFile(wheel) as archive, tarfile.open(source) as files:
        inside = {name.split("/", 1)[1] for name in files.getnames() if "/" in name}
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    missing = [name for name in shipped if not any(one.endswith(f"/{name}") for one in inside)]
    needed = (
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "requirements.lock",
        "Makefile",
        "tests/test_house.py",
        "docs/glossary.md",
    )
    missing += [name for name in needed if name not in inside]
    extra = [name for name in inside if re.match(r"(\.venv|site/|\.site/|dist/|\.git/)|.*__pycache__", name)]
    if missing or extra:
        raise Refused(f"{source.name}: missing {missing[:5]}, should not be there {extra[:5]}")


def try_demo(wheel: Path) -> str:
    """What the demo of the wheel prints."""
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        home.mkdir()
        work.mkdir()
        environment = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        environment |= {
            "HOME": str(home),
            "UV_SYSTEM_CERTS": "1",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "PYTHONIOENCODING": "utf-8",
        }
        done = subprocess.run(
            [uv, "tool", "run", "--quiet", "--python", sys.executable, "--from", wheel.resolve(), "ctxsteward", "demo"],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise Refused(f"the demo of {wheel.name} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        if list(work.iterdir()):
            raise Refused(f"the demo left behind {sorted(path.name for path in work.iterdir())}")
        return done.stdout


def notes(changelog: str, version: str) -> str:
    """The part of a changelog about one version, without its heading.

    >>> notes("# C\\n\\n## [0.2.0] - 2026-12-01\\n\\n- b\\n\\n## [0.1.0] - 2026-11-01\\n\\n- a\\n", "v0.1.0")
    '- a\\n'
    """
    number = version.removeprefix("v")
    parts = re.split(r"^## \[([^\]]+)\].*$", changelog, flags=re.MULTILINE)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        if name == number and text.strip():
            return text.strip() + "\n"
    raise Refused(f"CHANGELOG.md says nothing of {number}; it has {', '.join(parts[1::2])}")


def main(argv: Sequence[str]) -> int:
    try:
        if argv[0] == "--notes":
            project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            if argv[1] != f"v{project['version']}":
                raise Refused(f"the tag {argv[1]} is not v{project['version']}, which the project says")
            sys.stdout.write(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), argv[1]))
            return 0
        wheel, source = built(Path(argv[0]))
        check_metadata(wheel)
        check_sources(wheel, source)
        told = try_demo(wheel)
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    checks = told.count("✓")
    print(f"{wheel.name}, {source.name}: the demo ran out of the wheel, {checks} checks passed")
    return 0 if checks else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
