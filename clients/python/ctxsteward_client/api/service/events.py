from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    *,
    session: None | str | Unset = UNSET,

) -> dict[str, Any]:
    

    

    params: dict[str, Any] = {}

    json_session: None | str | Unset
    if isinstance(session, Unset):
        json_session = UNSET
    else:
        json_session = session
    params["session"] = json_session


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/events",
        "params": params,
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | str:
    if response.status_code == 200:
        response_200 = response.text
        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | str]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    session: None | str | Unset = UNSET,

) -> Response[Problem | str]:
    """ Events

     What happens to sessions, as server-sent events: `appended`, `built`, `compacted`; `lost` where a
    client is slow.

    `Last-Event-ID` goes on from there, as far as this process remembers. It ends when the token no
    longer holds.

    Args:
        session (None | str | Unset): Of this one alone.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | str]
     """


    kwargs = _get_kwargs(
        session=session,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    *,
    client: AuthenticatedClient | Client,
    session: None | str | Unset = UNSET,

) -> Problem | str | None:
    """ Events

     What happens to sessions, as server-sent events: `appended`, `built`, `compacted`; `lost` where a
    client is slow.

    `Last-Event-ID` goes on from there, as far as this process remembers. It ends when the token no
    longer holds.

    Args:
        session (None | str | Unset): Of this one alone.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | str
     """


    return sync_detailed(
        client=client,
session=session,

    ).parsed

async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    session: None | str | Unset = UNSET,

) -> Response[Problem | str]:
    """ Events

     What happens to sessions, as server-sent events: `appended`, `built`, `compacted`; `lost` where a
    client is slow.

    `Last-Event-ID` goes on from there, as far as this process remembers. It ends when the token no
    longer holds.

    Args:
        session (None | str | Unset): Of this one alone.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | str]
     """


    kwargs = _get_kwargs(
        session=session,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    session: None | str | Unset = UNSET,

) -> Problem | str | None:
    """ Events

     What happens to sessions, as server-sent events: `appended`, `built`, `compacted`; `lost` where a
    client is slow.

    `Last-Event-ID` goes on from there, as far as this process remembers. It ends when the token no
    longer holds.

    Args:
        session (None | str | Unset): Of this one alone.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | str
     """


    return (await asyncio_detailed(
        client=client,
session=session,

    )).parsed
