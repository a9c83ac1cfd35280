"""Facts that earlier versions stored about one user, project or session; read for past envelopes, and erased."""
