from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.handoff import Handoff
from ...models.problem import Problem
from typing import cast



def _get_kwargs(
    session: str,

) -> dict[str, Any]:
    

    

    

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/sessions/{session}/handoff".format(session=quote(str(session), safe=""),),
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Handoff | Problem:
    if response.status_code == 200:
        response_200 = Handoff.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Handoff | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    session: str,
    *,
    client: AuthenticatedClient | Client,

) -> Response[Handoff | Problem]:
    """ Handoff

     Where the session's work stands; 404 `no handoff summary available` where there is none to hand
    over.

    Args:
        session (str): Id of the session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Handoff | Problem]
     """


    kwargs = _get_kwargs(
        session=session,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    session: str,
    *,
    client: AuthenticatedClient | Client,

) -> Handoff | Problem | None:
    """ Handoff

     Where the session's work stands; 404 `no handoff summary available` where there is none to hand
    over.

    Args:
        session (str): Id of the session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Handoff | Problem
     """


    return sync_detailed(
        session=session,
client=client,

    ).parsed

async def asyncio_detailed(
    session: str,
    *,
    client: AuthenticatedClient | Client,

) -> Response[Handoff | Problem]:
    """ Handoff

     Where the session's work stands; 404 `no handoff summary available` where there is none to hand
    over.

    Args:
        session (str): Id of the session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Handoff | Problem]
     """


    kwargs = _get_kwargs(
        session=session,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    session: str,
    *,
    client: AuthenticatedClient | Client,

) -> Handoff | Problem | None:
    """ Handoff

     Where the session's work stands; 404 `no handoff summary available` where there is none to hand
    over.

    Args:
        session (str): Id of the session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Handoff | Problem
     """


    return (await asyncio_detailed(
        session=session,
client=client,

    )).parsed
