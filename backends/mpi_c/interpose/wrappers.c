/* ---- The functions that programs call -------------------------------------------------------------------
 *
 * Their parameters are words, for the program may have been made for an MPI whose types have other sizes:
 * then every call goes on to its MPI as it came.
 */

#pragma GCC visibility pop

#define CIP_WRAPPER(name, parameters) \
    CIP_EXPORT int cip_MPI_##name parameters __asm__("MPI_" #name); \
    CIP_EXPORT int cip_MPI_##name parameters

#define CIP_SERVE(large) \
    do { \
        int error; \
        if (cip_serve(&call, large, &error)) \
            return error; \
    } while (0)

/* An MPI without large counts: a program found ours, and took it for its MPI's. */
#define CIP_PASS_ON(name, types, arguments, large, count, other) \
    do { \
        static int(*next) types; \
        if (next == NULL) \
            next = (int(*) types)cip_behind("PMPI_" #name, large); \
        if (large && !cip_fits("PMPI_" #name, count, other)) \
            return MPI_ERR_COUNT; \
        return next arguments; \
    } while (0)

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
        cip_depth++; \
        error = next(a); \
        cip_depth--; \
        return error; \
    }

#define CIP_BEGINS(name, parameters, types, arguments) \
    CIP_WRAPPER(name, parameters) \
    { \
        static int(*next) types; \
        int error; \
        if (next == NULL) \
            next = (int(*) types)cip_behind("PMPI_" #name, 0); \
        error = next arguments; \
        cip_is_on(); \
        return error; \
    }

CIP_BEGINS(Init, (cip_word a, cip_word b), (cip_word, cip_word), (a, b))
CIP_BEGINS(Init_thread, (cip_word a, cip_word b, cip_word c, cip_word d), (cip_word, cip_word, cip_word, cip_word),
           (a, b, c, d))

CIP_FREES(Comm_free)
CIP_FREES(Comm_disconnect)

CIP_WRAPPER(Finalize, (void))
{
    static int (*next)(void);
    int error;

    if (next == NULL)
        next = (int (*)(void))cip_behind("PMPI_Finalize", 0);
    cip_conclude();
    cip_depth++;
    error = next();
    cip_depth--;
    cip_tell();
    return error;
}
