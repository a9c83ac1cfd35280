from .charts import (
    Bar as Bar,
    Series as Series,
    bars as bars,
    counted as counted,
    lines as lines,
    render as render,
)
from .evals import page as page
