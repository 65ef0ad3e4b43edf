/* ---- One call ---------------------------------------------------------------------------------- */

/* Lays out the engine and the buffers of this rank; with an empty arena this only measures. */
static void lay_out(struct engine *engine, struct arena *arena, char **input, char **output)
{
    struct call *call = engine->call;
    const struct element *element = &call->element;
    int first = rank_blocks[call->row], blocks = rank_blocks[call->row + 1] - first;
    int requests = 0, k;

    engine->num_blocks = blocks;
    engine->blocks = carve(arena, (size_t)blocks * sizeof *engine->blocks);
    for (k = 0; k < blocks; k++)
        requests += block_sends[first + k] + 1;
    engine->flights = carve(arena, (size_t)requests * sizeof *engine->flights);
    engine->requests = carve(arena, (size_t)requests * sizeof *engine->requests);
    engine->statuses = carve(arena, (size_t)requests * sizeof *engine->statuses);
    engine->landed = carve(arena, (size_t)requests * sizeof *engine->landed);
    call->base[SCRATCH] = carve_elements(arena, element, rank_scratch[call->row] * cell(call));
    *input = carve_elements(arena, element, call->copy_input);
    *output = carve_elements(arena, element, call->keep_output);
    for (k = 0; k < blocks; k++) {
        int id = first + k;
        int64_t elements = block_slots[id] * (block_slot_chunks[id] * cell(call));
        unsigned char *taken = carve(arena, block_slots[id]);
        char *slots = carve_elements(arena, element, elements);

        if (arena->base == NULL)
            continue;
        memset(taken, 0, block_slots[id]);
        memset(&engine->blocks[k], 0, sizeof engine->blocks[k]);
        engine->blocks[k].id = id;
        engine->blocks[k].step = block_steps[id];
        engine->blocks[k].end = block_steps[id + 1];
        engine->blocks[k].wait = block_waits[id];
        engine->blocks[k].slots = slots;
        engine->blocks[k].taken = taken;
    }
}

/* Runs the tables of this rank over the buffers that bind_buffers() has set. */
static int run(struct context *context, struct call *call)
{
    struct engine engine;
    struct arena arena = {NULL, 0};
    char *input, *output;
    int error;

    memset(&engine, 0, sizeof engine);
    engine.call = call;
    lay_out(&engine, &arena, &input, &output);
    error = reserve(context, arena.used);
    if (error != MPI_SUCCESS)
        return error;
    arena.base = context->memory;
    arena.used = 0;
    lay_out(&engine, &arena, &input, &output);
    if (call->copy_input) {
        error = copy(call, call->base[INPUT], input, call->copy_input);
        call->base[INPUT] = input;
    }
    if (call->keep_output)
        call->base[OUTPUT] = output;
    if (error == MPI_SUCCESS)
        error = execute(&engine);
    if (error == MPI_SUCCESS && call->keep_output && call->deliver != NULL)
        error = copy(call, output, call->deliver, call->keep_output);
    if (error != MPI_SUCCESS) {
        context->failure = error;
        if (abandon(&engine)) { /* better a leak than a message out of memory that has a new use */
            context->memory = NULL;
            context->capacity = 0;
        }
    }
    trim(context);
    return error;
}

/* Whether a contribution may be combined twice without changing the result. */
static int idempotent(MPI_Op op)
{
    return op == MPI_MIN || op == MPI_MAX || op == MPI_BAND || op == MPI_BOR || op == MPI_LAND ||
           op == MPI_LOR;
}

/* Whether the arguments make sense at all; needs no other rank. */
static int check(int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
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
    if (flag || size != RANKS)
        return MPI_ERR_COMM;
    if (count < 0)
        return MPI_ERR_COUNT;
    if (type == MPI_DATATYPE_NULL)
        return MPI_ERR_TYPE;
    if (!REDUCES)
        return MPI_SUCCESS;
    if (op == MPI_OP_NULL || (TWICE && !idempotent(op)))
        return MPI_ERR_OP;
    error = MPI_Op_commutative(op, &flag);
    if (error == MPI_SUCCESS && !flag)
        return MPI_ERR_OP;
    /* Reducing nothing shows whether op and type go together, before anybody has sent anything. */
    return error == MPI_SUCCESS ? MPI_Reduce_local(in, inout, 0, type, op) : error;
}
