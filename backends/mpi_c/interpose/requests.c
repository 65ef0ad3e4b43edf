/* ---- Nonblocking and persistent calls ---------------------------------------------------------------------
 *
 * With COLLC_NONBLOCKING=1, on all ranks. A thread carries the calls on, wherever the program waits. The request that
 * the program gets is one of the MPI: a receive of an empty message from the process itself. The thread sends that
 * message when the call is done. So all functions of the MPI that wait, test or start take it.
 */

/* A call under way, or a persistent one between two starts. */
struct cip_operation {
    struct cip_call call;
    struct cip_entry *entry;
    void *request; /* the engine's */
    MPI_Request handle;
    int tag, rank, error, fatal;
    int persistent, active;
    struct cip_work work;
    char *memory;              /* in which data are packed */
    int is_uneven;
    struct cip_uneven uneven;  /* of a call with a count for each rank, beside its communicator, types and operation */
    int64_t most;              /* bytes of its largest block */
    MPI_Datatype types[2];     /* that the program has freed meanwhile */
    MPI_Op op;                 /* likewise */
    struct cip_operation *next;
};

struct cip_worker {
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    pthread_t thread;
    int runs, ends;
    MPI_Comm self;
    int tag, last_tag, tags_again; /* after the last tag, those that are free are taken again */
    struct cip_operation *active, *idle;
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

    if (it->error == MPI_SUCCESS && it->is_uneven) {
        struct cip_sides sides = cip_sides_of(&it->uneven, it->rank, it->entry->ranks);

        it->error = cip_carry_blocks(&sides.got, sides.receives, it->memory + sides.sends * it->most, it->most, 1,
                                     MPI_COMM_SELF);
    } else if (it->error == MPI_SUCCESS && !cip_reduces(call) && it->work.packs_out && !from_us)
        it->error = cip_pack(call->recv, it->work.recv_blocks * call->recv_count, call->recv_type, it->work.out, 1,
                             MPI_COMM_SELF);
    if (it->error != MPI_SUCCESS && it->fatal) {
        fprintf(stderr, "collc: a nonblocking call failed\n");
        MPI_Abort(MPI_COMM_WORLD, it->error);
    }
}

/* Lets go of what a call holds that does not come back. */
static void cip_release(struct cip_operation *it)
{
    int k;

    free(it->memory);
    for (k = 0; k < 2; k++)
        if (it->types[k] != MPI_DATATYPE_NULL)
            MPI_Type_free(&it->types[k]);
    if (it->op != MPI_OP_NULL)
        MPI_Op_free(&it->op);
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
    }
    cip_end_work();
    if (!it->persistent)
        cip_release(it);
    MPI_Send("", failed, MPI_BYTE, 0, tag, cip_worker.self); /* the program may start it again now */
}

/* Looks once at every call under way; returns whether one of them has moved. Only the thread takes calls out. */
static int cip_pass(struct cip_operation *it)
{
    struct cip_operation *next;
    int any = 0, done, moved, error;

    for (; it != NULL; it = next) {
        done = moved = 0;
        error = it->entry->test(&it->request, &done, &moved);
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

/* Whether calls of this process can be carried on by a thread. The same on all ranks: they have one MPI. */
static int cip_has_worker(void)
{
    static volatile int refused;
    int level = MPI_THREAD_SINGLE, flag = 0, error = MPI_SUCCESS;
    void *bound = NULL;

    if (cip_worker.runs || refused)
        return !refused;
    cip_begin_work();
    if (!cip_worker.runs && !refused) {
        refused = MPI_Query_thread(&level) != MPI_SUCCESS || level < MPI_THREAD_MULTIPLE;
        if (refused)
            fprintf(stderr, "collc: no nonblocking call is served: the MPI has no MPI_THREAD_MULTIPLE\n");
        else
            error = MPI_Comm_split(MPI_COMM_SELF, 0, 0, &cip_worker.self);
        if (!refused && error == MPI_SUCCESS)
            error = MPI_Comm_set_errhandler(cip_worker.self, MPI_ERRORS_RETURN);
        cip_worker.last_tag = 32767;
        if (!refused && error == MPI_SUCCESS &&
            MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag) == MPI_SUCCESS && flag)
            cip_worker.last_tag = *(int *)bound;
        if (!refused && (error != MPI_SUCCESS || pthread_create(&cip_worker.thread, NULL, cip_work, NULL) != 0)) {
            fprintf(stderr, "collc: no thread for nonblocking calls\n");
            MPI_Abort(MPI_COMM_WORLD, MPI_ERR_OTHER); /* other ranks may have one, and would wait for this one */
        }
        cip_worker.runs = !refused;
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

/* A type or an operation that calls still need is freed when they are done: by the last one that has it. */
static struct cip_operation *cip_last_with(MPI_Datatype type, MPI_Op op, int *side)
{
    struct cip_operation *lists[2], *found = NULL, *it;
    int k;

    lists[0] = cip_worker.idle;
    lists[1] = cip_worker.active;
    for (k = 0; k < 2; k++)
        for (it = lists[k]; it != NULL; it = it->next) {
            if (op != MPI_OP_NULL ? it->call.op != op : it->call.send_type != type && it->call.recv_type != type)
                continue;
            found = it;
            *side = it->call.recv_type == type;
        }
    return found;
}

/* Whether the thread will free a handle that the program frees. */
static int cip_frees_later(MPI_Datatype type, MPI_Op op)
{
    struct cip_operation *it;
    int later = 0, side = 0;

    if (!cip_worker.runs || cip_depth > 0)
        return 0;
    cip_begin_work();
    it = cip_last_with(type, op, &side);
    if (it != NULL && op != MPI_OP_NULL && it->op == MPI_OP_NULL) {
        it->op = op;
        later = 1;
    } else if (it != NULL && op == MPI_OP_NULL && it->types[side] == MPI_DATATYPE_NULL) {
        it->types[side] = type;
        later = 1;
    }
    cip_end_work();
    return later;
}

/* Memory for packing. Without it this rank cannot take part, and the others would wait for it. */
static void cip_make_room(struct cip_operation *it, int64_t block)
{
    struct cip_work *work = &it->work;
    int64_t into, all;

    if (it->is_uneven) {
        struct cip_sides sides = cip_sides_of(&it->uneven, it->rank, it->entry->ranks);

        block = it->most;
        work->packs_in = work->packs_out = 1;
        work->send_blocks = sides.sends;
        work->recv_blocks = sides.receives;
    } else if (cip_reduces(&it->call)) {
        return;
    } else {
        cip_plan(&it->call, it->rank, block, it->entry->ranks, work);
    }
    into = work->packs_in ? work->send_blocks * block : 0;
    all = into + (work->packs_out ? work->recv_blocks * block : 0);
    if (all == 0)
        return;
    it->memory = malloc((size_t)all);
    if (it->memory == NULL) {
        fprintf(stderr, "collc: no memory for the data of a nonblocking call: %lld bytes\n", (long long)all);
        MPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
    }
    if (work->packs_in)
        work->in = it->memory;
    if (work->packs_out)
        work->out = it->memory + into;
}

/* Begins a call of the engine, or makes a persistent one. */
static int cip_begin_operation(struct cip_operation *it, int64_t block, MPI_Comm comm)
{
    const struct cip_call *call = &it->call;
    const struct cip_work *work = &it->work;
    const void *send = call->send;

    if (it->is_uneven)
        return it->entry->begin(work->in, work->out, cip_units(&it->uneven, it->most), cip_unit(&it->uneven), call->op,
                                call->root, comm, it->persistent, &it->request);
    if (cip_reduces(call)) {
        if (send == call->recv && (call->kind != CIP_REDUCE || it->rank == call->root))
            send = MPI_IN_PLACE;
        return it->entry->begin(send, call->recv, call->send_count, call->send_type, call->op, call->root, comm,
                                it->persistent, &it->request);
    }
    send = call->kind == CIP_BROADCAST ? NULL : work->sends && work->in == NULL ? MPI_IN_PLACE : work->in;
    return it->entry->begin(send, work->stays ? MPI_IN_PLACE : work->out, block, MPI_BYTE, MPI_OP_NULL, call->root,
                            comm, it->persistent, &it->request);
}

static int cip_pack_now(struct cip_operation *it)
{
    if (it->is_uneven) {
        struct cip_sides sides = cip_sides_of(&it->uneven, it->rank, it->entry->ranks);

        return cip_carry_blocks(&sides.sent, sides.sends, it->memory, it->most, 0, MPI_COMM_SELF);
    }
    return cip_reduces(&it->call) ? MPI_SUCCESS : cip_pack_all(&it->call, it->rank, &it->work, MPI_COMM_SELF);
}

static struct cip_operation *cip_make_operation(const struct cip_call *call, struct cip_entry *entry, int rank,
                                                int persistent)
{
    struct cip_operation *it = calloc(1, sizeof *it);
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;

    if (it == NULL) {
        fprintf(stderr, "collc: no memory for a nonblocking call\n");
        MPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
        return NULL;
    }
    it->call = *call;
    it->entry = entry;
    it->rank = rank;
    it->persistent = persistent;
    it->types[0] = it->types[1] = MPI_DATATYPE_NULL;
    it->op = MPI_OP_NULL;
    it->fatal = 1;
    if (MPI_Comm_get_errhandler(call->comm, &handler) == MPI_SUCCESS) {
        it->fatal = handler == MPI_ERRORS_ARE_FATAL;
        if (handler != MPI_ERRHANDLER_NULL)
            MPI_Errhandler_free(&handler);
    }
    cip_begin_work();
    it->tag = cip_next_tag();
    if (persistent) {
        it->next = cip_worker.idle;
        cip_worker.idle = it;
    }
    cip_end_work();
    return it;
}

/* Begins a call that was judged to be one for us. */
static int cip_launch(struct cip_operation *it, int64_t block, MPI_Comm comm, MPI_Request *handle)
{
    int error = MPI_Irecv(NULL, 0, MPI_BYTE, 0, it->tag, cip_worker.self, &it->handle);

    cip_make_room(it, block);
    if (error == MPI_SUCCESS)
        error = cip_pack_now(it);
    if (error == MPI_SUCCESS)
        error = cip_begin_operation(it, block, comm);
    if (error != MPI_SUCCESS) {
        cip_release(it);
        return error;
    }
    *handle = it->handle;
    cip_hand_over(it);
    return MPI_SUCCESS;
}

/* Makes a persistent call that was judged to be one for us. */
static int cip_prepare(struct cip_operation *it, int64_t block, MPI_Comm comm, MPI_Request *handle)
{
    int error = MPI_Recv_init(NULL, 0, MPI_BYTE, 0, it->tag, cip_worker.self, &it->handle);

    cip_make_room(it, block);
    if (error == MPI_SUCCESS)
        error = cip_begin_operation(it, block, comm);
    *handle = it->handle;
    return error;
}

#if MPI_VERSION >= 4
/* The persistent call behind a request, or NULL. */
static struct cip_operation *cip_persistent(MPI_Request handle)
{
    struct cip_operation *it;

    if (!cip_worker.runs || cip_depth > 0)
        return NULL;
    cip_begin_work();
    for (it = cip_worker.idle; it != NULL && it->handle != handle; it = it->next)
        ;
    cip_end_work();
    return it;
}

/* After the request of the MPI was started. */
static int cip_start(struct cip_operation *it)
{
    int error;

    cip_depth++;
    error = cip_pack_now(it);
    if (error == MPI_SUCCESS)
        error = it->entry->start(it->request);
    cip_depth--;
    if (error == MPI_SUCCESS)
        cip_hand_over(it);
    return error;
}

static void cip_forget(struct cip_operation *it)
{
    cip_depth++;
    cip_begin_work();
    cip_unlink(&cip_worker.idle, it);
    cip_end_work();
    it->entry->forget(it->request);
    cip_release(it);
    cip_depth--;
}
#endif

/* The double of a communicator that has one. The call must not wait, so it makes none. All ranks agree: doubles are
 * made in the order of collective calls. */
static struct cip_double *cip_double_of(MPI_Comm owner)
{
    void *found = NULL;
    int flag = 0;

    if (cip_all.key == MPI_KEYVAL_INVALID || MPI_Comm_get_attr(owner, cip_all.key, &found, &flag) != MPI_SUCCESS)
        return NULL;
    return flag ? found : NULL;
}

/* Begins a nonblocking call, or makes a persistent one, if it is one for us: 1, with the error that it returns; else 0.
 * Of one with a count for each rank, `uneven` has the data. */
static int cip_serve_later(const struct cip_call *call, const struct cip_uneven *uneven, int large, int persistent,
                           MPI_Request *handle, int *error)
{
    struct cip_entry *entry = NULL;
    struct cip_double *with = NULL;
    enum cip_end end;
    int64_t block = 0;
    int rank = 0;

    if (!cip_is_on() || !cip_all.nonblocking)
        return 0;
    end = uneven == NULL ? cip_judge(call, &entry, &rank, &block) : cip_judge_uneven(uneven, &entry, &rank, &block);
    if (end == CIP_SERVED && !cip_has_worker())
        end = CIP_NO_THREADS;
    if (end == CIP_SERVED && (with = cip_double_of(call->comm)) == NULL)
        end = CIP_NO_DOUBLE;
    if (end == CIP_SERVED) {
        struct cip_operation *it = cip_make_operation(call, entry, rank, persistent);

        if (uneven != NULL) {
            it->is_uneven = 1;
            it->uneven = *uneven;
            it->most = block;
        }
        cip_depth++;
        *error = (persistent ? cip_prepare : cip_launch)(it, block, with->comm, handle);
        cip_depth--;
    }
    __sync_fetch_and_add(&cip_all.ends[large][call->function][end], 1);
    if (end != CIP_SERVED)
        return 0;
    if (*error != MPI_SUCCESS)
        MPI_Comm_call_errhandler(call->comm, *error);
    return 1;
}

/* Gives a communicator that was just made its double, so that nonblocking calls need not wait for one. Collective. */
static void cip_welcome(MPI_Comm comm)
{
    struct cip_entry *entry;
    int ranks = 0, inter = 0, wanted = 0;

    if (!cip_is_on() || !cip_all.nonblocking || cip_depth > 0 || comm == MPI_COMM_NULL ||
        MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter || MPI_Comm_size(comm, &ranks) != MPI_SUCCESS)
        return;
    for (entry = cip_all.entries; entry != NULL; entry = entry->next)
        wanted |= entry->ranks == ranks;
    cip_depth++;
    if (wanted)
        cip_private(comm);
    cip_depth--;
}
