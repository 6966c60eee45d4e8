"""Fuzzy search in a session, beside difflib doing the same job.

The job: the ten best messages for a question, typing errors forgiven. The sentence
that each question is about must come first. With difflib it is done as its documentation
suggests: for each word of the question the most similar word of each message
(`get_close_matches`), on words that were split before the clock runs; and once more with a
memory of the pairs already compared, which is the cheapest that we could make it.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from functools import partial

import trio

from bench import locomo
from bench.corpus import conversation
from bench.harness import Figure, Plan, Report, Table, medians, take_turns
from bench.searchers import (
    Rounds,
    each_question,
    index_alone,
    store,
    through_the_agent,
    with_difflib,
    with_remembering_difflib,
)

SIZES = (1_000, 20_000)
OTHERS = {
    "the index alone": index_alone,
    "difflib": with_difflib,
    "difflib, remembering pairs": with_remembering_difflib,
}


def run(plan: Plan) -> Report:
    """Compare the times of a search."""
    rows: list[list[str | int | float | None]] = []
    figures = []
    for size in plan.size(SIZES, (300,)):
        posts = conversation(size)
        also = Rounds()
        with plan.folder() as folder:
            trio.run(store, folder, posts)
            contenders: dict[str, Callable[[], float]] = {
                "search_context": partial(trio.run, through_the_agent, folder, also),
            }
            for name, search in OTHERS.items():
                contenders[name] = partial(each_question, search(posts), name)
            # Otherwise our event loop would be held while the peers' data is searched for garbage.
            gc.collect()
            gc.freeze()
            times = medians(take_turns(contenders, plan.size(3, 1)))
            gc.unfreeze()
        ours = times["search_context"]
        hold = statistics.median(also.hold)
        rows += [[size, name, value, value / ours] for name, value in times.items()]
        rows.append([size, "first search_context", statistics.median(also.first), None])
        rows.append([size, "longest hold of the event loop", hold, None])
        rows.append([size, "longest wait of another task", statistics.median(also.wait), None])
        if size == SIZES[0]:
            figures.append(Figure(what=f"search of {size:,} messages, ms", value=ours, most=10))
        figures.append(Figure(what=f"longest hold of the loop, {size:,} messages, ms", value=hold, most=10))
    columns = ["messages", "what", "ms", "times ours"]
    tables = [Table(title="fuzzy search in a session", columns=columns, rows=rows)]
    if plan.data is not None:
        tables.append(locomo.measure(plan, plan.data))
    return Report(tables=tables, figures=figures)
