"""A graph that counts, a step for each number; as a program it is killed in the middle.

python counting.py FOLDER SECRETS
"""

from __future__ import annotations

import operator
import os
import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph

from greenroom.actors import Database, Principal
from greenroom.adapters.langgraph import GreenroomSaver

OWNER = Principal(agent_id="counter", user="ann")
WHERE: Any = {"configurable": {"thread_id": "counting"}}
LAST = 7
KILLED_AT = 5


class Counted(TypedDict):
    said: Annotated[list[str], operator.add]


def graph(saver: BaseCheckpointSaver[str], before: Callable[[int], object]) -> Any:
    """Return the graph; ``before`` is told each number before it is said."""

    def say(state: Counted) -> dict[str, Any]:
        number = len(state["said"])
        before(number)
        return {"said": [str(number)]}

    builder = StateGraph(Counted).add_node(say).add_edge(START, "say")
    builder.add_conditional_edges("say", lambda state: "say" if len(state["said"]) <= LAST else END)
    return builder.compile(checkpointer=saver)


def die(number: int) -> None:
    if number == KILLED_AT:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    folder, secrets = sys.argv[1:]
    with Database(folder, embedder="none", secrets=secrets) as database:
        graph(GreenroomSaver(database, OWNER), die).invoke({"said": ["begin"]}, WHERE, durability="sync")
