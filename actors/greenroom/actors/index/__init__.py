"""The index of memories: terms, columns and vectors, in an actor's records and in memory."""

from greenroom.actors.index._document import FIELDS as FIELDS
from greenroom.actors.index._document import FOREVER as FOREVER
from greenroom.actors.index._document import NEVER as NEVER
from greenroom.actors.index._document import NO_POSITION as NO_POSITION
from greenroom.actors.index._document import QUESTION as QUESTION
from greenroom.actors.index._document import TEMPORAL as TEMPORAL
from greenroom.actors.index._document import Document as Document
from greenroom.actors.index._document import Field as Field
from greenroom.actors.index._index import MemoryIndex as MemoryIndex
from greenroom.actors.index._index import TidyIndex as TidyIndex
