/* The yardstick of `make bench-relay`: the least a UDP relay can do with one thread and two sockets.
 *
 *   forwarder LISTEN_ADDRESS LISTEN_PORT TARGET_ADDRESS TARGET_PORT
 *
 * Receives in batches, writes a 38-byte SPP header before each datagram and sends in batches. No table, no checks, no
 * limits, no way back: whoever does more per packet pays for it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BATCH = 64, HEADER = 38, SIZE = 2048, BUFFER = 8 << 20 };

static struct sockaddr_in address(const char *host, const char *port) {
    struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    if (inet_pton(AF_INET, host, &result.sin_addr) != 1) {
        fprintf(stderr, "not an IPv4 address: %s\n", host);
        exit(2);
    }
    return result;
}

static void map_ipv4(unsigned char *into, struct in_addr from) {
    memset(into, 0, 10);
    into[10] = into[11] = 0xff;
    memcpy(into + 12, &from, 4);
}

static void write_header(unsigned char *header, const struct sockaddr_in *client, const struct sockaddr_in *proxy) {
    header[0] = 0x56;
    header[1] = 0xec;
    map_ipv4(header + 2, client->sin_addr);
    map_ipv4(header + 18, proxy->sin_addr);
    memcpy(header + 34, &client->sin_port, 2);
    memcpy(header + 36, &proxy->sin_port, 2);
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: forwarder LISTEN_ADDRESS LISTEN_PORT TARGET_ADDRESS TARGET_PORT\n");
        return 2;
    }
    struct sockaddr_in listen = address(arguments[1], arguments[2]), target = address(arguments[3], arguments[4]);
    int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0), buffer = BUFFER;
    setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    setsockopt(out, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer);
    if (bind(in, (struct sockaddr *)&listen, sizeof listen) || connect(out, (struct sockaddr *)&target, sizeof target)) {
        perror("forwarder");
        return 1;
    }
    static unsigned char packets[BATCH][HEADER + SIZE];
    static struct sockaddr_in clients[BATCH];
    static struct iovec receive_parts[BATCH], send_parts[BATCH];
    static struct mmsghdr received[BATCH], sent[BATCH];
    for (int i = 0; i < BATCH; i++) {
        receive_parts[i] = (struct iovec){packets[i] + HEADER, SIZE};
        send_parts[i].iov_base = packets[i];
        received[i].msg_hdr = (struct msghdr){.msg_name = &clients[i], .msg_iov = &receive_parts[i], .msg_iovlen = 1};
        sent[i].msg_hdr = (struct msghdr){.msg_iov = &send_parts[i], .msg_iovlen = 1};
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        for (int i = 0; i < BATCH; i++) received[i].msg_hdr.msg_namelen = sizeof clients[i];
        int got = recvmmsg(in, received, BATCH, MSG_WAITFORONE, NULL);
        for (int i = 0; i < got; i++) {
            write_header(packets[i], &clients[i], &listen);
            send_parts[i].iov_len = HEADER + received[i].msg_len;
        }
        for (int done = 0; done < got;) {
            int now = sendmmsg(out, sent + done, (unsigned)(got - done), 0);
            if (now <= 0) break;
            done += now;
        }
    }
}
