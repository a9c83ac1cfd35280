"""Eval suites: long conversations made from seeds, played through the real builder, held to gates.

`catalogue` has the suites by name, each a module here; `kit` says what a suite and a scenario are and plays a scenario;
`results` plays many and adds them up; `gates` says what each figure is held to.
"""
