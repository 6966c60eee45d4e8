"""English expressions of time, as a search gets them: "last week", "between Monday and Wednesday"."""

from greenroom.actors.content.times.finder import NamedTime as NamedTime
from greenroom.actors.content.times.finder import times_in as times_in
from greenroom.actors.content.times.finder import without as without
from greenroom.actors.content.times.resolve import EXAMPLES as EXAMPLES
from greenroom.actors.content.times.resolve import resolve as resolve
from greenroom.actors.content.times.resolve import warm as warm
