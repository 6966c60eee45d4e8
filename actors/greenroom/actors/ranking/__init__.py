"""The order of memories for a query: signals and their weights. Needs numpy.

Import it where something is searched, not at start.
"""

from greenroom.actors.ranking._query import RankQuery as RankQuery
from greenroom.actors.ranking._rank import Ranked as Ranked
from greenroom.actors.ranking._rank import rank as rank
from greenroom.actors.ranking._rank import signals as signals
from greenroom.actors.ranking._view import Corpus as Corpus
from greenroom.actors.ranking._view import View as View
