"""What stands in `deploy/` is well formed, says what it means, and calls commands that exist; nothing here runs it.

The judges are linters of `.venv-docs`; where they are missing, their tests are skipped and the rest stands.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from ctxsteward.console.cli import cli

from .needs import judged

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCKERFILE, COMPOSE = DEPLOY / "Dockerfile", DEPLOY / "compose.yaml"
MANIFESTS = sorted(path for path in (DEPLOY / "kubernetes").glob("*.yaml") if path.name != "kustomization.yaml")


def documents(path: Path) -> list[Any]:
    return list(YAML(typ="safe").load_all(path.read_text(encoding="utf-8")))


# -- Dockerfile --------------------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the Dockerfile and its arguments, continuation lines joined."""
    lines = [line for line in DOCKERFILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def test_hadolint_has_nothing_to_say_and_would_find_something(tmp_path: Path) -> None:
    done = judged("hadolint", "--failure-threshold", "style", DOCKERFILE)
    assert (done.returncode, done.stdout) == (0, "")
    worse = tmp_path / "Dockerfile"
    worse.write_text(DOCKERFILE.read_text(encoding="utf-8").replace(":3.13-slim-trixie", ":latest"))
    assert "DL3007" in judged("hadolint", worse).stdout


def test_the_image_is_small_and_its_process_is_nobody_s() -> None:
    found = instructions()
    stages = [at for at, (name, _) in enumerate(found) if name == "FROM"]
    assert len(stages) == 2
    last = found[stages[-1] :]
    assert [said for name, said in last if name == "COPY"] == ["--from=build /opt/ctxsteward /opt/ctxsteward"]
    assert [said for name, said in last if name == "USER"] == ["10001:10001"]
    names = [name for name, _ in last]
    assert names.index("USER") < names.index("ENTRYPOINT")
    (health,) = (said for name, said in last if name == "HEALTHCHECK")
    assert "/healthz" in health
    compile(json.loads(health.partition("CMD ")[2])[2], "health", "exec")


def test_everything_that_is_installed_is_checked_by_its_hash_or_built_here() -> None:
    installs = [
        part for name, said in instructions() if name == "RUN" for part in said.split("&&") if "pip install" in part
    ]
    assert len(installs) == 3
    assert [
        part for part in installs if "--require-hashes" not in part and "--no-deps --no-index /tmp/wheel" not in part
    ] == []


def test_the_build_gets_the_files_that_it_copies_and_all_of_the_wheel() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = {
        source
        for name, said in instructions()
        if name == "COPY" and "--from" not in said
        for source in said.split()[:-1]
    }
    sources = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert copied == allowed
    assert set(sources["tool"]["hatch"]["build"]["targets"]["wheel"]["sources"]) <= copied
    assert [path for path in copied if not (ROOT / path).exists()] == []


def requirements(path: Path) -> dict[str, str]:
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {re.split(r"[ =\[;]", line, maxsplit=1)[0]: line for line in lines}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-build.lock"])
def test_the_locks_of_the_image_have_hashes_no_addresses_and_the_tested_versions(name: str) -> None:
    tested = requirements(ROOT / "requirements.lock")
    for package, line in requirements(DEPLOY / name).items():
        assert "--hash=sha256:" in line, package
        assert "://" not in line
        assert re.search(r"==([\w.]+)", line), package
        version = re.findall(r"==([\w.+!]+)", line)[0]
        assert package not in tested or version in tested[package], package


def test_the_image_has_what_its_extras_ask_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for extra in re.findall(r"^IMAGE_EXTRAS := (.*)$", makefile, re.MULTILINE)[0].split():
        asked += project["optional-dependencies"][extra]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", one, maxsplit=1)[0]).lower() for one in asked}
    assert names - set(requirements(DEPLOY / "requirements.lock")) == set()


# -- compose -----------------------------------------------------------------------------------------------


def test_the_compose_file_fits_the_specification_and_a_wrong_key_does_not(tmp_path: Path) -> None:
    done = judged("check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE)
    assert done.returncode == 0, done.stdout
    worse = tmp_path / "compose.yaml"
    worse.write_text(COMPOSE.read_text(encoding="utf-8").replace("healthcheck:", "healthchecks:"))
    assert judged("check-jsonschema", "--builtin-schema", "vendor.compose-spec", worse).returncode == 1


def test_the_compose_file_holds_no_secret_and_opens_nothing_to_the_world() -> None:
    (compose,) = documents(COMPOSE)
    services = compose["services"]
    assert set(services) == {"db", "serve", "nightly"}
    assert services["nightly"]["profiles"] == ["nightly"]
    for name, service in services.items():
        for key, value in service.get("environment", {}).items():
            if re.search(r"KEY|PASSWORD|SECRET", key):
                assert re.match(r"\$\{\w+:\?", value), (name, key)
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")
        assert not service["image"].endswith(":latest")
        assert ":" in service["image"]
    assert services["serve"]["read_only"] is True
    assert services["serve"]["cap_drop"] == ["ALL"]


# -- Kubernetes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_a_manifest_fits_the_schema_of_kubernetes_and_a_wrong_key_does_not(path: Path, tmp_path: Path) -> None:
    done = judged("kubernetes-validate", "--strict", path)
    assert done.returncode == 0, done.stdout + done.stderr
    worse = tmp_path / path.name
    worse.write_text(path.read_text(encoding="utf-8").replace("metadata:\n", "metadata:\n  nmae: x\n", 1))
    assert judged("kubernetes-validate", "--strict", worse).returncode != 0


def test_every_manifest_is_applied() -> None:
    (applied,) = documents(DEPLOY / "kubernetes" / "kustomization.yaml")
    assert sorted(applied["resources"]) == [path.name for path in MANIFESTS]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in MANIFESTS:
        for document in documents(path):
            if document["kind"] == "Deployment":
                yield document["metadata"]["name"], document["spec"]["template"]["spec"]
            if document["kind"] == "CronJob":
                yield document["metadata"]["name"], document["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def restricted_faults(pod: dict[str, Any]) -> list[str]:
    """Where a pod is less than the "restricted" Pod Security Standard asks."""
    found = [] if pod.get("securityContext", {}).get("runAsNonRoot") else ["may run as root"]
    if pod.get("securityContext", {}).get("seccompProfile", {}).get("type") != "RuntimeDefault":
        found.append("no seccomp profile")
    found += [f"uses {name}" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    found += ["mounts the host" for volume in pod.get("volumes", ()) if "hostPath" in volume]
    for container in pod["containers"]:
        context = container.get("securityContext", {})
        found += [] if context.get("allowPrivilegeEscalation") is False else ["may escalate"]
        found += [] if context.get("capabilities", {}).get("drop") == ["ALL"] else ["keeps capabilities"]
    return found


def test_pods_are_restricted_have_bounds_and_name_secrets_only() -> None:
    found = dict(pods())
    assert set(found) == {"ctxsteward-serve", "ctxsteward-nightly"}
    for name, pod in found.items():
        assert restricted_faults(pod) == [], name
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert {"memory"} <= set(container["resources"]["limits"])
            for variable in container["env"]:
                if re.search(r"KEY|PASSWORD|SECRET", variable["name"]):
                    assert set(variable) == {"name", "valueFrom"}, variable["name"]
                    assert "secretKeyRef" in variable["valueFrom"]
    assert not any(document["kind"] == "Secret" for path in MANIFESTS for document in documents(path))


def test_a_pod_that_is_less_restricted_is_found() -> None:
    pod = {"hostNetwork": True, "volumes": [{"hostPath": {}}], "containers": [{"securityContext": {}}]}
    assert restricted_faults(pod) == [
        "may run as root",
        "no seccomp profile",
        "uses hostNetwork",
        "mounts the host",
        "may escalate",
        "keeps capabilities",
    ]


def test_a_service_that_restarts_takes_no_request_with_it() -> None:
    (deployment,) = (one for one in documents(DEPLOY / "kubernetes" / "serve.yaml") if one["kind"] == "Deployment")
    spec = deployment["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["replicas"] >= 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert container["readinessProbe"]["httpGet"]["path"] == "/healthz"
    assert "tcpSocket" in container["livenessProbe"], "an outage of the database must not restart every pod"
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] > 30


# -- the commands that they call ---------------------------------------------------------------------------


def called() -> list[tuple[str, list[str]]]:
    """Each command line of the deploy files and of the page about them, without `ctxsteward` itself."""
    (compose,) = documents(COMPOSE)
    found = [
        (f"compose {name}", list(service["command"]))
        for name, service in compose["services"].items()
        if "command" in service
    ]
    found += [(name, list(container["args"])) for name, pod in pods() for container in pod["containers"]]
    found += [("Dockerfile", json.loads(said)) for name, said in instructions() if name == "CMD"]
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    lines = re.findall(r"(?m)^ {4}(?:[\d* ]{9,} )?ctxsteward (.*)$", page)
    lines += re.findall(r"(?m)^ {4}docker compose run --rm \w+ (\w.*?)(?: +#.*)?$", page)
    found += [(f"deploy.md: {line[:30]}", shlex.split(line, comments=True)) for line in lines]
    return found


CALLED = called()


def test_command_lines_are_found() -> None:
    assert len(CALLED) >= 9


@cache
def listed() -> frozenset[str]:
    return frozenset(cli.list_commands(click.Context(cli)))


@pytest.mark.parametrize("arguments", [arguments for _, arguments in CALLED], ids=[name for name, _ in CALLED])
def test_a_command_line_has_a_command_and_options_that_exist(arguments: list[str]) -> None:
    if arguments[0] == "serve" and "serve" not in listed():
        pytest.skip("no `serve` in this version")
    command: click.Command = cli
    rest = list(arguments)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        inner = command.get_command(click.Context(command), rest[0])
        assert inner is not None, rest[0]
        command, rest = inner, rest[1:]
    known = {name for option in command.params for name in option.opts}
    assert [one for one in rest if one.startswith("--") and one.partition("=")[0] not in known] == []
