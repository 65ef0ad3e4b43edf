int NAMEFORM(const void *sendbuf, const COUNT sendcounts[], const PLACE displs[], MPI_Datatype sendtype,
    void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm commMORE)
{
    struct arguments given = {.send = sendbuf, .recv = recvbuf, .op = MPI_OP_NULL, .root = root};

    given.send_counts.COUNTED = sendcounts;
    given.send_places.PLACED = displs;
    given.send_type = sendtype;
    given.recv_count = recvcount;
    given.recv_type = recvtype;
