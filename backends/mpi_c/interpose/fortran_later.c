/* ---- Nonblocking and persistent calls of programs in Fortran on Open MPI ---------------------------------------------- */

#ifdef OPEN_MPI

/* Begins a nonblocking call, or makes a persistent one, if it is one for us. */
static int cip_fortran_begin(struct cip_call *call, struct cip_uneven *uneven, int persistent, MPI_Fint *request,
                             MPI_Fint *error)
{
    MPI_Request handle = MPI_REQUEST_NULL;
    MPI_Datatype *types = NULL;
    int code = MPI_SUCCESS, served;

    call->send = cip_fortran_buffer((void *)call->send);
    call->recv = cip_fortran_buffer(call->recv);
    if (uneven != NULL)
        types = cip_fortran_data(uneven);
    served = cip_serve_later(call, uneven, 0, persistent, &handle, &code);
    free(types);
    if (!served)
        return 0;
    if (code == MPI_SUCCESS)
        *request = cip_fortran_Request_number(handle);
    if (error != NULL)
        *error = code;
    return 1;
}

/* A function with n parameters, of which the last is the request; `mpi` is how its name begins. */
#define CIP_FORTRAN_BEGINS(mpi, MPI, persistent, FUNCTION, KIND, name, n, request, ...) \
    CIP_FORTRAN_OF(mpi, MPI, name, FUNCTION, (CIP_FORTRAN_P##n, MPI_Fint *error)) \
    { \
        if (cip_is_on()) { \
            struct cip_call call = {CIP_MPI_##FUNCTION, CIP_##KIND, __VA_ARGS__, 0}; \
            if (cip_fortran_begin(&call, NULL, persistent, request, error)) \
                return; \
        } \
        CIP_FORTRAN_NEXT_OF(mpi, MPI, name, FUNCTION, (CIP_FORTRAN_W##n, MPI_Fint *), (CIP_FORTRAN_A##n, error)); \
    }

#define CIP_FORTRAN_BEGINS_UNEVEN(mpi, MPI, persistent, FUNCTION, KIND, name, n, request, root, comm, op, ...) \
    CIP_FORTRAN_OF(mpi, MPI, name, FUNCTION, (CIP_FORTRAN_P##n, MPI_Fint *error)) \
    { \
        if (cip_is_on()) { \
            struct cip_uneven uneven = {CIP_MPI_##FUNCTION, 0, CIP_##KIND, root, __VA_ARGS__, op, \
                                        cip_fortran_Comm(*(comm))}; \
            struct cip_call call = cip_frame(&uneven); \
            if (cip_fortran_begin(&call, &uneven, persistent, request, error)) \
                return; \
        } \
        CIP_FORTRAN_NEXT_OF(mpi, MPI, name, FUNCTION, (CIP_FORTRAN_W##n, MPI_Fint *), (CIP_FORTRAN_A##n, error)); \
    }

/* The persistent form, where the MPI has it, by the name that it has there. */
#if !CIP_PERSISTENT
#define CIP_FORTRAN_AGAIN(BEGINS, ...)
#elif OMPI_MAJOR_VERSION >= 5
#define CIP_FORTRAN_AGAIN(BEGINS, ...) BEGINS(mpi, MPI, 1, __VA_ARGS__)
#else
#define CIP_FORTRAN_AGAIN(BEGINS, ...) BEGINS(mpix, MPIX, 1, __VA_ARGS__)
#endif

/* Both forms of a collective. The nonblocking one has n parameters, of which `last` is the request; the persistent one has
 * an info before it. */
#define CIP_FORTRAN_LATER(NAME, KIND, name, n, last, more, after, ...) \
    CIP_FORTRAN_BEGINS(mpi, MPI, 0, I##NAME, KIND, i##name, n, last, __VA_ARGS__) \
    CIP_FORTRAN_AGAIN(CIP_FORTRAN_BEGINS, NAME##_INIT, KIND, name##_init, more, after, __VA_ARGS__)
#define CIP_FORTRAN_LATER_UNEVEN(NAME, KIND, name, n, last, more, after, ...) \
    CIP_FORTRAN_BEGINS_UNEVEN(mpi, MPI, 0, I##NAME, KIND, i##name, n, last, __VA_ARGS__) \
    CIP_FORTRAN_AGAIN(CIP_FORTRAN_BEGINS_UNEVEN, NAME##_INIT, KIND, name##_init, more, after, __VA_ARGS__)

#define CIP_FORTRAN_TWO_SIDES(root, comm) \
    a, d, *b, *e, cip_fortran_Type(*c), cip_fortran_Type(*f), MPI_OP_NULL, root, cip_fortran_Comm(*comm)
#define CIP_FORTRAN_SUMS(root, comm) \
    a, b, *c, *c, cip_fortran_Type(*d), cip_fortran_Type(*d), cip_fortran_Op(*e), root, cip_fortran_Comm(*comm)

CIP_FORTRAN_LATER(ALLGATHER, ALLGATHER, allgather, 8, h, 9, i, CIP_FORTRAN_TWO_SIDES(-1, g))
CIP_FORTRAN_LATER(ALLTOALL, ALLTOALL, alltoall, 8, h, 9, i, CIP_FORTRAN_TWO_SIDES(-1, g))
CIP_FORTRAN_LATER(GATHER, GATHER, gather, 9, i, 10, j, CIP_FORTRAN_TWO_SIDES((int)*g, h))
CIP_FORTRAN_LATER(SCATTER, SCATTER, scatter, 9, i, 10, j, CIP_FORTRAN_TWO_SIDES((int)*g, h))
CIP_FORTRAN_LATER(BCAST, BROADCAST, bcast, 6, f, 7, g, NULL, a, *b, *b, cip_fortran_Type(*c), cip_fortran_Type(*c),
                  MPI_OP_NULL, (int)*d, cip_fortran_Comm(*e))
CIP_FORTRAN_LATER(ALLREDUCE, ALLREDUCE, allreduce, 7, g, 8, h, CIP_FORTRAN_SUMS(-1, f))
CIP_FORTRAN_LATER(REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, reduce_scatter_block, 7, g, 8, h, CIP_FORTRAN_SUMS(-1, f))
CIP_FORTRAN_LATER(REDUCE, REDUCE, reduce, 8, h, 9, i, CIP_FORTRAN_SUMS((int)*f, g))
CIP_FORTRAN_LATER_UNEVEN(ALLGATHERV, ALLGATHER, allgatherv, 9, i, 10, j, -1, h, MPI_OP_NULL, CIP_FORTRAN_ONE(a, b, c),
                         CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_LATER_UNEVEN(ALLTOALLV, ALLTOALL, alltoallv, 10, j, 11, k, -1, i, MPI_OP_NULL, CIP_FORTRAN_EACH(a, b, c, d),
                         CIP_FORTRAN_EACH(e, f, g, h))
CIP_FORTRAN_LATER_UNEVEN(ALLTOALLW, ALLTOALL, alltoallw, 10, j, 11, k, -1, i, MPI_OP_NULL,
                         CIP_FORTRAN_EACH_TYPE(0, a, b, c, d), CIP_FORTRAN_EACH_TYPE(0, e, f, g, h))
CIP_FORTRAN_LATER_UNEVEN(GATHERV, GATHER, gatherv, 10, j, 11, k, (int)*h, i, MPI_OP_NULL, CIP_FORTRAN_ONE(a, b, c),
                         CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_LATER_UNEVEN(SCATTERV, SCATTER, scatterv, 10, j, 11, k, (int)*h, i, MPI_OP_NULL,
                         CIP_FORTRAN_EACH(a, b, c, d), CIP_FORTRAN_ONE(e, f, g))
CIP_FORTRAN_LATER_UNEVEN(REDUCE_SCATTER, REDUCE_SCATTER, reduce_scatter, 7, g, 8, h, -1, f, cip_fortran_Op(*e),
                         CIP_FORTRAN_EACH(a, c, NULL, d), CIP_FORTRAN_EACH(b, c, NULL, d))
CIP_FORTRAN_LATER_UNEVEN(NEIGHBOR_ALLGATHER, NEIGHBOURS, neighbor_allgather, 8, h, 9, i, CIP_TO_ALL, g, MPI_OP_NULL,
                         CIP_FORTRAN_ONE(a, b, c), CIP_FORTRAN_ONE(d, e, f))
CIP_FORTRAN_LATER_UNEVEN(NEIGHBOR_ALLGATHERV, NEIGHBOURS, neighbor_allgatherv, 9, i, 10, j, CIP_TO_ALL, h, MPI_OP_NULL,
                         CIP_FORTRAN_ONE(a, b, c), CIP_FORTRAN_EACH(d, e, f, g))
CIP_FORTRAN_LATER_UNEVEN(NEIGHBOR_ALLTOALL, NEIGHBOURS, neighbor_alltoall, 8, h, 9, i, -1, g, MPI_OP_NULL,
                         CIP_FORTRAN_ONE(a, b, c), CIP_FORTRAN_ONE(d, e, f))
CIP_FORTRAN_LATER_UNEVEN(NEIGHBOR_ALLTOALLV, NEIGHBOURS, neighbor_alltoallv, 10, j, 11, k, -1, i, MPI_OP_NULL,
                         CIP_FORTRAN_EACH(a, b, c, d), CIP_FORTRAN_EACH(e, f, g, h))
CIP_FORTRAN_LATER_UNEVEN(NEIGHBOR_ALLTOALLW, NEIGHBOURS, neighbor_alltoallw, 10, j, 11, k, -1, i, MPI_OP_NULL,
                         CIP_FORTRAN_EACH_TYPE(1, a, b, c, d), CIP_FORTRAN_EACH_TYPE(1, e, f, g, h))

#endif
