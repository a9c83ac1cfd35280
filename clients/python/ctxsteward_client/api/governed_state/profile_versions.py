from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.profile_version_page import ProfileVersionPage
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    *,
    profile: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    after: int | Unset = 0,

) -> dict[str, Any]:
    

    

    params: dict[str, Any] = {}

    json_profile: None | str | Unset
    if isinstance(profile, Unset):
        json_profile = UNSET
    else:
        json_profile = profile
    params["profile"] = json_profile

    params["limit"] = limit

    params["after"] = after


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/profile/versions",
        "params": params,
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | ProfileVersionPage:
    if response.status_code == 200:
        response_200 = ProfileVersionPage.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | ProfileVersionPage]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    profile: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    after: int | Unset = 0,

) -> Response[Problem | ProfileVersionPage]:
    """ Profile Versions

     Who committed which version of a profile, when and why, newest first.

    Args:
        profile (None | str | Unset): Default: all of the tenant.
        limit (int | Unset): Rows of a page. Default: 50.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ProfileVersionPage]
     """


    kwargs = _get_kwargs(
        profile=profile,
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
    profile: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    after: int | Unset = 0,

) -> Problem | ProfileVersionPage | None:
    """ Profile Versions

     Who committed which version of a profile, when and why, newest first.

    Args:
        profile (None | str | Unset): Default: all of the tenant.
        limit (int | Unset): Rows of a page. Default: 50.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ProfileVersionPage
     """


    return sync_detailed(
        client=client,
profile=profile,
limit=limit,
after=after,

    ).parsed

async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    profile: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    after: int | Unset = 0,

) -> Response[Problem | ProfileVersionPage]:
    """ Profile Versions

     Who committed which version of a profile, when and why, newest first.

    Args:
        profile (None | str | Unset): Default: all of the tenant.
        limit (int | Unset): Rows of a page. Default: 50.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | ProfileVersionPage]
     """


    kwargs = _get_kwargs(
        profile=profile,
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
    profile: None | str | Unset = UNSET,
    limit: int | Unset = 50,
    after: int | Unset = 0,

) -> Problem | ProfileVersionPage | None:
    """ Profile Versions

     Who committed which version of a profile, when and why, newest first.

    Args:
        profile (None | str | Unset): Default: all of the tenant.
        limit (int | Unset): Rows of a page. Default: 50.
        after (int | Unset): `next` of the page before. Default: 0.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | ProfileVersionPage
     """


    return (await asyncio_detailed(
        client=client,
profile=profile,
limit=limit,
after=after,

    )).parsed
