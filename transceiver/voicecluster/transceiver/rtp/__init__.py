"""The media of one call: Opus, jitter buffer, RTP, RTCP. Everything here takes time as an argument and owns
no task.
"""
