int NAMEFORM(const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf,
    const COUNT recvcounts[], const PLACE displs[], MPI_Datatype recvtype, MPI_Comm commMORE)
{
    struct arguments given = {.send = sendbuf, .recv = recvbuf, .op = MPI_OP_NULL, .root = -1};

    given.send_count = sendcount;
    given.send_type = sendtype;
    given.recv_counts.COUNTED = recvcounts;
    given.recv_places.PLACED = displs;
    given.recv_type = recvtype;
