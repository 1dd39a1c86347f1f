"""DTLS and SCTP of a call, and the transport that joins them with ICE on the worker's socket."""
