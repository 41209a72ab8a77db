"""What does this text state? Pure readers of text: no expectations, no opinions."""
