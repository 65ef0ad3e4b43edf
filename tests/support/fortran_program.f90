! Every served collective in Fortran: mpif.h (-DFH), `use mpi`, or mpi_f08 (-DF08), with an operation of its own.
program t
#ifdef F08
  use mpi_f08
#else
#ifndef FH
  use mpi
#endif
#endif
  implicit none
#ifdef FH
  include 'mpif.h'
#endif
  integer :: i, r, n, e, a(8), b(32), c(32), wrong
  real(8) :: d(8)
#ifdef F08
  type(MPI_Op) :: op
#else
  integer :: op
#endif
  external :: mine
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, r, e)
  call MPI_Comm_size(MPI_COMM_WORLD, n, e)
  wrong = 0
  do i = 1, 3
    a = r + i
    call MPI_Allreduce(MPI_IN_PLACE, a, 8, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, e)
    if (any(a /= n*i + n*(n-1)/2) .or. e /= 0) wrong = wrong + 1
    d = r
    call MPI_Allreduce(MPI_IN_PLACE, d, 8, MPI_REAL8, MPI_MAX, MPI_COMM_WORLD, e)
    if (any(d /= n-1)) wrong = wrong + 1
    a = r
    call MPI_Bcast(a, 8, MPI_INTEGER, 0, MPI_COMM_WORLD, e)
    if (any(a /= 0)) wrong = wrong + 1
    a = r
    call MPI_Allgather(a, 8, MPI_INTEGER, b, 8, MPI_INTEGER, MPI_COMM_WORLD, e)
    if (any(b(1:8*n:8) /= (/(i-i+e, e=0,n-1)/))) wrong = wrong + 1
    c = b
    call MPI_Alltoall(c, 8, MPI_INTEGER, b, 8, MPI_INTEGER, MPI_COMM_WORLD, e)
    if (any(b(1:8*n) /= r)) wrong = wrong + 1
    call MPI_Op_create(mine, .true., op, e)
    a = r
#ifdef F08
    call MPI_Allreduce(MPI_IN_PLACE, a, 8, MPI_INTEGER, op, MPI_COMM_WORLD)
#else
    call MPI_Allreduce(MPI_IN_PLACE, a, 8, MPI_INTEGER, op, MPI_COMM_WORLD, e)
#endif
    if (any(a /= n*(n-1)/2)) wrong = wrong + 1
    call MPI_Op_free(op, e)
    a = 1
    call MPI_Reduce(a, b, 8, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, e)
    if (r == 0 .and. any(b(1:8) /= n)) wrong = wrong + 1
    call MPI_Gather(a, 8, MPI_INTEGER, b, 8, MPI_INTEGER, 0, MPI_COMM_WORLD, e)
    c(1:32) = r + 5
    if (r == 0) then
      call MPI_Scatter(c, 8, MPI_INTEGER, MPI_IN_PLACE, 8, MPI_INTEGER, 0, MPI_COMM_WORLD, e)
    else
      call MPI_Scatter(c, 8, MPI_INTEGER, b, 8, MPI_INTEGER, 0, MPI_COMM_WORLD, e)
      if (any(b(1:8) /= 5)) wrong = wrong + 1
    end if
    call MPI_Reduce_scatter_block(c, a, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, e)
    if (any(a(1:2) /= 5*n + n*(n-1)/2)) wrong = wrong + 1
    b(1:n) = 2
    call MPI_Reduce_scatter(c, a, b, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, e)
    if (any(a(1:2) /= 5*n + n*(n-1)/2)) wrong = wrong + 1
  end do
  print '(a,i0)', 'wrong ', wrong
  call MPI_Finalize(e)
end program
subroutine mine(in, inout, len, type)
#ifdef F08
  use mpi_f08
#endif
  integer :: len, in(len), inout(len)
#ifdef F08
  type(MPI_Datatype) :: type
#else
  integer :: type
#endif
  inout = in + inout
end subroutine
