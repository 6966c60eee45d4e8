"""Source files by their syntax: symbols, references, imports and chunks; no I/O.

`read_source` is the entry point. A hostile file may exhaust any limit, so `read_source` runs in a process
that can be killed.
"""

from greenroom.actors.content.syntax.graphs import Reached as Reached
from greenroom.actors.content.syntax.graphs import invert as invert
from greenroom.actors.content.syntax.graphs import reach as reach
from greenroom.actors.content.syntax.grammars import MissingGrammarError as MissingGrammarError
from greenroom.actors.content.syntax.grammars import part_of as part_of
from greenroom.actors.content.syntax.languages import LANGUAGES as LANGUAGES
from greenroom.actors.content.syntax.languages import Language as Language
from greenroom.actors.content.syntax.languages import language_named as language_named
from greenroom.actors.content.syntax.languages import language_of as language_of
from greenroom.actors.content.syntax.languages import unread_title as unread_title
from greenroom.actors.content.syntax.graphs import compare_by_imports as compare_by_imports
from greenroom.actors.content.syntax.name_resolution import Meanings as Meanings
from greenroom.actors.content.syntax.name_resolution import Node as Node
from greenroom.actors.content.syntax.origins import Origin as Origin
from greenroom.actors.content.syntax.outlines import outline as outline
from greenroom.actors.content.syntax.patterns import Found as Found
from greenroom.actors.content.syntax.patterns import Pattern as Pattern
from greenroom.actors.content.syntax.patterns import PatternError as PatternError
from greenroom.actors.content.syntax.patterns import match_names as match_names
from greenroom.actors.content.syntax.patterns import is_like as is_like
from greenroom.actors.content.syntax.patterns import is_path as is_path
from greenroom.actors.content.syntax.patterns import parse_pattern as parse_pattern
from greenroom.actors.content.syntax.places import MANIFESTS as MANIFESTS
from greenroom.actors.content.syntax.places import Places as Places
from greenroom.actors.content.syntax.parse import AS_TEXT as AS_TEXT
from greenroom.actors.content.syntax.parse import as_utf8 as as_utf8
from greenroom.actors.content.syntax.parse import read_source as read_source
from greenroom.actors.content.syntax.languages import resolve_import as resolve_import
from greenroom.actors.content.syntax.search import EXPRESSIONS as EXPRESSIONS
from greenroom.actors.content.syntax.search import make_sieve as make_sieve
from greenroom.actors.content.syntax.search import search_bytes as search_bytes
from greenroom.actors.content.syntax.source import Import as Import
from greenroom.actors.content.syntax.source import Source as Source
