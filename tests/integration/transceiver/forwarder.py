"""A relay without limits, in the place of real ones."""

import contextlib
import selectors
import socket
import threading

from voicecluster.wire import (
    SPP_LEN,
    HintError,
    HintKey,
    spp_decode,
    spp_encode,
    stun_username,
)

HOST = "127.0.105.1"
Address = tuple[str, int]


class Forwarder(threading.Thread):
    """A relay without limits: VIP on one side, SPP on the other, routes by the ufrag of each check."""

    def __init__(self, hint: HintKey, media: dict[tuple[int, int], Address]) -> None:
        super().__init__(name="forwarder", daemon=True)
        self._hint = hint
        self._media = media
        self._routes: dict[Address, Address] = {}
        self._done, self._wake = socket.socketpair()
        self._front = self._bound()
        self._back = self._bound()
        self.vip: Address = self._front.getsockname()
        self.backbone: Address = self._back.getsockname()

    @staticmethod
    def _bound() -> socket.socket:
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bound.bind((HOST, 0))
        return bound

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in (self._front, self._back, self._done):
                selector.register(each, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._done:
                        return
                    if key.fileobj is self._front:
                        self._inward(*self._front.recvfrom(2048))
                    else:
                        datagram, _ = self._back.recvfrom(2048)
                        self._front.sendto(datagram[SPP_LEN:], spp_decode(datagram).client)

    def _inward(self, datagram: bytes, client: Address) -> None:
        if datagram and datagram[0] == 0:
            with contextlib.suppress(HintError, KeyError):
                ufrag = (stun_username(datagram) or "").partition(":")[0]
                route = self._hint.open(ufrag).route
                self._routes[client] = self._media[(route.ordinal, route.worker)]
        if client in self._routes:
            self._back.sendto(spp_encode(client, self.vip) + datagram, self._routes[client])

    def close(self) -> None:
        """Forward no more. May be called twice."""
        if self._wake.fileno() < 0:
            return
        self._wake.send(b"x")
        self.join()
        for each in (self._front, self._back, self._done, self._wake):
            each.close()
