"""Eval suites: long conversations made from seeds, played through the real builder, held to gates.

`catalogue` finds suites by name, each a module here; `kit` defines suites and scenarios and plays a scenario; `results`
plays many scenarios and adds them up; `gates` holds the bounds of figures.
"""
