from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.session_page import SessionPage
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    *,
    q: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    after: None | str | Unset = UNSET,

) -> dict[str, Any]:
    

    

    params: dict[str, Any] = {}

    json_q: None | str | Unset
    if isinstance(q, Unset):
        json_q = UNSET
    else:
        json_q = q
    params["q"] = json_q

    params["limit"] = limit

    json_after: None | str | Unset
    if isinstance(after, Unset):
        json_after = UNSET
    else:
        json_after = after
    params["after"] = json_after


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/sessions",
        "params": params,
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | SessionPage:
    if response.status_code == 200:
        response_200 = SessionPage.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | SessionPage]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    q: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    after: None | str | Unset = UNSET,

) -> Response[Problem | SessionPage]:
    """ List Sessions

     The tenant's sessions, by id.

    Args:
        q (None | str | Unset): Part of the id, in any case.
        limit (int | Unset): Rows of a page. Default: 50.
        after (None | str | Unset): `next` of the page before.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SessionPage]
     """


    kwargs = _get_kwargs(
        q=q,
limit=limit,
after=after,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    *,
    client: AuthenticatedClient | Client,
    q: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    after: None | str | Unset = UNSET,

) -> Problem | SessionPage | None:
    """ List Sessions

     The tenant's sessions, by id.

    Args:
        q (None | str | Unset): Part of the id, in any case.
        limit (int | Unset): Rows of a page. Default: 50.
        after (None | str | Unset): `next` of the page before.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SessionPage
     """


    return sync_detailed(
        client=client,
q=q,
limit=limit,
after=after,

    ).parsed

async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    q: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    after: None | str | Unset = UNSET,

) -> Response[Problem | SessionPage]:
    """ List Sessions

     The tenant's sessions, by id.

    Args:
        q (None | str | Unset): Part of the id, in any case.
        limit (int | Unset): Rows of a page. Default: 50.
        after (None | str | Unset): `next` of the page before.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SessionPage]
     """


    kwargs = _get_kwargs(
        q=q,
limit=limit,
after=after,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    q: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    after: None | str | Unset = UNSET,

) -> Problem | SessionPage | None:
    """ List Sessions

     The tenant's sessions, by id.

    Args:
        q (None | str | Unset): Part of the id, in any case.
        limit (int | Unset): Rows of a page. Default: 50.
        after (None | str | Unset): `next` of the page before.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SessionPage
     """


    return (await asyncio_detailed(
        client=client,
q=q,
limit=limit,
after=after,

    )).parsed
