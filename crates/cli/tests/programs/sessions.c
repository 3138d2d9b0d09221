/* Makes communicators of groups of a session: every other rank, then all. */
#include <mpi.h>
#include <stdio.h>

static int sum_over(MPI_Group group, const char *tag, int rank)
{
    MPI_Comm comm;
    int sum = 0;
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    return sum;
}

int main(void)
{
    MPI_Session session;
    MPI_Group world, half;
    int rank, size;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_rank(world, &rank);
    MPI_Group_size(world, &size);
    int range[1][3] = {{rank % 2, size - 1, 2}};
    MPI_Group_range_incl(world, 1, range, &half);

    int of_half = sum_over(half, rank % 2 ? "odd" : "even", rank);
    int of_all = sum_over(world, "all", rank);
    printf("rank %d of %d: half %d, all %d\n", rank, size, of_half, of_all);
    MPI_Group_free(&half);
    MPI_Group_free(&world);
    MPI_Session_finalize(&session);
    return 0;
}
