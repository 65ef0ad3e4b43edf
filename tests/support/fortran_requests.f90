! Nonblocking and persistent collectives in Fortran: mpif.h (-DFH), `use mpi`, or mpi_f08 (-DF08); with -DMPIX the persistent
! ones have the names of Open MPI 4. Four ranks.
#ifdef MPIX
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Alltoallv_init MPIX_Alltoallv_init
#define MPI_Alltoallw_init MPIX_Alltoallw_init
#define MPI_Neighbor_alltoallw_init MPIX_Neighbor_alltoallw_init
#endif
#ifdef F08
#define HANDLE(kind) type(kind)
#else
#define HANDLE(kind) integer
#endif
program t
#ifdef F08
  use mpi_f08
#ifdef MPIX
  use mpi_f08_ext
#endif
#else
#ifndef FH
  use mpi
#ifdef MPIX
  use mpi_ext
#endif
#endif
#endif
  implicit none
#ifdef FH
  include 'mpif.h'
#endif
  integer, asynchronous :: a(8), b(8), c(8), d(8), f(8), g(8), h(8), p(8), x(8)
  integer :: i, r, e, wrong, k, counts(4), places(4), bytes(4), near(2), ends(2)
  integer(MPI_ADDRESS_KIND) :: far(2)
  HANDLE(MPI_Datatype) :: types(4), two(2)
  HANDLE(MPI_Comm) :: ring, copy
  HANDLE(MPI_Request) :: q(5)

  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, r, e)
  call MPI_Comm_dup(MPI_COMM_WORLD, copy, e)
  ends = (/mod(r + 3, 4), mod(r + 1, 4)/)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, ends, MPI_UNWEIGHTED, 2, ends, MPI_UNWEIGHTED, MPI_INFO_NULL, &
                                      .false., ring, e) ! MPICH 4.0.2 fails with mpi_f08 on a Cartesian communicator
  wrong = 0
  counts = 1
  places = (/0, 1, 2, 3/)
  bytes = 4*places
  types = MPI_INTEGER
  near = 1
  far = (/4, 0/)
  two = MPI_INTEGER

  ! nonblocking: the sum of the ranks, and a block from each
  a = r
  c = (/(10*r + i, i = 0, 7)/)
  g = (/(100*r + i, i = 0, 7)/)
  call MPI_Iallreduce(MPI_IN_PLACE, a, 8, MPI_INTEGER, MPI_SUM, copy, q(1), e)
  call MPI_Ialltoallv(c, counts, places, MPI_INTEGER, d, counts, places, MPI_INTEGER, MPI_COMM_WORLD, q(2), e)
  call MPI_Ialltoallw(c, counts, bytes, types, f, counts, bytes, types, MPI_COMM_WORLD, q(3), e)
  call MPI_Ineighbor_alltoallw(g, near, far, two, h, near, far, two, ring, q(4), e)
  call MPI_Waitall(4, q, MPI_STATUSES_IGNORE, e)
  if (any(a /= 6)) wrong = wrong + 1
  if (any(d(1:4) /= (/(10*i + r, i = 0, 3)/)) .or. any(f(1:4) /= d(1:4))) wrong = wrong + 1
  if (h(2) /= 100*mod(r + 3, 4) .or. h(1) /= 100*mod(r + 1, 4) + 1) wrong = wrong + 1
  call MPI_Alltoallw(c, counts, bytes, types, f, counts, bytes, types, MPI_COMM_WORLD, e)
  call MPI_Neighbor_alltoallw(g, near, far, two, p, near, far, two, ring, e)
  if (any(f(1:4) /= d(1:4)) .or. any(p(1:2) /= h(1:2))) wrong = wrong + 1

  ! persistent: three starts, each with other data
  call MPI_Allreduce_init(a, b, 8, MPI_INTEGER, MPI_SUM, copy, MPI_INFO_NULL, q(1), e)
  call MPI_Bcast_init(x, 8, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, q(2), e)
  call MPI_Alltoallv_init(c, counts, places, MPI_INTEGER, d, counts, places, MPI_INTEGER, MPI_COMM_WORLD, &
                          MPI_INFO_NULL, q(3), e)
  call MPI_Alltoallw_init(c, counts, bytes, types, f, counts, bytes, types, MPI_COMM_WORLD, MPI_INFO_NULL, q(4), e)
  call MPI_Neighbor_alltoallw_init(g, near, far, two, h, near, far, two, ring, MPI_INFO_NULL, q(5), e)
  do k = 1, 3
    a = r + k
    x = r + k
    c = (/(10*r + i + k, i = 0, 7)/)
    g = 100*r + k
    d = -1
    f = -1
    h = -1
    if (k == 1) then
      do i = 1, 5
        call MPI_Start(q(i), e)
      end do
    else
      call MPI_Startall(5, q, e)
    end if
    call MPI_Waitall(5, q, MPI_STATUSES_IGNORE, e)
    if (any(b /= 6 + 4*k) .or. any(x /= k)) wrong = wrong + 1
    if (any(d(1:4) /= (/(10*i + r + k, i = 0, 3)/)) .or. any(f(1:4) /= d(1:4))) wrong = wrong + 1
    if (h(2) /= 100*mod(r + 3, 4) + k .or. h(1) /= 100*mod(r + 1, 4) + k) wrong = wrong + 1
  end do
  do i = 1, 5
    call MPI_Request_free(q(i), e)
    if (q(i) /= MPI_REQUEST_NULL) wrong = wrong + 1
  end do
  call MPI_Comm_free(copy, e)
  call MPI_Comm_free(ring, e)
  print '(a,i0)', 'wrong ', wrong
  call MPI_Finalize(e)
end program
