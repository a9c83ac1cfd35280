"""Secrets in a text: keys and tokens of known services, passwords, private keys.

detect-secrets decides, one line at a time, and only those of its plugins are asked whose hint is in the text: its own
scan of every line would cost many times what parsing does. Which hints there are is found once in the distinct words of
many texts: no hint has a blank in it, or else its parts are looked for. High entropy alone is no secret here: commit
hashes and ids are what ordinary transcripts are full of. What people say in prose ("my password is …", "密码是…") is
found by cue.

Nothing is ever verified over the network. Source: Yelp/detect-secrets, `detect_secrets.plugins`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Literal, NamedTuple, Protocol

from ctxsteward.schemas import InputError

TOKEN_CHARS = 1_000
"""What a plugin sees of a long line, before and after its hint."""
KEYWORD_CHARS = (60, 200)
"""The same, before and after a word such as "password": these patterns backtrack."""


Kind = Literal["secret", "private_key", "email", "phone", "card", "ssn", "national_id"]


class Span(NamedTuple):
    """Something that is to go: a range of characters."""

    start: int
    stop: int
    kind: Kind


Finder = Callable[[str], list[Span]]
"""What is to go, in any order; spans may overlap."""
FinderFor = Callable[[str], Finder | None]
"""Out of some texts, a line break between them, a finder that finds in each what there is to find; None: nothing is."""


class _Plugin(Protocol):
    denylist: Iterable[re.Pattern[str]]

    def analyze_string(self, string: str) -> Iterator[str]: ...


class _Row(NamedTuple):
    """A plugin of detect-secrets, and what must be in a text for it to find anything."""

    module: str
    name: str
    hints: tuple[str, ...]
    is_whole: bool = False
    """All that its patterns match is the secret; groups in them mean something else."""


_ROWS = (
    _Row("artifactory", "ArtifactoryDetector", ("AKC",)),
    _Row("aws", "AWSKeyDetector", ("A3T", "ABIA", "ACCA", "AKIA", "ASIA", "aws_sec", "AWS_SEC", "aws_access")),
    _Row("azure_storage_key", "AzureStorageKeyDetector", ("AccountKey=",)),
    _Row("basic_auth", "BasicAuthDetector", ("://",)),
    _Row("github_token", "GitHubTokenDetector", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), is_whole=True),
    _Row(
        "gitlab_token",
        "GitLabTokenDetector",
        (
            "glpat-",
            "gldt-",
            "glft-",
            "glsoat-",
            "glrt-",
            "GR1348941",
            "glcbt-",
            "glimt-",
            "glptt-",
            "glagent-",
            "gloas-",
        ),
        is_whole=True,
    ),
    _Row("jwt", "JwtTokenDetector", ("eyJ",)),
    _Row("npm", "NpmDetector", ("_authToken",)),
    _Row("openai", "OpenAIDetector", ("T3BlbkFJ",)),
    _Row("pypi_token", "PypiTokenDetector", ("pypi-AgE",)),
    _Row("sendgrid", "SendGridDetector", ("SG.",)),
    _Row("slack", "SlackDetector", ("xox", "hooks.slack.com")),
    _Row("square_oauth", "SquareOAuthDetector", ("sq0csp-",)),
    _Row("stripe", "StripeDetector", ("k_live_",)),
)
_LONG_ROWS = (
    _Row("discord", "DiscordBotTokenDetector", ()),
    _Row("mailchimp", "MailchimpDetector", ()),
    _Row("telegram_token", "TelegramBotTokenDetector", ()),
    _Row("twilio", "TwilioKeyDetector", ()),
)
"""Without a hint of their own: words of at least `_LONG_CHARS` characters are shown to them."""
_LONG_CHARS = 34
_LONG_WORD = re.compile(
    r"(?<![0-9A-Za-z_\-])(?:(?:AC|SK)[a-z0-9]{32}|[0-9]{8,10}:[0-9A-Za-z_\-]{35}|[0-9a-z]{32}-us[0-9]{1,2}"
    r"|[MNO][A-Za-z0-9_\-]{23,25}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27})(?![0-9A-Za-z_\-])"
)
_NEW_STYLE = re.compile(
    r"(?<![0-9A-Za-z_\-])(?:sk-(?:proj|ant|svcacct|or)-|github_pat_|hf_|AIza|xapp-)[0-9A-Za-z_\-]{20,200}"
)
_NEW_STYLE_HINTS = ("sk-", "github_pat_", "hf_", "AIza", "xapp-")
_KEY_HINTS = ("PRIVATE KEY", "PuTTY-User")
_QUOTE = re.compile(r"['\"`]")
"""Without one the keyword plugin finds nothing, slowly."""
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[23]:")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: *[0-9a-f]*")
_MAX_KEY_CHARS = 20_000
_GOES_ON = re.compile(r"[0-9A-Za-z_\-+/=]*")
"""The rest of a token, where a plugin stops short of it (a signature)."""
_KEYWORDS = ("passw", "pwd", "passphrase", "secret", "api_key", "api key", "apikey", "api-key", "token", "bearer",
             "密码", "密碼", "口令", "密钥", "密鑰")  # fmt: skip
_VALUE = (
    r"(?P<value>(?!\[redacted:)(?=[^\s\"'`,;，。；]{0,60}(?:[0-9]|[!@#$%^&*+=?~]))[^\s\"'`,;，。；<>(){}\[\]]{6,200})"
)
_SAID = re.compile(
    r"(?:pass(?:word|wd|phrase|code)|\bpwd|secret(?:[ _\-]?key)?|api[ _\-]?key|bearer"
    r"|(?:access|auth|refresh|bearer|api)[ _\-]?token|密[码碼]|口令|密[钥鑰])"
    r"[\"'`]?(?: *(?:is|was|=|:|：|是|为|為)+ *| )[\"'`]?" + _VALUE,
    re.IGNORECASE,
)


class _Asked(NamedTuple):
    """A plugin whose hint is in some text."""

    hint: str
    plugin: _Plugin
    is_whole: bool


def secret_finder() -> FinderFor:
    """Finds secrets. Raises `InputError` where detect-secrets is missing."""
    try:
        hinted = [(row, _plugin(row)) for row in _ROWS]
        bare = [_plugin(row) for row in _LONG_ROWS]
        keyword = _plugin(_Row("keyword", "KeywordDetector", ()))
    except ImportError as error:
        raise InputError("redaction needs detect-secrets: pip install 'ctxsteward[steward]'") from error
    rows = [_Asked(hint, plugin, row.is_whole) for row, plugin in hinted for hint in row.hints]

    def finder_for(texts: str) -> Finder | None:
        distinct = set(texts.split())
        words = " ".join(distinct)
        long = " ".join([word for word in distinct if len(word) >= _LONG_CHARS])
        lower = words.lower()
        return _finder(
            [row for row in rows if row.hint in words],
            bare if _LONG_WORD.search(long) else (),
            keyword,
            [cue for cue in _KEYWORDS if all(part in lower for part in cue.split())],
            is_new_style=any(hint in words for hint in _NEW_STYLE_HINTS),
            holds_keys=any(hint in texts for hint in _KEY_HINTS),
        )

    return finder_for


def _finder(
    rows: Sequence[_Asked],
    bare: Sequence[_Plugin],
    keyword: _Plugin,
    keywords: Sequence[str],
    *,
    is_new_style: bool,
    holds_keys: bool,
) -> Finder | None:
    """Finds what these hints stand for; None for none."""
    if not (rows or bare or keywords or is_new_style or holds_keys):
        return None

    def find(text: str) -> list[Span]:
        spans: list[Span] = []
        for hint, plugin, is_whole in rows:
            if hint in text:
                spans += _by_plugin(text, hint, plugin, is_whole)
        if is_new_style and any(hint in text for hint in _NEW_STYLE_HINTS):
            spans += (Span(match.start(), match.end(), "secret") for match in _NEW_STYLE.finditer(text))
        if bare:
            spans += _long_words(text, bare)
        if holds_keys and any(hint in text for hint in _KEY_HINTS):
            spans += _private_keys(text)
        if keywords:
            spans += _by_keyword(text, keywords, keyword)
        return spans

    return find


def _plugin(row: _Row) -> _Plugin:
    plugin: _Plugin = getattr(import_module(f"detect_secrets.plugins.{row.module}"), row.name)()
    return plugin


def _by_plugin(text: str, hint: str, plugin: _Plugin, is_whole: bool) -> Iterator[Span]:
    for start, stop in _lines(text, hint, TOKEN_CHARS, TOKEN_CHARS):
        line = text[start:stop]
        if is_whole:
            matches = (match for pattern in plugin.denylist for match in pattern.finditer(line))
            yield from (Span(start + match.start(), start + match.end(), "secret") for match in matches)
        else:
            for secret in plugin.analyze_string(line):
                yield from _placed(line, secret, start)


def _by_keyword(text: str, keywords: Sequence[str], plugin: _Plugin) -> Iterator[Span]:
    lower = text.lower()
    if len(lower) != len(text):  # places differ: a few capitals of other alphabets
        return
    for keyword in keywords:
        if keyword in lower:
            for start, stop in _lines(lower, keyword, *KEYWORD_CHARS):
                line = text[start:stop]
                for match in _SAID.finditer(line):
                    yield Span(start + match.start("value"), start + match.end("value"), "secret")
                for secret in plugin.analyze_string(line) if _QUOTE.search(line) else ():
                    if _is_kept(secret):
                        yield from _placed(line, secret, start)


def _is_kept(secret: str) -> bool:
    """Whether a quoted value beside a key's name is like a secret, not a word or a placeholder."""
    return (
        6 <= len(secret) <= 200
        and "[redacted:" not in secret
        and not any(char.isspace() for char in secret)
        and any(char.isdecimal() or not char.isalnum() for char in secret)
    )


def _placed(line: str, secret: str, offset: int) -> Iterator[Span]:
    """Where a secret stands in its line; too short a one would hit elsewhere."""
    at = line.find(secret) if len(secret) >= 4 and not secret.startswith("[redacted:") else -1
    while at >= 0:
        rest = _GOES_ON.match(line, at + len(secret))
        stop = rest.end() if rest else at + len(secret)
        yield Span(offset + at, offset + stop, "secret")
        at = line.find(secret, stop)


def _private_keys(text: str) -> Iterator[Span]:
    """From a key's first line to its last; of one that is cut off, all there can be of it."""
    done = 0
    for begin in _KEY_BEGINS.finditer(text):
        if begin.start() >= done:
            end = _KEY_ENDS.search(text, begin.end(), begin.end() + _MAX_KEY_CHARS)
            done = end.end() if end else min(len(text), begin.end() + _MAX_KEY_CHARS)
            yield Span(begin.start(), done, "private_key")


def _long_words(text: str, plugins: Sequence[_Plugin]) -> Iterator[Span]:
    for match in _LONG_WORD.finditer(text):
        if any(True for plugin in plugins for _ in plugin.analyze_string(match[0])):
            yield Span(match.start(), match.end(), "secret")


def _lines(text: str, hint: str, before_chars: int, after_chars: int) -> Iterator[tuple[int, int]]:
    """Lines with the hint, each once; of a long one so much before and after it."""
    at, done = text.find(hint), 0
    while at >= 0:
        earliest = max(done, at - before_chars)
        start = max(earliest, text.rfind("\n", earliest, at) + 1)
        end = text.find("\n", at, at + after_chars)
        stop = min(at + after_chars, len(text)) if end < 0 else end
        yield start, stop
        done = max(stop, at + len(hint))
        at = text.find(hint, done)
