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
#if GROUPS
#if SHARED
    int pieces;            /* rows of the list of the message, or 0 if it is one run at either end */
#else /* SHARED */
    int pieces;            /* of which the message is made, or 0 if it is one run at either end */
#endif /* SHARED */
#if SHARED
    int64_t list;          /* its first row */
#else /* SHARED */
    int64_t reads, writes; /* the first piece at either end */
#endif /* SHARED */
#endif /* GROUPS */
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
    int64_t elements;
    struct box *box; /* of a letter; NULL: a message of the MPI */
    uint32_t turn;   /* of the box, for which the letter waits */
    int done;
};

struct engine {
    struct call *call;
    struct block *blocks;
    int num_blocks, in_flight;
    int by_mpi; /* of those in flight: no letters */
    int stirred; /* something came, so blocks may be able to go on */
    struct flight *flights; /* parallel to requests */
    MPI_Request *requests;
    MPI_Status *statuses;
    int *landed;
};

#if GROUPS
#if SHARED
/* An end of the runs of a message: its buffer, the place of the run at hand, and the distance to the next. */
struct run_end {
    int64_t at, stride;
    int buffer;
};

/* A run of a message: the row of the list after its own, how many like it are left, its chunks and elements. */
struct run {
    int64_t row, left, chunks, elements;
    struct run_end src, dst;
};

/* Goes on with the next rows of a list, and to the places that they name. */
static void next_rows(const struct work *work, struct run *run)
{
    int64_t row = work->list + run->row;

#if FIXED
    run->src.at += piece_place[row];
    run->dst.at += piece_place[row];
    run->chunks = piece_count[row];
    run->left = 1;
    if (run->chunks < 0) {
        row++;
        run->chunks = -run->chunks;
        run->left = piece_count[row];
        run->src.stride = run->dst.stride = piece_place[row];
    }
    run->src.buffer = run->chunks % 2 ? OUTPUT : INPUT;
    run->dst.buffer = OUTPUT;
    run->chunks /= 2;
#else /* FIXED */
    if (piece_count[row] == 0) {
        run->src.buffer = (int)piece_src[row];
        run->dst.buffer = (int)piece_dst[row];
        run->src.at = run->dst.at = 0;
        row++;
    }
    run->src.at += piece_src[row];
    run->dst.at += piece_dst[row];
    run->chunks = piece_count[row];
    run->left = 1;
    if (run->chunks < 0) {
        row++;
        run->chunks = -run->chunks;
        run->left = piece_count[row];
        run->src.stride = piece_src[row];
        run->dst.stride = piece_dst[row];
    }
#endif /* FIXED */
    run->row = row + 1 - work->list;
}

/* Where this rank has a run at one end, which goes on to the next; returns its elements. */
static int64_t locate_run(const struct call *call, const struct run *run, struct run_end *end, struct place *place)
{
    locate(call, end->buffer, end->at, run->chunks, place);
    end->at += run->left > 1 ? end->stride : run->chunks;
    return place->end - place->begin;
}

/* Where this rank reads and writes the run at hand, which becomes the next; returns 0 if there is none. */
static int next_run(const struct call *call, const struct work *work, struct run *run, struct place *src,
                    struct place *dst)
{
    if (run->left == 0) {
        if (run->row == work->pieces)
            return 0;
        next_rows(work, run);
    }
    if (work->does & READS)
        run->elements = locate_run(call, run, &run->src, src);
    if (work->does & WRITES)
        run->elements = locate_run(call, run, &run->dst, dst);
    run->left--;
    return 1;
}

#else /* SHARED */
/* A run of a message: of which of its pieces, which one of that piece, and its elements. */
struct run {
    int64_t piece, nth, elements;
};

/* Where this rank has a run of a piece; returns its elements. */
static int64_t locate_run(const struct call *call, int64_t piece, int64_t nth, struct place *place)
{
    locate(call, piece_buffer[piece], piece_place[piece] + nth * piece_stride[piece], piece_count[piece], place);
    return place->end - place->begin;
}

/* Where this rank reads and writes the run at hand, which becomes the next; returns 0 if there is none. */
static int next_run(const struct call *call, const struct work *work, struct run *run, struct place *src,
                    struct place *dst)
{
    int64_t from = work->reads + run->piece, to = work->writes + run->piece;

    if (run->piece == work->pieces)
        return 0;
    if (work->does & READS)
        run->elements = locate_run(call, from, run->nth, src);
    if (work->does & WRITES)
        run->elements = locate_run(call, to, run->nth, dst);
    if (++run->nth == piece_times[work->does & READS ? from : to]) {
        run->piece++;
        run->nth = 0;
    }
    return 1;
}

#endif /* SHARED */
/* A message of several runs: they are sent from a slot, side by side, and arrive in one. */
static void prepare_pieces(const struct call *call, struct block *block)
{
    struct work *work = &block->work;
    struct place src, dst;
#if SHARED
    struct run run = {0};
#else /* SHARED */
    struct run run = {0, 0, 0};
#endif /* SHARED */

    work->pieces = step_pieces[block->step];
#if SHARED
    work->list = work->does & READS ? step_src[block->step] : step_dst[block->step];
#else /* SHARED */
    work->reads = step_src[block->step];
    work->writes = step_dst[block->step];
#endif /* SHARED */
    work->leaves = (work->does & SENDS) != 0;
    work->lands = (work->does & RECEIVES) != 0;
    while (next_run(call, work, &run, &src, &dst))
        work->elements += run.elements;
}

#endif /* GROUPS */
static void prepare(const struct engine *engine, struct block *block)
{
    const struct call *call = engine->call;
    struct work *work = &block->work;
    int64_t i = block->step, chunks = step_count[i];
    int code = step_code[i], copies;

    work->opcode = code & OPCODE;
    work->does = traits[work->opcode];
    work->elements = 0;
#if GROUPS
    work->pieces = 0;
    if (step_pieces[i] > 0) {
        prepare_pieces(call, block);
        return;
    }
#endif /* GROUPS */
    if (work->does & READS) {
        locate(call, step_src_buffer[i], step_src[i], chunks, &work->src);
        work->elements = work->src.end - work->src.begin;
    }
    if (work->does & WRITES) {
        locate(call, step_dst_buffer[i], step_dst[i], chunks, &work->dst);
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
    block->work.slot.at = kept_at(engine->call, block->slots, slot * elements);
    block->work.slot.packed = engine->call->compact;
    return 1;
}

/* What follows for a block from the end of its message. */
static void landed(const struct flight *flight)
{
    if (!flight->sends)
        flight->block->phase = ARRIVED;
    else if (flight->block->sending--, flight->slot >= 0)
        flight->block->taken[flight->slot] = 0;
}

/* Starts the message of the step at hand: out of, or into, `place`. A letter may end at once. */
static int start_message(struct engine *engine, struct block *block, int sends,
                         const struct place *place)
{
    const struct call *call = engine->call;
    struct flight *flight = &engine->flights[engine->in_flight];
    MPI_Request *request = &engine->requests[engine->in_flight];
#if GROUPS
    int peer = peer_of(call, sends ? block_send_peer[block->id] : block_recv_peer[block->id]);
#else /* GROUPS */
    int peer = sends ? block_send_peer[block->id] : block_recv_peer[block->id];
#endif /* GROUPS */
    int tag = call->tag + block_channel[block->id], error;

#if ROOTS
    peer = taker_of(call->plan, call->root, peer);
#endif /* ROOTS */
    flight->block = block;
    flight->sends = sends;
    flight->slot = sends && block->work.leaves ? block->slot : -1;
    flight->from = *place;
    flight->elements = block->work.elements;
    flight->box = NULL;
    flight->done = 0;
    if (sends)
        block->sending++;
    else
        block->phase = RECEIVING;
    if (is_letter(call, flight->elements)) {
        *request = MPI_REQUEST_NULL;
        flight->box = next_box(call->mail, sends, peer, block_channel[block->id], &flight->turn);
        error = pass_letter(call, flight->box, flight->turn, sends, place, flight->elements, &flight->done);
    } else {
        error = start(call, place, flight->elements, sends, peer, tag, request);
        engine->by_mpi += error == MPI_SUCCESS;
    }
    if (error == MPI_SUCCESS && flight->done)
        landed(flight);
    else if (error == MPI_SUCCESS)
        engine->in_flight++;
    return error;
}
