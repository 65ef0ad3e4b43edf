/* ---- Functions that begin calls, and those that make communicators ------------------------------------------ */

/* What the names of functions that begin calls, and of those that make persistent ones, begin with. */
#define CIP_PREFIX_0 "MPI_"
#define CIP_PREFIX_1 CIP_INIT

/* A function that returns a request: the numbers of its parameters, and what of them makes up the call. */
#define CIP_LATER(FUNCTION, KIND, name, large, persistent, request, parameters, types, arguments, count, other, ...) \
    CIP_WRAPPER_OF(CIP_PREFIX_##persistent, name, parameters) \
    { \
        struct cip_call call = {CIP_MPI_##FUNCTION, CIP_##KIND, __VA_ARGS__, 0}; \
        int error; \
        if (cip_serve_later(&call, NULL, large, persistent, (MPI_Request *)(request), &error)) \
            return error; \
        CIP_PASS_ON_TO("P" CIP_PREFIX_##persistent #name, types, arguments, large, count, other); \
    }

#define CIP_TWO_SIDES(COUNT, root, comm) \
    (void *)a, (void *)d, (COUNT)b, (COUNT)e, (MPI_Datatype)c, (MPI_Datatype)f, MPI_OP_NULL, root, (MPI_Comm)comm
#define CIP_ONE_SIDE(COUNT) \
    NULL, (void *)a, (COUNT)b, (COUNT)b, (MPI_Datatype)c, (MPI_Datatype)c, MPI_OP_NULL, (int)d, (MPI_Comm)e
#define CIP_SUMS(COUNT, root, comm) \
    (void *)a, (void *)b, (COUNT)c, (COUNT)c, (MPI_Datatype)d, (MPI_Datatype)d, (MPI_Op)e, root, (MPI_Comm)comm

#define CIP_LATER_UNEVEN(FUNCTION, KIND, name, large, persistent, request, comm, op, root, parameters, types, arguments, \
                         ...) \
    CIP_WRAPPER_OF(CIP_PREFIX_##persistent, name, parameters) \
    { \
        struct cip_uneven uneven = {CIP_MPI_##FUNCTION, large, CIP_##KIND, root, __VA_ARGS__, op, (MPI_Comm)(comm)}; \
        struct cip_call call = cip_frame(&uneven); \
        int error; \
        if (cip_serve_later(&call, &uneven, large, persistent, (MPI_Request *)(request), &error)) \
            return error; \
        CIP_PASS_ON_TO("P" CIP_PREFIX_##persistent #name, types, arguments, 0, 0, 0); \
    }

#define CIP_ALL_BEGUN(SUFFIX, COUNT, large) \
    CIP_LATER(IALLGATHER, ALLGATHER, Iallgather##SUFFIX, large, 0, h, (CIP_P8), (CIP_W8), \
              (a, b, c, d, e, f, g, h), b, e, CIP_TWO_SIDES(COUNT, -1, g)) \
    CIP_LATER(IALLTOALL, ALLTOALL, Ialltoall##SUFFIX, large, 0, h, (CIP_P8), (CIP_W8), \
              (a, b, c, d, e, f, g, h), b, e, CIP_TWO_SIDES(COUNT, -1, g)) \
    CIP_LATER(IGATHER, GATHER, Igather##SUFFIX, large, 0, i, (CIP_P9), (CIP_W9), \
              (a, b, c, d, e, f, g, h, i), b, e, CIP_TWO_SIDES(COUNT, (int)g, h)) \
    CIP_LATER(ISCATTER, SCATTER, Iscatter##SUFFIX, large, 0, i, (CIP_P9), (CIP_W9), \
              (a, b, c, d, e, f, g, h, i), b, e, CIP_TWO_SIDES(COUNT, (int)g, h)) \
    CIP_LATER(IBCAST, BROADCAST, Ibcast##SUFFIX, large, 0, f, (CIP_P6), (CIP_W6), \
              (a, b, c, d, e, f), b, 0, CIP_ONE_SIDE(COUNT)) \
    CIP_LATER(IALLREDUCE, ALLREDUCE, Iallreduce##SUFFIX, large, 0, g, (CIP_P7), (CIP_W7), \
              (a, b, c, d, e, f, g), c, 0, CIP_SUMS(COUNT, -1, f)) \
    CIP_LATER(IREDUCE_SCATTER_BLOCK, REDUCE_SCATTER, Ireduce_scatter_block##SUFFIX, large, 0, g, (CIP_P7), (CIP_W7), \
              (a, b, c, d, e, f, g), c, 0, CIP_SUMS(COUNT, -1, f)) \
    CIP_LATER(IREDUCE, REDUCE, Ireduce##SUFFIX, large, 0, h, (CIP_P8), (CIP_W8), \
              (a, b, c, d, e, f, g, h), c, 0, CIP_SUMS(COUNT, (int)f, g)) \
    CIP_LATER_UNEVEN(IALLGATHERV, ALLGATHER, Iallgatherv##SUFFIX, large, 0, i, h, MPI_OP_NULL, -1, (CIP_P9), (CIP_W9), \
                     (a, b, c, d, e, f, g, h, i), CIP_ONE(large, a, b, c), \
                     CIP_EACH(large, d, e, f, g)) \
    CIP_LATER_UNEVEN(IALLTOALLV, ALLTOALL, Ialltoallv##SUFFIX, large, 0, j, i, MPI_OP_NULL, -1, (CIP_P10), (CIP_W10), \
                     (a, b, c, d, e, f, g, h, i, j), CIP_EACH(large, a, b, c, d), \
                     CIP_EACH(large, e, f, g, h)) \
    CIP_LATER_UNEVEN(IALLTOALLW, ALLTOALL, Ialltoallw##SUFFIX, large, 0, j, i, MPI_OP_NULL, -1, (CIP_P10), (CIP_W10), \
                     (a, b, c, d, e, f, g, h, i, j), CIP_EACH_TYPE(large, 0, a, b, c, d), \
                     CIP_EACH_TYPE(large, 0, e, f, g, h)) \
    CIP_LATER_UNEVEN(IGATHERV, GATHER, Igatherv##SUFFIX, large, 0, j, i, MPI_OP_NULL, (int)h, (CIP_P10), (CIP_W10), \
                     (a, b, c, d, e, f, g, h, i, j), CIP_ONE(large, a, b, c), \
                     CIP_EACH(large, d, e, f, g)) \
    CIP_LATER_UNEVEN(ISCATTERV, SCATTER, Iscatterv##SUFFIX, large, 0, j, i, MPI_OP_NULL, (int)h, (CIP_P10), (CIP_W10), \
                     (a, b, c, d, e, f, g, h, i, j), CIP_EACH(large, a, b, c, d), \
                     CIP_ONE(large, e, f, g)) \
    CIP_LATER_UNEVEN(IREDUCE_SCATTER, REDUCE_SCATTER, Ireduce_scatter##SUFFIX, large, 0, g, f, (MPI_Op)e, -1, (CIP_P7), (CIP_W7), \
                     (a, b, c, d, e, f, g), CIP_EACH(large, a, c, NULL, d), \
                     CIP_EACH(large, b, c, NULL, d)) \
    CIP_LATER_UNEVEN(INEIGHBOR_ALLGATHER, NEIGHBOURS, Ineighbor_allgather##SUFFIX, large, 0, h, g, MPI_OP_NULL, CIP_TO_ALL, \
                     (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), CIP_ONE(large, a, b, c), \
                     CIP_ONE(large, d, e, f)) \
    CIP_LATER_UNEVEN(INEIGHBOR_ALLGATHERV, NEIGHBOURS, Ineighbor_allgatherv##SUFFIX, large, 0, i, h, MPI_OP_NULL, CIP_TO_ALL, \
                     (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), CIP_ONE(large, a, b, c), \
                     CIP_EACH(large, d, e, f, g)) \
    CIP_LATER_UNEVEN(INEIGHBOR_ALLTOALL, NEIGHBOURS, Ineighbor_alltoall##SUFFIX, large, 0, h, g, MPI_OP_NULL, -1, \
                     (CIP_P8), (CIP_W8), (a, b, c, d, e, f, g, h), CIP_ONE(large, a, b, c), \
                     CIP_ONE(large, d, e, f)) \
    CIP_LATER_UNEVEN(INEIGHBOR_ALLTOALLV, NEIGHBOURS, Ineighbor_alltoallv##SUFFIX, large, 0, j, i, MPI_OP_NULL, -1, \
                     (CIP_P10), (CIP_W10), (a, b, c, d, e, f, g, h, i, j), CIP_EACH(large, a, b, c, d), \
                     CIP_EACH(large, e, f, g, h)) \
    CIP_LATER_UNEVEN(INEIGHBOR_ALLTOALLW, NEIGHBOURS, Ineighbor_alltoallw##SUFFIX, large, 0, j, i, MPI_OP_NULL, -1, \
                     (CIP_P10), (CIP_W10), (a, b, c, d, e, f, g, h, i, j), CIP_EACH_TYPE(large, 1, a, b, c, d), \
                     CIP_EACH_TYPE(large, 1, e, f, g, h))

#define CIP_ALL_INIT(SUFFIX, COUNT, large) \
    CIP_LATER(ALLGATHER_INIT, ALLGATHER, Allgather_init##SUFFIX, large, 1, i, (CIP_P9), (CIP_W9), \
              (a, b, c, d, e, f, g, h, i), b, e, CIP_TWO_SIDES(COUNT, -1, g)) \
    CIP_LATER(ALLTOALL_INIT, ALLTOALL, Alltoall_init##SUFFIX, large, 1, i, (CIP_P9), (CIP_W9), \
              (a, b, c, d, e, f, g, h, i), b, e, CIP_TWO_SIDES(COUNT, -1, g)) \
    CIP_LATER(GATHER_INIT, GATHER, Gather_init##SUFFIX, large, 1, j, (CIP_P10), (CIP_W10), \
              (a, b, c, d, e, f, g, h, i, j), b, e, CIP_TWO_SIDES(COUNT, (int)g, h)) \
    CIP_LATER(SCATTER_INIT, SCATTER, Scatter_init##SUFFIX, large, 1, j, (CIP_P10), (CIP_W10), \
              (a, b, c, d, e, f, g, h, i, j), b, e, CIP_TWO_SIDES(COUNT, (int)g, h)) \
    CIP_LATER(BCAST_INIT, BROADCAST, Bcast_init##SUFFIX, large, 1, g, (CIP_P7), (CIP_W7), \
              (a, b, c, d, e, f, g), b, 0, CIP_ONE_SIDE(COUNT)) \
    CIP_LATER(ALLREDUCE_INIT, ALLREDUCE, Allreduce_init##SUFFIX, large, 1, h, (CIP_P8), (CIP_W8), \
              (a, b, c, d, e, f, g, h), c, 0, CIP_SUMS(COUNT, -1, f)) \
    CIP_LATER(REDUCE_SCATTER_BLOCK_INIT, REDUCE_SCATTER, Reduce_scatter_block_init##SUFFIX, large, 1, h, (CIP_P8), (CIP_W8), \
              (a, b, c, d, e, f, g, h), c, 0, CIP_SUMS(COUNT, -1, f)) \
    CIP_LATER(REDUCE_INIT, REDUCE, Reduce_init##SUFFIX, large, 1, i, (CIP_P9), (CIP_W9), \
              (a, b, c, d, e, f, g, h, i), c, 0, CIP_SUMS(COUNT, (int)f, g)) \
    CIP_LATER_UNEVEN(ALLGATHERV_INIT, ALLGATHER, Allgatherv_init##SUFFIX, large, 1, j, h, MPI_OP_NULL, -1, (CIP_P10), (CIP_W10), \
                     (a, b, c, d, e, f, g, h, i, j), CIP_ONE(large, a, b, c), \
                     CIP_EACH(large, d, e, f, g)) \
    CIP_LATER_UNEVEN(ALLTOALLV_INIT, ALLTOALL, Alltoallv_init##SUFFIX, large, 1, k, i, MPI_OP_NULL, -1, (CIP_P11), (CIP_W11), \
                     (a, b, c, d, e, f, g, h, i, j, k), CIP_EACH(large, a, b, c, d), \
                     CIP_EACH(large, e, f, g, h)) \
    CIP_LATER_UNEVEN(ALLTOALLW_INIT, ALLTOALL, Alltoallw_init##SUFFIX, large, 1, k, i, MPI_OP_NULL, -1, (CIP_P11), (CIP_W11), \
                     (a, b, c, d, e, f, g, h, i, j, k), CIP_EACH_TYPE(large, 0, a, b, c, d), \
                     CIP_EACH_TYPE(large, 0, e, f, g, h)) \
    CIP_LATER_UNEVEN(GATHERV_INIT, GATHER, Gatherv_init##SUFFIX, large, 1, k, i, MPI_OP_NULL, (int)h, (CIP_P11), (CIP_W11), \
                     (a, b, c, d, e, f, g, h, i, j, k), CIP_ONE(large, a, b, c), \
                     CIP_EACH(large, d, e, f, g)) \
    CIP_LATER_UNEVEN(SCATTERV_INIT, SCATTER, Scatterv_init##SUFFIX, large, 1, k, i, MPI_OP_NULL, (int)h, (CIP_P11), (CIP_W11), \
                     (a, b, c, d, e, f, g, h, i, j, k), CIP_EACH(large, a, b, c, d), \
                     CIP_ONE(large, e, f, g)) \
    CIP_LATER_UNEVEN(REDUCE_SCATTER_INIT, REDUCE_SCATTER, Reduce_scatter_init##SUFFIX, large, 1, h, f, (MPI_Op)e, -1, (CIP_P8), (CIP_W8), \
                     (a, b, c, d, e, f, g, h), CIP_EACH(large, a, c, NULL, d), \
                     CIP_EACH(large, b, c, NULL, d)) \
    CIP_LATER_UNEVEN(NEIGHBOR_ALLGATHER_INIT, NEIGHBOURS, Neighbor_allgather_init##SUFFIX, large, 1, i, g, MPI_OP_NULL, CIP_TO_ALL, \
                     (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), CIP_ONE(large, a, b, c), \
                     CIP_ONE(large, d, e, f)) \
    CIP_LATER_UNEVEN(NEIGHBOR_ALLGATHERV_INIT, NEIGHBOURS, Neighbor_allgatherv_init##SUFFIX, large, 1, j, h, MPI_OP_NULL, CIP_TO_ALL, \
                     (CIP_P10), (CIP_W10), (a, b, c, d, e, f, g, h, i, j), CIP_ONE(large, a, b, c), \
                     CIP_EACH(large, d, e, f, g)) \
    CIP_LATER_UNEVEN(NEIGHBOR_ALLTOALL_INIT, NEIGHBOURS, Neighbor_alltoall_init##SUFFIX, large, 1, i, g, MPI_OP_NULL, -1, \
                     (CIP_P9), (CIP_W9), (a, b, c, d, e, f, g, h, i), CIP_ONE(large, a, b, c), \
                     CIP_ONE(large, d, e, f)) \
    CIP_LATER_UNEVEN(NEIGHBOR_ALLTOALLV_INIT, NEIGHBOURS, Neighbor_alltoallv_init##SUFFIX, large, 1, k, i, MPI_OP_NULL, -1, \
                     (CIP_P11), (CIP_W11), (a, b, c, d, e, f, g, h, i, j, k), CIP_EACH(large, a, b, c, d), \
                     CIP_EACH(large, e, f, g, h)) \
    CIP_LATER_UNEVEN(NEIGHBOR_ALLTOALLW_INIT, NEIGHBOURS, Neighbor_alltoallw_init##SUFFIX, large, 1, k, i, MPI_OP_NULL, -1, \
                     (CIP_P11), (CIP_W11), (a, b, c, d, e, f, g, h, i, j, k), CIP_EACH_TYPE(large, 1, a, b, c, d), \
                     CIP_EACH_TYPE(large, 1, e, f, g, h))

CIP_ALL_BEGUN(, int, 0)
#if CIP_PERSISTENT
CIP_ALL_INIT(, int, 0)
#endif
#if MPI_VERSION >= 4
CIP_ALL_BEGUN(_c, MPI_Count, 1)
CIP_ALL_INIT(_c, MPI_Count, 1)
#endif

#if CIP_PERSISTENT
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

/* MPI forbids programs to cancel collectives. A cancelled request would leave the thread's message to a later call. */
CIP_WRAPPER(Cancel, (cip_word a))
{
    static int (*next)(cip_word);

    if (cip_is_under_way((const MPI_Request *)a))
        return MPI_SUCCESS;
    if (next == NULL)
        next = (int (*)(cip_word))cip_behind("PMPI_Cancel", 0);
    return next(a);
}

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
