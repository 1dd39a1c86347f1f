"""The configuration files that `plan()` writes and the components read, one typed model each."""
