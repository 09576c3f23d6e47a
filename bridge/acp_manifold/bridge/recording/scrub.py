"""Takes out of lines what is nobody else's business: secrets, addresses, and whose machine it was. Pure.

What is taken out stays visible as a placeholder, the same for the same value, in a recording from its first line to
its last. Ids stay, and so does which path lies in which: the home directory becomes `/<home>`, in whatever way a path
of it is spelled. A line without anything to look at is given back as it came, after one look.

What can't be found: a secret that is in neither the environment nor a place where secrets stand, has no known shape,
or comes in pieces, over several lines.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast
from urllib.parse import quote

from acp_manifold.translators.narrow import JsonObject, as_object, is_list, is_object

HOME: Final = "<home>"
USER: Final = "<user>"

SHORTEST: Final = 8
"""Characters of the shortest value that is looked for everywhere: a shorter one stands in words that mean no secret."""

_SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:(?:API_?)?KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)?|CREDENTIALS?|AUTH|AUTHORIZATION|COOKIE|PAT|DSN)"
    r"(?:$|_)|(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)$",
    re.IGNORECASE,
)
"""Names of environment variables whose values are secrets."""

_PLACE_NAME: Final = re.compile(
    r"(?:FILE|PATH|DIR|HOME|SOCK|URL|HELPER|PROGRAM|ASKPASS|AUTHORITY|MS|TOKENS)$", re.IGNORECASE
)
"""Names of those that only say where a secret is, or how many there may be."""

_SECRET_MEMBER: Final = re.compile(
    r"(?:proxy-)?authorization|(?:x-|anthropic-|openai-)?api[-_]?key|(?:access|refresh|id|auth|bearer|oauth)[-_]?token|"
    r"token|(?:client[-_]?)?secret|password|passwd|passphrase|(?:set-)?cookie",
    re.IGNORECASE,
)
"""Members of JSON objects that hold a secret if they hold a string."""

_OF_VALUES: Final = frozenset({"env", "headers", "http_headers", "httpHeaders", "env_http_headers"})
"""Members all of whose values are secrets, whatever they are called: environments and headers of MCP servers."""

_SECRET_WORD: Final = (
    r"(?:api[-_]?key|(?:access|secret)[-_]key|(?:access|refresh|id|auth|bearer|oauth|api)[-_]?token|token|"
    r"(?:client[-_]?)?secret|password|passwd|passphrase)"
)
"""What a secret is called where it is assigned: in an address, on a command line, in a shell."""

_FLAG: Final = re.compile(rf"--?(?:[a-z0-9]+[-_])*{_SECRET_WORD}", re.IGNORECASE)
"""An argument behind which a secret stands."""

_ASSIGNED: Final = re.compile(
    rf"(?P<name>(?:{_SECRET_WORD}[\"']?\s?=\s?|x-api-key[\"']?:\s?)[\"']?"
    rf"|(?<![\w-])--?[a-z0-9-]{{0,40}}{_SECRET_WORD} )"
    r"(?P<value>(?=[A-Za-z0-9._~+/%-]*\d)[A-Za-z0-9._~+/%-]{8,}={0,2}(?![\w(\[.]))"
    r"|(?P<place>://[^\s/:@\"'<>]{0,64}:)(?P<password>[^\s/@\"'<>]{3,128})(?=@)"
    r"|(?P<begin>-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----)(?P<key>[A-Za-z0-9+/=\s\\]{8,})",
    re.IGNORECASE,
)
"""A secret behind its name, or behind whose it is."""

_SIGNS: Final = ("=", "--", "://", "i-key", "I-Key", "I-KEY")
"""One of these stands in every text with something assigned."""

_SHAPES: Final = re.compile(
    r"(?P<before>\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+|token\s+)?|\bbearer\s+)"
    r"(?P<after>[A-Za-z0-9._~+/=-]{8,})"
    r"|\bsk-[A-Za-z0-9_-]{12,}|\bgh[opusr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\bAKIA[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    re.IGNORECASE,
)
"""What a secret looks like wherever it stands."""

_IN_PLACE: Final = (("name", "value"), ("place", "password"), ("begin", "key"))
"""Of what is assigned: the words before it, which stay, and the secret."""

_EMAIL: Final = re.compile(
    r"[A-Za-z0-9._%+-]+@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
)

_MARKS: Final = (
    *(b"@", b"\\u", b"\\/", b'env"', b"eaders", b"sk-", b"gh", b"xox", b"AKIA", b"AIza", b"eyJ", b'oken"', b"earer"),
    *(b"EARER", b"SK-", b"GH", b"XOX", b"uthoriz", b"UTHORIZ", b"pi_", b"pi-", b"piK", b"PI_", b"ecret", b"ECRET"),
    *(
        b"assw",
        b"ASSW",
        b"assphr",
        b"ookie",
        b"OOKIE",
        b'OKEN"',
        b"PIK",
        b"PI-",
        b"-token",
        b"oken=",
        b"oken =",
        b"OKEN=",
    ),
    *(b"ess-key", b"ess_key", b"ESS_KEY", b"PRIVATE"),
)
"""One of these stands in every line that any of the rules but those of values changes."""

_PLACEHOLDER: Final = re.compile(r"<(?:token|header|email)-\d+>|<home>|<user>")


class Scrubber:
    """Scrubs the lines of one recording.

    Args:
        environ: Where secrets are looked for, by the names of the variables.
        home: The home directory.
        user: The name of the user, or nothing.
    """

    def __init__(self, environ: Mapping[str, str], home: str, user: str) -> None:
        self.kinds: set[str] = set()
        """What was replaced so far: `home`, `user`, `token`, `header`, `email`."""
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._secrets: dict[str, str] = {}
        """By value, the kind of it."""
        self._values: re.Pattern[str] | None = None
        self._needles: tuple[bytes, ...] = ()
        self._paths = _paths(home.rstrip("/"), user)
        self._path_marks = _path_marks(home.rstrip("/"), user)
        for name, value in environ.items():
            if _SECRET_NAME.search(name) and not _PLACE_NAME.search(name):
                self._learn(value, "token")
        self._look_for()

    def line(self, line: bytes) -> bytes:
        """One line of JSON, scrubbed, and the same bytes if nothing is in it; what is no JSON is scrubbed as text."""
        for needle in self._needles:
            if needle in line:
                break
        else:
            return line
        try:
            value = cast(object, json.loads(line))
        except (ValueError, RecursionError):
            return self.text(line.decode("utf-8", "replace")).encode("utf-8", "replace")
        clean = self.value(value)
        if clean == value:
            return line
        return _encode(clean)

    def fields(self, value: JsonObject) -> JsonObject:
        """A JSON object, scrubbed."""
        return as_object(self.value(value))

    def value(self, value: object) -> object:
        """Any JSON, scrubbed."""
        before = len(self._secrets)
        for secret, kind in _told(value, of_values=False):
            self._learn(secret, kind)
        if len(self._secrets) != before:
            self._look_for()
        return self._value(value, None)

    def text(self, words: str) -> str:
        """Words, scrubbed."""
        if self._values is not None:
            words = self._values.sub(lambda found: self._name(self._secrets[found[0]], found[0]), words)
        words = _SHAPES.sub(self._shaped, words)
        if any(sign in words for sign in _SIGNS):
            words = _ASSIGNED.sub(self._assigned, words)
        if "@" in words:
            words = _EMAIL.sub(lambda found: self._name("email", found[0]), words)
        for kind, pattern, placeholder in self._paths:
            words, count = pattern.subn(placeholder, words)
            if count:
                self.kinds.add(kind)
        return words

    def _value(self, value: object, kind: str | None) -> object:
        """`kind` is what every string in the value is, whatever it says."""
        if isinstance(value, str):
            return self._whole(value, kind) if kind is not None else self.text(value)
        if is_object(value):
            if kind is not None and _is_pair(value):
                return {key: self._value(member, None if key == "name" else kind) for key, member in value.items()}
            return {self.text(key): self._value(member, _kind_of(key, member) or kind) for key, member in value.items()}
        if is_list(value):
            return [self._value(item, kind) for item in value]
        return value

    def _whole(self, value: str, kind: str) -> str:
        if not value or _PLACEHOLDER.fullmatch(value):
            return value
        return self._name(self._secrets.get(value, kind), value)

    def _shaped(self, found: re.Match[str]) -> str:
        if found["after"] is None:
            return self._name("token", found[0])
        return f"{found['before']}{self._name('token', found['after'])}"

    def _assigned(self, found: re.Match[str]) -> str:
        before, secret = next(pair for pair in _IN_PLACE if found[pair[1]] is not None)
        return f"{found[before]}{self._name('token', found[secret])}"

    def _name(self, kind: str, value: str) -> str:
        """The placeholder of a value."""
        self.kinds.add(kind)
        name = self._names.get((kind, value))
        if name is None:
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            name = self._names[kind, value] = f"<{kind}-{count}>"
        return name

    def _learn(self, value: str, kind: str) -> None:
        if len(value) >= SHORTEST and not _PLACEHOLDER.search(value):
            for form in (value, *_spellings(value)):
                self._secrets.setdefault(form, kind)

    def _look_for(self) -> None:
        """Make what looks for the secrets that are known by now; of two the longer one comes first."""
        values = sorted(self._secrets, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, values))) if values else None
        spelled = [form.encode("utf-8", "replace") for value in values for form in _forms(value)]
        self._needles = (*dict.fromkeys(spelled), *self._path_marks, *_MARKS)


def _spellings(value: str) -> Iterator[str]:
    """How a value is spelled in an address, and as base64 of its own."""
    data = value.encode("utf-8", "replace")
    yield quote(data, safe="")
    yield b64encode(data).decode().rstrip("=")
    yield urlsafe_b64encode(data).decode().rstrip("=")


def _forms(value: str) -> Iterator[str]:
    """How a value stands in JSON, and in JSON that is a string of JSON."""
    once = json.dumps(value, ensure_ascii=False)[1:-1]
    yield once
    yield json.dumps(once, ensure_ascii=False)[1:-1]


def _is_pair(value: JsonObject) -> bool:
    """Whether it is a variable or a header as ACP spells one, whose name is no secret."""
    return "name" in value and "value" in value


def _kind_of(key: str, member: object) -> str | None:
    if key in _OF_VALUES and (is_object(member) or is_list(member)):
        return "header" if "eader" in key else "token"
    return "token" if isinstance(member, str) and _SECRET_MEMBER.fullmatch(key) else None


def _told(value: object, *, of_values: bool, kind: str = "token") -> Iterator[tuple[str, str]]:
    """The secrets in a value, by the places where they stand, each with its kind."""
    if isinstance(value, str):
        if of_values:
            yield value, kind
    elif is_object(value):
        for key, member in value.items():
            found = _kind_of(key, member)
            inside = found is not None or (of_values and not (key == "name" and _is_pair(value)))
            yield from _told(member, of_values=inside, kind=found or kind)
    elif is_list(value):
        behind_flag = False
        for item in value:
            yield from _told(item, of_values=of_values or (behind_flag and isinstance(item, str)), kind=kind)
            behind_flag = isinstance(item, str) and _FLAG.fullmatch(item) is not None


def _dashed(path: str) -> str:
    """A path as the name of one folder, the way some CLIs spell it."""
    return re.sub(r"[^A-Za-z0-9]", "-", path)


def _paths(home: str, user: str) -> list[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]]]:
    rules: list[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]]] = []
    if len(home) > 1:
        # Not the beginning of a longer name, and not the end of a longer path.
        rules.append(("home", re.compile(rf"(?<![\w.-]){re.escape(home)}(?![\w-]|\.\w)"), f"/{HOME}"))
        rules.append(
            ("home", re.compile(rf"(?<![\w-]){re.escape(_dashed(home))}(?=-|$|[/\\\s\"'])"), _dashed(f"/{HOME}"))
        )
    if len(user) > 1 and user != "root":
        rules.append(("user", re.compile(rf"(?<=[/\\]){re.escape(user)}(?![\w-]|\.\w)"), USER))
    return rules


def _path_marks(home: str, user: str) -> tuple[bytes, ...]:
    marks = [home.encode(), _dashed(home).encode()] if len(home) > 1 else []
    if len(user) > 1 and user != "root":
        marks += [f"/{user}".encode(), f"\\{user}".encode()]
    return tuple(marks)


def _encode(value: object) -> bytes:
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return line.encode()
    except UnicodeEncodeError:
        # Halves of surrogate pairs, which UTF-8 can't hold.
        return json.dumps(value, separators=(",", ":")).encode()
