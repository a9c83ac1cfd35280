from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.compact_dry_run import check_compact_dry_run
from ...models.compact_dry_run import CompactDryRun
from ...models.compact_input import CompactInput
from ...models.compaction import Compaction
from ...models.problem import Problem
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    session: str,
    *,
    body: CompactInput | None | Unset = UNSET,
    dry_run: CompactDryRun | Unset = 'false',

) -> dict[str, Any]:
    headers: dict[str, Any] = {}


    

    params: dict[str, Any] = {}

    json_dry_run: str | Unset = UNSET
    if not isinstance(dry_run, Unset):
        json_dry_run = dry_run

    params["dry_run"] = json_dry_run


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/sessions/{session}/compact".format(session=quote(str(session), safe=""),),
        "params": params,
    }

    
    if isinstance(body, CompactInput):
        _kwargs["json"] = body.to_dict()
    else:
        _kwargs["json"] = body

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Compaction | Problem:
    if response.status_code == 200:
        response_200 = Compaction.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Compaction | Problem]:
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
    body: CompactInput | None | Unset = UNSET,
    dry_run: CompactDryRun | Unset = 'false',

) -> Response[Compaction | Problem]:
    """ Compact

     Compact now, whatever the thresholds say. One that would save less than a tenth of the window is not
    made.

    Args:
        session (str): Id of the session.
        dry_run (CompactDryRun | Unset): Say what it would do, and what that costs. Default:
            'false'.
        body (CompactInput | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Compaction | Problem]
     """


    kwargs = _get_kwargs(
        session=session,
body=body,
dry_run=dry_run,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    body: CompactInput | None | Unset = UNSET,
    dry_run: CompactDryRun | Unset = 'false',

) -> Compaction | Problem | None:
    """ Compact

     Compact now, whatever the thresholds say. One that would save less than a tenth of the window is not
    made.

    Args:
        session (str): Id of the session.
        dry_run (CompactDryRun | Unset): Say what it would do, and what that costs. Default:
            'false'.
        body (CompactInput | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Compaction | Problem
     """


    return sync_detailed(
        session=session,
client=client,
body=body,
dry_run=dry_run,

    ).parsed

async def asyncio_detailed(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    body: CompactInput | None | Unset = UNSET,
    dry_run: CompactDryRun | Unset = 'false',

) -> Response[Compaction | Problem]:
    """ Compact

     Compact now, whatever the thresholds say. One that would save less than a tenth of the window is not
    made.

    Args:
        session (str): Id of the session.
        dry_run (CompactDryRun | Unset): Say what it would do, and what that costs. Default:
            'false'.
        body (CompactInput | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Compaction | Problem]
     """


    kwargs = _get_kwargs(
        session=session,
body=body,
dry_run=dry_run,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    body: CompactInput | None | Unset = UNSET,
    dry_run: CompactDryRun | Unset = 'false',

) -> Compaction | Problem | None:
    """ Compact

     Compact now, whatever the thresholds say. One that would save less than a tenth of the window is not
    made.

    Args:
        session (str): Id of the session.
        dry_run (CompactDryRun | Unset): Say what it would do, and what that costs. Default:
            'false'.
        body (CompactInput | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Compaction | Problem
     """


    return (await asyncio_detailed(
        session=session,
client=client,
body=body,
dry_run=dry_run,

    )).parsed
