/* ---- Nonblocking and persistent calls ---------------------------------------------------------------------
 *
 * With COLLC_NONBLOCKING=1, on all ranks. A thread carries the calls on, wherever the program waits. The request that
 * the program gets is one of the MPI: a receive of an empty message from the process itself. The thread sends that
 * message when the call is done. So all functions of the MPI that wait, test or start take it.
 */

/* Who goes on with a call: an algorithm, or the MPI. Before that ranks may have to tell each other their sizes. */
enum cip_stage { CIP_CARRIED, CIP_TELLING, CIP_LEFT };

/* A call under way, or a persistent one between two starts. */
struct cip_operation {
    struct cip_call call;
    struct cip_entry *entry;
    void *request; /* the engine's */
    MPI_Request handle;
    int tag, rank, ranks, error, fatal;
    int persistent, active;
    struct cip_work work;
    char *memory;              /* in which data are packed */
    int is_uneven;
    struct cip_uneven uneven;  /* of a call with a count for each rank, beside its communicator, types and operation */
    int64_t most;              /* bytes of its largest block */
    char *lists;               /* its counts, places and types: some programs free theirs at once */
    enum cip_stage stage;
    MPI_Request own;           /* the MPI's, that of another stage than CIP_CARRIED */
    MPI_Comm staged;
    struct cip_known known, *of_all; /* what this rank tells, and all do */
    int meets;                 /* whether it is a call of neighbours */
    struct cip_neighbours neighbours;
    struct cip_operation *next;
};

/* A type or an operation that the program has freed, and that calls still need. */
struct cip_held {
    MPI_Datatype type; /* MPI_DATATYPE_NULL: an operation */
    MPI_Op op;
    struct cip_held *next;
};

struct cip_worker {
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    pthread_t thread;
    int runs, ends;
    MPI_Comm self;
    int tag, last_tag, tags_again; /* after the last tag, those that are free are taken again */
    struct cip_operation *active, *idle; /* idle: persistent calls that are not started */
    struct cip_held *held;
};

CIP_SHARED struct cip_worker cip_worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* Passes without any call done before the thread sleeps between two, and nanoseconds that it sleeps. */
enum { CIP_IDLE_PASSES = 256, CIP_SLEEP = 20000 };

static void cip_begin_work(void)
{
    pthread_mutex_lock(&cip_worker.lock);
}

static void cip_end_work(void)
{
    pthread_mutex_unlock(&cip_worker.lock);
}

/* What a call that has ended leaves to do, before the program hears of it. */
static void cip_settle(struct cip_operation *it)
{
    struct cip_call *call = &it->call;
    int from_us = call->kind == CIP_BROADCAST && it->rank == call->root;

    if (it->error == MPI_SUCCESS && it->is_uneven && it->stage == CIP_CARRIED) {
        struct cip_sides sides = cip_sides_of(&it->uneven, it->rank, it->ranks);

        it->error = cip_carry_blocks(&sides.got, sides.receives, it->memory + sides.sends * it->most, it->most, 1,
                                     MPI_COMM_SELF);
    } else if (it->error == MPI_SUCCESS && it->meets) {
        it->error = cip_repack(&it->neighbours, 1);
    } else if (it->error == MPI_SUCCESS && !it->is_uneven && !cip_reduces(call) && it->work.packs_out && !from_us)
        it->error = cip_pack(call->recv, it->work.recv_blocks * call->recv_count, call->recv_type, it->work.out, 1,
                             MPI_COMM_SELF);
    if (it->error != MPI_SUCCESS && it->fatal) {
        fprintf(stderr, "collc: a nonblocking call failed\n");
        MPI_Abort(MPI_COMM_WORLD, it->error);
    }
}

static int cip_has_type(const struct cip_blocks *side, int ranks, MPI_Datatype type)
{
    int k;

    for (k = 0; side->types != NULL && k < ranks; k++)
        if (side->types[k] == type)
            return 1;
    return 0;
}

static int cip_needs(const struct cip_operation *it, const struct cip_held *held)
{
    if (held->type == MPI_DATATYPE_NULL)
        return it->call.op == held->op;
    if (it->is_uneven && (cip_has_type(&it->uneven.out, it->ranks, held->type) ||
                          cip_has_type(&it->uneven.in, it->ranks, held->type)))
        return 1;
    if (it->meets && (cip_has_type(&it->neighbours.out, it->neighbours.sends, held->type) ||
                      cip_has_type(&it->neighbours.in, it->neighbours.receives, held->type)))
        return 1;
    return it->call.send_type == held->type || it->call.recv_type == held->type;
}

/* Whether a call needs a handle. With the lock. */
static int cip_is_needed(const struct cip_held *held)
{
    const struct cip_operation *it;

    for (it = cip_worker.active; it != NULL; it = it->next)
        if (cip_needs(it, held))
            return 1;
    for (it = cip_worker.idle; it != NULL; it = it->next)
        if (cip_needs(it, held))
            return 1;
    return 0;
}

/* Frees the handles that no call needs any more. With the lock. */
static void cip_free_held(void)
{
    struct cip_held **link = &cip_worker.held, *held;

    while ((held = *link) != NULL) {
        if (cip_is_needed(held)) {
            link = &held->next;
            continue;
        }
        *link = held->next;
        if (held->type != MPI_DATATYPE_NULL)
            MPI_Type_free(&held->type);
        else
            MPI_Op_free(&held->op);
        free(held);
    }
}

static void cip_release(struct cip_operation *it)
{
    free(it->memory);
    free(it->lists);
    free(it->of_all);
    if (it->meets)
        cip_part(&it->neighbours);
    free(it);
}

static void cip_unlink(struct cip_operation **link, struct cip_operation *it)
{
    while (*link != it)
        link = &(*link)->next;
    *link = it->next;
}

/* Tells the program that a call is done. A message that is too long stands for an error. */
static void cip_complete(struct cip_operation *it)
{
    int tag = it->tag, failed;

    cip_settle(it);
    failed = it->error != MPI_SUCCESS;
    cip_begin_work();
    cip_unlink(&cip_worker.active, it);
    it->active = 0;
    if (it->persistent) {
        it->next = cip_worker.idle;
        cip_worker.idle = it;
    } else {
        cip_release(it);
    }
    cip_free_held();
    cip_end_work();
    MPI_Send("", failed, MPI_BYTE, 0, tag, cip_worker.self); /* the program may start it again now */
}

static int cip_advance(struct cip_operation *it, int *done, int *moved);

/* Looks once at every call under way; returns whether one of them has moved. Only the thread takes calls out. */
static int cip_pass(struct cip_operation *it)
{
    struct cip_operation *next;
    int any = 0, done, moved, error;

    for (; it != NULL; it = next) {
        done = moved = 0;
        error = cip_advance(it, &done, &moved);
        cip_begin_work();
        next = it->next;
        cip_end_work();
        any |= done | moved;
        if (done) {
            it->error = error;
            cip_complete(it);
        }
    }
    return any;
}

static void *cip_work(void *unused)
{
    const struct timespec pause = {0, CIP_SLEEP};
    struct cip_operation *first;
    int passes = 0;

    (void)unused;
    cip_depth = 1;
    for (;;) {
        cip_begin_work();
        while (cip_worker.active == NULL && !cip_worker.ends)
            pthread_cond_wait(&cip_worker.wake, &cip_worker.lock);
        first = cip_worker.active;
        cip_end_work();
        if (first == NULL)
            return NULL;
        passes = cip_pass(first) ? 0 : passes + 1;
        if (passes < CIP_IDLE_PASSES)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
}

/* The program's signals are for its own threads. */
static int cip_make_thread(void)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&cip_worker.thread, NULL, cip_work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(cip_worker.thread, "collc");
    return error;
}

/* With the lock. */
static int cip_make_worker(void)
{
    void *bound = NULL;
    int flag = 0, error = MPI_Comm_split(MPI_COMM_SELF, 0, 0, &cip_worker.self);

    if (error == MPI_SUCCESS)
        error = MPI_Comm_set_errhandler(cip_worker.self, MPI_ERRORS_RETURN);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
    cip_worker.last_tag = flag ? *(int *)bound : 32767; /* what MPI grants at least */
    return error == MPI_SUCCESS && cip_make_thread() != 0 ? MPI_ERR_OTHER : error;
}

/* Whether calls of this process can be carried on by a thread. The same on all ranks: they have one MPI. */
static int cip_has_worker(void)
{
    static volatile int refused;
    int level = MPI_THREAD_SINGLE;

    if (cip_worker.runs || refused)
        return !refused;
    cip_begin_work();
    if (cip_worker.runs || refused) {
        /* another thread was first */
    } else if (MPI_Query_thread(&level) != MPI_SUCCESS || level < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "collc: no nonblocking call is served: the MPI has no MPI_THREAD_MULTIPLE\n");
        refused = 1;
    } else if (cip_make_worker() != MPI_SUCCESS) {
        fprintf(stderr, "collc: no thread for nonblocking calls\n");
        MPI_Abort(MPI_COMM_WORLD, MPI_ERR_OTHER); /* other ranks may have one, and would wait for this one */
    } else {
        cip_worker.runs = 1;
    }
    cip_end_work();
    return !refused;
}

/* All calls are done when MPI ends: the thread ends too. */
static void cip_dismiss_worker(void)
{
    if (!cip_worker.runs)
        return;
    cip_begin_work();
    cip_worker.ends = 1;
    pthread_cond_signal(&cip_worker.wake);
    cip_end_work();
    pthread_join(cip_worker.thread, NULL);
    cip_worker.runs = 0;
    MPI_Comm_free(&cip_worker.self);
}

static int cip_has_tag(const struct cip_operation *it, int tag)
{
    while (it != NULL && it->tag != tag)
        it = it->next;
    return it != NULL;
}

/* A tag that no call has. With the lock. */
static int cip_next_tag(void)
{
    do {
        if (cip_worker.tag == cip_worker.last_tag) {
            cip_worker.tag = 0;
            cip_worker.tags_again = 1;
        }
        cip_worker.tag++;
    } while (cip_worker.tags_again && (cip_has_tag(cip_worker.active, cip_worker.tag) ||
                                       cip_has_tag(cip_worker.idle, cip_worker.tag)));
    return cip_worker.tag;
}

/* From now on the thread looks at the call. */
static void cip_hand_over(struct cip_operation *it)
{
    struct cip_operation **link = &cip_worker.active;

    cip_begin_work();
    if (it->persistent)
        cip_unlink(&cip_worker.idle, it);
    it->next = NULL;
    it->active = 1;
    while (*link != NULL)
        link = &(*link)->next;
    *link = it;
    pthread_cond_signal(&cip_worker.wake);
    cip_end_work();
}

/* Whether a request is that of a call under way. */
static int cip_is_under_way(const MPI_Request *handle)
{
    const struct cip_operation *it;

    if (!cip_worker.runs)
        return 0;
    cip_begin_work();
    for (it = cip_worker.active; it != NULL && it->handle != *handle; it = it->next)
        ;
    cip_end_work();
    return it != NULL;
}

/* Whether a handle that the program frees has to wait for calls: then the last one that needs it frees it. */
static int cip_frees_later(MPI_Datatype type, MPI_Op op)
{
    struct cip_held wanted = {type, op, NULL}, *held = NULL;

    if (!cip_worker.runs || cip_depth > 0)
        return 0;
    cip_begin_work();
    if (cip_is_needed(&wanted) && (held = malloc(sizeof *held)) != NULL) {
        *held = wanted;
        held->next = cip_worker.held;
        cip_worker.held = held;
    }
    cip_end_work();
    return held != NULL;
}
