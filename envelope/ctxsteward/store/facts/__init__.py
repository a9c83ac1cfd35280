"""Facts that earlier versions kept about one user, project or session: read for past envelopes, and erased."""
