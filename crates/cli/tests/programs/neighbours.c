/* Says which ranks share its memory, as MPI_Comm_split_type has it, on which host, and of which app. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { RANKS_MAX = 64 };

int main(int argc, char **argv)
{
    int rank, here, length, *number, is_known;
    int ranks[RANKS_MAX];
    char host[MPI_MAX_PROCESSOR_NAME], line[1024];
    MPI_Comm shared;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_processor_name(host, &length);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &is_known);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &shared);
    MPI_Comm_size(shared, &here);
    if (here > RANKS_MAX)
        MPI_Abort(MPI_COMM_WORLD, 99);
    MPI_Allgather(&rank, 1, MPI_INT, ranks, 1, MPI_INT, shared);
    int end = snprintf(line, sizeof line, "rank %d of app %d on %s:", rank,
                       is_known ? *number : -1, host);
    for (int i = 0; i < here; i++)
        end += snprintf(line + end, sizeof line - end, " %d", ranks[i]);
    puts(line);
    MPI_Comm_free(&shared);
    MPI_Finalize();
}
