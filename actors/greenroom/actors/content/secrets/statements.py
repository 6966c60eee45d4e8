"""Passwords in statements, calls and files of known programs: patterns, and the search for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.actors.content.secrets.values import Span, compile_pattern, is_placeholder

_VALUE_OF_CALL: Final = (
    r"\(\s{0,3}[\"']\w{0,60}(?:pass(?:word|wd|phrase)?|pwd|secret|key|token|salt)[\"'],"
    r"\s{0,3}[\"']([^\"'\n]{5,300})[\"']\s{0,3}\)"
)
_SECOND: Final = r"[\"'][^\"'\n]{1,100}[\"'],\s{0,3}[\"']([^\"'\n]{3,200})[\"']"
_TWO: Final = rf"{_SECOND}\s{{0,3}}\)"
_WITH_DIGIT: Final = (
    r"[\"'][^\"'\n]{1,100}[\"'],\s{0,3}[\"'](?=[^\"'\n0-9]{0,200}[0-9])([^\"'\n]{3,200})[\"']\s{0,3}\)"
)
_PLAIN: Final = r"[\"']?([^\s\"'<>{}()\[\],]{4,200}+)(?![(\[])"
_BARE: Final = r"([^\s\"'&;<>{}()\[\],]{4,200})"
_SHORT: Final = r"[\"'](?=[^\"'\s]{0,30}[0-9])([^\s\"']{6,60})[\"']"
_OF_SQL: Final = r"password\s{0,3}(?:=\s{0,3})?(?:n|password)?\s?\(?\s?\\?'([^'\n\\]{3,200})'"
_STATEMENTS: Final = (
    *(
        (f"{call}(", f"{call}{_VALUE_OF_CALL}")
        for call in (
            "define",
            "setenv",
            "putenv",
            "setproperty",
            "setdefault",
            "env",
            "getenv",
            "environ.get",
        )
    ),
    (
        "identified",
        (
            r"identified\s{1,4}(?:with\s{1,4}\S{1,60}\s{1,4})?(?:by|as)\s{1,4}(?:password\s{1,4})?"
            r"\\?[\"']([^\"'\n\\]{3,200})"
        ),
    ),
    ("identified", r"identified by ([^\s\"';]{3,100});"),
    ("password", _OF_SQL),
    (
        "pass",
        r"pass(?<![\w.-]pass)[\"']?(?: {0,3}(?:=>|:) {0,3}| {0,3}= {0,3})\\?[\"']([^\"'\s\\]{5,200})[\"'\\]",
    ),
    ("pass", r"pass(?<![\w.$]pass)=(?=[^\s\"',;&)]{0,60}[0-9])([^\s\"'(,;&)]{5,200})(?![(\w])"),
    (
        "pass: ",
        (
            r"pass(?<![\w.$-]pass): {1,2}(?=\S{0,40}[a-z])(?=\S{0,40}[0-9])"
            r"([^\s\"'`(,;&)\[{<]{6,64})(?=[\s,;]|$)"
        ),
    ),
    ("pass", rf"user(?:name)? [^\s,]{{1,40}},? {{0,2}}pass:? {_PLAIN}"),
    ("login(", rf"login\(\s{{0,3}}{_TWO}"),
    ("auth", rf"(?:auth(?<![\w$]auth)|(?:basic|digest)_?auth)\s?=?\s?\(\s{{0,3}}{_WITH_DIGIT}"),
    ("authenticate(", rf"authenticate\(\s{{0,3}}{_WITH_DIGIT}"),
    *((f"{call}(", rf"{call}\(\s{{0,3}}{_TWO}") for call in ("networkcredential", "credentials")),
    *(
        (f"{call}(", rf"{call}\([^\n,]{{1,200}},\s{{0,3}}{_SECOND}")
        for call in ("getconnection", "mysqli", "mysqli_connect", "pdo", "plainauth", "mysql_connect")
    ),
    *(
        (
            "value",
            (
                rf"{what}(?:[\"'],?\s{{1,20}}[\"']?value[\"']?\s?[:=]|"
                rf"[ \t]{{0,3}}\n[ \t]{{0,20}}value:)\s?{_PLAIN}"
            ),
        )
        for what in ("password", "passwd", "pwd", "secret", "token", "_key", "apikey", "_pass")
    ),
    (
        "default",
        (
            rf"variable\s{{1,4}}\"\w{{0,40}}(?:password|secret|token|key)\"\s{{0,4}}"
            rf"\{{[^{{}}]{{0,200}}?default\s{{0,9}}=\s{{0,4}}{_PLAIN}"
        ),
    ),
    ("env ", rf"env\s{{1,4}}\w{{0,40}}(?:password|passwd|secret|token|_key|_pass|pwd)\s{{1,4}}{_PLAIN}"),
    ("send_keys(", rf"pass\w{{0,8}}[\"']\)\.send_keys\([\"']{_PLAIN}"),
    ("set_password(", rf"set_password\([\"']{_PLAIN}"),
    ("fill(", rf"fill\([\"'][^\"'\n]{{0,60}}pass\w{{0,8}}[^\"'\n]{{0,20}}[\"'],\s{{0,3}}[\"']{_PLAIN}"),
    ("psk", r"psk\s?=\s?\\?[\"']?([^\s\"'\\]{8,63})"),
    (":_", r":_(?:authtoken|auth|password)[ =]{1,3}[\"']?([^\s\"']{6,200})"),
    ("password", r"(?:store|key)password\s{1,4}[\"']([^\s\"']{4,100})[\"']"),
    ("password", r"password[ \t]{0,4}\r?\n[ \t]{0,8}(?=[a-z]{0,63}[0-9])([a-z0-9]{20,64})(?=\s|$)"),
    ("bindpw", r"bindpw\s{1,8}(\S{3,100})"),
    ("password(", r"(?:\.|set|with_?)password\([\"']([^\s\"']{4,100})[\"']\)"),
    ("x-", r"x-(?:[a-z]{2,12}-)?(?:api-?key|token|auth)[\"']?\s?:\s?[\"']?([^\s\"']{6,300})"),
    ("private-lines:", r"private-lines: [0-9]{1,3}((?:\r?\n[a-z0-9+/=]{4,80}){1,99}+)"),
    (":$", r":(\$(?:[156y7]|2[aby]|apr1|argon2id?|scrypt)\$[./a-z0-9$=,+-]{20,300})"),
    ("&", r"[?&](?:pw|pwd|pass|passwd|password|auth|code)=(?=[^\s&\"'#]{0,60}[0-9])([^\s&\"'#<{$]{6,300})"),
    ("password=", rf"(?:[?&;](?:pw|pwd|pass|passwd|password)=|;[ ]?(?:pwd|password)=){_BARE}(?=[&;\"'\s]|$)"),
    ("pwd=", rf"(?:[?&;])pwd=[\"']?{_BARE}(?=[&;\"'])"),
    (
        "password=",
        (
            r"(?:user\w{0,5}=\S{1,60}|kv put \S{1,80}|\bhttps? [^\n]{1,90})[^\n,(]{0,60}?[ ]password="
            r"([^\s,)\"'&;]{3,100})(?=\s|$)"
        ),
    ),
    (
        "-",
        r"(?<!\S)-(?:[dp]|-[a-z]\w{0,40}\.)[\w.]{0,60}(?:password|passphrase|passwd|secret|token)=[\"']?([^\s\"']{3,200})",
    ),
    (
        "--pass",
        (
            r"--?user(?:name)?[ =]\S{1,80} (?:[^\n]{0,60}? )?--pass(?:word|phrase)?[ =][\"']?"
            r"([^\s\"'-][^\s\"']{3,100})"
        ),
    ),
    (
        "set -",
        (
            r"set -[a-z]{1,3} \w{0,40}(?:pass(?:word)?|secret|key|token) [\"']?"
            r"(?=[^\s]{0,60}[0-9])([^\s\"']{4,200})"
        ),
    ),
    ("authentication_string", r"authentication_string\s?=\s?password\('([^']{3,100})"),
    ("connect(", rf"\bconnect\([^\n()=]{{0,80}}[\"'][^\"'\n]{{1,60}}[\"'],\s{{0,3}}{_SHORT}\s{{0,3}}\)"),
    ("ingest.", r"//([0-9a-f]{32})@[\w.]{0,20}ingest\.sentry"),
    ("requirepass", r"requirepass\s{1,4}[\"']?([^\s\"']{3,200})"),
    ("login", r"login\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(\S{3,200})"),
    ("setx", r"setx\s{1,4}\w{0,60}(?:pass(?:word|wd)?|secret|key|token)\s{1,4}\"?([^\s\"]{3,200})"),
    (":54", r":54[0-9]{2}:[\w*-]{1,60}:[\w*-]{1,60}:([^\s:]{5,100})(?=\s|$)"),
    ("base64:", r"base64:([a-z0-9+/]{43}=|[a-z0-9+/]{22}==)"),
    ("sshpass=", r"sshpass=[\"']?([^\s\"']{3,200})"),
)
"""Passwords in statements and files of known programs: a literal part, and the pattern, in lower case."""
_OF_USERS: Final = r"\b(?:user|role|login|set|group)\b[^\n;]*$"
_INSERT: Final = r"insert into [\w.\"`]{1,80}\s{0,3}\(([^()\n]{1,300})\)\s{0,9}values\s{0,9}\(()"
_INSERTED: Final = r"\s{0,3}(?:'([^'\n]{0,200})'|[^,()']{1,200})\s{0,3}(?:,|\)|$)"
_LONGEST_ROW: Final = 2_000
_OF_HASH: Final = 3
"""Dollar signs that a password hash has."""
_STATEMENT: Final = 120
_LINE: Final = r"password(?:=|:[ \t]{1,3})([a-z]{4,40})[ \t]{0,3}(?=\n|$)"
_USERS_LINE: Final = (
    r"(?:user|username|login|host|ssid)(?:=|:[ \t]{1,3})[\"']?[\w.@-]{1,60}[\"']?[ \t]{0,3}(?:\n|$)"
)


def stated_secrets(text: str, folded: str) -> Iterator[Span]:
    """Find secrets in statements; ``folded`` is the text in lower case, of equal length."""
    if "insert into" in folded:
        yield from _inserted(text, folded)
    if "password" in folded:
        yield from _in_blocks(text, folded)
    for part, pattern in _STATEMENTS:
        if part in folded:
            yield from _stated(text, folded, pattern)


def _inserted(text: str, folded: str) -> Iterator[Span]:
    """Find passwords among the values of an SQL statement, by the columns' names."""
    for found in compile_pattern(_INSERT).finditer(folded):
        values = compile_pattern(_INSERTED).finditer(text, found.start(2), found.start(2) + _LONGEST_ROW)
        for column, value in zip(found[1].split(","), values, strict=False):
            if compile_pattern(r"\W*(?:pass(?:word|wd)?|pwd|secret|token|api_key)\W*").fullmatch(column):
                literal = value[1] or ""
                if literal and not is_placeholder(literal):
                    yield Span(*value.span(1), "password", 1)


def _in_blocks(text: str, folded: str) -> Iterator[Span]:
    """Find passwords, even plain words, in lines near those of users or hosts."""
    for found in compile_pattern(_LINE).finditer(folded):
        if compile_pattern(_USERS_LINE).search(
            folded, max(0, found.start() - _STATEMENT), found.end() + _STATEMENT
        ):
            value = text[slice(*found.span(1))]
            if not is_placeholder(value):
                yield Span(*found.span(1), "password", 1)


def _stated(text: str, folded: str, pattern: str) -> Iterator[Span]:
    for found in compile_pattern(pattern).finditer(folded):
        value = text[slice(*found.span(1))]
        if pattern == _OF_SQL and not compile_pattern(_OF_USERS).search(
            folded[max(0, found.start() - _STATEMENT) : found.start()]
        ):
            continue
        if not (is_placeholder(value) or (value.startswith(("%", "$", "{")) and value.count("$") < _OF_HASH)):
            yield Span(*found.span(1), "password", 1)
