"""Files as documents: their kinds, their headings and the chunks that searches find; no I/O.

`document_of` is the whole of it. It may run into any limit on a hostile file, so it is called in a process
that may be killed.
"""

from greenroom.actors.content.documents.document import digest_of as digest_of
from greenroom.actors.content.documents.document import document_of as document_of
from greenroom.actors.content.documents.kinds import Kind as Kind
from greenroom.actors.content.documents.kinds import kind_of as kind_of
from greenroom.actors.content.documents.word_document import unread_parts as unread_parts
from greenroom.actors.documents.errors import MissingReaderError as MissingReaderError
from greenroom.actors.documents.errors import UnreadableDocumentError as UnreadableDocumentError
