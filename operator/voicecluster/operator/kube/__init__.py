"""The one place that talks to the API server: what it is asked (`port`), how (`client`), and when nothing is."""
