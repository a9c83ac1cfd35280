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
from .sessions import SessionRow as SessionRow, SessionsPage as SessionsPage, sessions_page as sessions_page
from .site import VIEWS as VIEWS, Answer as Answer, Site as Site
