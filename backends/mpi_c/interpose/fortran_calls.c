/* ---- Blocking calls of programs in Fortran on Open MPI ------------------------------------------------------------ */

#ifdef OPEN_MPI

/* Whether a buffer is one of the MPI's variables, whichever name the compiler gave it. */
static int cip_fortran_is(const void *buffer, const char *const *names, void **places)
{
    int k;

    for (k = 0; k < 4; k++) {
        if (places[k] == NULL && (places[k] = cip_address(names[k])) == NULL)
            places[k] = &cip_all; /* no buffer of the program's */
        if (places[k] == buffer)
            return 1;
    }
    return 0;
}

static void *cip_fortran_buffer(void *buffer)
{
    static const char *const in_place[] = {"mpi_fortran_in_place_", "mpi_fortran_in_place", "mpi_fortran_in_place__",
                                           "MPI_FORTRAN_IN_PLACE"};
    static const char *const bottom[] = {"mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__",
                                         "MPI_FORTRAN_BOTTOM"};
    static void *places[2][4];

    if (cip_fortran_is(buffer, in_place, places[0]))
        return MPI_IN_PLACE;
    return cip_fortran_is(buffer, bottom, places[1]) ? MPI_BOTTOM : buffer;
}

static int cip_ranks(MPI_Comm comm);

/* The numbers of types in a call with a type for each block become handles, in a list that is to be freed. */
static MPI_Datatype *cip_fortran_types(struct cip_uneven *call)
{
    struct cip_blocks *sides[2] = {&call->out, &call->in};
    int ranks = cip_ranks(call->comm), way, k;
    struct cip_around around = {{ranks, ranks}, {NULL, NULL}};
    MPI_Datatype *types, *next;

    if (call->out.types == NULL || ranks == 0) /* or it is left */
        return NULL;
    if (call->kind == CIP_NEIGHBOURS && cip_look_around(call->comm, &around) != MPI_SUCCESS)
        around.number[0] = around.number[1] = 0;
    free(around.ranks[0]);
    next = types = cip_need((size_t)(around.number[0] + around.number[1]) * sizeof *types);
    for (way = 0; way < 2; way++) {
        const MPI_Fint *numbers = (const MPI_Fint *)(const void *)sides[way]->types;

        sides[way]->types = next;
        for (k = 0; k < around.number[way] && sides[way]->data != MPI_IN_PLACE; k++)
            *next++ = cip_fortran_Type(numbers[k]);
    }
    return types;
}

/* Serves a call if it is one for us. */
static int cip_fortran_serve(struct cip_call *call, MPI_Fint *error)
{
    int code = MPI_SUCCESS;

    call->send = cip_fortran_buffer((void *)call->send);
    call->recv = cip_fortran_buffer(call->recv);
    if (!cip_serve(call, 0, &code))
        return 0;
    if (error != NULL)
        *error = code;
    return 1;
}

/* Buffers and types of Fortran; the list of types is to be freed. */
static MPI_Datatype *cip_fortran_data(struct cip_uneven *call)
{
    call->out.data = cip_fortran_buffer(call->out.data);
    call->in.data = cip_fortran_buffer(call->in.data);
    return cip_fortran_types(call);
}

/* Serves a call with a count for each rank, or of neighbours, if it is one for us. */
static int cip_fortran_serve_uneven(struct cip_uneven *call, MPI_Fint *error)
{
    int code = MPI_SUCCESS, served;
    MPI_Datatype *types;

    types = cip_fortran_data(call);
    served = (call->kind == CIP_NEIGHBOURS ? cip_serve_neighbours : cip_serve_uneven)(call, &code);
    free(types);
    if (!served)
        return 0;
    if (error != NULL)
        *error = code;
    return 1;
}

#define CIP_FORTRAN_ONE(data, count, type) CIP_ONE(0, data, *(count), cip_fortran_Type(*(type)))
#define CIP_FORTRAN_EACH(data, counts, places, type) CIP_EACH(0, data, counts, places, cip_fortran_Type(*(type)))
#define CIP_FORTRAN_EACH_TYPE(far, data, counts, places, types) CIP_EACH_TYPE(0, far, data, counts, places, types)

#define CIP_FORTRAN_UNEVEN(FUNCTION, KIND, name, n, root, comm, ...) \
    CIP_FORTRAN(name, FUNCTION, (CIP_FORTRAN_P##n, MPI_Fint *error)) \
    { \
        if (cip_is_on()) { \
            struct cip_uneven call = {CIP_MPI_##FUNCTION, 0, CIP_##KIND, root, __VA_ARGS__, MPI_OP_NULL, \
                                      cip_fortran_Comm(*(comm))}; \
            if (cip_fortran_serve_uneven(&call, error)) \
                return; \
        } \
        CIP_FORTRAN_NEXT(name, FUNCTION, (CIP_FORTRAN_W##n, MPI_Fint *), (CIP_FORTRAN_A##n, error)); \
    }

CIP_FORTRAN_UNEVEN(ALLGATHERV, ALLGATHER, allgatherv, 8, -1, h, CIP_FORTRAN_ONE(a, b, c), CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_UNEVEN(ALLTOALLV, ALLTOALL, alltoallv, 9, -1, i, CIP_FORTRAN_EACH(a, b, c, d), CIP_FORTRAN_EACH(e, f, g, h))
CIP_FORTRAN_UNEVEN(ALLTOALLW, ALLTOALL, alltoallw, 9, -1, i, CIP_FORTRAN_EACH_TYPE(0, a, b, c, d),
                   CIP_FORTRAN_EACH_TYPE(0, e, f, g, h))
CIP_FORTRAN_UNEVEN(GATHERV, GATHER, gatherv, 9, (int)*h, i, CIP_FORTRAN_ONE(a, b, c), CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_UNEVEN(SCATTERV, SCATTER, scatterv, 9, (int)*h, i, CIP_FORTRAN_EACH(a, b, c, d), CIP_FORTRAN_ONE(e, f, g))
CIP_FORTRAN_UNEVEN(NEIGHBOR_ALLGATHER, NEIGHBOURS, neighbor_allgather, 7, CIP_TO_ALL, g, CIP_FORTRAN_ONE(a, b, c),
                   CIP_FORTRAN_ONE(d, e, f))
CIP_FORTRAN_UNEVEN(NEIGHBOR_ALLGATHERV, NEIGHBOURS, neighbor_allgatherv, 8, CIP_TO_ALL, h, CIP_FORTRAN_ONE(a, b, c),
                   CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_UNEVEN(NEIGHBOR_ALLTOALL, NEIGHBOURS, neighbor_alltoall, 7, -1, g, CIP_FORTRAN_ONE(a, b, c),
                   CIP_FORTRAN_ONE(d, e, f))
CIP_FORTRAN_UNEVEN(NEIGHBOR_ALLTOALLV, NEIGHBOURS, neighbor_alltoallv, 9, -1, i, CIP_FORTRAN_EACH(a, b, c, d),
                   CIP_FORTRAN_EACH(e, f, g, h))
CIP_FORTRAN_UNEVEN(NEIGHBOR_ALLTOALLW, NEIGHBOURS, neighbor_alltoallw, 9, -1, i, CIP_FORTRAN_EACH_TYPE(1, a, b, c, d),
                   CIP_FORTRAN_EACH_TYPE(1, e, f, g, h))

#define CIP_FORTRAN_BLOCKS(KIND, name, NAME) \
    CIP_FORTRAN(name, NAME, (void *a, MPI_Fint *b, MPI_Fint *c, void *d, MPI_Fint *e, MPI_Fint *f, MPI_Fint *g, \
                             MPI_Fint *error)) \
    { \
        if (cip_is_on()) { \
            struct cip_call call = {CIP_MPI_##KIND, CIP_##KIND, a, d, *b, *e, cip_fortran_Type(*c), \
                                    cip_fortran_Type(*f), MPI_OP_NULL, -1, cip_fortran_Comm(*g), 0}; \
            if (cip_fortran_serve(&call, error)) \
                return; \
        } \
        CIP_FORTRAN_NEXT(name, NAME, (void *, MPI_Fint *, MPI_Fint *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, \
                                      MPI_Fint *), (a, b, c, d, e, f, g, error)); \
    }

#define CIP_FORTRAN_ROOTED(KIND, name, NAME) \
    CIP_FORTRAN(name, NAME, (void *a, MPI_Fint *b, MPI_Fint *c, void *d, MPI_Fint *e, MPI_Fint *f, MPI_Fint *g, \
                             MPI_Fint *h, MPI_Fint *error)) \
    { \
        if (cip_is_on()) { \
            struct cip_call call = {CIP_MPI_##KIND, CIP_##KIND, a, d, *b, *e, cip_fortran_Type(*c), \
                                    cip_fortran_Type(*f), MPI_OP_NULL, (int)*g, cip_fortran_Comm(*h), 0}; \
            if (cip_fortran_serve(&call, error)) \
                return; \
        } \
        CIP_FORTRAN_NEXT(name, NAME, (void *, MPI_Fint *, MPI_Fint *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, \
                                      MPI_Fint *, MPI_Fint *), (a, b, c, d, e, f, g, h, error)); \
    }

#define CIP_FORTRAN_COMBINES(FUNCTION, KIND, name, NAME) \
    CIP_FORTRAN(name, NAME, (void *a, void *b, MPI_Fint *c, MPI_Fint *d, MPI_Fint *e, MPI_Fint *f, \
                             MPI_Fint *error)) \
    { \
        if (cip_is_on()) { \
            MPI_Datatype type = cip_fortran_Type(*d); \
            struct cip_call call = {FUNCTION, CIP_##KIND, a, b, *c, *c, type, type, cip_fortran_Op(*e), -1, \
                                    cip_fortran_Comm(*f), 0}; \
            if (cip_fortran_serve(&call, error)) \
                return; \
        } \
        CIP_FORTRAN_NEXT(name, NAME, (void *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *), \
                         (a, b, c, d, e, f, error)); \
    }

CIP_FORTRAN_BLOCKS(ALLGATHER, allgather, ALLGATHER)
CIP_FORTRAN_BLOCKS(ALLTOALL, alltoall, ALLTOALL)
CIP_FORTRAN_ROOTED(GATHER, gather, GATHER)
CIP_FORTRAN_ROOTED(SCATTER, scatter, SCATTER)
CIP_FORTRAN_COMBINES(CIP_MPI_ALLREDUCE, ALLREDUCE, allreduce, ALLREDUCE)
CIP_FORTRAN_COMBINES(CIP_MPI_REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, reduce_scatter_block, REDUCE_SCATTER_BLOCK)

CIP_FORTRAN(bcast, BCAST, (void *a, MPI_Fint *b, MPI_Fint *c, MPI_Fint *d, MPI_Fint *e, MPI_Fint *error))
{
    if (cip_is_on()) {
        MPI_Datatype type = cip_fortran_Type(*c);
        struct cip_call call = {CIP_MPI_BCAST, CIP_BROADCAST, NULL, a, *b, *b, type, type, MPI_OP_NULL, (int)*d,
                                cip_fortran_Comm(*e), 0};

        if (cip_fortran_serve(&call, error))
            return;
    }
    CIP_FORTRAN_NEXT(bcast, BCAST, (void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *),
                     (a, b, c, d, e, error));
}

CIP_FORTRAN(reduce, REDUCE, (void *a, void *b, MPI_Fint *c, MPI_Fint *d, MPI_Fint *e, MPI_Fint *f, MPI_Fint *g,
                             MPI_Fint *error))
{
    if (cip_is_on()) {
        MPI_Datatype type = cip_fortran_Type(*d);
        struct cip_call call = {CIP_MPI_REDUCE, CIP_REDUCE, a, b, *c, *c, type, type, cip_fortran_Op(*e), (int)*f,
                                cip_fortran_Comm(*g), 0};

        if (cip_fortran_serve(&call, error))
            return;
    }
    CIP_FORTRAN_NEXT(reduce, REDUCE,
                     (void *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *),
                     (a, b, c, d, e, f, g, error));
}

CIP_FORTRAN(reduce_scatter, REDUCE_SCATTER, (void *a, void *b, MPI_Fint *counts, MPI_Fint *d, MPI_Fint *e, MPI_Fint *f,
                                             MPI_Fint *error))
{
    if (cip_is_on()) {
        MPI_Datatype type = cip_fortran_Type(*d);
        struct cip_call call = {CIP_MPI_REDUCE_SCATTER, CIP_REDUCE_SCATTER, a, b, 0, 0, type, type,
                                cip_fortran_Op(*e), -1, cip_fortran_Comm(*f), 0};
        int ranks = cip_ranks(call.comm), k;

        if (ranks > 0)
            call.send_count = call.recv_count = counts[0];
        for (k = 1; k < ranks; k++)
            call.unequal |= counts[k] != counts[0];
        if (call.unequal) {
            struct cip_uneven uneven = {CIP_MPI_REDUCE_SCATTER, 0, CIP_REDUCE_SCATTER, -1,
                                        CIP_EACH(0, a, counts, NULL, type), CIP_EACH(0, b, counts, NULL, type),
                                        call.op, call.comm};

            if (cip_fortran_serve_uneven(&uneven, error))
                return;
        } else if (cip_fortran_serve(&call, error)) {
            return;
        }
    }
    CIP_FORTRAN_NEXT(reduce_scatter, REDUCE_SCATTER,
                     (void *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *),
                     (a, b, counts, d, e, f, error));
}
#endif
