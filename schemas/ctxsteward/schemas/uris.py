"""URIs as they may be shown: errors, reports and logs are read by people who may not have the password in them.

A URI is whatever holds ``://``, up to white space. Hidden are the password of ``user:password@host``, whole or cut
short, everything before the ``@`` of an http address (a token often stands there alone), and values of query keys whose
names say that they are secret. What is doubtful is hidden. Linear in the text. Source: RFC 3986, 3.2.1.
"""

from __future__ import annotations

import re

HIDDEN = "***"
_WORD = re.compile(r"\S+")
_PAIR = re.compile(r"([?&;][\w.-]+=)([^&;]+)")
_AUTHORITY_END = re.compile(r"[/?#]")
_SECRET = ("pass", "pwd", "secret", "token", "credential", "signature", "api_key", "apikey", "access_key", "accesskey")
_CLOSING = "'\"`)]}>.,;:"
_NO_PASSWORD = re.compile(r"[0-9]*|PORT")
"""A port, or the word for one in a hint."""


def without_secrets(text: str) -> str:
    """The text with the secrets of all URIs in it hidden.

    >>> without_secrets("cannot reach postgresql://ann:hunter2@db/cards?sslmode=require")
    'cannot reach postgresql://ann:***@db/cards?sslmode=require'
    """
    return _WORD.sub(lambda word: _shown(word[0]), text) if "://" in text else text


def _shown(word: str) -> str:
    """A word with a URI in it, or several: an endpoint stands in the query of another."""
    scheme, *rests = word.split("://")
    shown = [scheme]
    for rest in rests:
        shown.append(_without_password(rest, is_http=scheme.lower().endswith(("http", "https"))))
        scheme = rest
    return "://".join(shown)


def _without_password(rest: str, *, is_http: bool) -> str:
    """What stands behind the scheme of a URI."""
    if "=" in rest:
        rest = _PAIR.sub(_pair, rest)
    authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
    before, at, host = rest.rpartition("@")
    if "@" in authority and is_http:
        return f"{HIDDEN}@{host}"
    name = before if "@" in authority else authority.rpartition("]")[2]  # behind an IPv6 address a port may stand
    user, colon, password = name.partition(":")
    is_host = name is not before and (not at or is_http)
    if not colon or (is_host and _NO_PASSWORD.fullmatch(password.rstrip(_CLOSING))):
        return rest
    return f"{user}:{HIDDEN}{at}{host if at else ''}"


def _pair(pair: re.Match[str]) -> str:
    name = pair[1].lower().replace("-", "_")
    return f"{pair[1]}{HIDDEN}" if any(word in name for word in _SECRET) else pair[0]
