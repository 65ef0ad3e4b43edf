/* Wires with a delay: carries packets between TUN devices of network namespaces.
 *
 *     wires TABLE      lines of: namespace device namespace device ns-a-byte ns-a-byte ns-of-delay
 *
 * Each direction of a wire is first in, first out. A packet leaves when the one before it has left and its own bytes
 * have passed at the wire's rate. It is delivered `delay` later. Prints `ready` when all devices exist. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 9216, QUEUED = 4 << 20, BATCH = 16, EVENTS = 64 };

struct packet {
    struct packet *next;
    int64_t due;
    int length;
    unsigned char data[];
};

/* The packets from one device to the other. */
struct direction {
    int from, to;
    int64_t ns_per_byte, delay, free_at; /* free_at: when the last packet has left */
    struct packet *first, **last;
    long bytes; /* in the queue, or on the wire */
};

static int64_t now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "%s `%s`: %s\n", what, name, strerror(errno));
    exit(1);
}

/* Makes a TUN device in a namespace. */
static int open_device(const char *space, const char *device)
{
    char path[256];
    struct ifreq wanted;
    int entry, fd;

    snprintf(path, sizeof path, "/run/netns/%s", space);
    entry = open(path, O_RDONLY | O_CLOEXEC);
    if (entry < 0 || setns(entry, CLONE_NEWNET) != 0)
        fail("cannot enter", path);
    close(entry);
    fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        fail("cannot open", "/dev/net/tun");
    memset(&wanted, 0, sizeof wanted);
    wanted.ifr_flags = IFF_TUN | IFF_NO_PI;
    snprintf(wanted.ifr_name, sizeof wanted.ifr_name, "%s", device);
    if (ioctl(fd, TUNSETIFF, &wanted) != 0)
        fail("cannot make", device);
    return fd;
}

/* Takes some packets that were sent. Packets that do not fit the queue are lost, as in any network. */
static void take(struct direction *way)
{
    unsigned char data[LARGEST];
    int k;

    for (k = 0; k < BATCH; k++) {
        ssize_t length = read(way->from, data, sizeof data);
        struct packet *packet;
        int64_t start = now();

        if (length <= 0)
            return;
        if (way->bytes + length > QUEUED || (packet = malloc(sizeof *packet + (size_t)length)) == NULL)
            continue;
        if (way->free_at > start)
            start = way->free_at;
        way->free_at = start + length * way->ns_per_byte;
        packet->due = way->free_at + way->delay;
        packet->next = NULL;
        packet->length = (int)length;
        memcpy(packet->data, data, (size_t)length);
        *way->last = packet;
        way->last = &packet->next;
        way->bytes += length;
    }
}

/* Delivers the packets that are due; returns the time of the next one, or INT64_MAX. */
static int64_t hand_over(struct direction *way)
{
    while (way->first != NULL && way->first->due <= now()) {
        struct packet *packet = way->first;

        if (write(way->to, packet->data, (size_t)packet->length) < 0 && errno == EAGAIN)
            return packet->due;
        way->bytes -= packet->length;
        way->first = packet->next;
        if (way->first == NULL)
            way->last = &way->first;
        free(packet);
    }
    return way->first == NULL ? INT64_MAX : way->first->due;
}

static struct direction *read_table(const char *name, int *number)
{
    FILE *table = fopen(name, "r");
    struct direction *ways = NULL;
    char spaces[2][64], devices[2][64];
    long long costs[2], delay;
    int k;

    if (table == NULL)
        fail("cannot read", name);
    *number = 0;
    while (fscanf(table, "%63s %63s %63s %63s %lld %lld %lld", spaces[0], devices[0], spaces[1], devices[1],
                  &costs[0], &costs[1], &delay) == 7) {
        int ends[2];

        ways = realloc(ways, (size_t)(*number + 2) * sizeof *ways);
        if (ways == NULL)
            fail("no memory for", name);
        for (k = 0; k < 2; k++)
            ends[k] = open_device(spaces[k], devices[k]);
        for (k = 0; k < 2; k++) {
            struct direction *way = &ways[(*number)++];

            memset(way, 0, sizeof *way);
            way->from = ends[k];
            way->to = ends[1 - k];
            way->ns_per_byte = costs[k];
            way->delay = delay;
        }
    }
    fclose(table);
    return ways;
}

static void carry(struct direction *ways, int number)
{
    struct epoll_event events[EVENTS];
    int poll = epoll_create1(EPOLL_CLOEXEC), k;

    for (k = 0; k < number; k++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)k};

        ways[k].last = &ways[k].first;
        if (epoll_ctl(poll, EPOLL_CTL_ADD, ways[k].from, &event) != 0)
            fail("cannot wait for", "a device");
    }
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        int64_t next = INT64_MAX, left;
        struct timespec wait;
        int found;

        for (k = 0; k < number; k++) {
            int64_t due = hand_over(&ways[k]);

            if (due < next)
                next = due;
        }
        left = next == INT64_MAX ? 1000000000 : next - now();
        if (left < 0)
            left = 0;
        wait.tv_sec = left / 1000000000;
        wait.tv_nsec = left % 1000000000;
        found = epoll_pwait2(poll, events, EVENTS, &wait, NULL);
        for (k = 0; k < found; k++)
            take(&ways[events[k].data.u32]);
    }
}

int main(int argc, char **argv)
{
    struct direction *ways;
    int number;

    if (argc != 2)
        return 2;
    prctl(PR_SET_TIMERSLACK, 1000UL); /* the kernel's 50 us would be added to every delay */
    ways = read_table(argv[1], &number);
    carry(ways, number);
    return 0;
}
