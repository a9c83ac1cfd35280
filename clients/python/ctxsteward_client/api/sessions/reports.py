from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.report_page import ReportPage
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    session: str,
    *,
    limit: int | Unset = 50,
    after: int | Unset = 0,

) -> dict[str, Any]:
    

    

    params: dict[str, Any] = {}

    params["limit"] = limit

    params["after"] = after


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/sessions/{session}/reports".format(session=quote(str(session), safe=""),),
        "params": params,
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | ReportPage:
    if response.status_code == 200:
        response_200 = ReportPage.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | ReportPage]:
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
    limit: int | Unset = 50,
    after: int | Unset = 0,

) -> Response[Problem | ReportPage]:
    """ Reports

     What compactions kept and lost, newest first.

    Args:
        session (str): Id of the session.
        limit (int | Unset): Rows of a page. Default: 50.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ReportPage]
     """


    kwargs = _get_kwargs(
        session=session,
limit=limit,
after=after,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 50,
    after: int | Unset = 0,

) -> Problem | ReportPage | None:
    """ Reports

     What compactions kept and lost, newest first.

    Args:
        session (str): Id of the session.
        limit (int | Unset): Rows of a page. Default: 50.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ReportPage
     """


    return sync_detailed(
        session=session,
client=client,
limit=limit,
after=after,

    ).parsed

async def asyncio_detailed(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 50,
    after: int | Unset = 0,

) -> Response[Problem | ReportPage]:
    """ Reports

     What compactions kept and lost, newest first.

    Args:
        session (str): Id of the session.
        limit (int | Unset): Rows of a page. Default: 50.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ReportPage]
     """


    kwargs = _get_kwargs(
        session=session,
limit=limit,
after=after,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 50,
    after: int | Unset = 0,

) -> Problem | ReportPage | None:
    """ Reports

     What compactions kept and lost, newest first.

    Args:
        session (str): Id of the session.
        limit (int | Unset): Rows of a page. Default: 50.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ReportPage
     """


    return (await asyncio_detailed(
        session=session,
client=client,
limit=limit,
after=after,

    )).parsed
