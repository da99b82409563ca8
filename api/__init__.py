"""The HTTP face: routes over the engine, limits, problems, metrics and the page."""
