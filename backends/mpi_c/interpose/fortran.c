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
        if (cip_fortran_serve(&call, error))
            return;
    }
    CIP_FORTRAN_NEXT(reduce_scatter, REDUCE_SCATTER,
                     (void *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *),
                     (a, b, counts, d, e, f, error));
}

/* What the C wrappers do around the beginning, the freeing of communicators, and the end. */
CIP_FORTRAN(init, INIT, (MPI_Fint *error))
{
    CIP_FORTRAN_NEXT(init, INIT, (MPI_Fint *), (error));
    cip_is_on();
}

CIP_FORTRAN(init_thread, INIT_THREAD, (MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error))
{
    CIP_FORTRAN_NEXT(init_thread, INIT_THREAD, (MPI_Fint *, MPI_Fint *, MPI_Fint *), (required, provided, error));
    cip_is_on();
}

#define CIP_FORTRAN_FREES(name, NAME) \
    CIP_FORTRAN(name, NAME, (MPI_Fint *comm, MPI_Fint *error)) \
    { \
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
