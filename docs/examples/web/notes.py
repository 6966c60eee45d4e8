"""Notes of users over HTTP: FastAPI with Greenroom in it. Serve it with `uvicorn notes:app`."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, TypedDict

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from greenroom.actors import Agent, Database, ListMemories, Principal
from greenroom.runtime import GreenroomError, OverloadedError, Refusal

USERS = {"Bearer ada-key": "ada", "Bearer bob-key": "bob"}  # yours come from where you keep your users


class State(TypedDict):
    """What each request finds in `request.state`."""

    database: Database


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[State]:
    """Open the folder when the worker starts, and close it when that ends."""
    async with Database(os.environ.get("NOTES_FOLDER", "notes")) as database:
        yield {"database": database}


app = FastAPI(title="Notes", lifespan=lifespan)


def database_of(request: Request) -> Database:
    """Return what the lifespan opened."""
    database: Database = request.state.database
    return database


def user_of(authorization: Annotated[str, Header()] = "") -> str:
    """Return who asks."""
    if authorization not in USERS:
        raise HTTPException(401)
    return USERS[authorization]


Opened = Annotated[Database, Depends(database_of)]
User = Annotated[str, Depends(user_of)]


class Note(BaseModel):
    """A user's note; with a key it replaces the note with that key."""

    content: str
    key: str | None = None
    tags: list[str] = []


class Kept(BaseModel):
    """A note that is on disk."""

    key: str
    version: int


class Found(BaseModel):
    """A note that fits a question."""

    key: str
    content: str | None
    score: float


@app.post("/notes", status_code=201)
async def keep(note: Note, user: User, database: Opened) -> Kept:
    """Keep a note."""
    stored = await database.remember(note.content, user=user, key=note.key, tags=note.tags)
    return Kept(key=stored.key, version=stored.version)


@app.get("/notes")
async def find(
    q: str, user: User, database: Opened, limit: Annotated[int, Query(ge=1, le=100)] = 10
) -> list[Found]:
    """Find the user's notes that fit best."""
    found = await database.search(q, user=user, limit=limit)
    return [Found(key=each.key, content=each.content, score=each.score) for each in found]


@app.get("/notes/newest")
async def newest(user: User, database: Opened) -> list[str]:
    """List what was kept last, as an agent asks that works for the user."""
    agent = Agent(database, Principal(agent_id="web", user=user))
    page = await agent.ask(ListMemories(limit=3))
    return [memory.key for memory in page.memories]


@app.exception_handler(Refusal)
async def refused(_: Request, error: Exception) -> JSONResponse:
    """Answer what Greenroom refuses."""
    return JSONResponse({"detail": str(error)}, 422)


@app.exception_handler(OverloadedError)
async def overloaded(_: Request, error: Exception) -> JSONResponse:
    """Answer what the client may retry: overload, or an owner that does not answer."""
    return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "1"})


@app.exception_handler(GreenroomError)
async def failed(_: Request, error: Exception) -> JSONResponse:
    """Answer what is not the caller's doing, such as a full disk."""
    return JSONResponse({"detail": str(error)}, 500)
