"""Which files are left out by their names, and why: secrets, what is hidden, what programs made.

Secrets are named in the report, each of them; of the rest, so many were left out for which reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

SECRET: Final = "it may hold secrets"  # noqa: S105  (a reason)
HIDDEN: Final = "it is hidden"
MADE: Final = "a program made it"
IGNORED: Final = "a .gitignore or .greenroomignore says so"
COPIED: Final = "it is another work tree of git"
EMPTY: Final = "it is empty"
NO_TEXT: Final = "it is no text"
UNREAD_PART: Final = "it is a part of a document, such as pictures or charts, that is not read"

_SECRET_NAMES: Final = frozenset(
    {
        ".dockercfg",
        ".boto",
        ".git-credentials",
        ".envrc",
        ".htpasswd",
        ".netrc",
        ".my.cnf",
        ".npmrc",
        ".pgpass",
        ".pypirc",
        ".s3cfg",
        ".terraformrc",
        ".vault-token",
        "_netrc",
        "application_default_credentials.json",
        "credentials",
        "gshadow",
        "id_dsa",
        "id_ecdsa",
        "id_ecdsa_sk",
        "id_ed25519",
        "id_ed25519_sk",
        "id_rsa",
        "kubeconfig",
        "rootkey.csv",
        "shadow",
    }
)
_SECRET_FOLDERS: Final = frozenset(
    {".aws", ".azure", ".docker", ".gnupg", ".kube", ".password-store", ".ssh"}
)
_SECRET_PLACES: Final = ("/.config/gcloud/", "/.config/gh/")
_SECRETS_OF_CONTAINERS: Final = "/run/secrets/"
_SECRET_SUFFIXES: Final = (
    *(".pem", ".key", ".p8", ".p12", ".pfx", ".pk8", ".jks", ".keystore", ".kdb", ".kdbx", ".ppk"),
    *(".ovpn", ".tfstate", ".tfstate.backup", ".tfvars", ".tfvars.json"),
)
_SECRET_PATTERN: Final = re.compile(
    r"(\.env([._~-](?!(example|sample|template|dist)$).*)?|.*\.env"
    r"|(secrets?|credentials|passwords?)\.(csv|ini|json|properties|toml|txt|xml|ya?ml)"
    r"|service[-_]account.*\.json|client_secret.*\.json)"
)
_MADE_NAMES: Final = frozenset(
    {
        "bun.lock",
        "cargo.lock",
        "composer.lock",
        "gemfile.lock",
        "go.sum",
        "package-lock.json",
        "pdm.lock",
        "pipfile.lock",
        "pnpm-lock.yaml",
        "poetry.lock",
        "uv.lock",
        "yarn.lock",
    }
)
_MADE_FOLDERS: Final = frozenset(
    {"__pycache__", "bower_components", "jspm_packages", "node_modules", "pods", "site-packages"}
)
_MADE_SUFFIXES: Final = (".min.js", ".min.mjs", ".min.css", ".map", "_pb2.py", "_pb2_grpc.py", ".pb.go")
MARKS_OF_REPOSITORY: Final = frozenset({"HEAD", "config", "objects", "refs"})
"""What is in a folder that is git's own, such as a repository without a work tree, with addresses and all."""
MARKS_OF_MADE: Final = MARKS_OF_REPOSITORY | {"CACHEDIR.TAG", "pyvenv.cfg"}
"""What says of its folder that a program made all of it: any of it, but of a repository all."""
MARKS_OF_VENDORED: Final = frozenset({"modules.txt", "autoload.php"})
"""Files that say of a folder ``vendor`` that a program fetched all of it."""
_PRIVATE_KEY: Final = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY|AGE-SECRET-KEY-1")
_MADE_CODE: Final = re.compile(
    rb"@generated\b|\bauto-?(?:matically )?generated (?:by|from|file|code)\b"
    rb"|\bgenerated\b.{0,200}\bdo not (?:edit|modify)\b",
    re.IGNORECASE,
)
_MARKED: Final = 1_024
"""The bytes in which generated code says so."""
_MINIFIED: Final = (".js", ".mjs", ".cjs", ".css")
_LONG_LINE: Final = 4_096
"""The bytes of a line in these that nobody wrote by hand."""


def file_reason(name: str) -> str | None:
    """Return why a file with this name is left out; None where its name says nothing against it."""
    folded = name.lower()
    if folded in _SECRET_NAMES or folded.endswith(_SECRET_SUFFIXES) or _SECRET_PATTERN.fullmatch(folded):
        return SECRET
    if name.startswith("."):
        return HIDDEN
    if folded in _MADE_NAMES or folded.endswith(_MADE_SUFFIXES):
        return MADE
    return None


def folder_reason(name: str) -> str | None:
    """Return why a folder with this name is left out with all that is in it; None as `file_reason`."""
    folded = name.lower()
    if folded in _SECRET_FOLDERS:
        return SECRET
    if name.startswith("."):
        return HIDDEN
    return MADE if folded in _MADE_FOLDERS else None


def place_reason(path: str) -> str | None:
    """Return why what is at a path is left out, whatever it is called; None as `file_reason`."""
    folded = f"{path.lower()}/"
    if folded.startswith(_SECRETS_OF_CONTAINERS) or any(place in folded for place in _SECRET_PLACES):
        return SECRET
    return None


def content_reason(head: bytes) -> str | None:
    """Return why a file that begins like this is left out."""
    return SECRET if _PRIVATE_KEY.search(head) else None


def code_reason(name: str, head: bytes) -> str | None:
    """Return why source code that begins like this is left out: it is generated or minified."""
    if _MADE_CODE.search(head[:_MARKED]):
        return MADE
    is_long = max(map(len, head.split(b"\n"))) > _LONG_LINE
    return MADE if is_long and name.lower().endswith(_MINIFIED) else None


def is_made(folder: str, names: Iterable[str]) -> bool:
    """Return whether a folder with these files was made or fetched by a program as a whole."""
    found = frozenset(names)
    marks = MARKS_OF_MADE & found
    is_vendored = folder.endswith("/vendor") and not found.isdisjoint(MARKS_OF_VENDORED)
    return is_vendored or bool(marks - MARKS_OF_REPOSITORY) or marks >= MARKS_OF_REPOSITORY
