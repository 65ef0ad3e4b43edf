/* ---- Execution ---------------------------------------------------------------------------------
 *
 * Every rank runs its blocks as state machines, side by side, in one thread. A block takes its steps in
 * order; a step begins when the steps it waits for are done, and is done when it has received and
 * computed, and has *handed its message over*: the send itself may still be under way, else ranks that
 * first send and then receive would wait for each other. What is being sent must not be written, so
 * whoever is about to write looks at the messages in flight first. Steps marked BUFFERED send a copy:
 * for them that wait could be for ever (two ranks that swap their data). A block has a few slots for
 * such copies and for messages that are to be reduced with what the rank has. How many slots a block
 * needs, how many sends it may have in flight, and which steps are BUFFERED was computed such that the
 * program ends even if every send completes only after the matching receive was posted.
 */

enum { NOP, SEND, RECV, COPY, REDUCE,
       RECV_COPY_SEND, RECV_REDUCE_COPY, RECV_REDUCE_SEND, RECV_REDUCE_COPY_SEND };
enum { OPCODE = 15, BUFFERED = 16, BUFFERED_IN_PLACE = 32 };
enum { SENDS = 1, RECEIVES = 2, READS = 4, WRITES = 8, ADDS = RECEIVES | READS | WRITES };
enum { FRUITLESS_POLLS = 20 };

static const unsigned char traits[] = {
    0,                                 /* NOP                                            */
    SENDS | READS,                     /* SEND                   out <- src              */
    RECEIVES | WRITES,                 /* RECV                   dst <- in               */
    READS | WRITES,                    /* COPY                   dst <- src              */
    READS | WRITES,                    /* REDUCE                 dst <- src op dst       */
    RECEIVES | WRITES | SENDS,         /* RECV_COPY_SEND         dst, out <- in          */
    RECEIVES | READS | WRITES,         /* RECV_REDUCE_COPY       dst <- src op in        */
    RECEIVES | READS | SENDS,          /* RECV_REDUCE_SEND       out <- src op in        */
    RECEIVES | READS | WRITES | SENDS, /* RECV_REDUCE_COPY_SEND  dst, out <- src op in   */
};

/* What the step at hand comes to with this call's count and buffers. */
struct work {
    int opcode, does;
    int64_t elements;
    struct place src, dst, slot;
    int lands;  /* the message arrives in a slot, not at dst */
    int leaves; /* the message is sent from a slot, not from src or dst */
};

enum phase { READY, RECEIVING, ARRIVED };

struct block {
    int64_t step, end, wait;
    enum phase phase;
    struct work work;
    int id;               /* number in the tables */
    int slot;             /* the slot of the step at hand, or -1 */
    int sending;          /* sends in flight */
    char *slots;          /* element 0 of the first slot */
    unsigned char *taken; /* which slots are in use */
};

/* A request under way. */
struct flight {
    struct block *block;
    int sends, slot;
    struct place from; /* what is being read, where it is not a slot */
};

struct engine {
    struct call *call;
    struct block *blocks;
    int num_blocks, in_flight;
    struct flight *flights; /* parallel to requests */
    MPI_Request *requests;
    MPI_Status *statuses;
    int *landed;
};

static void prepare(const struct engine *engine, struct block *block)
{
    const struct call *call = engine->call;
    struct work *work = &block->work;
    int64_t i = block->step, chunks = step_count[i];
    int code = step_code[i], copies;

    work->opcode = code & OPCODE;
    work->does = traits[work->opcode];
    work->elements = 0;
    if (work->does & READS) {
        work->src = locate(call, step_src_buffer[i], step_src[i], chunks);
        work->elements = work->src.end - work->src.begin;
    }
    if (work->does & WRITES) {
        work->dst = locate(call, step_dst_buffer[i], step_dst[i], chunks);
        work->elements = work->dst.end - work->dst.begin;
    }
    copies = code & BUFFERED || (call->in_place && code & BUFFERED_IN_PLACE) ||
             work->opcode == RECV_REDUCE_SEND;
    work->leaves = work->does & SENDS && copies;
    work->lands = work->does & RECEIVES && work->leaves;
    if ((work->does & ADDS) == ADDS && overlap(&work->src, &work->dst))
        work->lands = 1;
}

static int waits_over(const struct engine *engine, const struct block *block)
{
    int64_t k, end = block->wait + step_waits[block->step];

    for (k = block->wait; k < end; k++) {
        const struct block *other = &engine->blocks[wait_block[k]];

        if (other->step <= block_steps[other->id] + wait_step[k])
            return 0;
    }
    return 1;
}

static int being_sent(const struct engine *engine, const struct place *place)
{
    const struct flight *flight = engine->flights, *end = flight + engine->in_flight;

    for (; flight < end; flight++)
        if (flight->sends && flight->slot < 0 && overlap(&flight->from, place))
            return 1;
    return 0;
}

/* Takes a slot if the step needs one and the block has a free one left. */
static int take_slot(const struct engine *engine, struct block *block)
{
    int64_t elements;
    int slot = 0;

    block->slot = -1;
    if (!block->work.lands && !block->work.leaves)
        return 1;
    while (slot < block_slots[block->id] && block->taken[slot])
        slot++;
    if (slot == block_slots[block->id])
        return 0;
    block->taken[slot] = 1;
    block->slot = slot;
    elements = block_slot_chunks[block->id] * cell(engine->call);
    block->work.slot.at = element_at(engine->call, block->slots, slot * elements);
    return 1;
}

/* A type of `elements` elements, for messages whose count does not fit an int. */
static int wide_type(const struct element *element, int64_t elements, MPI_Datatype *wide)
{
    MPI_Datatype types[2];
    int counts[2], error;
    MPI_Aint displacements[2];

    error = MPI_Type_contiguous(COLLC_MESSAGE_MAX, element->type, &types[0]);
    if (error != MPI_SUCCESS)
        return error;
    types[1] = element->type;
    counts[0] = (int)(elements / COLLC_MESSAGE_MAX);
    counts[1] = (int)(elements % COLLC_MESSAGE_MAX);
    displacements[0] = 0;
    displacements[1] = (MPI_Aint)counts[0] * COLLC_MESSAGE_MAX * element->extent;
    error = MPI_Type_create_struct(2, counts, displacements, types, wide);
    MPI_Type_free(&types[0]);
    if (error == MPI_SUCCESS && (error = MPI_Type_commit(wide)) != MPI_SUCCESS)
        MPI_Type_free(wide);
    return error;
}

/* Starts the message of the step at hand: out of, or into, `place`. */
static int start_message(struct engine *engine, struct block *block, int sends,
                         const struct place *place)
{
    const struct call *call = engine->call;
    struct flight *flight = &engine->flights[engine->in_flight];
    MPI_Request *request = &engine->requests[engine->in_flight];
    MPI_Datatype type = call->element.type;
    int wide = block->work.elements > COLLC_MESSAGE_MAX, error = MPI_SUCCESS;
    int count = wide ? 1 : (int)block->work.elements, tag = block_channel[block->id];
    int to = block_send_peer[block->id], from = block_recv_peer[block->id];

    if (wide)
        error = wide_type(&call->element, block->work.elements, &type);
    if (error != MPI_SUCCESS)
        return error;
    if (sends)
        error = MPI_Isend(place->at, count, type, to, tag, call->comm, request);
    else
        error = MPI_Irecv(place->at, count, type, from, tag, call->comm, request);
    if (wide)
        MPI_Type_free(&type);
    if (error != MPI_SUCCESS)
        return error;
    flight->block = block;
    flight->sends = sends;
    flight->slot = sends && block->work.leaves ? block->slot : -1;
    flight->from = *place;
    engine->in_flight++;
    return MPI_SUCCESS;
}

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
        if (error == MPI_SUCCESS)
            block->sending++;
    }
    step_done(block);
    return error;
}

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
        block->phase = RECEIVING;
        return 1;
    }
    if (work->opcode == COPY)
        *error = copy(call, work->src.at, work->dst.at, work->elements);
    else if (work->opcode == REDUCE)
        *error = combine(call, work->src.at, work->dst.at, work->elements);
    else if (work->leaves)
        *error = copy(call, work->src.at, work->slot.at, work->elements);
    if (*error == MPI_SUCCESS)
        *error = hand_over(engine, block);
    return 1;
}

/* Completes a step whose message has arrived, if its result may be written: 1, otherwise 0. */
static int complete(struct engine *engine, struct block *block, int *error)
{
    const struct call *call = engine->call;
    struct work *work = &block->work;

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
            *error = copy(call, work->slot.at, work->dst.at, work->elements);
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

/* Waits until requests complete; their places in the list are in `landed`.
 *
 * This is MPI_Waitsome, polling as that does, but giving way to other processes: with more ranks than
 * cores some MPIs let the last rank wait for the end of everybody's time slice. */
static int wait_some(struct engine *engine, int *done)
{
    MPI_Request *requests = engine->requests;
    int number = engine->in_flight, polls = 0, error = MPI_SUCCESS;

    *done = 0;
    while (*done == 0 && error == MPI_SUCCESS) {
        if (polls++ < FRUITLESS_POLLS) {
            error = MPI_Testsome(number, requests, done, engine->landed, engine->statuses);
            continue;
        }
#ifdef GIVE_WAY
        GIVE_WAY();
        error = MPI_Testsome(number, requests, done, engine->landed, engine->statuses);
#else
        error = MPI_Waitsome(number, requests, done, engine->landed, engine->statuses);
#endif
    }
    return error;
}

/* Waits for requests, and forgets those that are complete. */
static int await(struct engine *engine)
{
    int done, kept = 0, k, error;

    error = wait_some(engine, &done);
    if (error == MPI_ERR_IN_STATUS)
        for (k = 0; k < done; k++)
            if (engine->statuses[k].MPI_ERROR != MPI_SUCCESS)
                error = engine->statuses[k].MPI_ERROR;
    if (error != MPI_SUCCESS)
        return error;
    for (k = 0; k < done; k++) {
        struct flight *flight = &engine->flights[engine->landed[k]];

        if (!flight->sends)
            flight->block->phase = ARRIVED;
        else if (flight->block->sending--, flight->slot >= 0)
            flight->block->taken[flight->slot] = 0;
    }
    for (k = 0; k < engine->in_flight; k++) {
        if (engine->requests[k] == MPI_REQUEST_NULL)
            continue;
        engine->requests[kept] = engine->requests[k];
        engine->flights[kept++] = engine->flights[k];
    }
    engine->in_flight = kept;
    return MPI_SUCCESS;
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
    return reading;
}

static int execute(struct engine *engine)
{
    int error, k;

    while ((error = advance(engine)) == MPI_SUCCESS && engine->in_flight > 0)
        if ((error = await(engine)) != MPI_SUCCESS)
            break;
    for (k = 0; k < engine->num_blocks && error == MPI_SUCCESS; k++)
        if (engine->blocks[k].step < engine->blocks[k].end)
            error = MPI_ERR_INTERN; /* nothing left to wait for: the tables are broken */
    return error;
}
