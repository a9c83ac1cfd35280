from .charts import (
    Bar as Bar,
    Series as Series,
    bars as bars,
    counted as counted,
    lines as lines,
    page as page,
    render as render,
)
