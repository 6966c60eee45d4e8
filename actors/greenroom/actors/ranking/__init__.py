"""The order of memories for a query: signals and their weights. Needs numpy.

Import it where something is searched, not at start.
"""

from greenroom.actors.ranking.query import RankQuery as RankQuery
from greenroom.actors.ranking.rank import Ranked as Ranked
from greenroom.actors.ranking.rank import rank as rank
from greenroom.actors.ranking.rank import signals as signals
from greenroom.actors.ranking.view import Corpus as Corpus
from greenroom.actors.ranking.view import View as View
