"""A server of conversations, for the front end of an agent: messages, pages of them, state and threads, in Postgres.

    python examples/agent_server.py postgresql://localhost/agents

It needs `fastapi` and `uvicorn`. Another program would mount the result of `create_app`. A header names the user here;
a real server takes it from its login. No user reaches the threads of another, because every call names its user.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic_core import to_json

import threadmark
from threadmark_postgres import PostgresSaver

Config = dict[str, str]
Text = str | None

STATUS = {
    threadmark.ConfigError: 422,
    threadmark.ThreadNotFoundError: 404,
    threadmark.ThreadBusyError: 409,
    threadmark.TransientStoreError: 503,
}


def user(x_user: Annotated[str, Header(min_length=1)]) -> Config:
    """The user of a request."""
    return {"user_id": x_user}


def conversation(thread_id: str, user: Annotated[Config, Depends(user)]) -> Config:
    """The conversation that a path names, if it is the user's."""
    return {**user, "thread_id": thread_id}


def stored(request: Request) -> threadmark.Conversations:
    """The conversations of this server."""
    return request.app.state.conversations  # type: ignore[no-any-return]  # `create_app` sets it


def expect(found: Any, what: str) -> Any:
    """Return the found object. If there is none, the answer is 404."""
    if found in (None, False):
        raise HTTPException(404, f"there is no such {what}")
    return found


def sendable(body: Any) -> Any:
    """Return a front end's body, if it can be sent back: half of an emoji, which a string cut in two has, cannot."""
    try:
        to_json(body)
    except ValueError as error:
        raise HTTPException(422, "there is text in it that is not Unicode, or it is nested too deeply") from error
    return body


Asker = Annotated[Config, Depends(user)]
Talk = Annotated[Config, Depends(conversation)]
Stored = Annotated[threadmark.Conversations, Depends(stored)]


router = APIRouter(prefix="/threads")


@router.post("/{thread_id}/messages", status_code=201)
async def append(talk: Talk, stored: Stored, messages: list[dict[str, Any]]) -> list[str]:
    return await stored.aput_messages(talk, sendable(messages))


@router.get("/{thread_id}/messages")
async def page(talk: Talk, stored: Stored, search: Text = None, before: Text = None, limit: int = 50) -> list[Any]:
    return await stored.aget_messages(talk, search=search, before=before, limit=min(limit, 200))


@router.delete("/{thread_id}/messages/{message_id}", status_code=204)
async def delete_message(talk: Talk, stored: Stored, message_id: str) -> None:
    expect(await stored.adelete_message(talk, message_id), "message")


@router.put("/{thread_id}/state", status_code=204)
async def put_state(talk: Talk, stored: Stored, state: dict[str, Any]) -> None:
    await stored.aput_state(talk, sendable(state))


@router.get("/{thread_id}/state")
async def get_state(talk: Talk, stored: Stored) -> Any:
    return expect(await stored.aget_state(talk), "state")


@router.get("")
async def threads(asker: Asker, stored: Stored, search: Text = None, cursor: Text = None) -> dict[str, Any]:
    found = await stored.aget_threads(asker, search=search, cursor=cursor)
    return {"threads": [each._asdict() for each in found.threads], "cursor": found.cursor}


@router.delete("/{thread_id}", status_code=204)
async def delete_thread(talk: Talk, stored: Stored) -> None:
    expect(await stored.adelete_thread(talk), "thread")


def create_app(url: str) -> FastAPI:
    """Return the application, over the database at this URL."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with PostgresSaver(url) as saver:
            await saver.asetup()
            app.state.conversations = threadmark.Conversations(saver)
            yield

    async def failed(_: Request, error: Exception) -> JSONResponse:
        status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
        return JSONResponse({"detail": str(error)}, status)

    app = FastAPI(title="Conversations", lifespan=lifespan)
    app.add_exception_handler(threadmark.ThreadmarkError, failed)
    app.include_router(router)
    return app


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("name the database: python examples/agent_server.py postgresql://localhost/agents")
    uvicorn.run(create_app(sys.argv[1]))
