"""English expressions of time in searches: "last week", "between Monday and Wednesday"."""

from greenroom.actors.content.times.finder import times_in as times_in
from greenroom.actors.content.times.finder import remove_times as remove_times
from greenroom.actors.content.times.resolve import EXAMPLES as EXAMPLES
from greenroom.actors.content.times.resolve import resolve as resolve
from greenroom.actors.content.times.resolve import warm as warm
