"""An ordinary WebRTC client for calls and load: full ICE, DTLS, SRTP, one UDP socket a call.

It knows nothing of relays: it is what a browser is to a deployment, at a small part of the cost.
`ice`, `dtls` and `rtp` are sans-IO; `session` joins them to a socket; `signaling` speaks HTTP;
`dial` places one call, `load` many.
"""
