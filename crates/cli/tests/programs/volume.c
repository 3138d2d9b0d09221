/* A value of a gigabyte: as a line of PMI-1 (`line`), behind a frame of PMI-2 that says that it is shorter (`frame`), or
 * through our library (`library`), which refuses it. Rank 0 says it, and the last rank tells by how much its agent, which
 * is that of rank 0, has grown at the most. With PMI=1 the library is that of PMI-1. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if PMI == 1
#include <slurm/pmi.h>
#else
#include <slurm/pmi2.h>
#endif

#define GIGABYTE 1000000000L

static void check(int is_well, const char *what)
{
    if (!is_well) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

/* The most memory that the agent has had, in kilobytes. */
static long agent_kb(void)
{
    char path[64], line[256];
    long kb = 0;
    sprintf(path, "/proc/%d/status", (int)getppid());
    FILE *status = fopen(path, "r");
    check(status != NULL, "status of the agent");
    while (fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %ld kB", &kb);
    fclose(status);
    check(kb > 0, "no memory of the agent");
    return kb;
}

static void say(const char *bytes, size_t count)
{
    int fd = atoi(getenv("PMI_FD"));
    while (count > 0) {
        ssize_t written = write(fd, bytes, count);
        if (written <= 0)
            return;
        bytes += written;
        count -= written;
    }
}

/* Goes on whatever the job's end asks for, so that the agent gets as much as it takes. */
static void say_a_gigabyte(const char *begin)
{
    static char block[1 << 20];
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    say(begin, strlen(begin));
    memset(block, 'v', sizeof block);
    for (long said = 0; said < GIGABYTE; said += sizeof block)
        say(block, sizeof block);
}

static long before;

static void tell(int signal)
{
    (void)signal;
    printf("the agent has grown by %ld kB\n", agent_kb() - before);
    exit(0);
}

static void library(void)
{
    char *value = malloc(GIGABYTE + 1), found[64], job[256], key[64], expected[64];
    int spawned, size, rank, is_refused;
    check(value != NULL, "memory");
    memset(value, 'v', GIGABYTE);
    value[GIGABYTE] = 0;
#if PMI == 1
    check(!PMI_Init(&spawned) && !PMI_Get_rank(&rank) && !PMI_Get_size(&size), "init");
    check(!PMI_KVS_Get_my_name(job, sizeof job), "name");
    is_refused = PMI_KVS_Put(job, "large", value) == PMI_ERR_INVALID_VAL;
#else
    int appnum, length;
    check(!PMI2_Init(&spawned, &size, &rank, &appnum) && !PMI2_Job_GetId(job, sizeof job), "init");
    is_refused = PMI2_KVS_Put("large", value) != PMI2_SUCCESS;
#endif
    check(is_refused, "a gigabyte is no value that is too long");
    free(value);
    sprintf(key, "small-%d", rank);
    sprintf(expected, "small-%d", (rank + 1) % size);
#if PMI == 1
    check(!PMI_KVS_Put(job, key, key) && !PMI_Barrier(), "a small value");
    check(!PMI_KVS_Get(job, expected, found, sizeof found), "get");
    check(!strcmp(found, expected) && !PMI_Finalize(), "another value");
#else
    check(!PMI2_KVS_Put(key, key) && !PMI2_KVS_Fence(), "a small value");
    check(!PMI2_KVS_Get(job, -1, expected, found, sizeof found, &length), "get");
    check(!strcmp(found, expected) && !PMI2_Finalize(), "another value");
#endif
    tell(0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "library";
    before = agent_kb();
    if (!strcmp(how, "library")) {
        library();
    } else if (strcmp(getenv("PMI_RANK"), "0")) {
        signal(SIGTERM, tell);
        for (;;)
            pause();
    } else if (!strcmp(how, "line")) {
        say_a_gigabyte("cmd=init pmi_version=1 pmi_subversion=1\ncmd=put kvsname=kvs key=large value=");
    } else {
        say_a_gigabyte("999999cmd=kvs-put;key=large;value=");
    }
    return 0;
}
