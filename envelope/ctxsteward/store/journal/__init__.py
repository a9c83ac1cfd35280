"""The journal: ordered, durable records of sessions, in SQLite tables on disk or in memory."""
