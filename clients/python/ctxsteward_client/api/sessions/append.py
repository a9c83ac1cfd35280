from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.append_input import AppendInput
from ...models.append_result import AppendResult
from ...models.problem import Problem
from typing import cast



def _get_kwargs(
    session: str,
    *,
    body: AppendInput,

) -> dict[str, Any]:
    headers: dict[str, Any] = {}


    

    

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/sessions/{session}/messages".format(session=quote(str(session), safe=""),),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> AppendResult | Problem:
    if response.status_code == 200:
        response_200 = AppendResult.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[AppendResult | Problem]:
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
    body: AppendInput,

) -> Response[AppendResult | Problem]:
    """ Append

     Append messages, in their order. What this returns is on disk. An id that is there is not written
    again.

    Args:
        session (str): Id of the session.
        body (AppendInput): Messages of one session, which is made where there is none.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AppendResult | Problem]
     """


    kwargs = _get_kwargs(
        session=session,
body=body,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    body: AppendInput,

) -> AppendResult | Problem | None:
    """ Append

     Append messages, in their order. What this returns is on disk. An id that is there is not written
    again.

    Args:
        session (str): Id of the session.
        body (AppendInput): Messages of one session, which is made where there is none.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AppendResult | Problem
     """


    return sync_detailed(
        session=session,
client=client,
body=body,

    ).parsed

async def asyncio_detailed(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    body: AppendInput,

) -> Response[AppendResult | Problem]:
    """ Append

     Append messages, in their order. What this returns is on disk. An id that is there is not written
    again.

    Args:
        session (str): Id of the session.
        body (AppendInput): Messages of one session, which is made where there is none.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AppendResult | Problem]
     """


    kwargs = _get_kwargs(
        session=session,
body=body,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    body: AppendInput,

) -> AppendResult | Problem | None:
    """ Append

     Append messages, in their order. What this returns is on disk. An id that is there is not written
    again.

    Args:
        session (str): Id of the session.
        body (AppendInput): Messages of one session, which is made where there is none.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AppendResult | Problem
     """


    return (await asyncio_detailed(
        session=session,
client=client,
body=body,

    )).parsed
