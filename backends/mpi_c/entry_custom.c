int NAMEFORM(const void *sendbuf, const COUNT sendcounts[], const PLACE sdispls[], MPI_Datatype sendtype,
    void *recvbuf, const COUNT recvcounts[], const PLACE rdispls[], MPI_Datatype recvtype,
    MPI_Comm commMORE)
{
    struct arguments given = {.send = sendbuf, .recv = recvbuf, .op = MPI_OP_NULL, .root = -1};

    given.send_counts.COUNTED = sendcounts;
    given.send_places.PLACED = sdispls;
    given.send_type = sendtype;
    given.recv_counts.COUNTED = recvcounts;
    given.recv_places.PLACED = rdispls;
    given.recv_type = recvtype;
