"""Measure what the window still shows at the end of long talks: needed statements, lasting rules, newest values."""
