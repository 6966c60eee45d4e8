"""The order of search results for a query: signals and their weights.

It needs numpy, so import it where something is searched, not at start.
"""

from greenroom.actors.search.ranking.query import RankQuery as RankQuery
from greenroom.actors.search.ranking.rank import Ranked as Ranked
from greenroom.actors.search.ranking.rank import rank as rank
from greenroom.actors.search.ranking.rank import signals as signals
from greenroom.actors.search.ranking.view import Corpus as Corpus
from greenroom.actors.search.ranking.view import View as View
