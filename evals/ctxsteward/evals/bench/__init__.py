"""Benchmarks: what builds, stores, nights and telemetry cost, each figure beside the bar it is held to.

Run ``python -m ctxsteward.evals.bench [--data FOLDER] [--json] [NAME …]`` or ``ctxsteward evals bench``. A benchmark is
a function that yields rows (`BenchmarkRow`); `BENCHES` has them by name. No test times anything: benchmarks are run by
hand. A figure is a ratio of two measurements of one run, or a median of several; times are CPU time unless a row says
wall. `FOLDER` holds the public transcripts (``tau_bench_airline``, ``swe_agent``, ``locomo``).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
