"""Search in the messages of a session: pure, in memory, without I/O or a clock.

Every search of texts needs `text.analyze`, which has words, and `preview`. Only sessions need `index`; it
needs numpy and is imported at the first search.
"""

from greenroom.actors.session_search.preview import Preview as Preview
from greenroom.actors.session_search.preview import preview as preview
from greenroom.actors.text.analyze import metadata_text as metadata_text
