from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.build_input import BuildInput
from ...models.build_result import BuildResult
from ...models.problem import Problem
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    session: str,
    *,
    body: BuildInput | None | Unset = UNSET,

) -> dict[str, Any]:
    headers: dict[str, Any] = {}


    

    

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/sessions/{session}/build".format(session=quote(str(session), safe=""),),
    }

    
    if isinstance(body, BuildInput):
        _kwargs["json"] = body.to_dict()
    else:
        _kwargs["json"] = body

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> BuildResult | Problem:
    if response.status_code == 200:
        response_200 = BuildResult.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[BuildResult | Problem]:
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
    body: BuildInput | None | Unset = UNSET,

) -> Response[BuildResult | Problem]:
    """ Build

     The envelope for the next model call, and the request that it becomes. It may compact, and recall.

    Args:
        session (str): Id of the session.
        body (BuildInput | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BuildResult | Problem]
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
    body: BuildInput | None | Unset = UNSET,

) -> BuildResult | Problem | None:
    """ Build

     The envelope for the next model call, and the request that it becomes. It may compact, and recall.

    Args:
        session (str): Id of the session.
        body (BuildInput | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BuildResult | Problem
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
    body: BuildInput | None | Unset = UNSET,

) -> Response[BuildResult | Problem]:
    """ Build

     The envelope for the next model call, and the request that it becomes. It may compact, and recall.

    Args:
        session (str): Id of the session.
        body (BuildInput | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[BuildResult | Problem]
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
    body: BuildInput | None | Unset = UNSET,

) -> BuildResult | Problem | None:
    """ Build

     The envelope for the next model call, and the request that it becomes. It may compact, and recall.

    Args:
        session (str): Id of the session.
        body (BuildInput | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        BuildResult | Problem
     """


    return (await asyncio_detailed(
        session=session,
client=client,
body=body,

    )).parsed
