from .access import (
    SCOPES as SCOPES,
    Principal as Principal,
    Problem as Problem,
    Refusal as Refusal,
    Scope as Scope,
    TokenFile as TokenFile,
    add_token as add_token,
    needs as needs,
    read_tokens as read_tokens,
    revoke_token as revoke_token,
)
from .api import service_of as service_of
from .app import StoppableServer as StoppableServer, create_app as create_app, openapi_of as openapi_of
from .desk import (
    LOOPBACK_HOSTS as LOOPBACK_HOSTS,
    Service as Service,
    ServiceLimits as ServiceLimits,
    ServiceSettings as ServiceSettings,
)
