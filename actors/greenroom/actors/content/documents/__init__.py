"""Files as documents: kinds, headings, and chunks for searches; no I/O.

`build_document` is the entry point. A hostile file may exhaust any limit, so `build_document` runs in a
process that can be killed.
"""

from greenroom.actors.content.documents.build_document import digest_of as digest_of
from greenroom.actors.content.documents.build_document import build_document as build_document
from greenroom.actors.content.documents.kinds import MissingReaderError as MissingReaderError
from greenroom.actors.content.documents.kinds import UnreadableDocumentError as UnreadableDocumentError
from greenroom.actors.content.documents.kinds import Kind as Kind
from greenroom.actors.content.documents.kinds import kind_of as kind_of
from greenroom.actors.content.documents.masking import MASKING as MASKING
from greenroom.actors.content.documents.masking import Marks as Marks
from greenroom.actors.content.documents.masking import Masked as Masked
from greenroom.actors.content.documents.masking import find_marks as find_marks
from greenroom.actors.content.documents.masking import mask_bytes as mask_bytes
from greenroom.actors.content.documents.masking import mask_text as mask_text
from greenroom.actors.content.documents.word_document import unread_parts as unread_parts
