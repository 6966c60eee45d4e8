"""English expressions of time, as a search gets them: "last week", "between Monday and Wednesday"."""

from greenroom.actors.timeexpr.finder import NamedTime as NamedTime
from greenroom.actors.timeexpr.finder import times_in as times_in
from greenroom.actors.timeexpr.finder import without as without
from greenroom.actors.timeexpr.resolve import EXAMPLES as EXAMPLES
from greenroom.actors.timeexpr.resolve import resolve as resolve
from greenroom.actors.timeexpr.resolve import warm as warm
