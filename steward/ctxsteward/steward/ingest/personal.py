"""Personal data in a text: e-mail addresses, telephone and card numbers, social security and resident numbers.

Libraries decide: datafog's pattern finds addresses, phonenumbers says whether digits can be dialled. Digits alone are
mostly order numbers, dates and hashes, so each number must also look like one:

    phone        ``+`` and a country; else the way people write one in the US or in China (brackets or separators,
                 mobile numbers); bare digits only after a word such as "phone" or "电话"
    card         13-19 digits of a known issuer with a right check digit (ISO/IEC 7812)
    ssn          3-2-4 with dashes; bare digits only after a word for it
    national_id  18 digits with a possible date and a right check digit (GB 11643)

Work is linear: a pattern that may backtrack sees a window around its hint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from ctxsteward.schemas import InputError

from .secrets import Finder, FinderFor, Span

_HINT_DIGITS = re.compile(r"[0-9][0-9 ()./\-]{7,}[0-9Xx]")
_DATE = re.compile(r"(?:19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]")
_MAX_LOCAL_CHARS, _MAX_HOST_CHARS = 64, 255
_AT = re.compile(r"[^\s@]@[^\s@]")
_IN_URL = re.compile(r"://[^/\s]{0,60}\Z")
"""What follows is the user and host of a URL."""
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


def personal_finder() -> FinderFor:
    """Finds personal data. Raises `InputError` where the libraries are missing."""
    try:
        from datafog.processing.text_processing.regex_annotator import RegexAnnotator
    except ImportError as error:
        raise InputError("redaction needs datafog and phonenumbers: pip install 'ctxsteward[steward]'") from error
    address = RegexAnnotator().patterns["EMAIL"]

    def finder_for(texts: str) -> Finder | None:
        has_address, has_number = "@" in texts, next(_windows(texts), None) is not None
        if not (has_address or has_number):
            return None

        def find(text: str) -> list[Span]:
            spans = list(_addresses(text, address)) if has_address and "@" in text else []
            if has_number:
                for start, stop in _windows(text):
                    spans += _numbers(text[start:stop], start)
            return spans

        return find

    return finder_for


def _addresses(text: str, address: re.Pattern[str]) -> Iterator[Span]:
    """E-mail addresses, each looked for in what can belong to it."""
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
                yield Span(start + match.start(), done, "email")
                break


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Stretches around runs of digits, joined where they touch."""
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


def _numbers(text: str, offset: int) -> Iterator[Span]:
    """All kinds of numbers in one stretch; `offset` is where it begins."""
    for match in _DIGITS.finditer(text):
        digits = match[0].translate(_NO_GAPS)
        if _is_resident_number(digits):
            yield Span(offset + match.start(), offset + match.end(), "national_id")
        elif _is_card(digits):
            yield Span(offset + match.start(), offset + match.end(), "card")
    for match in _SSN.finditer(text):
        yield Span(offset + match.start(), offset + match.end(), "ssn")
    for match in _CUED_SSN.finditer(text):
        yield Span(offset + match.start("number"), offset + match.end("number"), "ssn")
    for match in _ABROAD.finditer(text):
        if _can_be_dialled(match[0], None):
            yield Span(offset + match.start(), offset + match.end(), "phone")
    for pattern, region in ((_US_PHONE, "US"), (_CN_MOBILE, "CN"), (_CN_LANDLINE, "CN")):
        for match in pattern.finditer(text):
            if _can_be_dialled(match[0], region):
                yield Span(offset + match.start(), offset + match.end(), "phone")
    for match in _CUED_PHONE.finditer(text):
        if _can_be_dialled(match["number"], "US") or _can_be_dialled(match["number"], "CN"):
            yield Span(offset + match.start("number"), offset + match.end("number"), "phone")


_NO_GAPS = str.maketrans("", "", " -")


def _can_be_dialled(written: str, region: str | None) -> bool:
    import phonenumbers

    try:
        return phonenumbers.is_possible_number(number := phonenumbers.parse(written, region)) and (
            phonenumbers.is_valid_number(number)
        )
    except phonenumbers.NumberParseException:
        return False


def _is_card(digits: str) -> bool:
    """Issuer, length and check digit (Luhn)."""
    if not (13 <= len(digits) <= 19 and digits.isdecimal() and _ISSUERS.match(digits) and len(set(digits)) > 1):
        return False
    odd, even = digits[-1::-2], digits[-2::-2]
    return (sum(map(int, odd)) + sum(sum(divmod(2 * int(digit), 10)) for digit in even)) % 10 == 0


def _is_resident_number(digits: str) -> bool:
    """Eighteen digits of GB 11643: region, date of birth, sequence, check digit."""
    if len(digits) != 18 or not digits[:17].isdecimal() or digits[0] not in "123456789":
        return False
    try:
        date(int(digits[6:10]), int(digits[10:12]), int(digits[12:14]))
    except ValueError:
        return False
    total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, digits, strict=False))
    return int(digits[6:10]) >= 1900 and "10X98765432"[total % 11] == digits[17].upper()
