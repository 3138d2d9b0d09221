/* Each rank says where it runs; then a token goes round the ring, and every rank adds its
 * number. Rank 0 checks the sum. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, length, token = 0;
    char host[MPI_MAX_PROCESSOR_NAME];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    printf("rank %2d of %d runs on %s\n", rank, size, host);
    fflush(stdout);

    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    if (rank > 0)
        MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    token += rank;
    MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);

    int wrong = 0;
    if (rank == 0) {
        int expected = size * (size - 1) / 2;
        MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong = token != expected;
        printf("the token is back: %d, expected %d: %s\n", token, expected,
               wrong ? "WRONG" : "right");
        fflush(stdout);
    }
    MPI_Finalize();
    return wrong;
}
