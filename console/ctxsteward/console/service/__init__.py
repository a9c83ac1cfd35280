"""The HTTP service: a JSON API over a store, events, and the pages mounted on it. Needs the extra `console`."""
