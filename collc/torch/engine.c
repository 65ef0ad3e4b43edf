/* Plays the plan of one rank over sockets, one per peer. See columns.py for the arrays.
 *
 * An operation begins as soon as those that it depends on have ended, whatever its number. On a socket, messages follow
 * each other in the order of their numbers, each behind a header. A message goes straight from its place and straight
 * to its place. While its place is in use it stays in the kernel, and is put aside only when nothing else can move. So
 * the rank always reads what its peers send, and no cycle of full sockets can form.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum { RECEIVE, SEND, COPY, COMBINE };

/* The columns of an operation. A message has its place in TO, and is NUMBER of those from its sender to its receiver.
 * WAITS is on how many others it depends; FIRST and END enclose those that depend on it. */
enum { KIND, PEER, NUMBER, TO, TO_LOW, COUNT, ONE, ONE_LOW, OTHER, OTHER_LOW, WAITS, FIRST, END, COLUMNS };

#define NONE (-1)

typedef void combine(void *to, const void *one, const void *other, int64_t count);
/* A reduction that this file does not have: the number of the operation; returns 0 on success. */
typedef int64_t elsewhere(int64_t operation);

/* In the byte order of the machine, as the data. */
typedef struct {
    uint32_t call, number;
    uint64_t bytes;
} header;

typedef struct {
    header head;
    char *place;  /* in a buffer */
    char *aside;  /* memory for a message that comes while its place is in use */
    size_t bytes, done;  /* done: sent with the header, or received without */
    int64_t next;  /* the message that follows it on the socket */
    int64_t waits;  /* the operations that it waits for */
    int ended;
} state;

typedef struct {
    int fd, error;
    int64_t sending;   /* the first message that is not sent yet */
    int64_t expected;  /* the next message to receive */
    header head;       /* of that message, as far as it is here */
    size_t got;
} link;

typedef struct {
    int64_t size;
    uint32_t calls;
    link *links;  /* by rank */
    struct pollfd *polled;
    int64_t *peers;  /* those with a socket */
    int64_t num_peers;
    int64_t awaits[2];  /* the kind of operation and the rank that the call waits for */
} engine;

typedef struct {
    engine *e;
    const int64_t *rows, *dependents;
    int64_t count, left, oldest;  /* oldest: no operation before it is left */
    state *states;
    int64_t *ready, begun, queued;  /* operations that may begin: from the begun to the queued */
    int64_t deadline;  /* milliseconds of the monotonic clock */
} call;

/* ---- reductions */

/* The result may be one of the operands, but does not overlap them otherwise. */
#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH _Pragma("GCC ivdep")
#endif

#define REDUCTION(name, type, load, store, expression)                                \
    static void name(void *to_, const void *one_, const void *other_, int64_t count)  \
    {                                                                                 \
        type *to = to_;                                                               \
        const type *one = one_, *other = other_;                                      \
        EACH for (int64_t i = 0; i < count; i++) {                                    \
            __typeof__(load(one[0])) a = load(one[i]), b = load(other[i]);            \
            to[i] = store(expression);                                                \
        }                                                                             \
    }
#define PLAIN(x) (x)

static inline float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float from_bfloat(uint16_t x)
{
    return of_bits((uint32_t)x << 16);
}

/* To the nearest, ties to even. */
static inline uint16_t to_bfloat(float x)
{
    uint32_t bits = bits_of(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded);
}

static inline float from_half(uint16_t x)
{
    uint32_t shifted = (uint32_t)(x & 0x7fff) << 13;
    uint32_t exponent = shifted & 0x0f800000;
    uint32_t normal = shifted + (112u << 23);
    uint32_t special = shifted + (224u << 23); /* infinities and NaNs */
    uint32_t small = bits_of(of_bits(shifted + (113u << 23)) - of_bits(113u << 23));
    uint32_t magnitude = exponent == 0x0f800000 ? special : exponent == 0 ? small : normal;
    return of_bits(magnitude | (uint32_t)(x & 0x8000) << 16);
}

static inline uint16_t to_half(float x)
{
    uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    uint32_t special = size > 0x7f800000 ? 0x7e00 : 0x7c00;
    uint32_t small = bits_of(of_bits(size) + 0.5f) - 0x3f000000; /* the addition rounds */
    uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    return (uint16_t)(sign | (size >= 0x47800000 ? special : size < 0x38800000 ? small : normal));
}

REDUCTION(sum_float32, float, PLAIN, PLAIN, a + b)
REDUCTION(sum_float64, double, PLAIN, PLAIN, a + b)
REDUCTION(sum_float16, uint16_t, from_half, to_half, a + b)
REDUCTION(sum_bfloat16, uint16_t, from_bfloat, to_bfloat, a + b)
REDUCTION(product_float32, float, PLAIN, PLAIN, a * b)
REDUCTION(product_float64, double, PLAIN, PLAIN, a * b)
REDUCTION(product_float16, uint16_t, from_half, to_half, a * b)
REDUCTION(product_bfloat16, uint16_t, from_bfloat, to_bfloat, a * b)

/* Sums and products of integers wrap around, so they are those without a sign. */
#define WRAPPING(width, type)                                                              \
    REDUCTION(sum_##width, type, PLAIN, PLAIN, (type)((uint64_t)a + (uint64_t)b))          \
    REDUCTION(product_##width, type, PLAIN, PLAIN, (type)((uint64_t)a * (uint64_t)b))      \
    REDUCTION(and_##width, type, PLAIN, PLAIN, (type)(a & b))                              \
    REDUCTION(or_##width, type, PLAIN, PLAIN, (type)(a | b))                               \
    REDUCTION(xor_##width, type, PLAIN, PLAIN, (type)(a ^ b))
#define ORDERED(name, type)                                   \
    REDUCTION(min_##name, type, PLAIN, PLAIN, b < a ? b : a)  \
    REDUCTION(max_##name, type, PLAIN, PLAIN, a < b ? b : a)

WRAPPING(8, uint8_t)
WRAPPING(16, uint16_t)
WRAPPING(32, uint32_t)
WRAPPING(64, uint64_t)
ORDERED(uint8, uint8_t)
ORDERED(int8, int8_t)
ORDERED(int16, int16_t)
ORDERED(int32, int32_t)
ORDERED(int64, int64_t)

#define OF_FLOATS(op) {#op " float32", op##_float32}, {#op " float64", op##_float64}, \
    {#op " float16", op##_float16}, {#op " bfloat16", op##_bfloat16}
#define OF_WIDTHS(op) {#op " uint8", op##_8}, {#op " int8", op##_8}, {#op " int16", op##_16}, \
    {#op " int32", op##_32}, {#op " int64", op##_64}
#define OF_SIGNS(op) {#op " uint8", op##_uint8}, {#op " int8", op##_int8}, {#op " int16", op##_int16}, \
    {#op " int32", op##_int32}, {#op " int64", op##_int64}, {#op " bool", op##_uint8}

static const struct {
    const char *name;
    combine *function;
} reductions[] = {
    OF_FLOATS(sum), OF_FLOATS(product), OF_WIDTHS(sum), OF_WIDTHS(product), OF_SIGNS(min), OF_SIGNS(max),
    OF_WIDTHS(and), OF_WIDTHS(or), OF_WIDTHS(xor), {"and bool", and_8}, {"or bool", or_8}, {"xor bool", xor_8},
};

/* The reduction of an operation and a type, as "sum float32"; NULL: not here. */
combine *collc_reduction(const char *name)
{
    for (size_t k = 0; k < sizeof reductions / sizeof *reductions; k++)
        if (strcmp(reductions[k].name, name) == 0)
            return reductions[k].function;
    return NULL;
}

/* ---- the sockets */

/* `sockets` has one for each rank, NONE where no message goes. */
engine *collc_open(int64_t size, const int64_t *sockets)
{
    engine *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->size = size;
    e->links = calloc((size_t)size, sizeof *e->links);
    e->polled = calloc((size_t)size, sizeof *e->polled);
    e->peers = calloc((size_t)size, sizeof *e->peers);
    if (e->links == NULL || e->polled == NULL || e->peers == NULL) {
        free(e->links), free(e->polled), free(e->peers), free(e);
        return NULL;
    }
    for (int64_t r = 0; r < size; r++) {
        e->links[r].fd = (int)sockets[r];
        e->links[r].error = sockets[r] < 0 ? ENOTCONN : 0;
        if (sockets[r] >= 0)
            e->peers[e->num_peers++] = r;
    }
    return e;
}

void collc_close(engine *e)
{
    free(e->links), free(e->polled), free(e->peers), free(e);
}

int64_t *collc_awaits(engine *e)
{
    return e->awaits;
}

static const int64_t *row_of(const call *c, int64_t k)
{
    return c->rows + k * COLUMNS;
}

static void end(call *c, int64_t k)
{
    const int64_t *row = row_of(c, k);
    c->states[k].ended = 1;
    c->left--;
    for (int64_t i = row[FIRST]; i < row[END]; i++)
        if (--c->states[c->dependents[i]].waits == 0)
            c->ready[c->queued++] = c->dependents[i];
}

/* Whether the first message of a socket may go, or come straight to its place. */
static int is_free(const call *c, int64_t k)
{
    return k != NONE && c->states[k].waits == 0;
}

static void flush(call *c, link *at)
{
    while (is_free(c, at->sending) && !at->error) {
        state *m = &c->states[at->sending];
        size_t head = m->done < sizeof m->head ? sizeof m->head - m->done : 0;
        size_t body = m->done - (sizeof m->head - head);
        struct iovec parts[2] = {
            {(char *)&m->head + (sizeof m->head - head), head},
            {m->place + body, m->bytes - body},
        };
        struct msghdr all = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t sent = sendmsg(at->fd, &all, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                at->error = errno;
            return;
        }
        m->done += (size_t)sent;
        if (m->done == sizeof m->head + m->bytes) {
            end(c, at->sending);
            at->sending = m->next;
        }
    }
}

/* Receive what is there, up to the first message that can go nowhere. */
static void receive(call *c, link *at)
{
    while (at->expected != NONE && !at->error) {
        state *m = &c->states[at->expected];
        char *into = m->aside != NULL ? m->aside : m->waits == 0 ? m->place : NULL;
        if (into == NULL)
            return;
        size_t head = sizeof at->head - at->got, body = m->bytes - m->done;
        struct iovec parts[2] = {{(char *)&at->head + at->got, head}, {into + m->done, body}};
        struct msghdr all = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t came = recvmsg(at->fd, &all, MSG_DONTWAIT);
        if (came < 0 && errno == EINTR)
            continue;
        if (came <= 0) {
            if (came == 0)
                at->error = ECONNRESET;
            else if (errno != EAGAIN && errno != EWOULDBLOCK)
                at->error = errno;
            return;
        }
        size_t of_head = (size_t)came < head ? (size_t)came : head;
        at->got += of_head;
        m->done += (size_t)came - of_head;
        if (at->got < sizeof at->head)
            continue;
        if (memcmp(&at->head, &m->head, sizeof m->head) != 0) {
            at->error = EPROTO; /* the ranks made different calls */
            return;
        }
        if (m->done == m->bytes) {
            if (m->aside == NULL)
                end(c, at->expected);
            at->expected = m->next;
            at->got = 0;
        }
    }
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Tell what the call waits for: the oldest message. */
static void tell(call *c)
{
    int64_t k;
    while (c->oldest < c->count && c->states[c->oldest].ended)
        c->oldest++;
    for (k = c->oldest; k < c->count && (c->states[k].ended || row_of(c, k)[KIND] > SEND); k++)
        ;
    if (k < c->count) {
        c->e->awaits[1] = row_of(c, k)[PEER];
        c->e->awaits[0] = row_of(c, k)[KIND];
    }
}

/* An error on a socket that has messages to come or to go; the call cannot end without them. */
static int failure(const call *c)
{
    engine *e = c->e;
    for (int64_t k = 0; k < e->num_peers; k++) {
        const link *at = &e->links[e->peers[k]];
        if (at->error && (at->expected != NONE || at->sending != NONE)) {
            e->awaits[1] = e->peers[k];
            e->awaits[0] = at->expected != NONE ? RECEIVE : SEND;
            return at->error == ETIMEDOUT ? ECONNABORTED : at->error;
        }
    }
    return 0;
}

/* Wait until a socket can move, and move what can. Returns 0 or an errno. */
static int progress(call *c)
{
    engine *e = c->e;
    for (int64_t k = 0; k < e->num_peers; k++) {
        const link *at = &e->links[e->peers[k]];
        short events = (short)((at->expected != NONE ? POLLIN : 0) | (is_free(c, at->sending) ? POLLOUT : 0));
        e->polled[k] = (struct pollfd){.fd = events ? at->fd : -1, .events = events};
    }
    int64_t left = c->deadline - now();
    if (left <= 0)
        return ETIMEDOUT;
    int found = poll(e->polled, (nfds_t)e->num_peers, left > 1000000 ? 1000000 : (int)left);
    if (found < 0)
        return errno == EINTR ? 0 : errno;
    int moved = 0;
    for (int64_t k = 0; k < e->num_peers && found; k++) {
        link *at = &e->links[e->peers[k]];
        short events = e->polled[k].revents;
        if (events & ~POLLIN && is_free(c, at->sending))
            flush(c, at), moved = 1;
        if (events & ~POLLOUT && at->expected != NONE && (is_free(c, at->expected) || c->states[at->expected].aside))
            receive(c, at), moved = 1;
    }
    for (int64_t k = 0; k < e->num_peers && found && !moved; k++) {
        link *at = &e->links[e->peers[k]];
        if (!e->polled[k].revents || at->expected == NONE)
            continue;
        state *m = &c->states[at->expected];
        if (m->aside == NULL && (m->aside = malloc(m->bytes)) == NULL)
            return ENOMEM;
        receive(c, at);
    }
    return 0;
}

/* ---- a call */

/* The place of a receive is free: what was put aside goes there. */
static void accept_at_place(call *c, int64_t k)
{
    state *m = &c->states[k];
    if (m->aside == NULL)
        return;
    memcpy(m->place, m->aside, m->done);
    free(m->aside);
    m->aside = NULL;
    if (m->done == m->bytes)
        end(c, k);
}

static int begin(call *c, int64_t k, char **buffers, int64_t width, combine *reduce, elsewhere *other)
{
    const int64_t *row = row_of(c, k);
    if (row[KIND] == RECEIVE) {
        accept_at_place(c, k);
        return 0;
    }
    if (row[KIND] == SEND) {
        flush(c, &c->e->links[row[PEER]]);
        return 0;
    }
    char *to = buffers[row[TO]] + row[TO_LOW] * width;
    const char *one = buffers[row[ONE]] + row[ONE_LOW] * width;
    if (row[KIND] == COPY)
        memmove(to, one, (size_t)(row[COUNT] * width));
    else if (reduce != NULL)
        reduce(to, one, buffers[row[OTHER]] + row[OTHER_LOW] * width, row[COUNT]);
    else if (other(k))
        return ECANCELED;
    end(c, k);
    return 0;
}

/* Lay out the operations; `order` are the messages by peer and number. Returns 0 without memory. */
static int lay_out(call *c, const int64_t *order, int64_t num_messages, char **buffers, int64_t width)
{
    engine *e = c->e;
    c->states = calloc((size_t)c->count + 1, sizeof *c->states);
    c->ready = calloc((size_t)c->count + 1, sizeof *c->ready);
    if (c->states == NULL || c->ready == NULL)
        return 0;
    for (int64_t k = 0; k < c->count; k++) {
        const int64_t *row = row_of(c, k);
        state *s = &c->states[k];
        s->next = NONE;
        s->waits = row[WAITS];
        s->bytes = (size_t)(row[COUNT] * width);
        s->place = buffers[row[TO]] + row[TO_LOW] * width;
        s->head = (header){e->calls, (uint32_t)row[NUMBER], s->bytes};
        if (s->waits == 0)
            c->ready[c->queued++] = k;
    }
    for (int64_t r = 0; r < e->size; r++) {
        e->links[r].sending = e->links[r].expected = NONE;
        e->links[r].got = 0;
    }
    for (int64_t i = num_messages - 1; i >= 0; i--) {
        const int64_t *row = row_of(c, order[i]);
        link *at = &e->links[row[PEER]];
        int64_t *first = row[KIND] == SEND ? &at->sending : &at->expected;
        c->states[order[i]].next = *first;
        *first = order[i];
    }
    return 1;
}

/* Perform a call. Returns 0, or an errno; collc_awaits then names the rank. `width` is that of an element in bytes.
 * Reductions are `reduce`, or `other` if it is NULL. */
int64_t collc_play(engine *e, const int64_t *rows, int64_t count, const int64_t *dependents, int64_t num_dependents,
                   const int64_t *order, int64_t num_messages, char **buffers, int64_t width, combine *reduce,
                   elsewhere *other, int64_t milliseconds)
{
    (void)num_dependents;
    call c = {.e = e, .rows = rows, .dependents = dependents, .count = count, .left = count};
    c.deadline = now() + milliseconds;
    e->calls++;
    int failed = lay_out(&c, order, num_messages, buffers, width) ? 0 : ENOMEM;
    while (c.left > 0 && !failed) {
        if (c.begun < c.queued) {
            failed = begin(&c, c.ready[c.begun++], buffers, width, reduce, other);
            continue;
        }
        failed = failure(&c);
        if (!failed) {
            tell(&c);
            failed = progress(&c);
        }
    }
    if (!failed)
        e->awaits[0] = NONE;
    for (int64_t k = 0; k < count && c.states != NULL; k++)
        free(c.states[k].aside);
    free(c.states);
    free(c.ready);
    return failed;
}
