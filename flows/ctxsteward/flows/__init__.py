"""Prefect flows, the only room that imports Prefect. Nothing here yet but the room."""
