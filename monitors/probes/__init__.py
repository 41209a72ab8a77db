"""Ask the app: drivers, profiles, and the runner that turns failures into no-answers."""
