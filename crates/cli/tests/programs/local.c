/* What a get costs with the client library of Convoke: no message. Every rank puts many keys and meets the others; then
 * the first rank of each host stops its agent, so that nobody answers, reads all keys of all, has a child read them, too,
 * and has the agent go on. With PMI=1 in PMI-1, else in PMI-2. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if PMI == 1
#include <slurm/pmi.h>
#else
#include <slurm/pmi2.h>
#endif

#define LONGEST (1 << 18)

static int rank, size, keys;
static char job[256];

static void check(int is_well, const char *what)
{
    if (!is_well) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        kill(getppid(), SIGCONT);
        exit(1);
    }
}

#if PMI == 1
static void begin(void)
{
    int spawned;
    check(!PMI_Init(&spawned) && !PMI_Get_rank(&rank) && !PMI_Get_size(&size), "init");
    check(!PMI_KVS_Get_my_name(job, sizeof job), "name");
}
static void put(const char *key, const char *value)
{
    check(!PMI_KVS_Put(job, key, value), "put");
}
static void fence(void)
{
    check(!PMI_Barrier(), "barrier");
}
static int refuses(const char *key, const char *value)
{
    return PMI_KVS_Put(job, key, value) == PMI_ERR_INVALID_VAL;
}
static int get(const char *key, char *value, int size)
{
    return !PMI_KVS_Get(job, key, value, size);
}
static void end(void)
{
    check(!PMI_Finalize(), "finalize");
}
#else
static void begin(void)
{
    int spawned, appnum;
    check(!PMI2_Init(&spawned, &size, &rank, &appnum) && !PMI2_Job_GetId(job, sizeof job), "init");
}
static void put(const char *key, const char *value)
{
    check(!PMI2_KVS_Put(key, value), "put");
}
static void fence(void)
{
    check(!PMI2_KVS_Fence(), "fence");
}
static int refuses(const char *key, const char *value)
{
    return PMI2_KVS_Put(key, value) != PMI2_SUCCESS;
}
static int get(const char *key, char *value, int size)
{
    int length;
    return !PMI2_KVS_Get(job, -1, key, value, size, &length);
}
static void end(void)
{
    check(!PMI2_Finalize(), "finalize");
}
#endif

static void late(int signal)
{
    (void)signal;
    check(0, "a get waits for the agent");
}

static void read_all(const char *generation)
{
    char key[64], value[64], expected[64];
    for (int of = 0; of < size; of++)
        for (int i = 0; i < keys; i++) {
            sprintf(key, "key-%d-%d", of, i);
            sprintf(expected, "%s value %d of %d", generation, i, of);
            for (char *blank = expected; (blank = strchr(blank, ' '));)
                *blank = '-';
            check(get(key, value, sizeof value) && !strcmp(value, expected), "a value is not what was put");
        }
}

/* Reads all while nobody can answer. */
static void read_alone(const char *generation)
{
    int status;
    pid_t agent = getppid(), child;
    check(!kill(agent, SIGSTOP), "stop of the agent");
    alarm(20);
    read_all(generation);
    child = fork();
    check(child >= 0, "fork");
    if (!child) {
        read_all(generation);
        _exit(0);
    }
    check(waitpid(child, &status, 0) == child && !status, "a child cannot read");
    alarm(0);
    check(!kill(agent, SIGCONT), "go on of the agent");
}

static void put_all(const char *generation)
{
    char key[64], value[64];
    for (int i = 0; i < keys; i++) {
        sprintf(key, "key-%d-%d", rank, i);
        sprintf(value, "%s-value-%d-of-%d", generation, i, rank);
        put(key, value);
    }
}

/* Every rank puts the longest value that there is, and cannot put a longer one. */
static void long_values(void)
{
    static char own[LONGEST + 2], found[LONGEST + 1];
    char key[64];
    memset(own, 'a' + rank % 26, LONGEST + 1);
    check(refuses("long", own), "a value that is too long is taken");
    own[LONGEST] = 0;
    sprintf(key, "long-%d", rank);
    put(key, own);
    fence();
    sprintf(key, "long-%d", (rank + 1) % size);
    memset(own, 'a' + (rank + 1) % size % 26, LONGEST);
    check(get(key, found, sizeof found) && !strcmp(own, found), "a long value is not what was put");
}

static int mappings(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    check(maps != NULL, "maps");
    while (fgets(line, sizeof line, maps))
        count += strstr(line, "memfd:convoke") != NULL;
    fclose(maps);
    return count;
}

int main(int argc, char **argv)
{
    static const char *generations[] = {"first", "second"};
    char value[64], key[64];
    const char *local_rank = getenv("MPI_LOCALRANKID");
    keys = argc > 1 ? atoi(argv[1]) : 10;
    signal(SIGALRM, late);
    begin();
    for (int i = 0; i < 2; i++) {
        put_all(generations[i]);
        fence();
        check(mappings() == 1, "not one mapping");
        if (local_rank && !strcmp(local_rank, "0"))
            read_alone(generations[i]);
        fence();
    }
    /* One key more is no new snapshot. */
    sprintf(key, "late-%d", rank);
    put(key, "late");
    fence();
    sprintf(key, "late-%d", (rank + 1) % size);
    check(get(key, value, sizeof value) && !strcmp(value, "late"), "a late value is not what was put");
    check(!get("nobody-puts-this", value, sizeof value), "a key that nobody has put was found");
    read_all("second");
    long_values();
    end();
    check(mappings() == 0, "a mapping behind the end");
    printf("rank %d of %d: well\n", rank, size);
    return 0;
}
