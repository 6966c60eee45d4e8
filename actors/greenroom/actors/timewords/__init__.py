"""English expressions of time, as a search gets them: "last week", "between Monday and Wednesday"."""

from greenroom.actors.timewords._resolve import EXAMPLES as EXAMPLES
from greenroom.actors.timewords._resolve import resolve as resolve
from greenroom.actors.timewords._resolve import warm as warm
