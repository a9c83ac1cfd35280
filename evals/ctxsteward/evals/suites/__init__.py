"""Eval suites: long conversations made from seeds, played through the real builder, held to gates.

`scenario` names and holds conversations, `suite` says what a suite is, `catalogue` has them by name, `running` plays
them, `results` and `gates` say what came of it.
"""
