"""Fuzzy search over the messages of a session: pure, in memory, without I/O or a clock."""

from greenroom.actors.search._index import Match as Match
from greenroom.actors.search._index import SearchIndex as SearchIndex
from greenroom.actors.search._index import SearchRequest as SearchRequest
from greenroom.actors.search._metadata import metadata_text as metadata_text
from greenroom.actors.search._preview import Preview as Preview
from greenroom.actors.search._preview import preview as preview
