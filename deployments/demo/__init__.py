"""A demo Space over invented policies, with faults that can be planted, and the suite that finds them."""
