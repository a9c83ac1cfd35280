from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.result_page import ResultPage
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    *,
    suite: None | str | Unset = UNSET,
    limit: int | Unset = 20,
    after: int | Unset = 0,

) -> dict[str, Any]:
    

    

    params: dict[str, Any] = {}

    json_suite: None | str | Unset
    if isinstance(suite, Unset):
        json_suite = UNSET
    else:
        json_suite = suite
    params["suite"] = json_suite

    params["limit"] = limit

    params["after"] = after


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/evals",
        "params": params,
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | ResultPage:
    if response.status_code == 200:
        response_200 = ResultPage.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | ResultPage]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    suite: None | str | Unset = UNSET,
    limit: int | Unset = 20,
    after: int | Unset = 0,

) -> Response[Problem | ResultPage]:
    """ Evals

     Results of eval suites, newest first, out of the history that the service was started with.

    Args:
        suite (None | str | Unset):
        limit (int | Unset): Rows of a page. Default: 20.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ResultPage]
     """


    kwargs = _get_kwargs(
        suite=suite,
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
    suite: None | str | Unset = UNSET,
    limit: int | Unset = 20,
    after: int | Unset = 0,

) -> Problem | ResultPage | None:
    """ Evals

     Results of eval suites, newest first, out of the history that the service was started with.

    Args:
        suite (None | str | Unset):
        limit (int | Unset): Rows of a page. Default: 20.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ResultPage
     """


    return sync_detailed(
        client=client,
suite=suite,
limit=limit,
after=after,

    ).parsed

async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    suite: None | str | Unset = UNSET,
    limit: int | Unset = 20,
    after: int | Unset = 0,

) -> Response[Problem | ResultPage]:
    """ Evals

     Results of eval suites, newest first, out of the history that the service was started with.

    Args:
        suite (None | str | Unset):
        limit (int | Unset): Rows of a page. Default: 20.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ResultPage]
     """


    kwargs = _get_kwargs(
        suite=suite,
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
    suite: None | str | Unset = UNSET,
    limit: int | Unset = 20,
    after: int | Unset = 0,

) -> Problem | ResultPage | None:
    """ Evals

     Results of eval suites, newest first, out of the history that the service was started with.

    Args:
        suite (None | str | Unset):
        limit (int | Unset): Rows of a page. Default: 20.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ResultPage
     """


    return (await asyncio_detailed(
        client=client,
suite=suite,
limit=limit,
after=after,

    )).parsed
