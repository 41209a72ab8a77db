"""A demo chat page about invented insurance policies. It can have planted faults, which the demo's suite finds."""
