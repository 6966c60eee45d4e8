"""Search in the messages of a session: pure, in memory, without I/O or a clock.

What every search of texts needs: `_text`, which has words, and `preview`. What only sessions need, and what
needs numpy: `_index`, which is imported at the first search.
"""

from greenroom.actors.search._metadata import metadata_text as metadata_text
from greenroom.actors.search._preview import Preview as Preview
from greenroom.actors.search._preview import preview as preview
