from .charts import (
    Bar as Bar,
    Series as Series,
    bars as bars,
    counted as counted,
    lines as lines,
)
from .evals import page as page
from .frame import (
    ASSETS as ASSETS,
    LANGUAGES as LANGUAGES,
    ROUTES as ROUTES,
    Frame as Frame,
    Place as Place,
    Route as Route,
    asset as asset,
    place_of as place_of,
    render as render,
    static_path as static_path,
)
from .inspector import (
    CallDifference as CallDifference,
    CallView as CallView,
    compare_calls as compare_calls,
    inspect_call as inspect_call,
)
from .sessions import (
    LossesPage as LossesPage,
    MessagesPage as MessagesPage,
    SessionsPage as SessionsPage,
    losses_page as losses_page,
    messages_page as messages_page,
    sessions_page as sessions_page,
)
from .site import VIEWS as VIEWS, Answer as Answer, Site as Site
from .timeline import (
    SOURCES as SOURCES,
    Timeline as Timeline,
    TimelineCall as TimelineCall,
    priced_call as priced_call,
    timeline_page as timeline_page,
)
