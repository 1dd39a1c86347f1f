"""The API server: what the operator asks of it (`port`), how it is asked (`client`), and what is written when.

`difference` decides what has to be written, `apply` and `prune` write it.
"""
