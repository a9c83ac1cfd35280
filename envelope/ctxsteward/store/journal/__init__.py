"""The journal: ordered, durable records of sessions, in a SQLite file, in PostgreSQL or in memory."""
