"""Find secrets and personal data in a text, with libraries, in time linear in the text.

detect-secrets finds secrets (keys and tokens of known services, passwords, private keys), a line at a time. Its scan of
every line would cost many times as much as parsing, so this module runs only the plugins whose hint occurs among the
distinct words. High entropy alone makes no secret, because ordinary transcripts are full of commit hashes and ids. Cues
find secrets in prose ("my password is …", "密码是…"). Nothing is verified over the network.

Personal data: datafog's pattern finds e-mail addresses, and phonenumbers checks that digits can be dialled. Digits
alone are mostly order numbers, dates and hashes, so each number must also have a known form:

    phone        ``+`` and a country; or a form of the US or of China (brackets or separators, mobile numbers); bare
                 digits only after a word such as "phone" or "电话"
    card         13-19 digits of a known issuer with a right check digit (ISO/IEC 7812)
    ssn          3-2-4 with dashes; bare digits only after a word for it
    national_id  18 digits with a possible date and a right check digit (GB 11643)

A pattern that may backtrack sees only a window around its hint. Source: Yelp/detect-secrets, `detect_secrets.plugins`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import cache
from importlib import import_module
from typing import Literal, NamedTuple, Protocol

from ctxsteward.schemas import InputError

TOKEN_CHARS = 1_000
"""Characters of a long line that a plugin sees before and after its hint."""
KEYWORD_CHARS = (60, 200)
"""Characters that the keyword plugin sees before and after a word such as "password": its patterns backtrack."""


Kind = Literal["secret", "private_key", "email", "phone", "card", "ssn", "national_id"]


class SensitiveSpan(NamedTuple):
    """A range of characters to remove."""

    start: int
    stop: int
    kind: Kind


Finder = Callable[[str], list[SensitiveSpan]]
"""Find the spans to remove, in any order; they may overlap."""
FinderFor = Callable[[str], Finder | None]
"""Make a finder for some texts, joined with line breaks; None if they have no hints."""


class _Plugin(Protocol):
    denylist: Iterable[re.Pattern[str]]

    def analyze_string(self, string: str) -> Iterator[str]: ...


class _PluginRow(NamedTuple):
    """A plugin of detect-secrets, and the hints without which it finds nothing."""

    module: str
    name: str
    hints: tuple[str, ...]
    is_whole: bool = False
    """Whether the secret is the whole match of its patterns, rather than a group in it."""


_ROWS = (
    _PluginRow("artifactory", "ArtifactoryDetector", ("AKC",)),
    _PluginRow("aws", "AWSKeyDetector", ("A3T", "ABIA", "ACCA", "AKIA", "ASIA", "aws_sec", "AWS_SEC", "aws_access")),
    _PluginRow("azure_storage_key", "AzureStorageKeyDetector", ("AccountKey=",)),
    _PluginRow("basic_auth", "BasicAuthDetector", ("://",)),
    _PluginRow("github_token", "GitHubTokenDetector", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), is_whole=True),
    _PluginRow(
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
    _PluginRow("jwt", "JwtTokenDetector", ("eyJ",)),
    _PluginRow("npm", "NpmDetector", ("_authToken",)),
    _PluginRow("openai", "OpenAIDetector", ("T3BlbkFJ",)),
    _PluginRow("pypi_token", "PypiTokenDetector", ("pypi-AgE",)),
    _PluginRow("sendgrid", "SendGridDetector", ("SG.",)),
    _PluginRow("slack", "SlackDetector", ("xox", "hooks.slack.com")),
    _PluginRow("square_oauth", "SquareOAuthDetector", ("sq0csp-",)),
    _PluginRow("stripe", "StripeDetector", ("k_live_",)),
)
_LONG_ROWS = (
    _PluginRow("discord", "DiscordBotTokenDetector", ()),
    _PluginRow("mailchimp", "MailchimpDetector", ()),
    _PluginRow("telegram_token", "TelegramBotTokenDetector", ()),
    _PluginRow("twilio", "TwilioKeyDetector", ()),
)
"""Plugins without hints, which see words of at least `_LONG_CHARS` characters."""
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
"""The keyword plugin finds nothing on a line without a quote, but spends much time on it."""
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[23]:")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: *[0-9a-f]*")
_MAX_KEY_CHARS = 20_000
_TOKEN_REST = re.compile(r"[0-9A-Za-z_\-+/=]*")
"""The rest of a token, such as a signature, that a plugin leaves out."""
_KEYWORDS = (
    "passw",
    "pwd",
    "passphrase",
    "secret",
    "api_key",
    "api key",
    "apikey",
    "api-key",
    "token",
    "bearer",
    "密码",
    "密碼",
    "口令",
    "密钥",
    "密鑰",
)
_VALUE = (
    r"(?P<value>(?!\[redacted:)(?=[^\s\"'`,;，。；]{0,60}(?:[0-9]|[!@#$%^&*+=?~]))[^\s\"'`,;，。；<>(){}\[\]]{6,200})"
)
_SAID = re.compile(
    r"(?:pass(?:word|wd|phrase|code)|\bpwd|secret(?:[ _\-]?key)?|api[ _\-]?key|bearer"
    r"|(?:access|auth|refresh|bearer|api)[ _\-]?token|密[码碼]|口令|密[钥鑰])"
    r"[\"'`]?(?: *(?:is|was|=|:|：|是|为|為)+ *| )[\"'`]?" + _VALUE,
    re.IGNORECASE,
)


@cache
def secret_finder() -> FinderFor:
    """Return a finder of secrets; raises `InputError` if detect-secrets is not installed."""
    try:
        hinted = [(row, _plugin(row)) for row in _ROWS]
        bare = [_plugin(row) for row in _LONG_ROWS]
        keyword = _plugin(_PluginRow("keyword", "KeywordDetector", ()))
    except ImportError as error:
        raise InputError("redaction needs detect-secrets: pip install 'ctxsteward[steward]'") from error

    def finder_for(texts: str) -> Finder | None:
        distinct = set(texts.split())
        words = " ".join(distinct)
        long = " ".join([word for word in distinct if len(word) >= _LONG_CHARS])
        lower = words.lower()
        wanted = [(row, plugin) for row, plugin in hinted if any(hint in words for hint in row.hints)]
        wanted_bare = bare if _LONG_WORD.search(long) else []
        keywords = [cue for cue in _KEYWORDS if all(part in lower for part in cue.split())]
        has_new_style = any(hint in words for hint in _NEW_STYLE_HINTS)
        has_private_key = any(hint in texts for hint in _KEY_HINTS)
        if not (wanted or wanted_bare or keywords or has_new_style or has_private_key):
            return None

        def find(text: str) -> list[SensitiveSpan]:
            spans: list[SensitiveSpan] = []
            for row, plugin in wanted:
                for hint in row.hints:
                    if hint in text:
                        spans += _by_plugin(text, hint, plugin, row.is_whole)
            if has_new_style and any(hint in text for hint in _NEW_STYLE_HINTS):
                spans += (SensitiveSpan(match.start(), match.end(), "secret") for match in _NEW_STYLE.finditer(text))
            if wanted_bare:
                spans += _long_words(text, wanted_bare)
            if has_private_key and any(hint in text for hint in _KEY_HINTS):
                spans += _private_keys(text)
            if keywords:
                spans += _by_keyword(text, keywords, keyword)
            return spans

        return find

    return finder_for


def _plugin(row: _PluginRow) -> _Plugin:
    plugin: _Plugin = getattr(import_module(f"detect_secrets.plugins.{row.module}"), row.name)()
    return plugin


def _by_plugin(text: str, hint: str, plugin: _Plugin, is_whole: bool) -> Iterator[SensitiveSpan]:
    for start, stop in _lines(text, hint, TOKEN_CHARS, TOKEN_CHARS):
        line = text[start:stop]
        if is_whole:
            matches = (match for pattern in plugin.denylist for match in pattern.finditer(line))
            yield from (SensitiveSpan(start + match.start(), start + match.end(), "secret") for match in matches)
        else:
            for secret in plugin.analyze_string(line):
                yield from _placed(line, secret, start)


def _by_keyword(text: str, keywords: Sequence[str], plugin: _Plugin) -> Iterator[SensitiveSpan]:
    lower = text.lower()
    if len(lower) != len(text):  # a few capitals change their length, so that places would differ
        return
    for keyword in keywords:
        if keyword in lower:
            for start, stop in _lines(lower, keyword, *KEYWORD_CHARS):
                line = text[start:stop]
                for match in _SAID.finditer(line):
                    yield SensitiveSpan(start + match.start("value"), start + match.end("value"), "secret")
                for secret in plugin.analyze_string(line) if _QUOTE.search(line) else ():
                    if _is_plausible(secret):
                        yield from _placed(line, secret, start)


def _is_plausible(secret: str) -> bool:
    """Whether a quoted value beside a key's name looks like a secret, rather than a word or a placeholder."""
    return (
        6 <= len(secret) <= 200
        and "[redacted:" not in secret
        and not any(char.isspace() for char in secret)
        and any(char.isdecimal() or not char.isalnum() for char in secret)
    )


def _placed(line: str, secret: str, offset: int) -> Iterator[SensitiveSpan]:
    """Yield the places of a secret in its line, except for a short one, which would also match other text."""
    at = line.find(secret) if len(secret) >= 4 and not secret.startswith("[redacted:") else -1
    while at >= 0:
        rest = _TOKEN_REST.match(line, at + len(secret))
        stop = rest.end() if rest else at + len(secret)
        yield SensitiveSpan(offset + at, offset + stop, "secret")
        at = line.find(secret, stop)


def _private_keys(text: str) -> Iterator[SensitiveSpan]:
    """Yield each key from its first line to its last, or up to `_MAX_KEY_CHARS` if the last line is missing."""
    done = 0
    for begin in _KEY_BEGINS.finditer(text):
        if begin.start() >= done:
            end = _KEY_ENDS.search(text, begin.end(), begin.end() + _MAX_KEY_CHARS)
            done = end.end() if end else min(len(text), begin.end() + _MAX_KEY_CHARS)
            yield SensitiveSpan(begin.start(), done, "private_key")


def _long_words(text: str, plugins: Sequence[_Plugin]) -> Iterator[SensitiveSpan]:
    for match in _LONG_WORD.finditer(text):
        if any(True for plugin in plugins for _ in plugin.analyze_string(match[0])):
            yield SensitiveSpan(match.start(), match.end(), "secret")


def _lines(text: str, hint: str, before_chars: int, after_chars: int) -> Iterator[tuple[int, int]]:
    """Yield each line with the hint once, or this many characters around the hint of a long line."""
    at, done = text.find(hint), 0
    while at >= 0:
        earliest = max(done, at - before_chars)
        start = max(earliest, text.rfind("\n", earliest, at) + 1)
        end = text.find("\n", at, at + after_chars)
        stop = min(at + after_chars, len(text)) if end < 0 else end
        yield start, stop
        done = max(stop, at + len(hint))
        at = text.find(hint, done)


_HINT_DIGITS = re.compile(r"[0-9][0-9 ()./\-]{7,}[0-9Xx]")
_DATE = re.compile(r"(?:19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]")
_MAX_LOCAL_CHARS, _MAX_HOST_CHARS = 64, 255
_AT = re.compile(r"[^\s@]@[^\s@]")
_IN_URL = re.compile(r"://[^/\s]{0,60}\Z")
"""Ends before the user and host of a URL."""
_DIGITS = re.compile(r"(?<![0-9A-Za-z_#$/.\-])[0-9][0-9 \-]{7,28}[0-9Xx](?![0-9A-Za-z_\-])")
_ABROAD = re.compile(r"\+[1-9][0-9 ().\-]{6,18}[0-9](?![0-9A-Za-z_])")
_US_PHONE = re.compile(
    r"(?<![0-9A-Za-z_#$/.(\-])(?:1[ .\-])?(?:\([2-9][0-9]{2}\)[ .\-]?|[2-9][0-9]{2}(?P<gap>[.\-]))"
    r"[2-9][0-9]{2}(?(gap)(?P=gap)|[ .\-])[0-9]{4}(?![0-9A-Za-z_\-]|\.[0-9])"
)
_CN_MOBILE = re.compile(
    r"(?<![0-9A-Za-z_#$/.\-])(?:86[ \-]?)?1[3-9][0-9](?P<gap>[ \-]?)[0-9]{4}(?P=gap)[0-9]{4}(?![0-9A-Za-z_\-])"
)
_CN_LANDLINE = re.compile(
    r"(?<![0-9A-Za-z_#$/.\-])(?:\(0[1-9][0-9]{1,2}\) ?|0[1-9][0-9]{1,2}-)[2-9][0-9]{6,7}(?![0-9A-Za-z_\-])"
)
_CUED_PHONE = re.compile(
    r"(?:phone|mobile|cell|call(?:ed)?|tel|fax|whatsapp|wechat|text me|电话|手机|联系方式|致电|微信|號碼|電話|手機)"
    r"[^0-9+\n]{0,20}(?P<number>\+?[0-9(][0-9 ().\-]{5,17}[0-9])(?![0-9A-Za-z_\-])",
    re.IGNORECASE,
)
_SSN = re.compile(r"(?<![0-9A-Za-z_\-])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![0-9A-Za-z_\-])")
_CUED_SSN = re.compile(
    r"(?:\bssn\b|social security)[^0-9\n]{0,20}(?P<number>(?!000|666|9)[0-9]{3}[ ]?(?!00)[0-9]{2}[ ]?(?!0000)[0-9]{4})"
    r"(?![0-9A-Za-z_\-])",
    re.IGNORECASE,
)
_ISSUERS = re.compile(r"4|5[1-5]|2[2-7]|3[47]|30[0-5]|3[689]|6(?:011|4[4-9]|5|2)|35")
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_WINDOW_CHARS = 48


@cache
def personal_finder() -> FinderFor:
    """Return a finder of personal data; raises `InputError` if the libraries are not installed."""
    try:
        import phonenumbers  # noqa: F401  # so that a missing package fails here, not at the first number
        from datafog.processing.text_processing.regex_annotator import RegexAnnotator
    except ImportError as error:
        raise InputError("redaction needs datafog and phonenumbers: pip install 'ctxsteward[steward]'") from error
    address = RegexAnnotator().patterns["EMAIL"]

    def finder_for(texts: str) -> Finder | None:
        has_address, has_number = "@" in texts, next(_windows(texts), None) is not None
        if not (has_address or has_number):
            return None

        def find(text: str) -> list[SensitiveSpan]:
            spans = list(_addresses(text, address)) if has_address and "@" in text else []
            if has_number:
                for start, stop in _windows(text):
                    spans += _numbers(text[start:stop], start)
            return spans

        return find

    return finder_for


def _addresses(text: str, address: re.Pattern[str]) -> Iterator[SensitiveSpan]:
    """Yield e-mail addresses, searching only the characters around each "@" that may belong to one."""
    done = 0
    for at in _AT.finditer(text):
        middle = at.start() + 1
        if middle < done:
            continue
        start = max(done, middle - _MAX_LOCAL_CHARS)
        window = text[start : middle + _MAX_HOST_CHARS]
        for match in address.finditer(window):
            if match.start() <= middle - start < match.end() and not _IN_URL.search(window, 0, match.start()):
                done = start + match.end()
                yield SensitiveSpan(start + match.start(), done, "email")
                break


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Yield windows around runs of digits; windows that touch are joined."""
    start = stop = 0
    for match in _HINT_DIGITS.finditer(text):
        if match.end() - match.start() == 10 and _DATE.fullmatch(match[0]):
            continue
        if match.start() - _WINDOW_CHARS > stop:
            if stop:
                yield start, stop
            start = match.start() - _WINDOW_CHARS
        stop = match.end() + 2
    if stop:
        yield max(0, start), stop


def _numbers(text: str, offset: int) -> Iterator[SensitiveSpan]:
    """Yield the numbers of all kinds in one window that begins at `offset`."""
    for match in _DIGITS.finditer(text):
        digits = match[0].translate(_NO_GAPS)
        if _is_resident_number(digits):
            yield SensitiveSpan(offset + match.start(), offset + match.end(), "national_id")
        elif _is_card(digits):
            yield SensitiveSpan(offset + match.start(), offset + match.end(), "card")
    for match in _SSN.finditer(text):
        yield SensitiveSpan(offset + match.start(), offset + match.end(), "ssn")
    for match in _CUED_SSN.finditer(text):
        yield SensitiveSpan(offset + match.start("number"), offset + match.end("number"), "ssn")
    for match in _ABROAD.finditer(text):
        if _can_be_dialled(match[0], None):
            yield SensitiveSpan(offset + match.start(), offset + match.end(), "phone")
    for pattern, region in ((_US_PHONE, "US"), (_CN_MOBILE, "CN"), (_CN_LANDLINE, "CN")):
        for match in pattern.finditer(text):
            if _can_be_dialled(match[0], region):
                yield SensitiveSpan(offset + match.start(), offset + match.end(), "phone")
    for match in _CUED_PHONE.finditer(text):
        if _can_be_dialled(match["number"], "US") or _can_be_dialled(match["number"], "CN"):
            yield SensitiveSpan(offset + match.start("number"), offset + match.end("number"), "phone")


_NO_GAPS = str.maketrans("", "", " -")


def _can_be_dialled(written: str, region: str | None) -> bool:
    import phonenumbers

    try:
        number = phonenumbers.parse(written, region)
        return phonenumbers.is_possible_number(number) and phonenumbers.is_valid_number(number)
    except phonenumbers.NumberParseException:
        return False


def _is_card(digits: str) -> bool:
    """Whether digits have the issuer, length and check digit (Luhn) of a card."""
    if not (13 <= len(digits) <= 19 and digits.isdecimal() and _ISSUERS.match(digits) and len(set(digits)) > 1):
        return False
    odd, even = digits[-1::-2], digits[-2::-2]
    return (sum(map(int, odd)) + sum(sum(divmod(2 * int(digit), 10)) for digit in even)) % 10 == 0


def _is_resident_number(digits: str) -> bool:
    """Whether digits have the 18 characters of GB 11643: region, date of birth, sequence, check digit."""
    if len(digits) != 18 or not digits[:17].isdecimal() or digits[0] not in "123456789":
        return False
    try:
        date(int(digits[6:10]), int(digits[10:12]), int(digits[12:14]))
    except ValueError:
        return False
    total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, digits, strict=False))
    return int(digits[6:10]) >= 1900 and "10X98765432"[total % 11] == digits[17].upper()
