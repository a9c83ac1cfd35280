"""Prefect flows, the only room that imports Prefect: the nightly steward, nights made up for, eval suites.

    nightly     meta_steward_nightly(settings)
    replaying   replay_nights(settings, first, last)
    suites      eval_suite(suite, settings)

They hold no logic: a flow runs `ctxsteward.steward` with batches as tasks. Importing this package imports nothing;
`quiet` is what a shell puts into the environment before it imports one of the modules above.
"""
