int NAMEFORM(const void *sendbuf, const COUNT sendcounts[], const PLACE sdispls[], MPI_Datatype sendtype,
    void *recvbuf, const COUNT recvcounts[], const PLACE rdispls[], MPI_Datatype recvtype,
    MPI_Op op, MPI_Comm commMORE)
{
    struct arguments given = {.send = sendbuf, .recv = recvbuf, .op = op, .root = -1};

    given.send_counts.COUNTED = sendcounts;
    given.send_places.PLACED = sdispls;
    given.send_type = sendtype;
    given.recv_counts.COUNTED = recvcounts;
    given.recv_places.PLACED = rdispls;
    given.recv_type = recvtype;
