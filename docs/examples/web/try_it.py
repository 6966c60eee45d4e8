"""Serve notes.py by uvicorn with several workers, and try it: `python try_it.py 2 notes`."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx

from greenroom.actors import Database

ADA, BOB, EVE = ({"authorization": f"Bearer {name}-key"} for name in ("ada", "bob", "eve"))


async def ask(base: str) -> None:
    """Send requests, many of them at once, and print what is answered."""
    async with httpx.AsyncClient(base_url=base, timeout=60) as client:

        async def keep(number: int) -> int:
            note = {"content": f"Room {number} has a printer.", "key": f"room-{number}", "tags": ["rooms"]}
            return (await client.post("/notes", json=note, headers=ADA)).status_code

        print("20 notes at once:", set(await asyncio.gather(*map(keep, range(20)))))
        again = {"content": "Room 7: no printer.", "key": "room-7"}
        changed = await client.post("/notes", json=again, headers=ADA)
        print("one of them again:", changed.json())
        found = await client.get("/notes", params={"q": "printer room 7", "limit": 1}, headers=ADA)
        print("found:", [note["content"] for note in found.json()])
        print("of Bob:", (await client.get("/notes", params={"q": "printer"}, headers=BOB)).json())
        print("newest:", (await client.get("/notes/newest", headers=ADA)).json()[:1])
        for path, headers in (("/notes?q=printer", EVE), ("/notes", ADA), ("/notes?q=printer&limit=0", ADA)):
            print(path, (await client.get(path, headers=headers)).status_code)
        wrong = await client.post("/notes", json={"content": "x", "key": "a/b"}, headers=ADA)
        print(wrong.status_code, wrong.json()["detail"])


def main(workers: str, folder: str) -> None:
    """Serve, send requests once every worker runs, stop, and read the folder."""
    command = [sys.executable, "-m", "uvicorn", "notes:app", "--port", "0", "--workers", workers]
    with subprocess.Popen(  # noqa: S603 - our own program
        [*command, "--app-dir", Path(__file__).parent, "--no-access-log", "--no-use-colors"],
        env={**os.environ, "NOTES_FOLDER": folder},
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        base, starting, log = "", int(workers), ""
        while not base or starting:
            line = server.stderr.readline()
            log += line
            if not line:
                sys.exit(log)
            starting -= "Application startup complete" in line
            if listens := re.search(r"http://127\.0\.0\.1:\d+", line):
                base = listens[0]
        try:
            asyncio.run(ask(base))
        finally:
            server.terminate()
            log += server.stderr.read()
    print("faults:", re.findall(r"(?:ERROR|Traceback).*", log))
    with Database(folder) as database:
        print("still there:", len(database.search("printer", user="ada", limit=100)), "notes")


main(*sys.argv[1:])
