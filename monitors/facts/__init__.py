"""Read the statements of a text. Pure readers of text, without expectations or opinions."""
