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
