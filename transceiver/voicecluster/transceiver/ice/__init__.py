"""ICE on one shared UDP socket: the agent of a call (sans-IO) and the socket that all calls of a worker
share.
"""
