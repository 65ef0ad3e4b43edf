/* ---- The functions that programs call -------------------------------------------------------------------
 *
 * Their parameters are words, for the program may have been made for an MPI whose types have other sizes:
 * then every call goes on to its MPI as it came.
 */

#pragma GCC visibility pop

#define CIP_P6 cip_word a, cip_word b, cip_word c, cip_word d, cip_word e, cip_word f
#define CIP_P7 CIP_P6, cip_word g
#define CIP_P8 CIP_P7, cip_word h
#define CIP_P9 CIP_P8, cip_word i
#define CIP_P10 CIP_P9, cip_word j
#define CIP_P11 CIP_P10, cip_word k
#define CIP_W3 cip_word, cip_word, cip_word
#define CIP_W6 CIP_W3, CIP_W3
#define CIP_W7 CIP_W6, cip_word
#define CIP_W8 CIP_W7, cip_word
#define CIP_W9 CIP_W6, CIP_W3
#define CIP_W10 CIP_W9, cip_word
#define CIP_W11 CIP_W10, cip_word

#define CIP_WRAPPER_OF(prefix, name, parameters) \
    CIP_EXPORT int cip_MPI_##name parameters __asm__(prefix #name); \
    CIP_EXPORT int cip_MPI_##name parameters
#define CIP_WRAPPER(name, parameters) CIP_WRAPPER_OF("MPI_", name, parameters)

#define CIP_SERVE(large) \
    do { \
        int error; \
        if (cip_serve(&call, large, &error)) \
            return error; \
    } while (0)

/* An MPI without large counts: a program found ours, and took it for its MPI's. */
#define CIP_PASS_ON_TO(own, types, arguments, large, count, other) \
    do { \
        static int(*next) types; \
        if (next == NULL) \
            next = (int(*) types)cip_behind(own, large); \
        if (large && !cip_fits(own, count, other)) \
            return MPI_ERR_COUNT; \
        return next arguments; \
    } while (0)
#define CIP_PASS_ON(name, types, arguments, large, count, other) \
    CIP_PASS_ON_TO("PMPI_" #name, types, arguments, large, count, other)

#define CIP_BLOCKS(NAME, name, COUNT, large) \
    CIP_WRAPPER(name, (cip_word a, cip_word b, cip_word c, cip_word d, cip_word e, cip_word f, cip_word g)) \
    { \
        struct cip_call call = {CIP_MPI_##NAME, CIP_##NAME, (void *)a, (void *)d, (COUNT)b, (COUNT)e, \
                                (MPI_Datatype)c, (MPI_Datatype)f, MPI_OP_NULL, -1, (MPI_Comm)g, 0}; \
        CIP_SERVE(large); \
        CIP_PASS_ON(name, (cip_word, cip_word, cip_word, cip_word, cip_word, cip_word, cip_word), \
                    (a, b, c, d, e, f, g), large, b, e); \
    }

#define CIP_ROOTED(NAME, name, COUNT, large) \
    CIP_WRAPPER(name, (cip_word a, cip_word b, cip_word c, cip_word d, cip_word e, cip_word f, cip_word g, \
                       cip_word h)) \
    { \
        struct cip_call call = {CIP_MPI_##NAME, CIP_##NAME, (void *)a, (void *)d, (COUNT)b, (COUNT)e, \
                                (MPI_Datatype)c, (MPI_Datatype)f, MPI_OP_NULL, (int)g, (MPI_Comm)h, 0}; \
        CIP_SERVE(large); \
        CIP_PASS_ON(name, (cip_word, cip_word, cip_word, cip_word, cip_word, cip_word, cip_word, cip_word), \
                    (a, b, c, d, e, f, g, h), large, b, e); \
    }

#define CIP_BCAST(name, COUNT, large) \
    CIP_WRAPPER(name, (cip_word a, cip_word b, cip_word c, cip_word d, cip_word e)) \
    { \
        struct cip_call call = {CIP_MPI_BCAST, CIP_BROADCAST, NULL, (void *)a, (COUNT)b, (COUNT)b, \
                                (MPI_Datatype)c, (MPI_Datatype)c, MPI_OP_NULL, (int)d, (MPI_Comm)e, 0}; \
        CIP_SERVE(large); \
        CIP_PASS_ON(name, (cip_word, cip_word, cip_word, cip_word, cip_word), (a, b, c, d, e), large, b, 0); \
    }

#define CIP_COMBINES(FUNCTION, NAME, name, COUNT, large) \
    CIP_WRAPPER(name, (cip_word a, cip_word b, cip_word c, cip_word d, cip_word e, cip_word f)) \
    { \
        struct cip_call call = {FUNCTION, CIP_##NAME, (void *)a, (void *)b, (COUNT)c, (COUNT)c, \
                                (MPI_Datatype)d, (MPI_Datatype)d, (MPI_Op)e, -1, (MPI_Comm)f, 0}; \
        CIP_SERVE(large); \
        CIP_PASS_ON(name, (cip_word, cip_word, cip_word, cip_word, cip_word, cip_word), (a, b, c, d, e, f), \
                    large, c, 0); \
    }

#define CIP_REDUCES(name, COUNT, large) \
    CIP_WRAPPER(name, (cip_word a, cip_word b, cip_word c, cip_word d, cip_word e, cip_word f, cip_word g)) \
    { \
        struct cip_call call = {CIP_MPI_REDUCE, CIP_REDUCE, (void *)a, (void *)b, (COUNT)c, (COUNT)c, \
                                (MPI_Datatype)d, (MPI_Datatype)d, (MPI_Op)e, (int)f, (MPI_Comm)g, 0}; \
        CIP_SERVE(large); \
        CIP_PASS_ON(name, (cip_word, cip_word, cip_word, cip_word, cip_word, cip_word, cip_word), \
                    (a, b, c, d, e, f, g), large, c, 0); \
    }

#define CIP_SHORTEN_0(name)
#define CIP_SHORTEN_1(name) \
    if (cip_find("PMPI_" #name) == NULL) \
        return cip_shorten(a, b, counts, d, e, f);

/* With the same count for every rank it is MPI_Reduce_scatter_block. */
#define CIP_SCATTERS(name, COUNT, large) \
    CIP_WRAPPER(name, (cip_word a, cip_word b, cip_word c, cip_word d, cip_word e, cip_word f)) \
    { \
        const COUNT *counts = (const COUNT *)c; \
        struct cip_call call = {CIP_MPI_REDUCE_SCATTER, CIP_REDUCE_SCATTER, (void *)a, (void *)b, 0, 0, \
                                (MPI_Datatype)d, (MPI_Datatype)d, (MPI_Op)e, -1, (MPI_Comm)f, 0}; \
        int ranks = cip_is_on() ? cip_ranks(call.comm) : 0, k; \
\
        if (ranks > 0 && counts != NULL) { \
            call.send_count = call.recv_count = counts[0]; \
            for (k = 1; k < ranks; k++) \
                call.unequal |= counts[k] != counts[0]; \
        } \
        if (call.unequal) { \
            struct cip_uneven uneven = {CIP_MPI_REDUCE_SCATTER, large, CIP_REDUCE_SCATTER, -1, \
                                        CIP_EACH(large, a, c, NULL, d), CIP_EACH(large, b, c, NULL, d), (MPI_Op)e, \
                                        (MPI_Comm)f}; \
            int error; \
            if (cip_serve_uneven(&uneven, &error)) \
                return error; \
        } else \
            CIP_SERVE(large); \
        CIP_SHORTEN_##large(name) \
        CIP_PASS_ON(name, (cip_word, cip_word, cip_word, cip_word, cip_word, cip_word), (a, b, c, d, e, f), 0, 0, \
                    0); \
    }

/* Whether counts can be passed to the function behind `name`. */
static inline int cip_fits(const char *name, cip_word count, cip_word other)
{
    return (count <= INT_MAX && other <= INT_MAX) || cip_find(name) != NULL;
}

static int cip_ranks(MPI_Comm comm)
{
    int ranks = 0, inter = 0;

    if (comm == MPI_COMM_NULL || MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        return 0;
    return MPI_Comm_size(comm, &ranks) == MPI_SUCCESS ? ranks : 0;
}

#define CIP_UNEVEN(name, FUNCTION, large, KIND, root, comm, parameters, types, arguments, ...) \
    CIP_WRAPPER(name, parameters) \
    { \
        struct cip_uneven call = {CIP_MPI_##FUNCTION, large, CIP_##KIND, root, __VA_ARGS__, MPI_OP_NULL, \
                                  (MPI_Comm)(comm)}; \
        int error; \
        if (cip_serve_uneven(&call, &error)) \
            return error; \
        CIP_PASS_ON(name, types, arguments, 0, 0, 0); \
    }

#define CIP_ALL_UNEVEN(SUFFIX, large) \
    CIP_UNEVEN(Allgatherv##SUFFIX, ALLGATHERV, large, ALLGATHER, -1, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), \
               CIP_ONE(large, a, b, c), CIP_EACH(large, d, e, f, g)) \
    CIP_UNEVEN(Alltoallv##SUFFIX, ALLTOALLV, large, ALLTOALL, -1, i, (CIP_P9), (CIP_W9), \
               (a, b, c, d, e, f, g, h, i), CIP_EACH(large, a, b, c, d), CIP_EACH(large, e, f, g, h)) \
    CIP_UNEVEN(Alltoallw##SUFFIX, ALLTOALLW, large, ALLTOALL, -1, i, (CIP_P9), (CIP_W9), \
               (a, b, c, d, e, f, g, h, i), CIP_EACH_TYPE(large, 0, a, b, c, d), \
               CIP_EACH_TYPE(large, 0, e, f, g, h)) \
    CIP_UNEVEN(Gatherv##SUFFIX, GATHERV, large, GATHER, (int)h, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), \
               CIP_ONE(large, a, b, c), CIP_EACH(large, d, e, f, g)) \
    CIP_UNEVEN(Scatterv##SUFFIX, SCATTERV, large, SCATTER, (int)h, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), \
               CIP_EACH(large, a, b, c, d), CIP_ONE(large, e, f, g))

#define CIP_NEIGHBORS(name, FUNCTION, large, root, comm, parameters, types, arguments, ...) \
    CIP_WRAPPER(name, parameters) \
    { \
        struct cip_uneven call = {CIP_MPI_##FUNCTION, large, CIP_NEIGHBOURS, root, __VA_ARGS__, MPI_OP_NULL, \
                                  (MPI_Comm)(comm)}; \
        int error; \
        if (cip_serve_neighbours(&call, &error)) \
            return error; \
        CIP_PASS_ON(name, types, arguments, 0, 0, 0); \
    }

#define CIP_ALL_NEIGHBORS(SUFFIX, large) \
    CIP_NEIGHBORS(Neighbor_allgather##SUFFIX, NEIGHBOR_ALLGATHER, large, CIP_TO_ALL, g, (CIP_P7), (CIP_W7), \
                  (a, b, c, d, e, f, g), CIP_ONE(large, a, b, c), CIP_ONE(large, d, e, f)) \
    CIP_NEIGHBORS(Neighbor_allgatherv##SUFFIX, NEIGHBOR_ALLGATHERV, large, CIP_TO_ALL, h, (CIP_P8), (CIP_W8), \
                  (a, b, c, d, e, f, g, h), CIP_ONE(large, a, b, c), CIP_EACH(large, d, e, f, g)) \
    CIP_NEIGHBORS(Neighbor_alltoall##SUFFIX, NEIGHBOR_ALLTOALL, large, -1, g, (CIP_P7), (CIP_W7), \
                  (a, b, c, d, e, f, g), CIP_ONE(large, a, b, c), CIP_ONE(large, d, e, f)) \
    CIP_NEIGHBORS(Neighbor_alltoallv##SUFFIX, NEIGHBOR_ALLTOALLV, large, -1, i, (CIP_P9), (CIP_W9), \
                  (a, b, c, d, e, f, g, h, i), CIP_EACH(large, a, b, c, d), CIP_EACH(large, e, f, g, h)) \
    CIP_NEIGHBORS(Neighbor_alltoallw##SUFFIX, NEIGHBOR_ALLTOALLW, large, -1, i, (CIP_P9), (CIP_W9), \
                  (a, b, c, d, e, f, g, h, i), CIP_EACH_TYPE(large, 1, a, b, c, d), \
                  CIP_EACH_TYPE(large, 1, e, f, g, h))

CIP_ALL_NEIGHBORS(, 0)
#if MPI_VERSION >= 4
CIP_ALL_NEIGHBORS(_c, 1)
#endif

CIP_ALL_UNEVEN(, 0)
#if MPI_VERSION >= 4
CIP_ALL_UNEVEN(_c, 1)
#endif

CIP_BLOCKS(ALLGATHER, Allgather, int, 0)
CIP_BLOCKS(ALLTOALL, Alltoall, int, 0)
CIP_ROOTED(GATHER, Gather, int, 0)
CIP_ROOTED(SCATTER, Scatter, int, 0)
CIP_BCAST(Bcast, int, 0)
CIP_COMBINES(CIP_MPI_ALLREDUCE, ALLREDUCE, Allreduce, int, 0)
CIP_COMBINES(CIP_MPI_REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, Reduce_scatter_block, int, 0)
CIP_REDUCES(Reduce, int, 0)
CIP_SCATTERS(Reduce_scatter, int, 0)

#if MPI_VERSION >= 4
/* Ranks whose counts need no memory of their own. */
enum { CIP_FEW = 4096 };

/* Whether a rank lacks something; collective. */
static int cip_lacks(cip_word comm, int lacks)
{
    int (*gather)(void *, void *, cip_word, cip_word, cip_word, cip_word) =
        (int (*)(void *, void *, cip_word, cip_word, cip_word, cip_word))cip_behind("PMPI_Allreduce", 0);
    int any = 0;

    return gather(&lacks, &any, 1, (cip_word)MPI_INT, (cip_word)MPI_MAX, comm) != MPI_SUCCESS || any;
}

/* MPI_Reduce_scatter_c under an MPI without large counts. */
static int cip_shorten(cip_word send, cip_word recv, const MPI_Count *counts, cip_word type, cip_word op,
                       cip_word comm)
{
    int (*next)(cip_word, cip_word, int *, cip_word, cip_word, cip_word) =
        (int (*)(cip_word, cip_word, int *, cip_word, cip_word, cip_word))cip_behind("PMPI_Reduce_scatter", 0);
    int (*size)(cip_word, int *) = (int (*)(cip_word, int *))cip_behind("PMPI_Comm_size", 0);
    int ranks = 0, error = size(comm, &ranks), few[CIP_FEW], k, *shorter = few;

    if (error != MPI_SUCCESS)
        return error;
    if (ranks > CIP_FEW)
        shorter = calloc((size_t)ranks, sizeof *shorter);
    if (ranks > CIP_FEW && cip_lacks(comm, shorter == NULL)) {
        free(shorter);
        return MPI_ERR_NO_MEM;
    }
    for (k = 0; k < ranks && error == MPI_SUCCESS; k++) {
        shorter[k] = (int)counts[k];
        if (counts[k] > INT_MAX)
            error = MPI_ERR_COUNT;
    }
    if (error == MPI_SUCCESS)
        error = next(send, recv, shorter, type, op, comm);
    if (shorter != few)
        free(shorter);
    return error;
}
#endif

/* Programs ask whether an MPI has these: they are there where the MPI has them. */
#if MPI_VERSION >= 4
CIP_BLOCKS(ALLGATHER, Allgather_c, MPI_Count, 1)
CIP_BLOCKS(ALLTOALL, Alltoall_c, MPI_Count, 1)
CIP_ROOTED(GATHER, Gather_c, MPI_Count, 1)
CIP_ROOTED(SCATTER, Scatter_c, MPI_Count, 1)
CIP_BCAST(Bcast_c, MPI_Count, 1)
CIP_COMBINES(CIP_MPI_ALLREDUCE, ALLREDUCE, Allreduce_c, MPI_Count, 1)
CIP_COMBINES(CIP_MPI_REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, Reduce_scatter_block_c, MPI_Count, 1)
CIP_REDUCES(Reduce_c, MPI_Count, 1)
CIP_SCATTERS(Reduce_scatter_c, MPI_Count, 1)
#endif

/* What hangs on a communicator is let go: functions of the program's that are called meanwhile, and
 * communicate on it, must not make us hang something on it again. */
#define CIP_FREES(name) \
    CIP_WRAPPER(name, (cip_word a)) \
    { \
        static int (*next)(cip_word); \
        int error; \
        if (next == NULL) \
            next = (int (*)(cip_word))cip_behind("PMPI_" #name, 0); \
        cip_await_stages((const MPI_Comm *)a); \
        cip_depth++; \
        error = next(a); \
        cip_depth--; \
        return error; \
    }

/* Nonblocking calls are carried on by a thread of their own, beside those of the program. */
static int cip_init_for_threads(cip_word a, cip_word b, cip_word provided)
{
    int (*next)(cip_word, cip_word, cip_word, cip_word) =
        (int (*)(cip_word, cip_word, cip_word, cip_word))cip_behind("PMPI_Init_thread", 0);
    int error = next(a, b, MPI_THREAD_MULTIPLE, provided);

    if (error == MPI_SUCCESS && cip_is_on())
        cip_welcome(MPI_COMM_WORLD);
    return error;
}

CIP_WRAPPER(Init, (cip_word a, cip_word b))
{
    static int (*next)(cip_word, cip_word);
    int error, provided;

    if (cip_wants("COLLC_NONBLOCKING"))
        return cip_init_for_threads(a, b, (cip_word)&provided);
    if (next == NULL)
        next = (int (*)(cip_word, cip_word))cip_behind("PMPI_Init", 0);
    error = next(a, b);
    cip_is_on();
    return error;
}

CIP_WRAPPER(Init_thread, (cip_word a, cip_word b, cip_word c, cip_word d))
{
    static int (*next)(cip_word, cip_word, cip_word, cip_word);
    int error;

    if (cip_wants("COLLC_NONBLOCKING"))
        return cip_init_for_threads(a, b, d);
    if (next == NULL)
        next = (int (*)(cip_word, cip_word, cip_word, cip_word))cip_behind("PMPI_Init_thread", 0);
    error = next(a, b, c, d);
    cip_is_on();
    return error;
}

CIP_FREES(Comm_free)
CIP_FREES(Comm_disconnect)

CIP_WRAPPER(Finalize, (void))
{
    static int (*next)(void);
    int error;

    if (next == NULL)
        next = (int (*)(void))cip_behind("PMPI_Finalize", 0);
    cip_dismiss_worker();
    cip_conclude();
    cip_depth++;
    error = next();
    cip_depth--;
    cip_tell();
    return error;
}
