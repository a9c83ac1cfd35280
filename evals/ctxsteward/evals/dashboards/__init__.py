"""Dashboards and alerts, out of one table: a Grafana dashboard, Prometheus rules, and pictures of what they show.

`panels` and `rules` are the table, `grafana` and `prometheus` write it down, `showing` runs something that shows every
instrument, `pictures` draws the panels from a real Prometheus that watched it. ``python -m ctxsteward.evals.dashboards
docs/dashboards`` writes the files anew, ``… --pictures docs/img`` the pictures.
"""
