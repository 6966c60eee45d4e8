"""Shapes of command lines: programs and options, without arguments.

A shape keeps the names of programs, subcommands and options, and has a placeholder for every other argument:
``git checkout <word>``, ``curl -H <string> <url>``. An unknown word is kept only in the place of a name, and
once it is frequent (`Word`). A word after an option, in quotes, with a digit or next to a password is never
kept. The shape of a shape is the same shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROGRAMS: Final = _words("""
    ack ansible apt apt-get awk aws az bash bat black brew bun bundle bzip2 cargo cat cd chmod chown clang
    clang-format clear cmake code column comm composer conda convert cp crontab ctest curl cut date dd deno
    df diff dig dirname dnf docker docker-compose dotnet du echo emacs env eslint exit expr fd ffmpeg fg file
    find flake8 free ftp g++ gcc gdb gem gh git go gofmt gradle grep gunzip gzip head helm history htop id
    ifconfig install ip isort jar java javac jest jobs journalctl jq just kill killall kubectl less ln
    locate ls lsof make man mkdir mocha mongo more mount mv mvn mypy mysql nano nc netstat next ninja nmap
    node npm npx nslookup nvim nvm open patch perl php phpunit ping pip pip3 pipx pkill pnpm podman poetry
    pre-commit prettier printenv printf ps psql pwd pylint pyright pytest python python3 r rails rake
    rbenv readlink redis-cli rg rm rmdir rsync ruby ruff rustc rustup scp sed seq service set sh shellcheck
    sleep sort source split sqlite3 ssh stat strace su sudo svn swift sync systemctl tail tar tee terraform
    test time timeout tmux top touch tox tr traceroute tree tsc tshark type ulimit umount uname uniq unzip
    uptime uv uvicorn vagrant valgrind vi vim vitest wait watch wc webpack wget whereis which whoami xargs
    xdg-open yarn yum zcat zip zsh
""")
"""Programs that are kept by name from the first time on."""
SUBCOMMANDS: Final = _words("""
    add apply audit auth benchmark bisect blame branch build bump cache check checkout cherry-pick clean
    clippy clone commit compose config container coverage create daemon-reload delete deploy describe dev diff
    disable doc docs down drop edit enable exec explain export fetch fix fmt format generate get grep help
    image images import info init inspect install lint list lock log login logout logs merge migrate mod move
    network new node outdated pack package plan pod pods prune ps publish pull push rebase recreate release
    reload remote remove rename reset restart restore revert revision rm rollback rollout run scale search
    serve service set setup shell show sort stage start stash stats status stop submodule switch sync tag
    test tidy top uninstall unstash up update upgrade validate venv verify version vet view volume watch why
    worktree
""")
"""Subcommands of any program."""
OPTIONS: Final = _words("""
    -delete -empty -exec -iname -jar -maxdepth -mindepth -mtime -name -newer -path -perm -print -regex -size
    -type -version
""")
"""Options of more than three letters after one dash; any other such word may be a letter with its value."""
WRAPPERS: Final = _words("builtin command env exec nice nohup npx sudo time timeout xargs")
"""Programs that take a program as their first argument."""
SECRETIVE: Final = _words("""
    chpasswd echo export gpg htpasswd login mysqladmin openssl passwd printf read set sshpass su vault
""")
"""Programs with arguments that are never kept."""
NAMING_OPTIONS: Final = frozenset({("python", "-m"), ("python3", "-m"), ("npx", "-y"), ("uv", "-m")})
"""Programs with an option that takes the name of a program."""
LONGEST: Final = 200
"""The most characters of a shape."""
MOST_SEGMENTS: Final = 8
"""The most commands of one line in a shape."""
MOST_NAMES: Final = 2
"""The most words after a program that may be names, as in ``docker compose up``."""
NAMELESS: Final = "<program>"
_LINES: Final = "<lines>"
_PROGRAMS: Final = PROGRAMS | SECRETIVE | WRAPPERS
_KNOWN: Final = PROGRAMS | SUBCOMMANDS
_PLACEHOLDER = "<(?:program|path|number|hash|url|string|value|word|variable|lines)>"
_PART = rf"""{_PLACEHOLDER}|"(?:[^"\\]|\\.)*"?|'[^']*'?|\\.?|[^\s"'\\|&;<>()]"""
_TOKEN = re.compile(rf"(?P<word>(?:{_PART})+)|(?P<operator>[|&;()]+|[<>]+[&|(]?)", re.DOTALL)
_IS_PLACEHOLDER = re.compile(_PLACEHOLDER)
_NAME = re.compile(r"[A-Za-z][A-Za-z_.:+-]{0,39}")
_SUBCOMMAND = re.compile(r"[a-z][a-z:_-]{0,23}")
_ASSIGNMENT = re.compile(r"([A-Za-z_]{1,30})=.*", re.DOTALL)
_LONG_OPTION = re.compile(r"(--[a-z]{2,}(?:-[a-z]+){0,5})(=.*)?", re.DOTALL)
_SHORT_OPTION = re.compile(r"-[A-Za-z]{1,3}")
_GLUED_OPTION = re.compile(r"(-[A-Za-z]).+", re.DOTALL)
_SECRET = re.compile(r"pass|pwd|secret|token|auth|cred|key|login|bearer", re.IGNORECASE)
_KINDS: Final = (
    (re.compile(r"""["'].*|.*=["'].*""", re.DOTALL), "<string>"),
    (re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*", re.DOTALL), "<url>"),
    (re.compile(r"[+-]?[0-9][0-9.,:_]*[A-Za-z%]?"), "<number>"),
    (re.compile(r"(?=[^0-9]*[0-9])(?:[0-9a-f]{7,}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"), "<hash>"),
    (re.compile(r"\$.*", re.DOTALL), "<variable>"),
    (re.compile(r"[^\s=:]*/.*|~.*|\.{1,2}|[^\s=:@]*\.[a-z]{1,5}", re.DOTALL), "<path>"),
    (_SUBCOMMAND, "<word>"),
)


class Word(NamedTuple):
    """An unknown word in the place of a name, with its program."""

    program: str
    word: str


class Shape(NamedTuple):
    """The shape of a command line, and the possible names that it leaves out."""

    text: str
    words: tuple[Word, ...] = ()


def build_shape(command: str, is_frequent: Callable[[Word], bool], *, passed: bool = True) -> Shape:
    """Return the shape of a command line.

    An unknown program is kept by name only if the command ``passed``: a password typed as a command fails.
    """
    line, more, _ = command.strip().partition("\n")
    shaper = _Shaper(is_frequent, passed=passed)
    for found in _TOKEN.finditer(line):
        if not shaper.has_room:
            break
        if found["operator"] is not None:
            shaper.operator(found["operator"])
        else:
            shaper.word(found["word"])
    if more:
        shaper.put(_LINES)
    return shaper.shape()


class _Shaper:
    """Builds the shape of one command line."""

    def __init__(self, is_frequent: Callable[[Word], bool], *, passed: bool) -> None:
        self._is_frequent = is_frequent
        self._passed = passed
        self._shape: list[str] = []
        self._words: list[Word] = []
        self._segments = 1
        self._begin()

    def _begin(self) -> None:
        self._program: str | None = None
        self._wrapper: str | None = None
        self._may_be_value = False
        self._names = 0
        self._takes_names = True
        self._is_secret = False
        self._is_target = False

    @property
    def has_room(self) -> bool:
        return self._segments <= MOST_SEGMENTS and sum(map(len, self._shape)) < LONGEST

    def put(self, text: str) -> None:
        """Add to the shape; merge repeated placeholders."""
        if not (self._shape and self._shape[-1] == text and _IS_PLACEHOLDER.fullmatch(text)):
            self._shape.append(text)

    def operator(self, text: str) -> None:
        if self._is_target:
            self.word("<path>")
        if text[0] in "<>":
            self.put(text[0])
            self._is_target = True
            return
        joint = text[:2] if text[:2] in {"&&", "||"} else text[0] if text[0] in "|&;" else ";"
        if self._program is not None or self._wrapper is not None:
            self.put(joint)
            self._segments += 1
        self._begin()

    def word(self, text: str) -> None:
        if text == _LINES:
            self.put(text)
        elif self._is_target:
            self._is_target = False
            self.put("<number>" if text.isdigit() or text == "<number>" else "<path>")
        elif self._program is None:
            self._take_program(text)
        else:
            self._take_argument(text)

    def _take_program(self, text: str) -> None:
        if (assigned := _ASSIGNMENT.fullmatch(text)) is not None:
            self.put(f"{assigned[1]}=<value>")
            return
        if self._wrapper is not None and self._is_for_wrapper(text):
            self._may_be_value = True
            self.put(self._option(text))
            return
        name = text.rpartition("/")[2] if not text.endswith("/") else text
        is_named = "/" not in text
        if name not in _PROGRAMS and _NAME.fullmatch(name) is None:
            name = NAMELESS
        elif name not in _PROGRAMS and not (is_named and self._passed):
            name = self._name("", name, NAMELESS)
        self.put(name)
        if name in WRAPPERS:
            self._wrapper = name
        else:
            self._program = name
            self._is_secret = name in SECRETIVE or name == NAMELESS

    def _is_for_wrapper(self, text: str) -> bool:
        """Return whether a word after a wrapper such as ``sudo`` is probably not a program."""
        if text == NAMELESS or text in _PROGRAMS:
            return False
        return self._may_be_value or text.startswith("-") or _IS_PLACEHOLDER.fullmatch(text) is not None

    def _take_argument(self, text: str) -> None:
        assert self._program is not None, "arguments follow a program"
        if _IS_PLACEHOLDER.fullmatch(text) is not None:
            self._take_masked(text)
        elif text.startswith("-") and len(text) > 1:
            self._takes_names = (self._program, text) in NAMING_OPTIONS
            self.put(self._option(text))
        elif self._is_secret:
            self.put("<value>")
        elif self._takes_names and self._names < MOST_NAMES and _SUBCOMMAND.fullmatch(text):
            self._names += 1
            self.put(text if text in _KNOWN else self._name(self._program, text, "<word>"))
            self._is_secret = _SECRET.search(text) is not None
        else:
            self._takes_names = False
            self.put(_kind(text))

    def _take_masked(self, text: str) -> None:
        if text == "<word>" and self._takes_names and self._names < MOST_NAMES:
            self._names += 1
        else:
            self._takes_names = False
        self.put("<value>" if self._is_secret else text)

    def _option(self, text: str) -> str:
        if not text.startswith("-"):
            return text if _IS_PLACEHOLDER.fullmatch(text) is not None else "<value>"
        if (long := _LONG_OPTION.fullmatch(text)) is not None:
            self._is_secret = self._is_secret or _SECRET.search(long[1]) is not None
            return long[1] + ("=<value>" if long[2] else "")
        if _SHORT_OPTION.fullmatch(text) is not None or text in OPTIONS:
            return text
        if (glued := _GLUED_OPTION.fullmatch(text)) is not None:
            return glued[1] + "<value>"
        return _kind(text)

    def _name(self, program: str, word: str, otherwise: str) -> str:
        """Return a possible name, if it is frequent."""
        named = Word(program, word)
        if _SECRET.search(word) is None and self._is_frequent(named):
            return word
        self._words.append(named)
        return otherwise

    def shape(self) -> Shape:
        while self._shape and self._shape[-1] in {"|", "&", ";", "&&", "||", "<", ">"}:
            self._shape.pop()
        text = " ".join(self._shape) or NAMELESS
        return Shape(
            text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] or NAMELESS,
            tuple(self._words),
        )


def _kind(text: str) -> str:
    for pattern, placeholder in _KINDS:
        if pattern.fullmatch(text) is not None:
            return placeholder
    return "<value>"
