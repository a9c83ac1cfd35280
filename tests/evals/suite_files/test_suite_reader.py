"""A suite file: what is read of it, and a line of place, finding and advice for every file that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxsteward.evals.suite_files.suite_reader import load_suite
from ctxsteward.evals.suites.gates import Gate
from ctxsteward.schemas import InputError
from ctxsteward.schemas.publish import validate

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "support-desk.yaml"
GOOD = """\
schema_version: 1
name: desk
about: What was said is shown.
metrics:
  - {name: orders, about: Orders are shown.}
gates:
  orders: {at_least: 0.9}
scenarios:
  - id: refund
    messages:
      - {role: user, content: Order W-1 came broken.}
      - {role: assistant, content: I am sorry.}
      - {role: user, content: Not store credit but cash.}
      - {role: assistant, content: Noted.}
    asks:
      - {after: 4, question: Which order?, wants: [W-1], of: [1], metric: orders}
"""
CALL = (
    '{role: assistant, content: null, tool_calls: [{id: c1, type: function, function: {name: look, arguments: "{}"}}]}'
)


def loaded(folder: Path, text: str = GOOD, **beside: str) -> str:
    """What refuses the suite; empty where nothing does."""
    (folder / "s.yaml").write_text(text, encoding="utf-8")
    for name, content in beside.items():
        (folder / f"{name}.jsonl").write_text(content, encoding="utf-8")
    try:
        load_suite(folder / "s.yaml")
    except InputError as error:
        return str(error).replace(f"{folder}/", "")
    return ""


def test_the_example_is_read_whole() -> None:
    suite = load_suite(EXAMPLE)
    assert [job.id for job in suite.jobs] == ["support-desk/refund", "support-desk/delivery"]
    assert [len(job.asks) for job in suite.jobs] == [2, 1]
    assert [job.budget_tokens for job in suite.jobs] == [400, 400]
    assert suite.gates["orders_shown"] == (Gate(rule="at_least", bound=1),)
    assert [metric.name for metric in suite.eval_suite.metrics] == [
        "shown",
        "stale",
        "reachable",
        "within_budget",
        "valid",
        "cost_ratio",
        "orders_shown",
    ]
    assert not suite.is_draft


def test_the_example_fits_the_published_schemas() -> None:
    suite = load_suite(EXAMPLE)
    validate("eval_suite", suite.document.model_dump(mode="json", exclude_unset=True))
    for line in EXAMPLE.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines():
        validate("eval_scenario", json.loads(line))


def test_inline_and_beside_are_the_same_suite(tmp_path: Path) -> None:
    assert loaded(tmp_path) == ""
    inline = load_suite(tmp_path / "s.yaml").jobs
    head, _, _ = GOOD.partition("scenarios:")
    row = {
        "id": "refund",
        "messages": [dict(message) for message in inline[0].messages],
        "asks": [{"after": 4, "question": "Which order?", "wants": ["W-1"], "of": [1], "metric": "orders"}],
    }
    assert loaded(tmp_path, f"{head}scenarios: c.jsonl\n", c=json.dumps(row)) == ""
    assert load_suite(tmp_path / "s.yaml").jobs == inline


def test_the_digest_is_of_all_that_figures_depend_on_and_of_nothing_else(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        assert loaded(tmp_path, text) == ""
        return load_suite(tmp_path / "s.yaml").digest

    same = digest(GOOD)
    assert digest(GOOD.replace("0.9", "0.8")) == same, "gates alter no figure"
    for was, now in (("W-1", "W-2"), ("Which order?", "What order?"), ("name: desk", "name: desk\nbudget_tokens: 99")):
        assert digest(GOOD.replace(was, now)) != same


class Bad(NamedTuple):
    was: str
    now: str
    told: tuple[str, ...]


def at(line: int, key: str, found: str, todo: str = "") -> tuple[str, ...]:
    return f"s.yaml:{line}: `{key}`: {found}", todo


def on_ask(field: str, found: str, todo: str = "") -> tuple[str, ...]:
    return at(16, f"scenarios[0].asks[0].{field}", found, todo)


SCENARIOS = GOOD[GOOD.index("scenarios:") :]
PRICED = "judge: {prices: {m: {input_per_million: 2.0, output_per_million: 8.0}}}\nmetrics:"
ASK = "{after: 4, question: Which order?, wants: [W-1], of: [1], metric: orders}"
BAD = {
    "no version": Bad("schema_version: 1\n", "", ("`schema_version`: nothing", "add this key")),
    "another version": Bad("schema_version: 1", "schema_version: 2", at(1, "schema_version", "the number 2")),
    "no name": Bad("name: desk\n", "", ("`name`: nothing", "add this key")),
    "a name with blanks": Bad("name: desk", "name: My desk", at(2, "name", "the text 'My desk'", "write text that")),
    "a shipped suite's name": Bad("name: desk", "name: verbatim", at(2, "name", "the name of a shipped", "another")),
    "a key too many": Bad("about: What", "abuot: x\nabout: What", at(3, "abuot", "no such key", "schema_v")),
    "an empty about": Bad("What was said is shown.", "''", at(3, "about", "nothing", "write at least one")),
    "a budget of words": Bad("metrics:", "budget_tokens: many\nmetrics:", at(4, "budget_tokens", "the text 'many'")),
    "a budget of nothing": Bad("metrics:", "budget_tokens: 0\nmetrics:", at(4, "budget_tokens", "the number 0", "50")),
    "a status of its own": Bad("metrics:", "status: done\nmetrics:", at(4, "status", "the text 'done'", "'draft' or")),
    "a judge of its own": Bad("metrics:", "judge: {kind: oracle}\nmetrics:", at(4, "judge.kind", "the text 'oracle'")),
    "an unknown judge setting": Bad(
        "metrics:",
        "judge: {strict: true}\nmetrics:",
        at(4, "judge.strict", "no such key", "allowed: kind, stale, cached_price"),
    ),
    "a model's name in the file": Bad("metrics:", "judge: {model: m}\nmetrics:", at(4, "judge.model", "no such key")),
    "a price of words": Bad(
        "metrics:",
        PRICED.replace("2.0", "much"),
        at(4, "judge.prices.m.input_per_million", "the text 'much'", "number"),
    ),
    "half a price": Bad(
        "metrics:",
        "judge: {prices: {m: {input_per_million: 2.0}}}\nmetrics:",
        ("`judge.prices.m.output_per_million`: nothing", "add this key"),
    ),
    "a price by another name": Bad(
        "metrics:",
        "judge: {prices: {m: {input: 2.0}}}\nmetrics:",
        at(4, "judge.prices.m.input", "no such key", "allowed: input_per_million"),
    ),
    "a negative price": Bad(
        "metrics:", PRICED.replace("2.0", "-1.0"), at(4, "judge.prices.m.input_per_million", "the number -1")
    ),
    "no calls": Bad("metrics:", "judge: {max_calls: 0}\nmetrics:", at(4, "judge.max_calls", "the number 0")),
    "half a call": Bad("metrics:", "judge: {max_calls: 1.5}\nmetrics:", at(4, "judge.max_calls", "the number 1.5")),
    "no cost": Bad("metrics:", "judge: {max_cost: 0.0}\nmetrics:", at(4, "judge.max_cost", "the number 0")),
    "a metric of the judges": Bad(
        "{name: orders, about", "{name: judged, about", at(5, "metrics[0].name", "'judged', which every suite file has")
    ),
    "a gate over judges that are not asked": Bad(
        "  orders: {at", "  judged: {at", at(7, "gates.judged", "no figure of this name")
    ),
    "a cached price above 1": Bad("metrics:", "judge: {cached_price: 2}\nmetrics:", at(4, "judge.cached_price", "the")),
    "a metric twice": Bad(
        "metrics:\n",
        "metrics:\n  - {name: orders, about: Again.}\n",
        at(6, "metrics[1].name", "'orders' a second time"),
    ),
    "a metric that all have": Bad(
        "{name: orders, about", "{name: stale, about", at(5, "metrics[0].name", "'stale', which every suite file has")
    ),
    "a metric of another kind": Bad("shown.}\n", "shown., kind: sum}\n", at(5, "metrics[0].kind", "the text 'sum'")),
    "a count that is better higher": Bad(
        "shown.}\n",
        "shown., kind: count, better: higher}\n",
        at(5, "metrics[0].better", "'higher' for a count", "write lower"),
    ),
    "a gate over nothing": Bad("  orders: {at", "  oders: {at", at(7, "gates.oders", "no figure of this name")),
    "a gate without a rule": Bad("{at_least: 0.9}", "{low: true}", at(7, "gates.orders", "no rule", "at_least, above")),
    "an unknown rule": Bad("{at_least: 0.9}", "{atleast: 0.9}", at(7, "gates.orders.atleast", "no such key")),
    "both ends": Bad("{at_least: 0.9}", "{at_least: 0.9, low: true, high: true}", at(7, "gates.orders", "both ends")),
    "a bound of text": Bad("{at_least: 0.9}", "{at_least: most}", at(7, "gates.orders.at_least", "the text 'most'")),
    "no scenarios": Bad(SCENARIOS, "scenarios: []", at(8, "scenarios", "nothing", "at least one")),
    "scenarios as a number": Bad(SCENARIOS, "scenarios: 5", at(8, "scenarios", "the number 5")),
    "a file that is not there": Bad(
        SCENARIOS, "scenarios: none.jsonl", at(8, "scenarios", "no file none.jsonl", "beside this one")
    ),
    "an id with a slash": Bad("id: refund", "id: a/b", at(9, "scenarios[0].id", "the text 'a/b'", "write text that")),
    "no messages": Bad("    messages:\n", "    notes:\n", at(10, "scenarios[0].notes", "no such key", "asks")),
    "a message as text": Bad(
        "{role: assistant, content: Noted.}",
        "Noted.",
        at(10, "scenarios[0].messages[3]", "the text 'Noted.'", "write a mapping"),
    ),
    "a system message": Bad(
        "role: user, content: Not",
        "role: system, content: Not",
        at(13, "scenarios[0].messages[2].role", "the role 'system'", "into `system`"),
    ),
    "an unknown role": Bad(
        "role: user, content: Not",
        "role: customer, content: Not",
        at(13, "scenarios[0].messages[2].role", "the text 'customer'", "user, assistant, tool"),
    ),
    "content of a number": Bad("content: Noted.", "content: 5", at(14, "scenarios[0].messages[3].content", "")),
    "a result without a call": Bad(
        "{role: assistant, content: Noted.}",
        "{role: tool, tool_call_id: x, content: ok}",
        at(10, "scenarios[0].messages", "no provider would accept it", "correct"),
    ),
    "a call without a result": Bad(
        "{role: assistant, content: Noted.}",
        CALL,
        at(10, "scenarios[0].messages", "no provider would accept it", "correct"),
    ),
    "a tool that is none": Bad(
        "    asks:\n",
        "    tools: [{name: look}]\n    asks:\n",
        at(15, "scenarios[0].tools[0]", "not a tool declaration", 'write {"type": "function"'),
    ),
    "a profile that is not there": Bad(
        "    asks:\n",
        "    profile: p.yaml\n    asks:\n",
        at(15, "scenarios[0].profile", "p.yaml", "name a profile file"),
    ),
    "after nothing": Bad("after: 4", "after: 0", on_ask("after", "the number 0", "write a number greater than")),
    "after in words": Bad("after: 4", "after: four", on_ask("after", "the text 'four'", "number")),
    "after the end": Bad("after: 4", "after: 9", on_ask("after", "9, but the conversation has 4")),
    "no question": Bad("question: Which order?, ", "", on_ask("question", "nothing", "add this")),
    "nothing wanted": Bad("wants: [W-1]", "wants: []", on_ask("wants", "nothing", "at least one")),
    "wants left out": Bad("wants: [W-1], ", "", on_ask("wants", "nothing", "or what a model judges under `judge`")),
    "a judge with nothing to ask": Bad(
        "wants: [W-1], of: [1], metric: orders",
        "judge: {kind: model}",
        on_ask("judge", "neither a statement nor a question", "write one, or what"),
    ),
    "a judge with two things to ask": Bad(
        "of: [1]",
        "judge: {statement: It is so., question: Is it so?}, of: [1]",
        on_ask("judge", "a statement and a question", "keep one"),
    ),
    "a judge that is code": Bad(
        "of: [1]", "judge: {kind: code}, of: [1]", on_ask("judge.kind", "the text 'code'", "write 'model'")
    ),
    "a judge by name": Bad("of: [1]", "judge: gpt, of: [1]", on_ask("judge", "the text 'gpt'", "write a mapping")),
    "a blank statement": Bad("of: [1]", "judge: {statement: ' '}, of: [1]", on_ask("judge.statement", "the text ' '")),
    "an unknown key of a judge": Bad(
        "of: [1]",
        "judge: {prompt: Hi}, of: [1]",
        on_ask("judge.prompt", "no such key", "allowed: kind, statement, question"),
    ),
    "sources of nothing": Bad(
        "wants: [W-1], of: [1], metric: orders",
        "judge: {statement: It is so.}, of: [1]",
        on_ask("of", "about `wants`, which is empty"),
    ),
    "outdated beside nothing": Bad(
        "wants: [W-1], of: [1], metric: orders",
        "judge: {statement: So.}, avoids: [x]",
        on_ask("avoids", "about `wants`, which is empty"),
    ),
    "a figure of nothing": Bad(
        "wants: [W-1], of: [1], metric: orders",
        "judge: {statement: So.}, metric: orders",
        on_ask("metric", "about `wants`, which is empty", "leave it out"),
    ),
    "a metric of judges": Bad(
        "metric: orders", "metric: judged, judge: {kind: model}", on_ask("metric", "'judged'", "shown,")
    ),
    "a label of another kind": Bad(
        "of: [1]", "label: maybe, of: [1]", on_ask("label", "the text 'maybe'", "write 'yes' or")
    ),
    "a blank value": Bad("wants: [W-1]", "wants: [' ']", on_ask("wants[0]", "the text ' '")),
    "wanted as text": Bad("wants: [W-1]", "wants: W-1", on_ask("wants", "the text 'W-1'", "a list")),
    "wanted and never said": Bad(
        "wants: [W-1]", "wants: [W-7]", on_ask("wants[0]", "'W-7', which stands in none of the first 4")
    ),
    "the answer in the question": Bad(
        "question: Which order?", "question: Is it W-1?", on_ask("wants[0]", "'W-1', which the question itself says")
    ),
    "wanted and avoided": Bad(
        "wants: [W-1]", "wants: [W-1], avoids: [W-1]", on_ask("wants[0]", "'W-1', which is also to be avoided")
    ),
    "of a later message": Bad("of: [1]", "of: [1, 5]", on_ask("of[1]", "message 5, which is said")),
    "of message 0": Bad("of: [1]", "of: [0]", on_ask("of[0]", "the number 0")),
    "an unknown metric": Bad("metric: orders", "metric: goods", on_ask("metric", "'goods'", "shown,")),
    "a metric that is no ask's": Bad("metric: orders", "metric: valid", on_ask("metric", "'valid'")),
    "an unknown ask key": Bad("of: [1]", "from: [1]", on_ask("from", "no such key", "wants, avoids")),
    "an ask of no scenario": Bad(
        "scenarios:\n",
        f"asks:\n  - {{scenario: x, {ASK[1:]}\nscenarios:\n",
        at(9, "asks[0].scenario", "no conversation 'x'", "there are: refund"),
    ),
    "a list": Bad(GOOD, "- 1", ("s.yaml: a list", "schema_version, name, about, scenarios")),
    "no YAML": Bad(GOOD, "a: [", ("s.yaml:", "no YAML")),
    "an alias": Bad("name: desk", "name: &n desk", ("s.yaml:2", "anchor")),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_file_that_is_none_is_refused_with_place_finding_and_advice(bad: Bad, tmp_path: Path) -> None:
    assert bad.was in GOOD
    told = loaded(tmp_path, GOOD.replace(bad.was, bad.now))
    for part in bad.told:
        assert part in told
    assert "\n" not in told
    assert "; " in told


ROW = json.dumps({"id": "a", "messages": [{"role": "user", "content": "Hi"}]})
BAD_LINES = {
    "nothing": ("", "c.jsonl: the file is empty; write one conversation a line"),
    "no JSON": (f"{ROW}\n{{id", "c.jsonl:2: "),
    "a list": (f"{ROW}\n[]", 'c.jsonl:2: a list; write one conversation a line: {"id": …, "messages": […]}'),
    "no id": (f'{ROW}\n{{"messages": [{{"role": "user", "content": "Hi"}}]}}', "c.jsonl:2: `id`: nothing; add"),
    "a key too many": (ROW.replace('"id"', '"ids": 1, "id"'), "c.jsonl:1: `ids`: no such key; allowed: id, messages"),
    "an id twice": (f"{ROW}\n\n{ROW}", "c.jsonl:3: `id`: 'a' a second time, as at c.jsonl:1; give each"),
    "a bad ask": (
        ROW[:-1] + ', "asks": [{"after": 1, "question": "What?", "wants": ["Hi"], "off": [1]}]}',
        "c.jsonl:1: `asks[0].off`: no such key; allowed: after, question, wants",
    ),
    "an ask beyond": (
        ROW[:-1] + ', "asks": [{"after": 3, "question": "What?", "wants": ["Hi"]}]}',
        "c.jsonl:1: `asks[0].after`: 3, but the conversation has 1 messages",
    ),
    "a key of JSON twice": ('{"id": "a", "id": "b"}', "c.jsonl:1: "),
}


@pytest.mark.parametrize(("lines", "told"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_line_that_is_no_conversation_is_refused_with_its_number(lines: str, told: str, tmp_path: Path) -> None:
    head, _, _ = GOOD.partition("scenarios:")
    assert loaded(tmp_path, f"{head}scenarios: c.jsonl\n", c=lines).startswith(told)


def test_an_ask_stands_behind_a_tool_s_result_and_not_before_it(tmp_path: Path) -> None:
    called = GOOD.replace(
        "{role: assistant, content: I am sorry.}", f"{CALL}\n      - {{role: tool, tool_call_id: c1, content: ok}}"
    )
    assert loaded(tmp_path, called.replace("after: 4", "after: 3")) == ""
    assert "`scenarios[0].asks[0].after`: 2, between a tool call and its result" in loaded(
        tmp_path, called.replace("after: 4", "after: 2")
    )


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"none\.yaml: no such file or directory; pass the path of a readable YAML file"
    ):
        load_suite(tmp_path / "none.yaml")


ASKED = {
    "nothing": ("", "", ""),
    "a statement": ("", ", judge: {statement: It was broken.}", "Is this true, by the text alone?\nIt was broken."),
    "a question": ("", ", judge: {question: Was it broken?}", "Answer by the text alone.\nWas it broken?"),
    "what is wanted": (
        "",
        ", judge: {kind: model}",
        "Is this true, by the text alone?\nTo the question “Which order?” the answer is: W-1.",
    ),
    "the same of every ask": (
        "judge: {kind: model}\n",
        ", avoids: [credit]",
        "Is this true, by the text alone?\nTo the question “Which order?” the answer is: W-1. "
        "It is not credit any more.",
    ),
    "its own word before the suite's": (
        "judge: {kind: model}\n",
        ", judge: {question: Was it broken?}",
        "Answer by the text alone.\nWas it broken?",
    ),
}


@pytest.mark.parametrize(("suite", "ask", "asked"), ASKED.values(), ids=ASKED.keys())
def test_what_model_judges_are_asked(suite: str, ask: str, asked: str, tmp_path: Path) -> None:
    text = GOOD.replace("metrics:", f"{suite}metrics:").replace(", metric: orders}", f", metric: orders{ask}}}")
    assert loaded(tmp_path, text) == ""
    read = load_suite(tmp_path / "s.yaml")
    assert [one.asked for one in read.jobs[0].asks] == [asked]
    assert ("judged" in [metric.name for metric in read.eval_suite.metrics]) is bool(asked)


def test_what_must_not_be_shown_is_put_to_models_in_words_of_its_own_alone(tmp_path: Path) -> None:
    """The default asks whether it is there, and yes counts as good."""
    text = GOOD.replace("shown.}", "shown., better: lower}").replace("metrics:", "judge: {kind: model}\nmetrics:")
    assert loaded(tmp_path, text) == ""
    assert [ask.asked for ask in load_suite(tmp_path / "s.yaml").jobs[0].asks] == [""]


def test_a_suite_reads_nothing_outside_its_folder(tmp_path: Path) -> None:
    """Neither conversations nor profiles, however the way there is written."""
    folder, outside = tmp_path / "suite", tmp_path / "outside"
    for made in (folder, outside):
        made.mkdir()
    secret = json.dumps({"id": "SECRETWORD", "messages": []})
    (outside / "c.jsonl").write_text(secret, encoding="utf-8")
    (folder / "link.jsonl").symlink_to(outside / "c.jsonl")
    (folder / "linked").symlink_to(outside)
    (folder / "loop").symlink_to(folder / "loop")
    ways = (
        "../outside/c.jsonl",
        str(outside / "c.jsonl"),
        "/etc/passwd",
        "link.jsonl",
        "linked/c.jsonl",
        "x/../../outside/c.jsonl",
    )
    head = GOOD.partition("scenarios:")[0]
    for way in ways:
        said = loaded(folder, f"{head}scenarios: {way}\n")
        assert "outside the suite's folder" in said, way
        assert "SECRETWORD" not in said
        for text in (
            GOOD.replace("name: desk", f"name: desk\nprofile: {way}"),
            GOOD.replace("  - id: refund", f"  - id: refund\n    profile: {way}"),
        ):
            assert "outside the suite's folder" in loaded(folder, text), way
    assert "scenarios" in loaded(folder, f"{head}scenarios: loop\n")


def test_a_suite_reads_files_below_its_folder_through_links_that_stay_there(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    said = [{"role": "user", "content": "Order W-1."}, {"role": "assistant", "content": "Noted."}]
    ask = {"after": 2, "question": "Which?", "wants": ["W-1"], "of": [1], "metric": "orders"}
    scenario = {"id": "a", "messages": said, "asks": [ask]}
    (tmp_path / "deep" / "c.jsonl").write_text(json.dumps(scenario) + "\n", encoding="utf-8")
    (tmp_path / "link.jsonl").symlink_to("deep/c.jsonl")
    head = GOOD.partition("scenarios:")[0]
    assert [
        loaded(tmp_path, f"{head}scenarios: {name}\n") for name in ("deep/c.jsonl", "link.jsonl", "deep/../link.jsonl")
    ] == ["", "", ""]
