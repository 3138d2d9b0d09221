/* Two halves of a job meet like strangers: one publishes where it can be reached, the other looks that up and connects;
 * together they add their ranks up. `names missing` looks up what nobody has published. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int look_up_nothing(void)
{
    char port[MPI_MAX_PORT_NAME], words[MPI_MAX_ERROR_STRING];
    int class, length, code;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Lookup_name("nobody-publishes-this", MPI_INFO_NULL, port);
    if (code == MPI_SUCCESS)
        return 1;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, words, &length);
    printf("%s\n", class == MPI_ERR_NAME ? "not found" : words);
    return 0;
}

static MPI_Comm meet(MPI_Comm half, int is_server)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm others;
    int rank;
    MPI_Comm_rank(half, &rank);
    if (is_server && rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name("ocean", MPI_INFO_NULL, port);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_server) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &others);
        if (rank == 0) {
            MPI_Unpublish_name("ocean", MPI_INFO_NULL, port);
            MPI_Close_port(port);
        }
    } else {
        if (rank == 0)
            MPI_Lookup_name("ocean", MPI_INFO_NULL, port);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &others);
    }
    return others;
}

int main(int argc, char **argv)
{
    int rank, size, sum = 0, status = 0;
    MPI_Comm half, others;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && !strcmp(argv[1], "missing")) {
        status = look_up_nothing();
    } else {
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        others = meet(half, rank % 2 == 0);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, others);
        printf("rank %d of %d: the others' sum is %d\n", rank, size, sum);
        MPI_Comm_disconnect(&others);
        MPI_Comm_free(&half);
    }
    MPI_Finalize();
    return status;
}
