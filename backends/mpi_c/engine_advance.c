/* ---- Taking steps ------------------------------------------------------------------------------- */

static void step_done(struct block *block)
{
    block->wait += step_waits[block->step];
    block->step++;
    block->phase = READY;
}

/* What remains once everything the step needs is here: send, and go on. */
static int hand_over(struct engine *engine, struct block *block)
{
    struct work *work = &block->work;
    int error = MPI_SUCCESS;

    if (block->slot >= 0 && !work->leaves)
        block->taken[block->slot] = 0;
    if (work->does & SENDS) {
        const struct place *from = work->does & WRITES ? &work->dst : &work->src;

        error = start_message(engine, block, 1, work->leaves ? &work->slot : from);
    }
    step_done(block);
    return error;
}

#if GROUPS
/* Copies the pieces of a message into its slot. */
static int pack_pieces(const struct call *call, struct work *work)
{
    struct place src, dst, slot = work->slot;
#if SHARED
    struct run run = {0};
#else /* SHARED */
    struct run run = {0, 0, 0};
#endif /* SHARED */
    int error = MPI_SUCCESS;

    while (error == MPI_SUCCESS && next_run(call, work, &run, &src, &dst)) {
        if (run.elements > 0)
            error = copy(call, &src, &slot, run.elements);
        slot.at = kept_at(call, slot.at, run.elements);
    }
    return error;
}

/* Whether a piece of a message that has arrived is to be written where a send still reads. */
static int pieces_being_sent(const struct engine *engine, const struct work *work)
{
    struct place src, dst;
#if SHARED
    struct run run = {0};
#else /* SHARED */
    struct run run = {0, 0, 0};
#endif /* SHARED */

    while (next_run(engine->call, work, &run, &src, &dst))
        if (run.elements > 0 && being_sent(engine, &dst))
            return 1;
    return 0;
}

/* Combines the pieces of a message with what the rank has, and copies them to their places. */
static int unpack_pieces(const struct call *call, struct work *work)
{
    struct place src, dst, slot = work->slot;
#if SHARED
    struct run run = {0};
#else /* SHARED */
    struct run run = {0, 0, 0};
#endif /* SHARED */
    int error = MPI_SUCCESS;

    while (error == MPI_SUCCESS && next_run(call, work, &run, &src, &dst)) {
        int adds = run.elements > 0 && work->does & READS;

        if (adds && src.at == dst.at) {
            error = combine(call, slot.at, dst.at, run.elements);
        } else {
            if (adds)
                error = combine(call, src.at, slot.at, run.elements);
            if (error == MPI_SUCCESS && run.elements > 0)
                error = copy(call, &slot, &dst, run.elements);
        }
        slot.at = kept_at(call, slot.at, run.elements);
    }
    return error;
}

#endif /* GROUPS */
/* Begins the step at hand, if it can begin: 1, otherwise 0. */
static int begin(struct engine *engine, struct block *block, int *error)
{
    const struct call *call = engine->call;
    struct work *work = &block->work;

    if (!waits_over(engine, block))
        return 0;
    prepare(engine, block);
    if (work->elements == 0) { /* both ends agree that this message is not sent */
        step_done(block);
        return 1;
    }
    if (work->does & SENDS && block->sending == block_sends[block->id])
        return 0;
    if (work->does & WRITES && !work->lands && being_sent(engine, &work->dst))
        return 0;
    if (!take_slot(engine, block))
        return 0;
    if (work->does & RECEIVES) {
        *error = start_message(engine, block, 0, work->lands ? &work->slot : &work->dst);
        return 1;
    }
    if (work->opcode == COPY)
        *error = copy(call, &work->src, &work->dst, work->elements);
    else if (work->opcode == REDUCE)
        *error = combine(call, work->src.at, work->dst.at, work->elements);
#if GROUPS
    else if (work->pieces > 0)
        *error = pack_pieces(call, work);
#endif /* GROUPS */
    else if (work->leaves)
        *error = copy(call, &work->src, &work->slot, work->elements);
    if (*error == MPI_SUCCESS)
        *error = hand_over(engine, block);
    return 1;
}

/* Completes a step whose message has arrived, if its result may be written: 1, otherwise 0. */
static int complete(struct engine *engine, struct block *block, int *error)
{
    const struct call *call = engine->call;
    struct work *work = &block->work;

#if GROUPS
    if (work->pieces > 0) {
        if (pieces_being_sent(engine, work))
            return 0;
        *error = unpack_pieces(call, work);
        if (*error == MPI_SUCCESS)
            *error = hand_over(engine, block);
        return 1;
    }
#endif /* GROUPS */
    if (work->does & WRITES && work->lands && being_sent(engine, &work->dst))
        return 0;
    if (work->does & READS && !work->lands) { /* it arrived at dst */
        *error = combine(call, work->src.at, work->dst.at, work->elements);
    } else if (work->does & READS && !work->leaves && work->src.at == work->dst.at) {
        *error = combine(call, work->slot.at, work->dst.at, work->elements);
    } else if (work->lands) {
        if (work->does & READS)
            *error = combine(call, work->src.at, work->slot.at, work->elements);
        if (*error == MPI_SUCCESS && work->does & WRITES)
            *error = copy(call, &work->slot, &work->dst, work->elements);
    }
    if (*error == MPI_SUCCESS)
        *error = hand_over(engine, block);
    return 1;
}

/* Lets every block go as far as it can. */
static int advance(struct engine *engine)
{
    int error = MPI_SUCCESS, moved = 1, k;

    while (moved && error == MPI_SUCCESS) {
        moved = 0;
        for (k = 0; k < engine->num_blocks && error == MPI_SUCCESS; k++) {
            struct block *block = &engine->blocks[k];

            while (error == MPI_SUCCESS && block->step < block->end && block->phase != RECEIVING) {
                if (!(block->phase == READY ? begin : complete)(engine, block, &error))
                    break;
                moved = 1;
            }
        }
    }
    return error;
}

/* So few messages are asked for one by one: MPIs are faster at that. */
enum { FEW = 4 };

/* Looks which of many messages are complete. */
static int test_many(struct engine *engine)
{
    int done = 0, k, error;

    error = MPI_Testsome(engine->in_flight, engine->requests, &done, engine->landed, engine->statuses);
    if (error == MPI_ERR_IN_STATUS)
        for (k = 0; k < done; k++)
            if (engine->statuses[k].MPI_ERROR != MPI_SUCCESS)
                error = engine->statuses[k].MPI_ERROR;
    for (k = 0; k < done && error == MPI_SUCCESS; k++)
        engine->flights[engine->landed[k]].done = 1;
    return error;
}

/* Looks whether one is complete. */
static int test_one(struct engine *engine, int k, int many)
{
    struct flight *flight = &engine->flights[k];

    if (flight->box != NULL)
        return pass_letter(engine->call, flight->box, flight->turn, flight->sends, &flight->from, flight->elements,
                           &flight->done);
    return many ? MPI_SUCCESS : MPI_Test(&engine->requests[k], &flight->done, MPI_STATUS_IGNORE);
}

/* Looks which messages are complete, and forgets them. */
static int collect(struct engine *engine)
{
    int many = engine->by_mpi > FEW, kept = 0, k;
    int error = many ? test_many(engine) : engine->by_mpi == 0 ? visit_mpi(engine->call) : MPI_SUCCESS;

    for (k = 0; k < engine->in_flight; k++) {
        struct flight *flight = &engine->flights[k];

        if (error == MPI_SUCCESS && !flight->done)
            error = test_one(engine, k, many);
        if (error == MPI_SUCCESS && flight->done) {
            engine->stirred = 1;
            engine->by_mpi -= flight->box == NULL;
            landed(flight);
            continue;
        }
        if (kept < k) {
            engine->requests[kept] = engine->requests[k];
            engine->flights[kept] = *flight;
        }
        kept++;
    }
    engine->in_flight = kept;
    return error;
}

/* After an error: takes receives back and lets go of sends; 1 if the MPI may still read our memory. */
static int abandon(struct engine *engine)
{
    int reading = 0, k;

    for (k = 0; k < engine->in_flight; k++) {
        MPI_Request *request = &engine->requests[k];
        int done = 0;

        if (*request == MPI_REQUEST_NULL)
            continue;
        if (!engine->flights[k].sends) {
            MPI_Cancel(request);
            MPI_Wait(request, MPI_STATUS_IGNORE);
        } else if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done) {
            reading = 1;
            if (*request != MPI_REQUEST_NULL)
                MPI_Request_free(request);
        }
    }
    engine->in_flight = engine->by_mpi = 0;
    return reading;
}

/* Goes as far as it can without waiting; *moved is set where that was some way. Nothing in flight
 * afterwards means that all is done. */
static int execute(struct engine *engine, int *moved)
{
    int error = MPI_SUCCESS, k;

    while (error == MPI_SUCCESS) {
        if (engine->stirred) {
            *moved = 1;
            engine->stirred = 0;
            error = advance(engine);
        }
        if (error != MPI_SUCCESS || engine->in_flight == 0)
            break;
        error = collect(engine);
        if (!engine->stirred)
            return error;
    }
    for (k = 0; k < engine->num_blocks && error == MPI_SUCCESS; k++)
        if (engine->blocks[k].step < engine->blocks[k].end)
            error = MPI_ERR_INTERN; /* nothing left to wait for: the tables are broken */
    return error;
}
