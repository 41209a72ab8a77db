"""Read facts from a text, such as quantities and citations. Pure: no module judges whether a fact is right."""
