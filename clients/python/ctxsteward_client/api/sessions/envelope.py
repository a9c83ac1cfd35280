from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.envelope import Envelope
from ...models.problem import Problem
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    session: str,
    *,
    address: None | str | Unset = UNSET,

) -> dict[str, Any]:
    

    

    params: dict[str, Any] = {}

    json_address: None | str | Unset
    if isinstance(address, Unset):
        json_address = UNSET
    else:
        json_address = address
    params["address"] = json_address


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/sessions/{session}/envelope".format(session=quote(str(session), safe=""),),
        "params": params,
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Envelope | Problem:
    if response.status_code == 200:
        response_200 = Envelope.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Envelope | Problem]:
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
    address: None | str | Unset = UNSET,

) -> Response[Envelope | Problem]:
    """ Envelope

     An envelope of the session, out of its log: the newest, or the one at this address.

    Args:
        session (str): Id of the session.
        address (None | str | Unset): Of one; default: the newest.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Envelope | Problem]
     """


    kwargs = _get_kwargs(
        session=session,
address=address,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    address: None | str | Unset = UNSET,

) -> Envelope | Problem | None:
    """ Envelope

     An envelope of the session, out of its log: the newest, or the one at this address.

    Args:
        session (str): Id of the session.
        address (None | str | Unset): Of one; default: the newest.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Envelope | Problem
     """


    return sync_detailed(
        session=session,
client=client,
address=address,

    ).parsed

async def asyncio_detailed(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    address: None | str | Unset = UNSET,

) -> Response[Envelope | Problem]:
    """ Envelope

     An envelope of the session, out of its log: the newest, or the one at this address.

    Args:
        session (str): Id of the session.
        address (None | str | Unset): Of one; default: the newest.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Envelope | Problem]
     """


    kwargs = _get_kwargs(
        session=session,
address=address,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    address: None | str | Unset = UNSET,

) -> Envelope | Problem | None:
    """ Envelope

     An envelope of the session, out of its log: the newest, or the one at this address.

    Args:
        session (str): Id of the session.
        address (None | str | Unset): Of one; default: the newest.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Envelope | Problem
     """


    return (await asyncio_detailed(
        session=session,
client=client,
address=address,

    )).parsed
