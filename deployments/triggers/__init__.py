"""What says that something was deployed: one parser for each kind of sender."""
