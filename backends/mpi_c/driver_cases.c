/* ---- One case ---------------------------------------------------------------------------------- */

static void dismiss(struct test *t)
{
    free(t->send.all), free(t->sent.all), free(t->send_now.all);
    free(t->recv.all), free(t->expected.all), free(t->recv_now.all);
}

/* Describes the first difference; returns whether there is one. */
static int differs(struct test *t, const char *what, const struct buffer *now,
                   const struct buffer *want, char *text, size_t room)
{
    size_t extent = extents[t->dtype], i = 0;
    char got[64], wanted[64];

    if (memcmp(now->all, want->all, want->bytes) == 0)
        return 0;
    while (now->all[i] == want->all[i])
        i++;
    if (i < GUARD || i >= want->bytes - GUARD) {
        snprintf(text, room, "rank %d wrote %s the %s buffer", me, i < GUARD ? "before" : "past",
                 what);
        return 1;
    }
    i = (i - GUARD) / extent;
    show(t->dtype, now->data + i * extent, got, sizeof got);
    show(t->dtype, want->data + i * extent, wanted, sizeof wanted);
    snprintf(text, room, "rank %d, %s element %lu: found %s, expected %s%s", me, what,
             (unsigned long)i, got, wanted,
             strcmp(got, wanted) == 0 ? " (but gaps of the type were written)" : "");
    return 1;
}

/* Waits for a request, and yields the processor to the other ranks: the wait of some MPIs does not. A rank
 * whose call failed stops waiting: others may still wait for its messages in theirs. */
static void finish(MPI_Request request, const char *failure)
{
    double deadline = MPI_Wtime() + 5;
    int done = 0;

    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) {
        sched_yield();
        if (failure != NULL && MPI_Wtime() > deadline) {
            fprintf(stderr, "%s, and others did not come back from that call\n", failure);
            /* An abort can overtake the output: some launchers drop output that they have not printed. */
            for (deadline = MPI_Wtime() + 2; MPI_Wtime() < deadline;)
                sched_yield();
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
    }
}

static void synchronize(void)
{
    MPI_Request request;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    finish(request, NULL);
}

/* Returns the largest value of all ranks, on all ranks. */
static void largest(double *values, int number, const char *failure)
{
    MPI_Request request;

    MPI_Iallreduce(MPI_IN_PLACE, values, number, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
    finish(request, failure);
}

/* Performs one call with `work`; returns its time on the slowest rank. With a `detail`, checks all buffers,
 * and gives rank 0 the description of the first wrong rank, whose number is in `wrong` (the number of ranks
 * if all are right). */
static double perform(struct test *t, int (*work)(struct test *), char *detail, int room,
                      int *wrong)
{
    double values[2]; /* time; how far before the last rank the first wrong one is */
    int error, bad;

    copy(&t->send_now, &t->send);
    copy(&t->recv_now, &t->recv);
    user_dtype = t->dtype;
    synchronize();
    values[0] = MPI_Wtime();
    error = work(t);
    values[0] = MPI_Wtime() - values[0];
    if (detail == NULL) {
        largest(values, 1, NULL);
        return values[0];
    }
    detail[0] = '\0';
    if (error != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int length;

        MPI_Error_string(error, text, &length);
        snprintf(detail, (size_t)room, "rank %d returned error %d: %.80s", me, error, text);
        bad = 1;
    } else {
        bad = differs(t, "receive", &t->recv_now, &t->expected, detail, (size_t)room) ||
              differs(t, "send", &t->send_now, &t->sent, detail, (size_t)room);
    }
    values[1] = bad ? ranks - me : 0;
    largest(values, 2, error != MPI_SUCCESS ? detail : NULL);
    *wrong = ranks - (int)values[1];
    if (me == *wrong && me > 0)
        MPI_Send(detail, room, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    if (me == 0 && *wrong > 0 && *wrong < ranks)
        MPI_Recv(detail, room, MPI_CHAR, *wrong, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return values[0];
}

/* The arguments of the command line. */
struct selection {
    char algorithms[sizeof algorithms / sizeof *algorithms]; /* whether each is called */
    unsigned ops, dtypes, placements;
    int repeats, warmup, compare;
};

static void show_times(const char *name, const double *times, int number)
{
    int k;

    printf(" %s=", name);
    for (k = 0; k < number; k++)
        printf("%s%.9f", k > 0 ? "," : "", times[k]);
}

/* Warm-up calls are not timed; every call is checked. The MPI's own collective alternates with the tested
 * one, so both run under the same conditions. */
static void run_case(struct test *t, const struct selection *chosen)
{
    double *times = malloc(2 * (size_t)chosen->repeats * sizeof *times);
    double *own = times + chosen->repeats, seconds;
    char detail[256];
    int wrong = ranks, done = 0, k;

    if (times == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    t->round = 0;
    members = t->algorithm->members;
    prepare(t);
    if (me == 0)
        printf("collc-row name=%s count=%d dtype=%s op=%s in_place=%d", t->algorithm->name, t->count,
               dtype_names[t->dtype], op_names[t->op], t->in_place);
    for (k = -chosen->warmup; k < chosen->repeats && wrong == ranks; k++) {
        seconds = perform(t, call, detail, (int)sizeof detail, &wrong);
        if (k >= 0)
            times[k] = seconds;
        if (chosen->compare) {
            seconds = perform(t, call_builtin, NULL, 0, NULL);
            if (k >= 0)
                own[k] = seconds;
        }
        done = k + 1;
    }
    while (t->round < ROUNDS && wrong == ranks) {
        dismiss(t);
        t->round++;
        prepare(t);
        perform(t, call, detail, (int)sizeof detail, &wrong);
    }
    if (me == 0) {
        show_times("times", times, done < 0 ? 0 : done);
        show_times("builtin", own, done < 0 || !chosen->compare ? 0 : done);
        printf(" detail=%s%s\n", detail, wrong < ranks && t->round > 0 ? " (of random counts)" : "");
        fflush(stdout);
    }
    dismiss(t);
    free(times);
}

/* ---- All cases --------------------------------------------------------------------------------- */

/* Returns whether a list of names has this one. */
static int is_among(const char *list, const char *name)
{
    size_t length = strlen(name);
    const char *at = list;

    while ((at = strstr(at, name)) != NULL) {
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return 1;
        at += length;
    }
    return 0;
}

/* Reads a list of names as a set of their numbers. */
static unsigned set_of(const char *list, const char *const *names, unsigned number)
{
    unsigned set = 0, k;

    for (k = 0; k < number; k++)
        set |= (unsigned)is_among(list, names[k]) << k;
    return set;
}

static int reduces(enum kind kind)
{
    return kind == ALLREDUCE || kind == REDUCE || kind == REDUCE_SCATTER || kind == CUSTOM_REDUCTION;
}

static int selected(const struct selection *chosen, enum kind kind, int op, int dtype, int place)
{
    if ((kind == CUSTOM || kind == CUSTOM_REDUCTION) && place) /* it has no MPI_IN_PLACE */
        return 0;
    if (!(chosen->dtypes >> dtype & 1))
        return 0;
    if (!reduces(kind))
        return op == NO_OP;
    return op != NO_OP && chosen->ops >> op & 1 && (dtype != STRIDED || op == USER);
}

static int run_count(int count, const struct selection *chosen)
{
    static struct test t; /* every case sets its buffers */
    int cases = 0, op, dtype, place;
    size_t k;

    t.count = count;
    for (k = 0; k < sizeof algorithms / sizeof *algorithms; k++)
        for (op = 0; op < NUM_OPS && chosen->algorithms[k]; op++)
            for (dtype = 0; dtype < NUM_DTYPES; dtype++)
                for (place = 0; place < 2; place++) {
                    if (!(chosen->placements >> place & 1) ||
                        !selected(chosen, algorithms[k].kind, op, dtype, place))
                        continue;
                    t.algorithm = &algorithms[k];
                    t.op = (enum op)op, t.dtype = (enum dtype)dtype, t.in_place = place;
                    run_case(&t, chosen);
                    cases++;
                }
    return cases;
}

/* driver NAMES COUNTS DTYPES OPS PLACEMENTS REPEATS WARMUP COMPARE SECONDS */
int main(int argc, char **argv)
{
    static const char *const placements[] = {"out", "in"};
    static struct selection chosen;
    int cases = 0, number = (int)(sizeof algorithms / sizeof *algorithms), k;
    char *at;

    if (argc != 10)
        return 2;
    alarm((unsigned)atoi(argv[9])); /* ends ranks whose launcher was killed */
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    create_dtypes();
    create_ops();
    create_counts();
    create_communicators();
    for (k = 0; k < number; k++)
        chosen.algorithms[k] = (char)is_among(argv[1], algorithms[k].name);
    chosen.dtypes = set_of(argv[3], dtype_names, NUM_DTYPES);
    chosen.ops = set_of(argv[4], op_names, NUM_OPS);
    chosen.placements = set_of(argv[5], placements, 2);
    chosen.repeats = atoi(argv[6]);
    chosen.warmup = atoi(argv[7]);
    chosen.compare = atoi(argv[8]);
    for (at = argv[2]; *at != '\0'; at += *at == ',')
        cases += run_count((int)strtol(at, &at, 10), &chosen);
    if (me == 0)
        printf("collc-end cases=%d\n", cases);
    free_communicators();
    MPI_Op_free(&ops[USER]);
    MPI_Type_free(&dtypes[STRIDED]);
    MPI_Finalize();
    return 0;
}
