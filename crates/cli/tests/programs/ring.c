/* Passes a token round a ring, meets half of the others and then everybody, and ends as its argument
 * says: nothing, `appnum` (says its MPI_APPNUM), `abort CODE RANK`, `leave RANK` (without finalizing),
 * `crash RANK`, `status CODE` or `pause SECONDS` (before everybody meets once more). */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(int argc, char **argv, const char *what)
{
    return argc > 1 && strcmp(argv[1], what) == 0;
}

int main(int argc, char **argv)
{
    int rank, size, token = 0, sum = 0, length;
    char host[MPI_MAX_PROCESSOR_NAME];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);

    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Sendrecv(&rank, 1, MPI_INT, next, 0, &token, 1, MPI_INT, before, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Allreduce(&token, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

    MPI_Comm half;
    int halves = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Allreduce(&rank, &halves, 1, MPI_INT, MPI_SUM, half);
    MPI_Comm_free(&half);
    for (int other = rank % 2; other < size; other += 2)
        halves -= other;
    if (halves != 0)
        MPI_Abort(MPI_COMM_WORLD, 99);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d of %d on %s: before %d, sum %d\n", rank, size, host, token, sum);
    if (is(argc, argv, "appnum")) {
        int *number, is_known;
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &is_known);
        printf("rank %d is of app %d\n", rank, is_known ? *number : -1);
    }
    fflush(stdout);

    if (is(argc, argv, "abort") && rank == atoi(argv[3]))
        MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
    if (is(argc, argv, "leave") && rank == atoi(argv[2]))
        _Exit(0);
    if (is(argc, argv, "crash") && rank == atoi(argv[2]))
        raise(SIGSEGV);
    if (is(argc, argv, "pause"))
        sleep(atoi(argv[2]));
    if (is(argc, argv, "abort") || is(argc, argv, "leave") || is(argc, argv, "crash") ||
        is(argc, argv, "pause"))
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return is(argc, argv, "status") ? atoi(argv[2]) : 0;
}
