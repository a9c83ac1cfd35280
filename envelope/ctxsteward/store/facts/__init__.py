"""Facts: what is known about one user, project or session, and shown in requests of that audience alone.

    store.facts("support", tenant="acme").commit(Audience("user", "ann"), facts, who=…, why=…, when=…)

`fact` holds the values and how they are stored, `fact_store` the chains that hold them and how sessions ask.
"""
