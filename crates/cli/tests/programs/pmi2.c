/* What a PMI-2 program does with the client library of Slurm: every rank puts a card, meets the others, reads all cards,
 * learns its neighbours in a ring, and tells its node something. `pmi2 abort` ends the job instead. With the library of
 * Convoke in its place, the program says so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <slurm/pmi2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank;

static void check(int is_well, const char *what)
{
    if (!is_well) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        exit(1);
    }
}

static void call(int code, const char *what)
{
    if (code != PMI2_SUCCESS) {
        fprintf(stderr, "rank %d: %s returned %d\n", rank, what, code);
        exit(1);
    }
}

/* The longest value that the library's own buffers take, with what a field must not lose. */
static void card_of(int of, char value[PMI2_MAX_VALLEN])
{
    memset(value, 'a' + of % 26, PMI2_MAX_VALLEN - 1);
    value[PMI2_MAX_VALLEN - 1] = 0;
    int bytes = sprintf(value, "card of %d, with = and blanks ", of);
    value[bytes] = '-';
}

static void exchange(int size, const char *job)
{
    char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN], expected[PMI2_MAX_VALLEN];
    int length, of;
    sprintf(key, "card-%d", rank);
    card_of(rank, value);
    call(PMI2_KVS_Put(key, value), "put");
    call(PMI2_KVS_Fence(), "fence");
    for (of = 0; of < size; of++) {
        sprintf(key, "card-%d", of);
        card_of(of, expected);
        call(PMI2_KVS_Get(job, of, key, value, sizeof value, &length), "get");
        check(!strcmp(value, expected), "a card is not what was put");
    }
    check(PMI2_KVS_Get(job, -1, "nobody-puts-this", value, sizeof value, &length) != PMI2_SUCCESS,
          "a card that nobody has put was found");
}

/* Neighbours in a ring tell each other their number in it, by the cards that all have put. */
static void meet_neighbours(int size, const char *job)
{
    char own[16], left[32], right[32], key[64], value[64];
    int number, ring_size, length;
    sprintf(own, "%d", rank);
    call(PMIX_Ring(own, &number, &ring_size, left, right, sizeof left), "ring");
    check(ring_size == size && number >= 0 && number < size, "a number that no ring has");
    sprintf(key, "ring-%d", rank);
    sprintf(value, "%d", number);
    call(PMI2_KVS_Put(key, value), "put of the number");
    call(PMI2_KVS_Fence(), "fence");
    sprintf(key, "ring-%s", left);
    call(PMI2_KVS_Get(job, -1, key, value, sizeof value, &length), "get of the left one's number");
    check(atoi(value) == (number + size - 1) % size, "the left one has another number");
    sprintf(key, "ring-%s", right);
    call(PMI2_KVS_Get(job, -1, key, value, sizeof value, &length), "get of the right one's number");
    check(atoi(value) == (number + 1) % size, "the right one has another number");
}

static void tell_node(const char *local_rank)
{
    char value[PMI2_MAX_ATTRVALUE];
    int found = 0;
    if (!strcmp(local_rank, "0"))
        call(PMI2_Info_PutNodeAttr("segment", "/dev/shm/segment"), "put of a node's attribute");
    call(PMI2_Info_GetNodeAttr("segment", value, sizeof value, &found, 1), "get of it");
    check(found && !strcmp(value, "/dev/shm/segment"), "an attribute of the node differs");
    call(PMI2_Info_GetNodeAttr("nobody-puts-this", value, sizeof value, &found, 0), "get of none");
    check(!found, "an attribute that nobody has put was found");
    call(PMI2_Info_GetJobAttr("PMI_process_mapping", value, sizeof value, &found), "get of the mapping");
    check(found && !strncmp(value, "(vector,", 8), "no process mapping");
}

/* A fence in two steps, which Slurm's library does not have. */
static int fences_in_two_steps(int size, const char *job)
{
    char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN];
    int length, found;
    unsigned long long request = 0, stale;
    int (*begin)(unsigned long long *) = (int (*)(unsigned long long *))dlsym(RTLD_DEFAULT, "PMIX_KVS_Ifence");
    int (*wait)(unsigned long long *) = (int (*)(unsigned long long *))dlsym(RTLD_DEFAULT, "PMIX_Wait");
    if (!begin || !wait)
        return 0;
    sprintf(key, "late-%d", rank);
    call(PMI2_KVS_Put(key, "late"), "put");
    call(begin(&request), "begin of a fence");
    stale = request;
    check(PMI2_KVS_Put(key, "later") != PMI2_SUCCESS, "a put within a fence is not refused");
    check(PMI2_KVS_Get(job, -1, key, value, sizeof value, &length) != PMI2_SUCCESS, "a get is not refused");
    call(PMI2_Info_GetNodeAttr("segment", value, sizeof value, &found, 0), "an attribute meanwhile");
    call(wait(&request), "end of a fence");
    check(request == 0 && wait(&request) != PMI2_SUCCESS, "a fence ends twice");
    check(wait(&stale) != PMI2_SUCCESS, "a fence that is over ends again");
    sprintf(key, "late-%d", (rank + 1) % size);
    call(PMI2_KVS_Get(job, -1, key, value, sizeof value, &length), "get behind a fence");
    check(!strcmp(value, "late") && length == 4, "a value is not what was put");
    call(PMI2_KVS_Get(job, -1, key, value, 3, &length), "get of a value that does not fit");
    check(!strcmp(value, "la") && length == -4, "a value is cut in another way");
    return 1;
}

/* An allgather and a fence in two steps by the names of MVAPICH, whose layer over PMI calls them like this. */
static void gather_for_mvapich(int size, char (*all)[PMI2_MAX_VALLEN])
{
    int (*begin)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "PMI2_Iallgather");
    int (*end)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "PMI2_Iallgather_wait");
    int (*fence)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PMI2_KVS_Ifence");
    int (*wait)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PMI2_KVS_Wait");
    int (*begin_shared)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "PMI2_SHMEM_Iallgather");
    int (*end_shared)(void **) = (int (*)(void **))dlsym(RTLD_DEFAULT, "PMI2_SHMEM_Iallgather_wait");
    char value[32], (*shared)[PMI2_MAX_VALLEN] = NULL;
    int of;
    check(begin && end && fence && wait && begin_shared && end_shared, "no names of MVAPICH");
    sprintf(value, "for MVAPICH %d", rank);
    call(begin(value), "begin of an allgather");
    call(fence(), "begin of a fence");
    call(end(all), "end of an allgather");
    call(wait(), "end of a fence");
    check(end(all) != PMI2_SUCCESS && wait() != PMI2_SUCCESS, "what is over ends again");
    sprintf(value, "shared %d", rank);
    call(begin_shared(value), "begin of an allgather in the library's memory");
    call(end_shared((void **)&shared), "its end");
    check(end_shared((void **)&shared) != PMI2_SUCCESS && shared, "it ends again");
    for (of = 0; of < size; of++) {
        sprintf(value, "for MVAPICH %d", of);
        check(!strcmp(all[of], value), "a value is not what was brought");
        sprintf(value, "shared %d", of);
        check(!strcmp(shared[of], value), "a value in the library's memory is another");
    }
}

/* Allgathers in one step and in two, with a fence begun meanwhile, and values of any length. */
static void gather(int size)
{
    int (*gather)(const char *, void *) = (int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PMIX_Allgather");
    int (*begin)(const char *, void *, unsigned long long *) =
        (int (*)(const char *, void *, unsigned long long *))dlsym(RTLD_DEFAULT, "PMIX_Iallgather");
    int (*fence)(unsigned long long *) = (int (*)(unsigned long long *))dlsym(RTLD_DEFAULT, "PMIX_KVS_Ifence");
    int (*wait)(unsigned long long *) = (int (*)(unsigned long long *))dlsym(RTLD_DEFAULT, "PMIX_Wait");
    char (*all)[PMI2_MAX_VALLEN] = calloc(size, sizeof *all);
    char value[PMI2_MAX_VALLEN + 1], expected[PMI2_MAX_VALLEN];
    unsigned long long gathering, fencing, second;
    int of, round;
    check(gather && begin && all, "no allgather");
    for (round = 0; round < 2; round++) {
        card_of(rank, value);
        value[round ? rank % 2 : PMI2_MAX_VALLEN - 1] = 0; /* lengths differ in the second round */
        memset(all, 'x', size * sizeof *all);
        if (round == 0) {
            call(gather(value, all), "allgather");
        } else {
            call(begin(value, all, &gathering), "begin of an allgather");
            check(begin(value, all, &second) != PMI2_SUCCESS, "two allgathers at once");
            call(fence(&fencing), "begin of a fence");
            memset(value, 'y', sizeof value);
            call(wait(&gathering), "end of an allgather");
            call(wait(&fencing), "end of a fence behind it");
        }
        for (of = 0; of < size; of++) {
            card_of(of, expected);
            expected[round ? of % 2 : PMI2_MAX_VALLEN - 1] = 0;
            check(!strcmp(all[of], expected), "a value is not what was brought");
        }
    }
    gather_for_mvapich(size, all);
    value[PMI2_MAX_VALLEN] = 0;
    check(gather(value, all) != PMI2_SUCCESS, "a value too long for its place is not refused");
    free(all);
}

static void returns(int expected, int code, const char *what)
{
    if (code != expected) {
        fprintf(stderr, "rank %d: %s returned %d, and not %d\n", rank, what, code, expected);
        exit(1);
    }
}

/* What would crash Slurm's library is a code of ours. */
static void make_mistakes(void)
{
    char value[PMI2_MAX_VALLEN];
    int length;
    returns(PMI2_ERR_INVALID_ARG, PMI2_KVS_Put(NULL, "value"), "no key");
    returns(PMI2_ERR_INVALID_ARG, PMI2_KVS_Put("key", NULL), "no value");
    returns(PMI2_ERR_INVALID_ARG, PMI2_KVS_Get(NULL, -1, "key", NULL, 1, &length), "no room");
    returns(PMI2_ERR_INVALID_ARG, PMI2_KVS_Get(NULL, -1, "key", value, 0, &length), "room for nothing");
    returns(PMI2_ERR_INVALID_ARG, PMI2_Job_GetId(value, -1), "less than no room");
    returns(PMI2_ERR_INVALID_ARG, PMI2_Job_GetRank(NULL), "no number");
    returns(PMI2_ERR_INVALID_ARG, PMI2_Job_Spawn(0, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL),
            "no program");
    returns(PMI2_ERR_OTHER, PMI2_KVS_Put("", "value"), "an empty key");
    returns(PMI2_ERR_OTHER, PMI2_Job_Connect("nobody-is-this-job", NULL), "a job that is not there");
}

/* A program may begin again. */
static void begin_again(void)
{
    int spawned, size, again, app;
    returns(PMI2_ERR_INIT, PMI2_KVS_Fence(), "a fence behind the end");
    check(!PMI2_Initialized(), "initialized behind the end");
    call(PMI2_Init(&spawned, &size, &again, &app), "init again");
    check(again == rank && PMI2_Initialized(), "it is somebody else when it begins again");
    call(PMI2_KVS_Fence(), "fence again");
    call(PMI2_Finalize(), "finalize again");
}

int main(int argc, char **argv)
{
    int spawned, size, app, got;
    char job[256], host[256];
    call(PMI2_Init(&spawned, &size, &rank, &app), "init");
    call(PMI2_Job_GetId(job, sizeof job), "id of the job");
    call(PMI2_Job_GetRank(&got), "rank");
    check(!spawned, "its job was spawned");
    if (argc > 1 && !strcmp(argv[1], "abort") && rank == size - 1)
        PMI2_Abort(1, "enough");
    exchange(size, job);
    meet_neighbours(size, job);
    tell_node(getenv("MPI_LOCALRANKID"));
    exchange(size, job);
    int is_ours = fences_in_two_steps(size, job);
    /* Behind a port, Slurm's library takes everybody for rank 0 in this one function. */
    check(got == rank || (!is_ours && getenv("PMI_PORT")), "it is somebody else");
    if (is_ours) {
        gather(size);
        make_mistakes();
    }
    call(PMI2_Finalize(), "finalize");
    if (is_ours)
        begin_again();
    gethostname(host, sizeof host);
    printf("rank %d of %d on %s: well, with %s library\n", rank, size, host, is_ours ? "Convoke's" : "Slurm's");
    return 0;
}
