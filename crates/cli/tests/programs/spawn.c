/* Spawns copies of itself, and works with them (MPI-4.1 §11.8). As the parent, the first argument says what to do. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Merges with those beyond, and adds up the ranks of all. */
static void meet(MPI_Comm others, int is_child)
{
    MPI_Comm all;
    MPI_Intercomm_merge(others, is_child, &all);
    int rank, size, sum;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
    if (sum != size * (size - 1) / 2) {
        printf("wrong sum: %d\n", sum);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int world_rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    if (world_rank == 0)
        printf("%s: %d together\n", is_child ? "child" : "parent", size);
    MPI_Comm_free(&all);
}

static MPI_Comm spawn(const char *program, char *word, int tasks, int *error)
{
    char *words[] = { word, NULL };
    MPI_Comm children;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    *error = MPI_Comm_spawn(program, words, tasks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    return children;
}

/* Asks for up to `most`, and says how many came, and for how many others there is an error code. */
static MPI_Comm spawn_softly(const char *program, int most)
{
    char *words[] = { "leaf", NULL };
    int codes[most], size, missing = 0, rank;
    MPI_Info info;
    MPI_Comm children;
    MPI_Info_create(&info);
    MPI_Info_set(info, "soft", "1:1000");
    MPI_Comm_spawn(program, words, most, info, 0, MPI_COMM_WORLD, &children, codes);
    MPI_Info_free(&info);
    for (int i = 0; i < most; i++)
        missing += codes[i] != MPI_SUCCESS;
    MPI_Comm_remote_size(children, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("%d came, %d did not\n", size, missing);
    return children;
}

static void be_child(MPI_Comm parent, const char *program, const char *what)
{
    int appnum = -1, *value, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag);
    if (flag)
        appnum = *value;
    if (strcmp(what, "abort") == 0) {
        MPI_Abort(MPI_COMM_WORLD, 7);
    } else if (strcmp(what, "again") == 0) {
        int error;
        MPI_Comm grandchildren = spawn(program, "leaf", 1, &error);
        meet(grandchildren, 0);
        MPI_Comm_disconnect(&grandchildren);
    } else if (strcmp(what, "port") == 0) {
        char port[MPI_MAX_PORT_NAME];
        MPI_Comm other;
        MPI_Lookup_name("spawned-ocean", MPI_INFO_NULL, port);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
        meet(other, 1);
        MPI_Comm_disconnect(&other);
    }
    if (strcmp(what, "apps") == 0)
        printf("app %d: %s\n", appnum, what);
    if (strcmp(what, "mute") != 0)
        meet(parent, 1);
    MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    const char *what = argc > 1 ? argv[1] : "simple";
    if (parent != MPI_COMM_NULL) {
        be_child(parent, argv[0], what);
        MPI_Finalize();
        return 0;
    }
    int error, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm children;
    if (strcmp(what, "apps") == 0) {
        char *commands[] = { argv[0], argv[0] };
        char *words[] = { "apps", NULL };
        char **arguments[] = { words, words };
        int tasks[] = { 1, 1 };
        MPI_Info infos[] = { MPI_INFO_NULL, MPI_INFO_NULL };
        MPI_Comm_spawn_multiple(2, commands, arguments, tasks, infos, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        meet(children, 0);
        MPI_Comm_disconnect(&children);
    } else if (strcmp(what, "many") == 0) {
        for (int i = 0, times = atoi(argv[2]); i < times; i++) {
            children = spawn(argv[0], "mute", 1, &error);
            MPI_Comm_disconnect(&children);
        }
        printf("done\n");
    } else if (strcmp(what, "missing") == 0 || strcmp(what, "toomany") == 0) {
        int is_missing = strcmp(what, "missing") == 0;
        children = spawn(is_missing ? "/no/such/program" : argv[0], "leaf", is_missing ? 1 : 1000, &error);
        if (error && rank == 0)
            printf("refused\n");
    } else if (strcmp(what, "soft") == 0) {
        children = spawn_softly(argv[0], 20);
        meet(children, 0);
        MPI_Comm_disconnect(&children);
    } else if (strcmp(what, "port") == 0) {
        char port[MPI_MAX_PORT_NAME];
        MPI_Comm other;
        if (rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            MPI_Publish_name("spawned-ocean", MPI_INFO_NULL, port);
        }
        children = spawn(argv[0], "port", 1, &error);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
        meet(other, 0);
        MPI_Comm_disconnect(&other);
        if (rank == 0)
            MPI_Unpublish_name("spawned-ocean", MPI_INFO_NULL, port);
        meet(children, 0);
        MPI_Comm_disconnect(&children);
    } else {
        children = spawn(argv[0], argc > 1 ? argv[1] : "leaf", 2, &error);
        meet(children, 0);
        MPI_Comm_disconnect(&children);
    }
    MPI_Finalize();
    return 0;
}
