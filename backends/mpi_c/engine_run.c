/* ---- Calls ------------------------------------------------------------------------------------- */

enum form { BLOCKING, BEGUN, PERSISTENT };
enum state { UNDECIDED, QUEUED, RUNNING, COMPLETE };
#if COUNTS
/* How far the ranks of an undecided call are that do not know the sizes of its shards: agreeing on memory for the
 * sizes, learning them, or agreeing on the rest. */
enum phase_of_sizes { KNOWN, UNKNOWN, LEARNING, LEARNT };
#endif /* COUNTS */

/* A call, from its beginning to its end; or a persistent request, which is a call many times. */
struct operation {
    struct context *context; /* NULL where there is nothing to do */
    struct operation *next;  /* of those under way, or spare */
    struct call call;
    struct engine engine;
    enum form form;
    enum state state; /* as error, next and refused: for whoever has locked the context */
    int error;
    int active;  /* begun, and its end not yet told */
    int refused; /* calls begun right after this one that are not under way here, for want of memory */
    struct lane *lane; /* NULL: persistent */
    char *memory;      /* its own, or what the lane is to have instead of less */
    size_t bytes;
    int lends;         /* the latter */
    struct page *page; /* for the tags of a persistent request, where there are none left */
    int destitute;     /* there is no memory for that request itself */
    char *source;      /* copy_input: from where */
#if COUNTS
    enum phase_of_sizes phase;
    int asked;       /* LEARNING: whether the ranks' exchange is under way */
    int64_t *ledger; /* its own, or what the lane is to have */
#endif /* COUNTS */
};

/* Lays out the engine and the buffers of this rank; with an empty arena this only measures. */
static void lay_out(struct operation *it, struct arena *arena)
{
    struct call *call = &it->call;
    struct engine *engine = &it->engine;
    int first = rank_blocks[call->row], blocks = rank_blocks[call->row + 1] - first;
#if ROOTS
    int measures = arena->base == NULL && call->plan->roots >= 0; /* for calls of any root */
    int here = call->aside && (measures || call->root < 0 || call->root == call->rank);
    int requests = 0, k;
    char *aside, *shuffled;
#else /* ROOTS */
    int here = call->aside && (call->plan->root < 0 || call->plan->root == call->rank);
    int requests = 0, k;
    char *aside;
#endif /* ROOTS */

    engine->num_blocks = blocks;
    engine->blocks = carve(arena, (size_t)blocks * sizeof *engine->blocks);
    for (k = 0; k < blocks; k++)
        requests += block_sends[first + k] + 1;
    engine->flights = carve(arena, (size_t)requests * sizeof *engine->flights);
    engine->requests = carve(arena, (size_t)requests * sizeof *engine->requests);
    engine->statuses = carve(arena, (size_t)requests * sizeof *engine->statuses);
    engine->landed = carve(arena, (size_t)requests * sizeof *engine->landed);
#if COUNTS
    if (call->plan->shards > 0)
        carve_blocks(arena, call);
#if EVEN
    else
        call->base[SCRATCH] = carve_cells(arena, call, rank_scratch[call->row]);
#endif /* EVEN */
#else /* COUNTS */
    call->base[SCRATCH] = carve_cells(arena, call, rank_scratch[call->row]);
#endif /* COUNTS */
    aside = carve_cells(arena, call, here ? call->chunks : 0);
#if ROOTS
    shuffled = carve_cells(arena, call, here && call->shuffles ? call->chunks * call->plan->ranks : 0);
#endif /* ROOTS */
    for (k = 0; k < blocks; k++) {
        int id = first + k;
        int64_t chunks = (int64_t)block_slots[id] * block_slot_chunks[id];
        unsigned char *taken = carve(arena, (size_t)block_slots[id]);
        char *slots = carve_cells(arena, call, chunks);

        if (arena->base == NULL)
            continue;
        engine->blocks[k].id = id;
        engine->blocks[k].slots = slots;
        engine->blocks[k].taken = taken;
    }
    if (arena->base == NULL)
        return;
    call->packed[SCRATCH] = call->compact;
#if ROOTS
    if (call->shuffled >= 0) {
        call->ordered = call->base[call->shuffled];
        call->base[call->shuffled] = shuffled;
        call->packed[call->shuffled] = call->compact;
    }
#endif /* ROOTS */
    if (call->copy_input) {
        it->source = call->base[INPUT];
        call->base[INPUT] = aside;
        call->packed[INPUT] = call->compact;
    }
    if (call->keep_output) {
        call->base[OUTPUT] = aside;
        call->packed[OUTPUT] = call->compact;
    }
}

/* Lays out a call in its memory, or its lane's. */
static void settle_in(struct operation *it)
{
    struct arena arena = {NULL, 0};

    if (it->lends) {
        free(it->lane->memory);
        it->lane->memory = it->memory;
        it->memory = NULL;
        it->lends = 0;
    }
    arena.base = it->memory != NULL ? it->memory : it->lane->memory;
    lay_out(it, &arena);
}

/* Whether a contribution may be combined twice without changing the result. */
static int idempotent(MPI_Op op)
{
    return op == MPI_MIN || op == MPI_MAX || op == MPI_BAND || op == MPI_BOR || op == MPI_LAND ||
           op == MPI_LOR;
}

/* Whether the arguments make sense at all; needs no other rank. */
static int check(const struct plan *plan, int64_t count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm)
{
    int flag = 0, size = 0, error;
    char in[64], inout[64];

    if (comm == MPI_COMM_NULL)
        return MPI_ERR_COMM;
    error = MPI_Comm_test_inter(comm, &flag);
    if (error == MPI_SUCCESS && !flag)
        error = MPI_Comm_size(comm, &size);
    if (error != MPI_SUCCESS)
        return error;
#if RELAYS
    if (flag || size != plan->ranks + plan->relays)
#else /* RELAYS */
    if (flag || size != plan->ranks)
#endif /* RELAYS */
        return MPI_ERR_COMM;
    if (count < 0)
        return MPI_ERR_COUNT;
    if (type == MPI_DATATYPE_NULL)
        return MPI_ERR_TYPE;
    if (!plan->reduces)
        return MPI_SUCCESS;
    if (op == MPI_OP_NULL || (plan->twice && !idempotent(op)))
        return MPI_ERR_OP;
    error = MPI_Op_commutative(op, &flag);
    if (error == MPI_SUCCESS && !flag)
        return MPI_ERR_OP;
    /* Reducing nothing shows whether op and type go together, before anybody has sent anything. */
    return error == MPI_SUCCESS ? MPI_Reduce_local(in, inout, 0, type, op) : error;
}

#if EVEN
/* What was found out for a call: the next of this thread is often like it, and then asks nothing again. */
struct habit {
    const struct plan *plan; /* NULL: nothing yet */
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
    int comms_freed; /* by then */
    int rank;
    struct element element;
    struct context *context;
};

#ifdef OF_THREAD
enum { HABITS = 8 };
static OF_THREAD struct habit habits[HABITS];

static struct habit *habit_of(const struct plan *plan)
{
    return &habits[(uintptr_t)plan / sizeof *plan % HABITS];
}
#endif

/* What is known of such a call; NULL where nothing is. */
static const struct habit *recall(const struct plan *plan, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
#ifdef OF_THREAD
    const struct habit *habit = habit_of(plan);

    if (habit->plan == plan && habit->comm == comm && habit->type == type && habit->op == op &&
        habit->comms_freed == comms_freed)
        return habit;
#else
    (void)plan, (void)type, (void)op, (void)comm;
#endif
    return NULL;
}

/* Keeps what was found out, if no handle of it can come to name something else unnoticed: types and operations are
 * predefined. */
static void remember(const struct operation *it, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
#ifdef OF_THREAD
    const struct call *call = &it->call;
    const MPI_Op predefined[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR, MPI_LXOR,
                                 MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
    struct habit *habit = habit_of(call->plan);
    int integers, addresses, types, combiner, lasts = !call->plan->reduces;
    size_t k;

    for (k = 0; k < sizeof predefined / sizeof *predefined; k++)
        lasts |= predefined[k] == op;
    if (!lasts || MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
        combiner != MPI_COMBINER_NAMED)
        return;
    habit->plan = call->plan;
    habit->type = type;
    habit->op = op;
    habit->comm = comm;
    habit->comms_freed = comms_freed;
    habit->rank = call->rank;
    habit->element = call->element;
    habit->context = it->context;
#else
    (void)it, (void)type, (void)op, (void)comm;
#endif
}

/* Says what is to be done; nothing is sent. */
#if ROOTS
static int arrange(struct operation *it, const struct plan *plan, int root, const void *send, void *recv,
                   int64_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct call *call = &it->call;
    const struct habit *known = plan == NULL ? NULL : recall(plan, type, op, comm);
    int error = plan == NULL ? MPI_ERR_ROOT : MPI_SUCCESS;
#else /* ROOTS */
static int arrange(struct operation *it, const struct plan *plan, const void *send, void *recv,
                   int64_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct call *call = &it->call;
    const struct habit *known = recall(plan, type, op, comm);
    int error = MPI_SUCCESS;
#endif /* ROOTS */

    memset(it, 0, sizeof *it);
    if (known != NULL) {
        call->element = known->element;
        call->rank = known->rank;
        error = count < 0 ? MPI_ERR_COUNT : MPI_SUCCESS;
    } else {
        if (error == MPI_SUCCESS)
            error = check(plan, count, type, op, comm);
        if (error == MPI_SUCCESS)
            error = measure(&call->element, type);
        if (error == MPI_SUCCESS)
            error = MPI_Comm_rank(comm, &call->rank);
    }
    if (error != MPI_SUCCESS || count == 0 || call->element.size == 0)
        return error;
    call->plan = plan;
    call->op = op;
    call->count = count;
    if (!countable(call))
        return MPI_ERR_NO_MEM;
#if ROOTS
    call->root = root;
    call->shuffled = -1;
    call->part = part_of(plan, root, call->rank);
#endif /* ROOTS */
    error = plan->bind(call, send, recv);
    if (error == MPI_SUCCESS && known == NULL)
        error = find_context(comm, &it->context);
    if (error == MPI_SUCCESS && known != NULL) {
        it->context = known->context;
        error = it->context->failure;
    }
    if (error != MPI_SUCCESS) {
        it->context = NULL;
        return error;
    }
    if (known == NULL)
        remember(it, type, op, comm);
    call->algorithm = choose(plan, &call->element, count);
#if GROUPS
#if ORBITS
    call->row = algorithm_row[call->algorithm]
        + (algorithm_sizes[call->algorithm] > 0 ? call->rank % algorithm_width[call->algorithm] : call->rank);
#if TURNS
    if (algorithm_unit[call->algorithm] > 0)
        find_turn(call);
#endif /* TURNS */
#else /* ORBITS */
    call->row = algorithm_row[call->algorithm] + (algorithm_sizes[call->algorithm] > 0 ? 0 : call->rank);
#endif /* ORBITS */
#else /* GROUPS */
    call->row = algorithm_row[call->algorithm] + call->rank;
#endif /* GROUPS */
#if ROOTS
    call->row += call->part - call->rank;
#endif /* ROOTS */
    call->chunks = algorithm_chunks[call->algorithm];
    divide(call);
    size_up(call);
    lock(&it->context->busy);
    it->context->operations++;
    unlock(&it->context->busy);
    return MPI_SUCCESS;
}
#endif /* EVEN */
#if COUNTS
/* Likewise for a call with counts. */
static int arrange_counts(struct operation *it, const struct plan *plan, const struct arguments *given,
                          MPI_Comm comm)
{
    struct call *call = &it->call;
    MPI_Datatype type = plan->reduces ? given->recv_type : MPI_BYTE;
    int error = check(plan, 0, type, given->op, comm);

    memset(it, 0, sizeof *it);
    if (error == MPI_SUCCESS && plan->root != given->root)
        error = MPI_ERR_ROOT;
    if (error == MPI_SUCCESS)
        error = measure(&call->element, type);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_rank(comm, &call->rank);
    if (error != MPI_SUCCESS)
        return error;
    call->plan = plan;
    call->op = given->op;
    call->grain = plan->reduces ? 0 : GRAIN;
    error = plan->bind_counts(call, given);
    if (error != MPI_SUCCESS || (call->sizes == GIVEN && size_up_shards(call) == 0))
        return error;
    error = find_context(comm, &it->context);
    if (error != MPI_SUCCESS) {
        it->context = NULL;
        return error;
    }
    it->phase = call->sizes == GIVEN ? KNOWN : UNKNOWN;
    lock(&it->context->busy);
    it->context->operations++;
    unlock(&it->context->busy);
    return MPI_SUCCESS;
}
#endif /* COUNTS */

/* The end of what arrange() began. */
static void dismiss(struct operation *it)
{
    struct context *context = it->context;
    int unknown;

    if (context == NULL)
        return;
    free(it->memory);
#if COUNTS
    free(it->ledger);
#endif /* COUNTS */
    lock(&context->busy);
    if (it->form == BEGUN) {
        it->next = context->spare;
        context->spare = it;
        context->spares++;
    }
    unknown = --context->operations == 0 && context->owner == MPI_COMM_NULL;
    unlock(&context->busy);
    if (unknown)
        dispose(context);
}
