/* ---- One case ---------------------------------------------------------------------------------- */

struct test {
    const struct algorithm *algorithm;
    enum op op;
    enum dtype dtype;
    int in_place, count;
    int round; /* of random counts; 0: planned ones */
    struct buffer send, recv;         /* as before the call */
    struct buffer sent, expected;     /* as after it */
    struct buffer send_now, recv_now; /* what the call gets */
    const void *send_argument;
    void *recv_argument;
};

static void input(struct test *t, struct buffer *to, int64_t at, int64_t n, int64_t first)
{
    fill(to, t->dtype, t->op, at, n, me, first);
}

static void create_buffers(struct test *t, int64_t sent, int64_t received)
{
    create(&t->send, t->dtype, sent);
    create(&t->sent, t->dtype, sent);
    create(&t->send_now, t->dtype, sent);
    create(&t->recv, t->dtype, received);
    create(&t->expected, t->dtype, received);
    create(&t->recv_now, t->dtype, received);
    t->send_argument = t->send_now.data;
    t->recv_argument = t->recv_now.data;
}

/* A rank that only relays gets buffers that must stay as they are; in calls in place it gets none. */
static void prepare_relay(struct test *t, int64_t elements)
{
    create_buffers(t, elements, elements);
    if (t->in_place)
        t->send_argument = t->recv_argument = NULL;
}
