"""The HTTP API: routes over the engine, limits, problems, metrics and the page."""
