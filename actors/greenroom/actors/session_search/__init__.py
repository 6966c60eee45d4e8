"""Search in the messages of a session: pure, in memory, without I/O or a clock.

Every search of texts needs `text.analyze`, which has words, and `preview`. Only sessions need `index`; it
needs numpy and is imported at the first search.
"""

from greenroom.actors.content.text.analyze import metadata_text as metadata_text
from greenroom.actors.sessions.search.preview import Preview as Preview
from greenroom.actors.sessions.search.preview import preview as preview
