"""Ask the app: drivers, page profiles, and the runner that turns failures into `NoAnswer` values."""
