"""Subjects by name: functions, classes and objects of files and modules; and what is said of names that are wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxsteward.console.cli import cli
from ctxsteward.evals.subjects import Dialogue
from ctxsteward.evals.subjects.port import Archive, Index
from ctxsteward.evals.subjects.registry import BASELINES, OURS, SUBJECTS, loaded, subject_named
from ctxsteward.schemas import InputError

from .talks import ASK, TALK, asked, ended, last_call, moments

STRATEGIES = '''
from beside import COUNT

def newest(conversation):
    return conversation.messages[-COUNT:]

async def later(conversation):
    return newest(conversation)

class Window:
    """Keeps the newest messages, and searches among all."""

    def __init__(self, task, tokens):
        self.said = []

    def add(self, message):
        self.said.append(message)

    def prompt(self, question=None):
        return self.said[-COUNT:]

    def search(self, query):
        return [m["content"] for m in self.said if query in m["content"]][:3]

class Opener:
    def open(self, task, tokens):
        return Window(task, tokens)

opener = Opener()
nothing = None
number = 7

def no_arguments():
    return []

def two_arguments(messages, budget):
    return messages

class NoArguments:
    def add(self, message): ...
    def prompt(self, question=None): return []

class NoDialogue:
    def __init__(self, task, tokens): ...

class OpensNothing:
    def open(self, task): ...

opens_nothing = OpensNothing()
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with strategies, from which the command is run."""
    (tmp_path / "context.py").write_text(STRATEGIES)
    (tmp_path / "beside.py").write_text("COUNT = 4\n")
    (tmp_path / "broken.py").write_text("def newest(conversation)\n    return []\n")
    (tmp_path / "raises.py").write_text("print('importing')\nraise RuntimeError('no key')\n")
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(2)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    loaded.cache_clear()
    for name in set(sys.modules) - before:
        if name.startswith("_subject_") or name in ("context", "beside", "broken", "raises", "leaves"):
            del sys.modules[name]


@pytest.mark.parametrize("place", ["context.py", "context", "./context.py"])
@pytest.mark.parametrize("attribute", ["newest", "later", "Window", "opener"])
def test_a_strategy_is_found_by_file_and_by_module(place: str, attribute: str) -> None:
    subject = subject_named(f"{place}:{attribute}")
    assert subject is not None
    found = moments(subject, TALK, ASK)
    assert last_call(found).prompt.messages == list(TALK[7:11])
    assert isinstance(ended(found).dialogue, Index) is (attribute in ("Window", "opener"))


def test_ours_is_no_other_subject() -> None:
    assert subject_named(OURS) is None


@pytest.mark.parametrize("name", BASELINES)
def test_each_baseline_opens_a_dialogue(name: str) -> None:
    subject = subject_named(name)
    assert subject is not None
    found = moments(subject, TALK, ASK)
    assert isinstance(ended(found).dialogue, Dialogue)
    assert isinstance(ended(found).dialogue, Archive) is (name == "offload")
    assert asked(found).prompt.messages[-1] == {"role": "user", "content": ASK.question}


BAD_NAMES = {
    "a typo of a name": ("newest-token", "did you mean 'newest-tokens'?"),
    "no such name": ("zzz", f"one of: {', '.join(SUBJECTS)}; or a module:function, FILE.py:function, URL"),
    "nothing": ("", "unknown subject ''"),
    "another address": ("ftp://127.0.0.1/context", "an address begins with http:// or https://"),
    "a file alone": ("context.py", "which of its functions? write context.py:NAME; it has newest, later, Window"),
    "no such file": ("contxt.py:newest", "no file contxt.py"),
    "no such module": ("contxt:newest", "contxt cannot be imported: ModuleNotFoundError: No module named 'contxt'"),
    "no attribute": ("context.py:", "unknown subject"),
    "a typo of an attribute": ("context.py:newst", "context.py has no 'newst'; did you mean 'newest'?"),
    "no such attribute": ("context.py:zzz", "context.py has no 'zzz'; it has newest, later, Window"),
    "None": ("context.py:nothing", "context.py has no 'nothing'"),
    "a file without functions": ("beside.py:newest", "beside.py has no 'newest'; it defines none"),
    "a number": ("context.py:number", "7 is neither a function nor a class; see `evals subjects`"),
    "no arguments": ("context.py:no_arguments", "it is called with (conversation): too many positional arguments"),
    "two arguments": ("context.py:two_arguments", "called with (conversation): missing a required argument: 'budget'"),
    "a class of no arguments": ("context.py:NoArguments", "it is called with (task, tokens): too many positional arg"),
    "an open of one argument": ("context.py:opens_nothing", "it is called with (task, tokens): too many positional"),
    "a syntax error": ("broken.py:newest", "broken.py does not run: SyntaxError: expected ':' (broken.py, line 1)"),
    "a syntax error in a module": ("broken:newest", "broken cannot be imported: SyntaxError: expected ':'"),
    "a file that raises": ("raises.py:newest", "raises.py does not run: RuntimeError: no key"),
    "a file that leaves": ("leaves.py:newest", "leaves.py does not run: SystemExit: 2"),
    "a relative module": ("..context:newest", "..context cannot be imported: TypeError"),
    "a solver without Inspect": ("inspect:context:newest", "needs the extra `inspect`: pip install 'ctxsteward[inspe"),
}


@pytest.mark.parametrize(("name", "told"), BAD_NAMES.values(), ids=BAD_NAMES)
def test_a_wrong_name_is_one_line_and_nothing_is_played(name: str, told: str, folder: Path) -> None:
    done = CliRunner().invoke(cli, ["evals", "run", "verbatim", "--scenarios", "1", "--subject", name])
    assert done.exit_code == 2, done.output
    assert told in " ".join(done.stderr.split())
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)


def test_a_class_that_opens_no_dialogue_says_what_is_missing() -> None:
    subject = subject_named("context.py:NoDialogue")
    assert subject is not None
    with pytest.raises(InputError, match=r"NoDialogue object at .+ has no methods `add` and `prompt`"):
        moments(subject)


FAILS_AT_ONCE = {
    "it raises": (
        "return conversation.mesages",
        "AttributeError: 'Conversation' object has no attribute 'mesages', at fails.py:2 in newest",
    ),
    "it gives a number": ("return 7", "7"),
    "it gives nothing": ("return None", "None"),
    "it gives texts": ("return ['hello']", "'hello'"),
    "it leaves": ("raise SystemExit(3)", "the subject ended itself (SystemExit 3)"),
}


@pytest.mark.parametrize(("body", "told"), FAILS_AT_ONCE.values(), ids=FAILS_AT_ONCE)
def test_what_fails_on_the_first_message_is_one_line_and_nothing_is_played(body: str, told: str, folder: Path) -> None:
    (folder / "fails.py").write_text(f"def newest(conversation):\n    {body}\n")
    loaded.cache_clear()
    done = CliRunner().invoke(cli, ["evals", "run", "verbatim", "--scenarios", "1", "--subject", "fails.py:newest"])
    line = " ".join(done.stderr.split())
    assert done.exit_code == 2, done.output
    assert "subject fails.py:newest: asked for the prompt of a conversation of one message, it failed: " in line
    assert told in line
    assert line.count("fails.py:newest") == 1
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)


def test_a_server_that_is_not_there_is_one_line() -> None:
    command = ["evals", "run", "verbatim", "--scenarios", "1", "--subject", "http://127.0.0.1:9/context"]
    done = CliRunner().invoke(cli, command)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "subject http://127.0.0.1:9/context: asked for" in " ".join(done.stderr.split())


def test_a_suite_that_cannot_ask_a_strategy_anything_is_one_line(folder: Path) -> None:
    done = CliRunner().invoke(cli, ["evals", "run", "governance", "--scenarios", "1", "--subject", "window", "--gate"])
    assert done.exit_code == 1
    assert " ".join(done.stdout.split()) == (
        "governance: unscored, all 11 figures: "
        "the subject has no governed memory: no nights, versions or gates that could be asked"
    )


def test_what_is_unscored_for_one_reason_is_one_line(folder: Path) -> None:
    done = CliRunner().invoke(cli, ["evals", "run", "citations", "--scenarios", "1", "--subject", "window", "--gate"])
    told = " ".join(done.stdout.split())
    assert "quotes_match, ranges_resolve, forks_resolve, reopened_resolve: nothing was scored: only our own" in told


def test_a_strategy_that_fails_is_told_with_its_scenario_and_no_traceback(folder: Path) -> None:
    (folder / "fails.py").write_text(
        "def newest(conversation):\n"
        "    return conversation.messages if len(conversation.messages) < 3 else later(conversation)\n"
        "def later(conversation):\n    return conversation.mesages\n"
    )
    loaded.cache_clear()
    command = ["evals", "run", "verbatim", "--scenarios", "1", "--workers", "1", "--subject", "fails.py:newest"]
    done = CliRunner().invoke(cli, command)
    told = " ".join(done.output.split())
    assert done.exit_code == 1
    assert "verbatim/ci-0 broke off: AttributeError: 'Conversation' object has no attribute 'mesages'" in told
    assert "Traceback" not in told
    assert os.getcwd() == str(folder)
