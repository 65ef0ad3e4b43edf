int NAMEFORM(const void *sendbuf, void *recvbuf, const COUNT recvcounts[], MPI_Datatype datatype,
    MPI_Op op, MPI_Comm commMORE)
{
    struct arguments given = {.send = sendbuf, .recv = recvbuf, .op = op, .root = -1};

    given.recv_counts.COUNTED = recvcounts;
    given.recv_type = datatype;
