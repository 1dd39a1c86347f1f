"""SDP as two documents: an offer that is parsed once, and the answer (or fragment) that mirrors it.

No I/O.
"""

from voicecluster.transceiver.sdp.answer import Candidate, build_answer, build_fragment
from voicecluster.transceiver.sdp.fragment import Fragment, parse_fragment
from voicecluster.transceiver.sdp.lines import OfferError
from voicecluster.transceiver.sdp.offer import (
    AudioSection,
    DataSection,
    Fingerprint,
    Offer,
    Section,
    parse_offer,
)

__all__ = [
    "AudioSection",
    "Candidate",
    "DataSection",
    "Fingerprint",
    "Fragment",
    "Offer",
    "OfferError",
    "Section",
    "build_answer",
    "build_fragment",
    "parse_fragment",
    "parse_offer",
]
