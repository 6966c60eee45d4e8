"""URIs of resources (most are also topics of changes), and other topics."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

OWN: str = "greenroom|omnimemory"
"""The schemes of resources that follow a user from tool to tool."""

SESSION = re.compile(r"session://([A-Za-z0-9_.-]{1,128})")
MEMORY = re.compile(r"agent://([A-Za-z0-9_.-]{1,100})/memory(?:\?cursor=([A-Za-z0-9_-]+))?")
_SEGMENT = "[A-Za-z0-9_.@+~-]{1,100}"
MEMORIES = re.compile(f"greenroom://memories/({_SEGMENT}(?::{_SEGMENT}){{1,7}})")
EXPORT = re.compile(r"greenroom://export/([0-9a-f]{32})(?:/(?:[2-9]|[1-9][0-9]{1,3}))?")
PASSPORT = re.compile(r"greenroom://passport/([0-9a-f]{32})")
_FULL_NAME = r"(?:(?:user|project):[A-Za-z0-9_.@+~-]{1,100}|all):[A-Za-z0-9_.@+-]{1,64}"
CORPUS = re.compile(f"greenroom://corpus/({_FULL_NAME})")
WORKSPACE = re.compile(f"greenroom://workspace/({_FULL_NAME})")
DOCUMENT = re.compile(f"greenroom://document/({_FULL_NAME})/(.+)")
_ANY_NAME = r"([^/?#\s]{1,1536})"
"""This has room for 128 escaped characters."""
WORKFLOW = re.compile(rf"(?:{OWN})://workflows/((?:([A-Za-z0-9_.@+~-]{{1,90}})\.)?([0-9a-f]{{16}}))")
PREFERENCES = re.compile(f"(?:{OWN})://user/(?:{_ANY_NAME}/)?preferences")
PROJECT = re.compile(f"(?:{OWN})://project/{_ANY_NAME}")
CURRENT = re.compile(f"(?:{OWN})://session/current")
SAVINGS = re.compile(f"(?:{OWN})://savings")
SAVINGS_OF_USER = "greenroom://savings"
CURRENT_SESSION = "greenroom://session/current"
CONVERSATION = re.compile(rf"(?:{OWN})://conversation/([A-Za-z0-9_.-]{{1,128}})")


def session_uri(session_id: str) -> str:
    """Return the URI of a session."""
    return f"session://{session_id}"


def memory_uri(agent_id: str) -> str:
    """Return the URI of an agent's memory."""
    return f"agent://{agent_id}/memory"


def memories_uri(namespace: str) -> str:
    """Return the URI of the memories of a namespace."""
    return f"greenroom://memories/{namespace}"


def corpus_uri(corpus: str) -> str:
    """Return the URI of a corpus by its full name."""
    return f"greenroom://corpus/{corpus}"


def document_uri(corpus: str, path: str) -> str:
    """Return the URI of a document by its path and its corpus's full name."""
    return f"greenroom://document/{corpus}/{quote(path, safe='/')}"


def workspace_uri(corpus: str) -> str:
    """Return the URI of a workspace by its corpus's full name."""
    return f"greenroom://workspace/{corpus}"


def preferences_uri(user: str) -> str:
    """Return the URI of a user's preferences."""
    return f"greenroom://user/{quote(user, safe='')}/preferences"


def project_uri(project_id: str) -> str:
    """Return the URI of a project."""
    return f"greenroom://project/{quote(project_id, safe='')}"


def conversation_uri(session_id: str) -> str:
    """Return the URI of the conversation of a session."""
    return f"greenroom://conversation/{session_id}"


def workflow_uri(project: str, pattern: str) -> str:
    """Return the URI of a workflow pattern; ``project`` as in an actor's key, or empty."""
    return f"greenroom://workflows/{project}.{pattern}" if project else f"greenroom://workflows/{pattern}"


def pattern_of_uri(uri: str) -> tuple[str, str] | None:
    """Return the project and the workflow pattern of a URI; None for other URIs."""
    named = WORKFLOW.fullmatch(uri)
    return None if named is None else (named[2] or "", named[3])


def decode_name(written: str) -> str | None:
    """Decode a name in a URI; None if it is no text."""
    try:
        return unquote(written, errors="strict")
    except UnicodeDecodeError:
        return None


def is_of_workspace(uri: str) -> bool:
    """Return whether a URI names a workspace."""
    return WORKSPACE.fullmatch(uri) is not None


def is_of_conversation(uri: str) -> bool:
    """Return whether a URI names the conversation of a session."""
    return CONVERSATION.fullmatch(uri) is not None


def is_of_current_session(uri: str) -> bool:
    """Return whether a URI means the client's current session."""
    return CURRENT.fullmatch(uri) is not None


def corpus_of_uri(uri: str) -> tuple[str, str | None] | None:
    """Return the corpus and the document path of a URI; None for other URIs."""
    if named := CORPUS.fullmatch(uri) or WORKSPACE.fullmatch(uri):
        return named[1], None
    if named := DOCUMENT.fullmatch(uri):
        return named[1], unquote(named[2])
    return None


def cursor_of(uri: str) -> str | None:
    """Return the cursor in the URI of an agent's memory, or None."""
    named = MEMORY.fullmatch(uri)
    return None if named is None else named[2]


# -- topics that are no URIs ------------------------------------------------------------------


def preferences_topic(owner: str) -> str:
    """Return the topic of the preferences of an owner: a user's or an agent's namespace."""
    return f"preferences/{owner}"


def project_topic(project: str, scope: str) -> str:
    """Return the topic of a project's part that needs ``scope``; ``project`` is a segment."""
    return f"project/{project}/{scope}"


def client_topic(token: str) -> str:
    """Return the topic of a client's current session, by the client's token."""
    return f"client/{token}"


def work_topic(session_id: str) -> str:
    """Return the topic of a session's work context; the label limits it to its user."""
    return f"work/{session_id}"
