/* ---- Functions that begin calls, and those that make communicators ------------------------------------------ */

/* A function that returns a request: the numbers of its parameters, and what of them makes up the call. */
#define CIP_LATER(FUNCTION, KIND, name, large, persistent, request, parameters, types, arguments, count, other, ...) \
    CIP_WRAPPER(name, parameters) \
    { \
        struct cip_call call = {CIP_MPI_##FUNCTION, CIP_##KIND, __VA_ARGS__, 0}; \
        int error; \
        if (cip_serve_later(&call, NULL, large, persistent, (MPI_Request *)(request), &error)) \
            return error; \
        CIP_PASS_ON(name, types, arguments, large, count, other); \
    }

#define CIP_TWO_SIDES(COUNT, root, comm) \
    (void *)a, (void *)d, (COUNT)b, (COUNT)e, (MPI_Datatype)c, (MPI_Datatype)f, MPI_OP_NULL, root, (MPI_Comm)comm
#define CIP_ONE_SIDE(COUNT) \
    NULL, (void *)a, (COUNT)b, (COUNT)b, (MPI_Datatype)c, (MPI_Datatype)c, MPI_OP_NULL, (int)d, (MPI_Comm)e
#define CIP_SUMS(COUNT, root, comm) \
    (void *)a, (void *)b, (COUNT)c, (COUNT)c, (MPI_Datatype)d, (MPI_Datatype)d, (MPI_Op)e, root, (MPI_Comm)comm

CIP_LATER(IALLGATHER, ALLGATHER, Iallgather, 0, 0, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), b, e,
          CIP_TWO_SIDES(int, -1, g))
CIP_LATER(IALLTOALL, ALLTOALL, Ialltoall, 0, 0, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), b, e,
          CIP_TWO_SIDES(int, -1, g))
CIP_LATER(IGATHER, GATHER, Igather, 0, 0, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), b, e,
          CIP_TWO_SIDES(int, (int)g, h))
CIP_LATER(ISCATTER, SCATTER, Iscatter, 0, 0, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), b, e,
          CIP_TWO_SIDES(int, (int)g, h))
CIP_LATER(IBCAST, BROADCAST, Ibcast, 0, 0, f, (CIP_P6), (CIP_W6), (a, b, c, d, e, f), b, 0,
          CIP_ONE_SIDE(int))
CIP_LATER(IALLREDUCE, ALLREDUCE, Iallreduce, 0, 0, g, (CIP_P7), (CIP_W7), (a, b, c, d, e, f, g), c, 0,
          CIP_SUMS(int, -1, f))
CIP_LATER(IREDUCE_SCATTER_BLOCK, REDUCE_SCATTER, Ireduce_scatter_block, 0, 0, g, (CIP_P7), (CIP_W7), (a, b, c, d, e, f, g), c, 0,
          CIP_SUMS(int, -1, f))
CIP_LATER(IREDUCE, REDUCE, Ireduce, 0, 0, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), c, 0,
          CIP_SUMS(int, (int)f, g))

#define CIP_LATER_UNEVEN(FUNCTION, KIND, name, large, persistent, request, comm, op, parameters, types, arguments, ...) \
    CIP_WRAPPER(name, parameters) \
    { \
        struct cip_uneven uneven = {CIP_MPI_##FUNCTION, large, CIP_##KIND, -1, __VA_ARGS__, op, (MPI_Comm)(comm)}; \
        struct cip_call call = {CIP_MPI_##FUNCTION, CIP_##KIND, NULL, NULL, 0, 0, uneven.out.type, uneven.in.type, op, \
                                -1, (MPI_Comm)(comm), 0}; \
        int error; \
        if (cip_serve_later(&call, &uneven, large, persistent, (MPI_Request *)(request), &error)) \
            return error; \
        CIP_PASS_ON(name, types, arguments, 0, 0, 0); \
    }

#define CIP_I_UNEVEN(SUFFIX, large) \
    CIP_LATER_UNEVEN(IALLGATHERV, ALLGATHER, Iallgatherv##SUFFIX, large, 0, i, h, MPI_OP_NULL, (CIP_P9), (CIP_W9), \
                     (a, b, c, d, e, f, g, h, i), CIP_ONE(large, a, b, c), CIP_EACH(large, d, e, f, g)) \
    CIP_LATER_UNEVEN(IREDUCE_SCATTER, REDUCE_SCATTER, Ireduce_scatter##SUFFIX, large, 0, g, f, (MPI_Op)e, (CIP_P7), \
                     (CIP_W7), (a, b, c, d, e, f, g), CIP_EACH(large, a, c, NULL, d), CIP_EACH(large, b, c, NULL, d))

#define CIP_UNEVEN_INIT(SUFFIX, large) \
    CIP_LATER_UNEVEN(ALLGATHERV_INIT, ALLGATHER, Allgatherv_init##SUFFIX, large, 1, j, h, MPI_OP_NULL, (CIP_P10), \
                     (CIP_W10), (a, b, c, d, e, f, g, h, i, j), CIP_ONE(large, a, b, c), CIP_EACH(large, d, e, f, g)) \
    CIP_LATER_UNEVEN(REDUCE_SCATTER_INIT, REDUCE_SCATTER, Reduce_scatter_init##SUFFIX, large, 1, h, f, (MPI_Op)e, \
                     (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), CIP_EACH(large, a, c, NULL, d), \
                     CIP_EACH(large, b, c, NULL, d))

CIP_I_UNEVEN(, 0)

#if CIP_PERSISTENT
CIP_UNEVEN_INIT(, 0)

CIP_LATER(ALLGATHER_INIT, ALLGATHER, Allgather_init, 0, 1, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), b, e,
          CIP_TWO_SIDES(int, -1, g))
CIP_LATER(ALLTOALL_INIT, ALLTOALL, Alltoall_init, 0, 1, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), b, e,
          CIP_TWO_SIDES(int, -1, g))
CIP_LATER(GATHER_INIT, GATHER, Gather_init, 0, 1, j, (CIP_P10), (CIP_W10), (a, b, c, d, e, f, g, h, i, j), b, e,
          CIP_TWO_SIDES(int, (int)g, h))
CIP_LATER(SCATTER_INIT, SCATTER, Scatter_init, 0, 1, j, (CIP_P10), (CIP_W10), (a, b, c, d, e, f, g, h, i, j), b, e,
          CIP_TWO_SIDES(int, (int)g, h))
CIP_LATER(BCAST_INIT, BROADCAST, Bcast_init, 0, 1, g, (CIP_P7), (CIP_W7), (a, b, c, d, e, f, g), b, 0,
          CIP_ONE_SIDE(int))
CIP_LATER(ALLREDUCE_INIT, ALLREDUCE, Allreduce_init, 0, 1, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), c, 0,
          CIP_SUMS(int, -1, f))
CIP_LATER(REDUCE_SCATTER_BLOCK_INIT, REDUCE_SCATTER, Reduce_scatter_block_init, 0, 1, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), c, 0,
          CIP_SUMS(int, -1, f))
CIP_LATER(REDUCE_INIT, REDUCE, Reduce_init, 0, 1, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), c, 0,
          CIP_SUMS(int, (int)f, g))
#endif

#if MPI_VERSION >= 4
CIP_I_UNEVEN(_c, 1)
CIP_UNEVEN_INIT(_c, 1)

CIP_LATER(IALLGATHER, ALLGATHER, Iallgather_c, 1, 0, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), b, e,
          CIP_TWO_SIDES(MPI_Count, -1, g))
CIP_LATER(IALLTOALL, ALLTOALL, Ialltoall_c, 1, 0, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), b, e,
          CIP_TWO_SIDES(MPI_Count, -1, g))
CIP_LATER(IGATHER, GATHER, Igather_c, 1, 0, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), b, e,
          CIP_TWO_SIDES(MPI_Count, (int)g, h))
CIP_LATER(ISCATTER, SCATTER, Iscatter_c, 1, 0, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), b, e,
          CIP_TWO_SIDES(MPI_Count, (int)g, h))
CIP_LATER(IBCAST, BROADCAST, Ibcast_c, 1, 0, f, (CIP_P6), (CIP_W6), (a, b, c, d, e, f), b, 0,
          CIP_ONE_SIDE(MPI_Count))
CIP_LATER(IALLREDUCE, ALLREDUCE, Iallreduce_c, 1, 0, g, (CIP_P7), (CIP_W7), (a, b, c, d, e, f, g), c, 0,
          CIP_SUMS(MPI_Count, -1, f))
CIP_LATER(IREDUCE_SCATTER_BLOCK, REDUCE_SCATTER, Ireduce_scatter_block_c, 1, 0, g, (CIP_P7), (CIP_W7), (a, b, c, d, e, f, g), c, 0,
          CIP_SUMS(MPI_Count, -1, f))
CIP_LATER(IREDUCE, REDUCE, Ireduce_c, 1, 0, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), c, 0,
          CIP_SUMS(MPI_Count, (int)f, g))
CIP_LATER(ALLGATHER_INIT, ALLGATHER, Allgather_init_c, 1, 1, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), b, e,
          CIP_TWO_SIDES(MPI_Count, -1, g))
CIP_LATER(ALLTOALL_INIT, ALLTOALL, Alltoall_init_c, 1, 1, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), b, e,
          CIP_TWO_SIDES(MPI_Count, -1, g))
CIP_LATER(GATHER_INIT, GATHER, Gather_init_c, 1, 1, j, (CIP_P10), (CIP_W10), (a, b, c, d, e, f, g, h, i, j), b, e,
          CIP_TWO_SIDES(MPI_Count, (int)g, h))
CIP_LATER(SCATTER_INIT, SCATTER, Scatter_init_c, 1, 1, j, (CIP_P10), (CIP_W10), (a, b, c, d, e, f, g, h, i, j), b, e,
          CIP_TWO_SIDES(MPI_Count, (int)g, h))
CIP_LATER(BCAST_INIT, BROADCAST, Bcast_init_c, 1, 1, g, (CIP_P7), (CIP_W7), (a, b, c, d, e, f, g), b, 0,
          CIP_ONE_SIDE(MPI_Count))
CIP_LATER(ALLREDUCE_INIT, ALLREDUCE, Allreduce_init_c, 1, 1, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), c, 0,
          CIP_SUMS(MPI_Count, -1, f))
CIP_LATER(REDUCE_SCATTER_BLOCK_INIT, REDUCE_SCATTER, Reduce_scatter_block_init_c, 1, 1, h, (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), c, 0,
          CIP_SUMS(MPI_Count, -1, f))
CIP_LATER(REDUCE_INIT, REDUCE, Reduce_init_c, 1, 1, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), c, 0,
          CIP_SUMS(MPI_Count, (int)f, g))
#endif

#if CIP_PERSISTENT
/* The MPI's request of a persistent call is started first: the thread answers it. The handle is inout, so an MPI may change
 * it.
 */
static int cip_start_one(MPI_Request *request)
{
    static int (*next)(MPI_Request *);
    struct cip_operation *it = cip_persistent(*request);
    int error;

    if (next == NULL)
        next = (int (*)(MPI_Request *))cip_behind("PMPI_Start", 0);
    error = next(request);
    if (it == NULL || error != MPI_SUCCESS)
        return error;
    it->handle = *request;
    return cip_start(it);
}

CIP_WRAPPER(Start, (cip_word a))
{
    return cip_start_one((MPI_Request *)a);
}

CIP_WRAPPER(Startall, (cip_word a, cip_word b))
{
    static int (*next)(cip_word, cip_word);
    MPI_Request *requests = (MPI_Request *)b;
    int error = MPI_SUCCESS, ours = 0, k;

    if (next == NULL)
        next = (int (*)(cip_word, cip_word))cip_behind("PMPI_Startall", 0);
    for (k = 0; k < (int)a && !ours; k++)
        ours = cip_persistent(requests[k]) != NULL;
    if (!ours)
        return next(a, b);
    for (k = 0; k < (int)a && error == MPI_SUCCESS; k++) /* in any order, says MPI */
        error = cip_start_one(&requests[k]);
    return error;
}

CIP_WRAPPER(Request_free, (cip_word a))
{
    static int (*next)(cip_word);
    struct cip_operation *it = cip_persistent(*(MPI_Request *)a);
    int error;

    if (next == NULL)
        next = (int (*)(cip_word))cip_behind("PMPI_Request_free", 0);
    error = next(a);
    if (it != NULL && error == MPI_SUCCESS)
        cip_forget(it);
    return error;
}
#endif

#define CIP_FREES_LATER(name, Handle, NONE, type, op) \
    CIP_WRAPPER(name, (cip_word a)) \
    { \
        static int (*next)(cip_word); \
        Handle *handle = (Handle *)a; \
        if (cip_frees_later(type, op)) { \
            *handle = NONE; \
            return MPI_SUCCESS; \
        } \
        if (next == NULL) \
            next = (int (*)(cip_word))cip_behind("PMPI_" #name, 0); \
        return next(a); \
    }

CIP_FREES_LATER(Type_free, MPI_Datatype, MPI_DATATYPE_NULL, *handle, MPI_OP_NULL)
CIP_FREES_LATER(Op_free, MPI_Op, MPI_OP_NULL, MPI_DATATYPE_NULL, *handle)

/* A new communicator has its double at once. */
#define CIP_MAKES(name, where, parameters, types, arguments) \
    CIP_WRAPPER(name, parameters) \
    { \
        static int(*next) types; \
        int error; \
        if (next == NULL) \
            next = (int(*) types)cip_behind("PMPI_" #name, 0); \
        error = next arguments; \
        if (error == MPI_SUCCESS && cip_all.nonblocking) \
            cip_welcome(*(MPI_Comm *)(where)); \
        return error; \
    }

CIP_MAKES(Comm_dup, b, (cip_word a, cip_word b), (cip_word, cip_word), (a, b))
CIP_MAKES(Comm_dup_with_info, c, (cip_word a, cip_word b, cip_word c), (CIP_W3), (a, b, c))
CIP_MAKES(Comm_create, c, (cip_word a, cip_word b, cip_word c), (CIP_W3), (a, b, c))
CIP_MAKES(Comm_create_group, d, (cip_word a, cip_word b, cip_word c, cip_word d), (CIP_W3, cip_word), (a, b, c, d))
CIP_MAKES(Comm_split, d, (cip_word a, cip_word b, cip_word c, cip_word d), (CIP_W3, cip_word), (a, b, c, d))
CIP_MAKES(Comm_split_type, e, (cip_word a, cip_word b, cip_word c, cip_word d, cip_word e),
          (CIP_W3, cip_word, cip_word), (a, b, c, d, e))
CIP_MAKES(Cart_create, f, (CIP_P6), (CIP_W6), (a, b, c, d, e, f))
CIP_MAKES(Cart_sub, c, (cip_word a, cip_word b, cip_word c), (CIP_W3), (a, b, c))
CIP_MAKES(Graph_create, f, (CIP_P6), (CIP_W6), (a, b, c, d, e, f))
CIP_MAKES(Dist_graph_create, i, (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i))
CIP_MAKES(Dist_graph_create_adjacent, j, (CIP_P10), (CIP_W10), (a, b, c, d, e, f, g, h, i, j))
CIP_MAKES(Intercomm_merge, c, (cip_word a, cip_word b, cip_word c), (CIP_W3), (a, b, c))
