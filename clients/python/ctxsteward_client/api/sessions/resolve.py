from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.resolved_original import ResolvedOriginal
from typing import cast



def _get_kwargs(
    session: str,
    ref: str,

) -> dict[str, Any]:
    

    

    

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/sessions/{session}/refs/{ref}".format(session=quote(str(session), safe=""),ref=quote(str(ref), safe=""),),
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | ResolvedOriginal:
    if response.status_code == 200:
        response_200 = ResolvedOriginal.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | ResolvedOriginal]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    session: str,
    ref: str,
    *,
    client: AuthenticatedClient | Client,

) -> Response[Problem | ResolvedOriginal]:
    """ Resolve

     The original that a reference names, word for word.

    Args:
        session (str): Id of the session.
        ref (str): 128, §128.2, tool:3, meta:ID.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ResolvedOriginal]
     """


    kwargs = _get_kwargs(
        session=session,
ref=ref,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    session: str,
    ref: str,
    *,
    client: AuthenticatedClient | Client,

) -> Problem | ResolvedOriginal | None:
    """ Resolve

     The original that a reference names, word for word.

    Args:
        session (str): Id of the session.
        ref (str): 128, §128.2, tool:3, meta:ID.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ResolvedOriginal
     """


    return sync_detailed(
        session=session,
ref=ref,
client=client,

    ).parsed

async def asyncio_detailed(
    session: str,
    ref: str,
    *,
    client: AuthenticatedClient | Client,

) -> Response[Problem | ResolvedOriginal]:
    """ Resolve

     The original that a reference names, word for word.

    Args:
        session (str): Id of the session.
        ref (str): 128, §128.2, tool:3, meta:ID.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ResolvedOriginal]
     """


    kwargs = _get_kwargs(
        session=session,
ref=ref,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    session: str,
    ref: str,
    *,
    client: AuthenticatedClient | Client,

) -> Problem | ResolvedOriginal | None:
    """ Resolve

     The original that a reference names, word for word.

    Args:
        session (str): Id of the session.
        ref (str): 128, §128.2, tool:3, meta:ID.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ResolvedOriginal
     """


    return (await asyncio_detailed(
        session=session,
ref=ref,
client=client,

    )).parsed
