"""Search in the messages of a session, in memory, without I/O or a clock.

Every text search needs `text.analyze` and `preview`. Only sessions need `index`, which needs numpy and is
imported at the first search.
"""

from greenroom.actors.content.text.analyze import metadata_text as metadata_text
from greenroom.actors.sessions.search.preview import Preview as Preview
from greenroom.actors.sessions.search.preview import preview as preview
