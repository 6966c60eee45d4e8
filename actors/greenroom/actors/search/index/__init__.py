"""The index of memories: terms, columns and vectors, in an actor's records and in RAM."""

from greenroom.actors.search.index.document import FIELDS as FIELDS
from greenroom.actors.search.index.document import FOREVER as FOREVER
from greenroom.actors.search.index.document import QUESTION as QUESTION
from greenroom.actors.search.index.document import TEMPORAL as TEMPORAL
from greenroom.actors.search.index.document import UNREVIEWED as UNREVIEWED
from greenroom.actors.search.index.document import Document as Document
from greenroom.actors.search.index.index import MemoryIndex as MemoryIndex
from greenroom.actors.search.index.index import TidyIndex as TidyIndex
