"""The resources users write, as typed models. Imports neither kopf nor a Kubernetes client."""
