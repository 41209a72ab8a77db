"""The flows. They only orchestrate: monitors compute, and the warehouse stores."""
