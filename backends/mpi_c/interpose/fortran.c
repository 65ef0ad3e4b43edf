/* ---- Programs in Fortran ---------------------------------------------------------------------------------
 *
 * Fortran functions of MPICH and its relatives call the C ones by their plain names, but for that of mpi_f08
 * which ends MPI. Those of Open MPI call PMPI_ names, so they are wrapped here. Its mpif.h and its modules `mpi` and `mpi_f08` pass the same arguments:
 * addresses, of which only that of the error may be NULL. pmpi_ names stay the MPI's own.
 */

#ifdef OPEN_MPI

/* A function under all its names. Of mpi_f08 it is the one whose buffers are addresses, not descriptors. */
#define CIP_FORTRAN(name, NAME, parameters) \
    CIP_EXPORT void mpi_##name##_ parameters; \
    CIP_EXPORT void mpi_##name parameters __attribute__((alias("mpi_" #name "_"))); \
    CIP_EXPORT void mpi_##name##__ parameters __attribute__((alias("mpi_" #name "_"))); \
    CIP_EXPORT void MPI_##NAME parameters __attribute__((alias("mpi_" #name "_"))); \
    CIP_EXPORT void mpi_##name##_f08_ parameters __attribute__((alias("mpi_" #name "_"))); \
    void mpi_##name##_ parameters

/* The MPI's own function gets the arguments as they came, and a place for the error, which not all do without. */
#define CIP_FORTRAN_NEXT(name, NAME, types, arguments) \
    do { \
        static void(*next) types; \
        MPI_Fint unwanted = 0; \
        if (error == NULL) \
            error = &unwanted; \
        if (next == NULL) \
            next = (void(*) types)cip_fortran_behind("pmpi_" #name "_", "pmpi_" #name, "pmpi_" #name "__", \
                                                     "PMPI_" #NAME); \
        next arguments; \
    } while (0)

static cip_function cip_fortran_behind(const char *a, const char *b, const char *c, const char *d)
{
    const char *const names[] = {a, b, c, d};
    size_t k;

    for (k = 0; k < 3; k++)
        if (cip_find(names[k]) != NULL)
            return cip_find(names[k]);
    return cip_behind(names[k], 0);
}

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

/* Numbers of handles to handles. A number that has none may be an argument that does not matter here. */
#define CIP_FORTRAN_HANDLE(word, type, NULL_HANDLE) \
    static type cip_fortran_##word(MPI_Fint number) \
    { \
        static type (*convert)(MPI_Fint); \
        type found; \
        if (convert == NULL) \
            convert = (type(*)(MPI_Fint))cip_behind("PMPI_" #word "_f2c", 0); \
        found = convert(number); \
        return found == NULL ? NULL_HANDLE : found; \
    }

CIP_FORTRAN_HANDLE(Comm, MPI_Comm, MPI_COMM_NULL)
CIP_FORTRAN_HANDLE(Type, MPI_Datatype, MPI_DATATYPE_NULL)
CIP_FORTRAN_HANDLE(Op, MPI_Op, MPI_OP_NULL)

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

/* Serves a call with a count for each rank, or of neighbours, if it is one for us. */
static int cip_fortran_serve_uneven(struct cip_uneven *call, MPI_Fint *error)
{
    int code = MPI_SUCCESS;

    call->out.data = cip_fortran_buffer(call->out.data);
    call->in.data = cip_fortran_buffer(call->in.data);
    if (!(call->kind == CIP_NEIGHBOURS ? cip_serve_neighbours : cip_serve_uneven)(call, &code))
        return 0;
    if (error != NULL)
        *error = code;
    return 1;
}

typedef MPI_Fint cip_integer; /* MPI's names before parentheses are those of functions */
typedef char cip_needs_integers_of_fortran_like_ints[sizeof(MPI_Fint) == sizeof(int) ? 1 : -1];

#define CIP_FORTRAN_P6 MPI_Fint *a, MPI_Fint *b, MPI_Fint *c, MPI_Fint *d, MPI_Fint *e, MPI_Fint *f
#define CIP_FORTRAN_P7 CIP_FORTRAN_P6, MPI_Fint *g
#define CIP_FORTRAN_P8 CIP_FORTRAN_P7, MPI_Fint *h
#define CIP_FORTRAN_P9 CIP_FORTRAN_P8, MPI_Fint *i
#define CIP_FORTRAN_P10 CIP_FORTRAN_P9, MPI_Fint *j
#define CIP_FORTRAN_W6 MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *
#define CIP_FORTRAN_W7 CIP_FORTRAN_W6, MPI_Fint *
#define CIP_FORTRAN_W8 CIP_FORTRAN_W7, MPI_Fint *
#define CIP_FORTRAN_W9 CIP_FORTRAN_W8, MPI_Fint *
#define CIP_FORTRAN_W10 CIP_FORTRAN_W9, MPI_Fint *
#define CIP_FORTRAN_ONE(data, count, type) CIP_ONE(0, data, *(count), cip_fortran_Type(*(type)))
#define CIP_FORTRAN_EACH(data, counts, places, type) CIP_EACH(0, data, counts, places, cip_fortran_Type(*(type)))

#define CIP_FORTRAN_UNEVEN(FUNCTION, KIND, name, NAME, root, comm, parameters, types, arguments, ...) \
    CIP_FORTRAN(name, NAME, (parameters, MPI_Fint *error)) \
    { \
        if (cip_is_on()) { \
            struct cip_uneven call = {CIP_MPI_##FUNCTION, 0, CIP_##KIND, root, __VA_ARGS__, MPI_OP_NULL, \
                                      cip_fortran_Comm(*(comm))}; \
            if (cip_fortran_serve_uneven(&call, error)) \
                return; \
        } \
        CIP_FORTRAN_NEXT(name, NAME, (types, MPI_Fint *), arguments); \
    }

CIP_FORTRAN_UNEVEN(ALLGATHERV, ALLGATHER, allgatherv, ALLGATHERV, -1, h, CIP_FORTRAN_P8, CIP_FORTRAN_W8,
                   (a, b, c, d, e, f, g, h, error), CIP_FORTRAN_ONE(a, b, c), CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_UNEVEN(ALLTOALLV, ALLTOALL, alltoallv, ALLTOALLV, -1, i, CIP_FORTRAN_P9, CIP_FORTRAN_W9,
                   (a, b, c, d, e, f, g, h, i, error), CIP_FORTRAN_EACH(a, b, c, d), CIP_FORTRAN_EACH(e, f, g, h))
CIP_FORTRAN_UNEVEN(GATHERV, GATHER, gatherv, GATHERV, (int)*h, i, CIP_FORTRAN_P9, CIP_FORTRAN_W9,
                   (a, b, c, d, e, f, g, h, i, error), CIP_FORTRAN_ONE(a, b, c), CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_UNEVEN(SCATTERV, SCATTER, scatterv, SCATTERV, (int)*h, i, CIP_FORTRAN_P9, CIP_FORTRAN_W9,
                   (a, b, c, d, e, f, g, h, i, error), CIP_FORTRAN_EACH(a, b, c, d), CIP_FORTRAN_ONE(e, f, g))
CIP_FORTRAN_UNEVEN(NEIGHBOR_ALLGATHER, NEIGHBOURS, neighbor_allgather, NEIGHBOR_ALLGATHER, CIP_TO_ALL, g,
                   CIP_FORTRAN_P7, CIP_FORTRAN_W7, (a, b, c, d, e, f, g, error), CIP_FORTRAN_ONE(a, b, c),
                   CIP_FORTRAN_ONE(d, e, f))
CIP_FORTRAN_UNEVEN(NEIGHBOR_ALLGATHERV, NEIGHBOURS, neighbor_allgatherv, NEIGHBOR_ALLGATHERV, CIP_TO_ALL, h,
                   CIP_FORTRAN_P8, CIP_FORTRAN_W8, (a, b, c, d, e, f, g, h, error), CIP_FORTRAN_ONE(a, b, c),
                   CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_UNEVEN(NEIGHBOR_ALLTOALL, NEIGHBOURS, neighbor_alltoall, NEIGHBOR_ALLTOALL, -1, g, CIP_FORTRAN_P7,
                   CIP_FORTRAN_W7, (a, b, c, d, e, f, g, error), CIP_FORTRAN_ONE(a, b, c), CIP_FORTRAN_ONE(d, e, f))
CIP_FORTRAN_UNEVEN(NEIGHBOR_ALLTOALLV, NEIGHBOURS, neighbor_alltoallv, NEIGHBOR_ALLTOALLV, -1, i, CIP_FORTRAN_P9,
                   CIP_FORTRAN_W9, (a, b, c, d, e, f, g, h, i, error), CIP_FORTRAN_EACH(a, b, c, d),
                   CIP_FORTRAN_EACH(e, f, g, h))

/* Begins a nonblocking call if it is one for us. Its request is one of the MPI, which has a number for it. */
static int cip_fortran_begin(struct cip_call *call, struct cip_uneven *uneven, MPI_Fint *request, MPI_Fint *error)
{
    static cip_integer (*number)(MPI_Request);
    MPI_Request handle = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;

    if (number == NULL)
        number = (cip_integer(*)(MPI_Request))cip_behind("PMPI_Request_c2f", 0);
    call->send = cip_fortran_buffer((void *)call->send);
    call->recv = cip_fortran_buffer(call->recv);
    if (uneven != NULL) {
        uneven->out.data = cip_fortran_buffer(uneven->out.data);
        uneven->in.data = cip_fortran_buffer(uneven->in.data);
    }
    if (!cip_serve_later(call, uneven, 0, 0, &handle, &code))
        return 0;
    if (code == MPI_SUCCESS)
        *request = number(handle);
    if (error != NULL)
        *error = code;
    return 1;
}

#define CIP_FORTRAN_BEGINS(FUNCTION, KIND, name, NAME, request, parameters, types, arguments, ...) \
    CIP_FORTRAN(name, NAME, (parameters, MPI_Fint *error)) \
    { \
        if (cip_is_on()) { \
            struct cip_call call = {CIP_MPI_##FUNCTION, CIP_##KIND, __VA_ARGS__, 0}; \
            if (cip_fortran_begin(&call, NULL, request, error)) \
                return; \
        } \
        CIP_FORTRAN_NEXT(name, NAME, (types, MPI_Fint *), arguments); \
    }

#define CIP_FORTRAN_BEGINS_UNEVEN(FUNCTION, KIND, name, NAME, root, comm, op, request, parameters, types, arguments, ...) \
    CIP_FORTRAN(name, NAME, (parameters, MPI_Fint *error)) \
    { \
        if (cip_is_on()) { \
            struct cip_uneven uneven = {CIP_MPI_##FUNCTION, 0, CIP_##KIND, root, __VA_ARGS__, op, \
                                        cip_fortran_Comm(*(comm))}; \
            struct cip_call call = cip_frame(&uneven); \
            if (cip_fortran_begin(&call, &uneven, request, error)) \
                return; \
        } \
        CIP_FORTRAN_NEXT(name, NAME, (types, MPI_Fint *), arguments); \
    }

#define CIP_FORTRAN_TWO_SIDES(root, comm) \
    a, d, *b, *e, cip_fortran_Type(*c), cip_fortran_Type(*f), MPI_OP_NULL, root, cip_fortran_Comm(*comm)
#define CIP_FORTRAN_SUMS(root, comm) \
    a, b, *c, *c, cip_fortran_Type(*d), cip_fortran_Type(*d), cip_fortran_Op(*e), root, cip_fortran_Comm(*comm)

CIP_FORTRAN_BEGINS(IALLGATHER, ALLGATHER, iallgather, IALLGATHER, h, CIP_FORTRAN_P8, CIP_FORTRAN_W8,
                   (a, b, c, d, e, f, g, h, error), CIP_FORTRAN_TWO_SIDES(-1, g))
CIP_FORTRAN_BEGINS(IALLTOALL, ALLTOALL, ialltoall, IALLTOALL, h, CIP_FORTRAN_P8, CIP_FORTRAN_W8,
                   (a, b, c, d, e, f, g, h, error), CIP_FORTRAN_TWO_SIDES(-1, g))
CIP_FORTRAN_BEGINS(IGATHER, GATHER, igather, IGATHER, i, CIP_FORTRAN_P9, CIP_FORTRAN_W9,
                   (a, b, c, d, e, f, g, h, i, error), CIP_FORTRAN_TWO_SIDES((int)*g, h))
CIP_FORTRAN_BEGINS(ISCATTER, SCATTER, iscatter, ISCATTER, i, CIP_FORTRAN_P9, CIP_FORTRAN_W9,
                   (a, b, c, d, e, f, g, h, i, error), CIP_FORTRAN_TWO_SIDES((int)*g, h))
CIP_FORTRAN_BEGINS(IBCAST, BROADCAST, ibcast, IBCAST, f, CIP_FORTRAN_P6, CIP_FORTRAN_W6, (a, b, c, d, e, f, error),
                   NULL, a, *b, *b, cip_fortran_Type(*c), cip_fortran_Type(*c), MPI_OP_NULL, (int)*d,
                   cip_fortran_Comm(*e))
CIP_FORTRAN_BEGINS(IALLREDUCE, ALLREDUCE, iallreduce, IALLREDUCE, g, CIP_FORTRAN_P7, CIP_FORTRAN_W7,
                   (a, b, c, d, e, f, g, error), CIP_FORTRAN_SUMS(-1, f))
CIP_FORTRAN_BEGINS(IREDUCE_SCATTER_BLOCK, REDUCE_SCATTER, ireduce_scatter_block, IREDUCE_SCATTER_BLOCK, g,
                   CIP_FORTRAN_P7, CIP_FORTRAN_W7, (a, b, c, d, e, f, g, error), CIP_FORTRAN_SUMS(-1, f))
CIP_FORTRAN_BEGINS(IREDUCE, REDUCE, ireduce, IREDUCE, h, CIP_FORTRAN_P8, CIP_FORTRAN_W8,
                   (a, b, c, d, e, f, g, h, error), CIP_FORTRAN_SUMS((int)*f, g))
CIP_FORTRAN_BEGINS_UNEVEN(IALLGATHERV, ALLGATHER, iallgatherv, IALLGATHERV, -1, h, MPI_OP_NULL, i, CIP_FORTRAN_P9,
                          CIP_FORTRAN_W9, (a, b, c, d, e, f, g, h, i, error), CIP_FORTRAN_ONE(a, b, c),
                          CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_BEGINS_UNEVEN(IALLTOALLV, ALLTOALL, ialltoallv, IALLTOALLV, -1, i, MPI_OP_NULL, j, CIP_FORTRAN_P10,
                          CIP_FORTRAN_W10, (a, b, c, d, e, f, g, h, i, j, error), CIP_FORTRAN_EACH(a, b, c, d),
                          CIP_FORTRAN_EACH(e, f, g, h))
CIP_FORTRAN_BEGINS_UNEVEN(IGATHERV, GATHER, igatherv, IGATHERV, (int)*h, i, MPI_OP_NULL, j, CIP_FORTRAN_P10,
                          CIP_FORTRAN_W10, (a, b, c, d, e, f, g, h, i, j, error), CIP_FORTRAN_ONE(a, b, c),
                          CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_BEGINS_UNEVEN(ISCATTERV, SCATTER, iscatterv, ISCATTERV, (int)*h, i, MPI_OP_NULL, j, CIP_FORTRAN_P10,
                          CIP_FORTRAN_W10, (a, b, c, d, e, f, g, h, i, j, error), CIP_FORTRAN_EACH(a, b, c, d),
                          CIP_FORTRAN_ONE(e, f, g))
CIP_FORTRAN_BEGINS_UNEVEN(IREDUCE_SCATTER, REDUCE_SCATTER, ireduce_scatter, IREDUCE_SCATTER, -1, f, cip_fortran_Op(*e), g,
                          CIP_FORTRAN_P7, CIP_FORTRAN_W7, (a, b, c, d, e, f, g, error),
                          CIP_FORTRAN_EACH(a, c, NULL, d), CIP_FORTRAN_EACH(b, c, NULL, d))
CIP_FORTRAN_BEGINS_UNEVEN(INEIGHBOR_ALLTOALLV, NEIGHBOURS, ineighbor_alltoallv, INEIGHBOR_ALLTOALLV, -1, i, MPI_OP_NULL,
                          j, CIP_FORTRAN_P10, CIP_FORTRAN_W10, (a, b, c, d, e, f, g, h, i, j, error),
                          CIP_FORTRAN_EACH(a, b, c, d), CIP_FORTRAN_EACH(e, f, g, h))

/* What calls under way need is freed after them. */
#define CIP_FORTRAN_FREES_LATER(name, NAME, type, op, none) \
    CIP_FORTRAN(name, NAME, (MPI_Fint *handle, MPI_Fint *error)) \
    { \
        if (cip_worker.runs && cip_frees_later(type, op)) { \
            *handle = none; \
            if (error != NULL) \
                *error = MPI_SUCCESS; \
            return; \
        } \
        CIP_FORTRAN_NEXT(name, NAME, (MPI_Fint *, MPI_Fint *), (handle, error)); \
    }

static MPI_Fint cip_fortran_no_type(void)
{
    return ((cip_integer(*)(MPI_Datatype))cip_behind("PMPI_Type_c2f", 0))(MPI_DATATYPE_NULL);
}

static MPI_Fint cip_fortran_no_op(void)
{
    return ((cip_integer(*)(MPI_Op))cip_behind("PMPI_Op_c2f", 0))(MPI_OP_NULL);
}

CIP_FORTRAN_FREES_LATER(type_free, TYPE_FREE, cip_fortran_Type(*handle), MPI_OP_NULL, cip_fortran_no_type())
CIP_FORTRAN_FREES_LATER(op_free, OP_FREE, MPI_DATATYPE_NULL, cip_fortran_Op(*handle), cip_fortran_no_op())

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

static int cip_ranks(MPI_Comm comm);

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

/* What the C wrappers do around the beginning, the freeing of communicators, and the end. */
static void cip_fortran_init_for_threads(MPI_Fint *provided, MPI_Fint *error)
{
    MPI_Fint required = MPI_THREAD_MULTIPLE;

    CIP_FORTRAN_NEXT(init_thread, INIT_THREAD, (MPI_Fint *, MPI_Fint *, MPI_Fint *), (&required, provided, error));
    if (cip_is_on())
        cip_welcome(MPI_COMM_WORLD);
}

CIP_FORTRAN(init, INIT, (MPI_Fint *error))
{
    MPI_Fint provided;

    if (cip_wants("COLLC_NONBLOCKING")) {
        cip_fortran_init_for_threads(&provided, error);
        return;
    }
    CIP_FORTRAN_NEXT(init, INIT, (MPI_Fint *), (error));
    cip_is_on();
}

CIP_FORTRAN(init_thread, INIT_THREAD, (MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error))
{
    if (cip_wants("COLLC_NONBLOCKING")) {
        cip_fortran_init_for_threads(provided, error);
        return;
    }
    CIP_FORTRAN_NEXT(init_thread, INIT_THREAD, (MPI_Fint *, MPI_Fint *, MPI_Fint *), (required, provided, error));
    cip_is_on();
}

/* A new communicator has its double at once. */
#define CIP_FORTRAN_MAKES(name, NAME, made, parameters, types, arguments) \
    CIP_FORTRAN(name, NAME, (parameters, MPI_Fint *error)) \
    { \
        MPI_Fint code = MPI_SUCCESS, *told = error; \
        error = &code; \
        CIP_FORTRAN_NEXT(name, NAME, (types, MPI_Fint *), arguments); \
        if (told != NULL) \
            *told = code; \
        if (code == MPI_SUCCESS && cip_all.nonblocking) \
            cip_welcome(cip_fortran_Comm(*(made))); \
    }

#define CIP_FORTRAN_P2 MPI_Fint *a, MPI_Fint *b
#define CIP_FORTRAN_W2 MPI_Fint *, MPI_Fint *
CIP_FORTRAN_MAKES(comm_dup, COMM_DUP, b, CIP_FORTRAN_P2, CIP_FORTRAN_W2, (a, b, error))
#define CIP_FORTRAN_P4 CIP_FORTRAN_P2, MPI_Fint *c, MPI_Fint *d
#define CIP_FORTRAN_W4 CIP_FORTRAN_W2, CIP_FORTRAN_W2
CIP_FORTRAN_MAKES(comm_split, COMM_SPLIT, d, CIP_FORTRAN_P4, CIP_FORTRAN_W4, (a, b, c, d, error))
CIP_FORTRAN_MAKES(cart_create, CART_CREATE, f, CIP_FORTRAN_P6, CIP_FORTRAN_W6, (a, b, c, d, e, f, error))

#define CIP_FORTRAN_FREES(name, NAME) \
    CIP_FORTRAN(name, NAME, (MPI_Fint *comm, MPI_Fint *error)) \
    { \
        MPI_Comm freed = cip_fortran_Comm(*comm); \
        cip_await_stages(&freed); \
        cip_depth++; \
        CIP_FORTRAN_NEXT(name, NAME, (MPI_Fint *, MPI_Fint *), (comm, error)); \
        cip_depth--; \
    }

CIP_FORTRAN_FREES(comm_free, COMM_FREE)
CIP_FORTRAN_FREES(comm_disconnect, COMM_DISCONNECT)

CIP_FORTRAN(finalize, FINALIZE, (MPI_Fint *error))
{
    cip_dismiss_worker();
    cip_conclude();
    cip_depth++;
    CIP_FORTRAN_NEXT(finalize, FINALIZE, (MPI_Fint *), (error));
    cip_depth--;
    cip_tell();
}
#else
CIP_EXPORT int cip_MPI_Finalize(void) __asm__("MPI_Finalize");
CIP_EXPORT void mpi_finalize_f08_(MPI_Fint *error);
CIP_EXPORT void mpi_finalize_f08_(MPI_Fint *error)
{
    int code = cip_MPI_Finalize();

    if (error != NULL)
        *error = code;
}
#endif
