from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.problem import Problem
from ...models.session_health import SessionHealth
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    session: str,
    *,
    model: None | str | Unset = UNSET,

) -> dict[str, Any]:
    

    

    params: dict[str, Any] = {}

    json_model: None | str | Unset
    if isinstance(model, Unset):
        json_model = UNSET
    else:
        json_model = model
    params["model"] = json_model


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/sessions/{session}/health".format(session=quote(str(session), safe=""),),
        "params": params,
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | SessionHealth:
    if response.status_code == 200:
        response_200 = SessionHealth.from_dict(response.json())



        return response_200

    response_default = Problem.from_dict(response.json())



    return response_default



def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | SessionHealth]:
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
    model: None | str | Unset = UNSET,

) -> Response[Problem | SessionHealth]:
    """ Session Health

     How full the session is: shares of the dynamic budget and of the model's window, and a level;
    nothing is written.

    `healthy`; `warning` from 80 % on; `critical` from 90 % on; `idle` where nothing was said yet.

    Args:
        session (str): Id of the session.
        model (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SessionHealth]
     """


    kwargs = _get_kwargs(
        session=session,
model=model,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    model: None | str | Unset = UNSET,

) -> Problem | SessionHealth | None:
    """ Session Health

     How full the session is: shares of the dynamic budget and of the model's window, and a level;
    nothing is written.

    `healthy`; `warning` from 80 % on; `critical` from 90 % on; `idle` where nothing was said yet.

    Args:
        session (str): Id of the session.
        model (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SessionHealth
     """


    return sync_detailed(
        session=session,
client=client,
model=model,

    ).parsed

async def asyncio_detailed(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    model: None | str | Unset = UNSET,

) -> Response[Problem | SessionHealth]:
    """ Session Health

     How full the session is: shares of the dynamic budget and of the model's window, and a level;
    nothing is written.

    `healthy`; `warning` from 80 % on; `critical` from 90 % on; `idle` where nothing was said yet.

    Args:
        session (str): Id of the session.
        model (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SessionHealth]
     """


    kwargs = _get_kwargs(
        session=session,
model=model,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    session: str,
    *,
    client: AuthenticatedClient | Client,
    model: None | str | Unset = UNSET,

) -> Problem | SessionHealth | None:
    """ Session Health

     How full the session is: shares of the dynamic budget and of the model's window, and a level;
    nothing is written.

    `healthy`; `warning` from 80 % on; `critical` from 90 % on; `idle` where nothing was said yet.

    Args:
        session (str): Id of the session.
        model (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SessionHealth
     """


    return (await asyncio_detailed(
        session=session,
client=client,
model=model,

    )).parsed
