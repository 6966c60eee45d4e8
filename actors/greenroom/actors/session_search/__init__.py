"""Search in the messages of a session: pure, in memory, without I/O or a clock.

What every search of texts needs: `text.analyze`, which has words, and `preview`. What only sessions need, and what
needs numpy: `index`, which is imported at the first search.
"""

from greenroom.actors.session_search.preview import Preview as Preview
from greenroom.actors.session_search.preview import preview as preview
from greenroom.actors.text.metadata import metadata_text as metadata_text
