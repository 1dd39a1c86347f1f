/* Paced flows from many sockets, and the sink that counts and times what arrives.
 *
 *   generator SINK_FD FIRST_FD FLOWS PACKETS_PER_SECOND SECONDS SIZES_FILE
 *
 * Sockets are inherited: SINK_FD is bound, FIRST_FD.. are connected, one per flow. Packet i leaves flow i mod FLOWS at
 * its own time; the sender wakes every 200 us and sends what is due. SIZES_FILE holds sizes of Opus frames; a packet is
 * one of them with an RTP header and an SRTP tag (first byte 0x80), and carries the time it was sent. One line of JSON
 * says how it went.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64, SPP = 38, STAMP = 12, OVERHEAD = 22, SIZE = 2048, MAX_SIZES = 4096, GRAIN_NS = 200000, BINS = 100000 };

static atomic_int stop;
static long received, histogram[BINS + 1]; /* microseconds; the last bin is "or more" */

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *sink(void *argument) {
    int fd = *(int *)argument;
    static unsigned char packets[BATCH][SIZE];
    static struct iovec parts[BATCH];
    static struct mmsghdr messages[BATCH];
    for (int i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){packets[i], SIZE};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    struct timeval wait = {0, 50000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    while (!atomic_load(&stop)) {
        int got = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL);
        int64_t now = now_ns();
        for (int i = 0; i < got; i++) {
            int64_t stamp;
            if (messages[i].msg_len < SPP + STAMP + sizeof stamp || packets[i][SPP] != 0x80) continue;
            memcpy(&stamp, packets[i] + SPP + STAMP, sizeof stamp);
            int64_t late = (now - stamp) / 1000;
            histogram[late < 0 ? 0 : late > BINS ? BINS : late]++;
            received++;
        }
    }
    return NULL;
}

static long quantile(double share) {
    long seen = 0;
    for (int i = 0; i <= BINS; i++)
        if ((seen += histogram[i]) >= share * received) return i;
    return BINS;
}

int main(int count, char **arguments) {
    if (count != 7) {
        fprintf(stderr, "usage: generator SINK_FD FIRST_FD FLOWS PACKETS_PER_SECOND SECONDS SIZES_FILE\n");
        return 2;
    }
    int sink_fd = atoi(arguments[1]), first = atoi(arguments[2]), flows = atoi(arguments[3]);
    double rate = atof(arguments[4]), seconds = atof(arguments[5]);
    static int sizes[MAX_SIZES];
    int known = 0;
    FILE *file = fopen(arguments[6], "r");
    if (!file) {
        perror(arguments[6]);
        return 1;
    }
    while (known < MAX_SIZES && fscanf(file, "%d", &sizes[known]) == 1) known++;
    fclose(file);
    if (!known) return 1;
    pthread_t thread;
    pthread_create(&thread, NULL, sink, &sink_fd);
    static unsigned char packet[SIZE];
    packet[0] = 0x80;
    packet[1] = 111;
    long sent = 0, refused = 0, total = (long)(rate * seconds);
    int64_t start = now_ns();
    while (sent + refused < total) {
        int64_t now = now_ns();
        long due = (long)((now - start) * 1e-9 * rate);
        for (long i = sent + refused; i < due && i < total; i++) {
            int64_t stamp = now_ns();
            memcpy(packet + STAMP, &stamp, sizeof stamp);
            if (send(first + (int)(i % flows), packet, (size_t)sizes[(i / flows + i) % known] + OVERHEAD, MSG_DONTWAIT) > 0) sent++;
            else refused++;
        }
        struct timespec pause = {0, GRAIN_NS};
        nanosleep(&pause, NULL);
    }
    double took = (now_ns() - start) * 1e-9;
    struct timespec drain = {0, 300000000};
    nanosleep(&drain, NULL);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    printf("{\"sent\":%ld,\"refused\":%ld,\"received\":%ld,\"seconds\":%.3f,\"p50_us\":%ld,\"p99_us\":%ld}\n", sent, refused,
           received, took, quantile(0.50), quantile(0.99));
    return 0;
}
