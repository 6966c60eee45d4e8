"""Mixed writes, what was answered to them, and whether a store says what it must then.

Memories are stored, imported (all of a call or none) and forgotten, keys of the agent's memory are written
over, messages are appended. Each write has an idempotency key where its tool takes one, so it can be sent
again. A store is asked in several ways, and none may contradict another: by lists, filters, counts, searches,
single reads, versions.
"""

from __future__ import annotations

import copy
import random
import time
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any, Final, Literal

import msgspec

from bench.harness import check
from bench.history import Known, Operation, faults
from bench.stored import call, call_all, log, register
from bench.troupe import Member

NAMESPACE: Final = "project:bench"
REGISTERS: Final = 4
LOGS: Final = 2
IMPORTED: Final = 10
TAGS: Final = ("amber", "basalt", "cedar")
ASKED: Final = 24
"""How many memories are searched for, and read one by one."""
_PAGE: Final = 100
_ROCKS: Final = ("granite", "marble", "slate", "chalk", "flint", "gneiss", "shale", "gabbro", "quartz")
Kind = Literal["store", "import", "forget", "register", "log"]
_KINDS: Final[tuple[Kind, ...]] = ("store", "import", "forget", "register", "log")
_OFTEN: Final = (30, 4, 8, 28, 30)


class Write:
    """One write.

    Attributes:
        kind: What it does.
        tool: The tool that it calls.
        arguments: With these.
        keys: The memories that it is about.
        operation: What is known of it.
    """

    def __init__(
        self, kind: Kind, tool: str, arguments: dict[str, Any], keys: Collection[str], operation: Operation
    ) -> None:
        self.kind = kind
        self.tool = tool
        self.arguments = arguments
        self.keys = keys
        self.operation = operation

    @property
    def is_done(self) -> bool:
        """Whether it was answered."""
        return self.operation.known is Known.DONE

    def answered(self, told: dict[str, Any]) -> None:
        """Take an answer that says that it is done.

        Raises:
            WrongAnswerError: it was answered otherwise before, or the answer cannot be right.
        """
        place = 0
        match self.kind:
            case "log":
                place = told["message_id"]
            case "register":
                place = told["version"]
            case "store":
                check(told["created"], f"{self.operation} was answered with {told}")
            case "forget":
                check(told["forgotten"] == 1, f"{self.operation} was answered with {told}")
            case "import":
                check(sum(told["counts"].values()) == IMPORTED, f"{self.operation}: {told}")
        try:
            self.operation.answered(time.monotonic(), place)
        except ValueError as error:
            check(right=False, sentence=str(error))


class Ledger:
    """All writes of one run, and what must be there.

    Args:
        name: Tells its keys from those of others in the same store.
        chance: Decides what is written.

    Attributes:
        writes: All that were ever asked for, in order.
    """

    def __init__(self, name: str, chance: random.Random) -> None:
        self.writes: list[Write] = []
        self._name = name
        self._chance = chance
        self._namespace = f"{NAMESPACE}:{name}"
        self._texts: dict[str, str] = {}
        self._forgotten: set[str] = set()

    def begin(self, member: Member) -> None:
        """Make the sessions."""
        for name in self._logs():
            call(member, "create_session", {"session_id": name, "purpose": "bench"})

    def next(self, stream: str, serial: int) -> Write:
        """Return another write; of one stream the later has the higher serial."""
        [kind] = self._chance.choices(_KINDS, _OFTEN)
        number = len(self.writes)
        standing = [key for each in self.writes if each.is_done for key in each.keys if each.kind != "forget"]
        standing = [key for key in standing if key not in self._forgotten]
        if kind == "forget" and not standing:
            kind = "store"
        token = f"{self._name}x{number}"
        place = ""
        keys: list[str] = []
        arguments: dict[str, Any] = {"idempotency_key": token}
        match kind:
            case "store":
                tool, keys = "store_memory", [f"memory-{token}"]
                arguments |= {"namespace": self._namespace, **self._memory(keys[0])}
            case "import":
                tool, keys = "import_memories", [f"memory-{token}x{each}" for each in range(IMPORTED)]
                lines = b"\n".join(msgspec.json.encode(self._memory(key)) for key in keys)
                arguments = {"source": lines.decode(), "namespace": self._namespace}
            case "forget":
                tool, keys = "forget_memory", [self._chance.choice(standing)]
                self._forgotten.update(keys)
                arguments |= {"key": keys[0], "namespace": self._namespace}
            case "register":
                tool, place = "set_memory", self._chance.choice(self._registers())
                arguments |= {"key": place, "value": token}
            case "log":
                tool, place = "add_message", self._chance.choice(self._logs())
                arguments |= {"session_id": place, "content": token}
        operation = Operation(
            place or kind,
            token,
            stream=stream,
            serial=serial,
            sent=time.monotonic(),
            writer=self._writer(kind),
        )
        operation.idempotency = token
        write = Write(kind, tool, arguments, keys, operation)
        self.writes.append(write)
        return write

    def as_of(self, done: Collection[int]) -> Ledger:
        """Return a ledger that knows of these answers alone; they are the numbers of writes."""
        found = copy.copy(self)
        found.writes = []
        for number, write in enumerate(self.writes):
            other, operation = copy.copy(write), copy.copy(write.operation)
            if number not in done:
                operation.known, operation.place, operation.seen = Known.NOTHING, 0, float("inf")
            other.operation = operation
            found.writes.append(other)
        return found

    # -- what is found ---------------------------------------------------------

    def problems(self, reader: Member) -> list[str]:
        """Return a sentence for everything that is wrong in a store."""
        return [*self._of_memories(reader), *self._of_messages(reader), *self._of_registers(reader)]

    def _of_registers(self, reader: Member) -> Iterator[str]:
        listed = {}
        for name in self._registers():
            found = register(reader, name)
            yield from (f"{name}: {fault}" for fault in faults("register", self._operations(name), found))
            if found:
                listed[name] = len(found)
        page = call(reader, "list_memory", {"prefix": f"register-{self._name}-", "limit": 100})
        told = {each["key"]: each["version"] for each in page["entries"]}
        if told != listed:
            yield f"the keys are listed as {told}, and read as {listed}"

    def _of_messages(self, reader: Member) -> Iterator[str]:
        for name in self._logs():
            found = log(reader, name)
            yield from (f"{name}: {fault}" for fault in faults("log", self._operations(name), found))
            counted = call(reader, "get_session", {"session_id": name})["statistics"]["message_count"]
            if counted != len(found):
                yield f"{name} counts {counted} messages and has {len(found)}"
            for each in found[-3:]:
                asked = {"session_id": name, "query": each.token, "limit": 3}
                hits = [hit["message"]["content"] for hit in call(reader, "search_context", asked)["results"]]
                if hits[:1] != [each.token]:
                    yield f"{each.token} is searched for in {name}, and found is {hits}"

    def _of_memories(self, reader: Member) -> Iterator[str]:
        must, may = self._expected()
        found = list(self._listed(reader, None))
        keys = [each["key"] for each in found]
        yield from (f"{key} is listed {count} times" for key, count in Counter(keys).items() if count > 1)
        yield from (f"{key} was acknowledged, and is not there" for key in sorted(must - {*keys}))
        yield from (f"{key} is there, and must not be" for key in sorted({*keys} - must - may))
        yield from self._of_imports({*keys})
        for each in found:
            if each["content"] != self._texts.get(each["key"]):
                yield f"{each['key']} says {each}"
        if any(later["created_at"] > earlier["created_at"] for earlier, later in pairwise(found)):
            yield "the list is not in the order of time"
        for tag in TAGS:
            filtered = [each["key"] for each in self._listed(reader, {"tags": [tag]})]
            if filtered != [each["key"] for each in found if tag in each["tags"]]:
                yield f"the filter by {tag} finds {len(filtered)} others than the list has"
        stats = call(reader, "memory_stats", {"namespace": self._namespace})
        counted = (stats["memories"], {tag: count for tag, count in stats["by_tag"].items() if count})
        by_tag = Counter(tag for each in found for tag in each["tags"])
        if counted != (len(found), by_tag):
            yield f"counted are {counted}, and listed {len(found)}, {dict(by_tag)}"
        yield from self._of_searches(reader, keys)

    def _of_searches(self, reader: Member, keys: list[str]) -> Iterator[str]:
        chance = random.Random(len(self.writes))
        gone = sorted(self._texts.keys() - {*keys})
        asked = [each for some in (keys, gone) for each in chance.sample(some, min(ASKED, len(some)))]
        searches = [
            {"query": _word(key), "namespace": self._namespace, "limit": 3, "mode": "hybrid"} for key in asked
        ]
        for key, told in zip(asked, call_all(reader, "memory_search", searches), strict=True):
            hits = [each["key"] for each in told["memories"]]
            if (key in keys and hits[:1] != [key]) or (key not in keys and key in hits):
                yield f"{_word(key)} is searched for, and {hits} are found; it is there: {key in keys}"
        reads = [{"key": key, "namespace": self._namespace} for key in asked if key in keys]
        for read, told in zip(reads, call_all(reader, "get_memory", reads), strict=True):
            if told["value"] != self._texts[read["key"]]:
                yield f"{read['key']} is read as {told['value']}"

    def _of_imports(self, keys: set[str]) -> Iterator[str]:
        for write in self.writes:
            if write.kind == "import":
                there = len((keys | self._forgotten) & {*write.keys})
                if there not in {0, len(write.keys)} and not self._forgotten & {*write.keys}:
                    yield f"of the memories of {write.operation} there are {there}"

    def _expected(self) -> tuple[set[str], set[str]]:
        """Return the memories that must be there, and those of which nobody knows."""
        must: set[str] = set()
        may: set[str] = set()
        for write in self.writes:
            keys = {*write.keys}
            if write.kind in {"store", "import"}:
                (must if write.is_done else may).update(keys)
        for write in self.writes:
            if write.kind == "forget":
                must -= {*write.keys}
                if write.is_done:
                    may -= {*write.keys}
                else:
                    may |= {*write.keys}
        return must, may

    def _listed(self, reader: Member, filters: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
        asked: dict[str, Any] = {"namespace": self._namespace, "limit": _PAGE}
        if filters:
            asked["filters"] = filters
        while True:
            page = call(reader, "list_memories", asked)
            yield from page["memories"]
            if page["next_cursor"] is None:
                return
            asked["cursor"] = page["next_cursor"]

    def _operations(self, name: str) -> list[Operation]:
        return [write.operation for write in self.writes if write.operation.key == name]

    def _memory(self, key: str) -> dict[str, Any]:
        said = " ".join(self._chance.choices(_ROCKS, k=12))
        self._texts[key] = f"{_word(key)} {said}"
        return {"key": key, "content": self._texts[key], "tags": [self._chance.choice(TAGS)]}

    def _writer(self, kind: Kind) -> str:
        return "bench" if kind == "log" else ""

    def _registers(self) -> list[str]:
        return [f"register-{self._name}-{number}" for number in range(REGISTERS)]

    def _logs(self) -> list[str]:
        return [f"log-{self._name}-{number}" for number in range(LOGS)]


def _word(key: str) -> str:
    """Return the word that a memory alone has."""
    return "word" + key.removeprefix("memory-")
