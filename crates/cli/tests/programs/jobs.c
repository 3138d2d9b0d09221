/* What a program does with the client library of Convoke about other jobs: rank 0 spawns one of two programs with pairs
 * that are put for it, on the host that the first argument names, and both jobs read each other and find each other by
 * names. With PMI=1 in PMI-1, else in PMI-2. */
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

#define CHILDREN 3

static int rank, size, spawned, app;
static char job[256];

static void check(int is_well, const char *what)
{
    if (!is_well) {
        fprintf(stderr, "%s %d: %s\n", spawned ? "child" : "parent", rank, what);
        exit(1);
    }
}

#if PMI == 1
static void begin(void)
{
    check(!PMI_Init(&spawned) && !PMI_Get_rank(&rank) && !PMI_Get_size(&size), "init");
    check(!PMI_Get_appnum(&app) && !PMI_KVS_Get_my_name(job, sizeof job), "name");
}
static void put(const char *key, const char *value)
{
    check(!PMI_KVS_Put(job, key, value), "put");
}
static void fence(void)
{
    check(!PMI_Barrier(), "barrier");
}
static int get(const char *space, const char *key, char value[1024])
{
    return !PMI_KVS_Get(space, key, value, 1024);
}
static int publish(const char *name, const char *port)
{
    return !PMI_Publish_name(name, port);
}
static int take_back(const char *name)
{
    return !PMI_Unpublish_name(name);
}
static int look_up(const char *name, char port[1024])
{
    return !PMI_Lookup_name(name, port);
}
/* Other jobs need no more than their names here. */
static int meet(const char *other)
{
    return other[0] != 0;
}
static int part(const char *other)
{
    return other[0] != 0;
}
static int spawn(const char *programs[], const char **words[], const int tasks[], char *host, char id[256], int errors[])
{
    PMI_keyval_t first[] = {{"host", host}, {"wdir", "/"}}, second[] = {{"host", host}};
    PMI_keyval_t pairs[] = {{"greeting", "hello"}, {"parent", job}};
    const PMI_keyval_t *infos[] = {first, second};
    int counts[] = {2, 1};
    id[0] = 0;
    return !PMI_Spawn_multiple(2, programs, words, tasks, counts, infos, 2, pairs, errors);
}
static void end(void)
{
    check(!PMI_Finalize(), "finalize");
}
#else
static void begin(void)
{
    check(!PMI2_Init(&spawned, &size, &rank, &app) && !PMI2_Job_GetId(job, sizeof job), "init");
}
static void put(const char *key, const char *value)
{
    check(!PMI2_KVS_Put(key, value), "put");
}
static void fence(void)
{
    check(!PMI2_KVS_Fence(), "fence");
}
static int get(const char *space, const char *key, char value[1024])
{
    int length;
    return !PMI2_KVS_Get(space, PMI2_ID_NULL, key, value, 1024, &length);
}
static int publish(const char *name, const char *port)
{
    return !PMI2_Nameserv_publish(name, NULL, port);
}
static int take_back(const char *name)
{
    return !PMI2_Nameserv_unpublish(name, NULL);
}
static int look_up(const char *name, char port[1024])
{
    return !PMI2_Nameserv_lookup(name, NULL, port, 1024);
}
static int meet(const char *other)
{
    PMI2_Connect_comm_t connection;
    return !PMI2_Job_Connect(other, &connection);
}
static int part(const char *other)
{
    return !PMI2_Job_Disconnect(other);
}
static int spawn(const char *programs[], const char **words[], const int tasks[], char *host, char id[256], int errors[])
{
    struct MPID_Info first[] = {{.key = "host", .value = host}, {.key = "wdir", .value = "/"}};
    struct MPID_Info second[] = {{.key = "host", .value = host}};
    struct MPID_Info greeting = {.key = "greeting", .value = "hello"}, parent = {.key = "parent", .value = job};
    const struct MPID_Info *infos[] = {first, second}, *pairs[] = {&greeting, &parent};
    int counts[] = {2, 1}, numbers[] = {1, 2};
    return !PMI2_Job_Spawn(2, programs, numbers, words, tasks, counts, infos, 2, pairs, id, 256, errors);
}
static void end(void)
{
    check(!PMI2_Finalize(), "finalize");
}
#endif

/* Until somebody publishes it; an alarm ends the program if nobody does. */
static void await(const char *name, char port[1024])
{
    while (!look_up(name, port))
        usleep(1000);
}

static void put_card(void)
{
    char key[64], value[64];
    sprintf(key, "card-%d", rank);
    sprintf(value, "%s-%d", spawned ? "child" : "parent", rank);
    put(key, value);
    fence();
}

static void read_cards(const char *space, const char *whose, int of)
{
    char key[64], value[1024], expected[64];
    for (int other = 0; other < of; other++) {
        sprintf(key, "card-%d", other);
        sprintf(expected, "%s-%d", whose, other);
        check(get(space, key, value) && !strcmp(value, expected), "a card is not what was put");
    }
    check(!get(space, "nobody-puts-this", value), "a card that nobody has put was found");
}

static void be_child(int argc, char **argv)
{
    char parent[1024], value[1024], name[2048], directory[256];
    check(spawned && size == CHILDREN && app == rank / 2, "it is somebody else");
    check(argc == 2 + app && !strcmp(argv[1], "child"), "other arguments");
    check(app == 1 || (getcwd(directory, sizeof directory) && !strcmp(directory, "/")), "another directory");
    check(get(job, "greeting", value) && !strcmp(value, "hello"), "what was put for it");
    check(get(job, "parent", parent), "the name of its parent");
    put_card();
    read_cards(job, "child", CHILDREN);
    read_cards(parent, "parent", 2);
    /* Behind the fence its cards are there for others. */
    sprintf(name, "child-of-%s", parent);
    if (rank == 0)
        check(publish(name, job), "publishing");
    sprintf(name, "parent-of-%s", job);
    await(name, value);
    check(!strcmp(value, parent), "another parent");
    fence();
}

static void be_parent(const char *program, char *host)
{
    const char *programs[] = {program, program}, *missing[] = {program, "/no/such/program"};
    const char *first[] = {"child", NULL}, *second[] = {"child", "second", NULL}, **words[] = {first, second};
    int tasks[] = {2, 1}, too_many[] = {2, 1000}, errors[CHILDREN] = {-1, -1, -1};
    char id[256], child[1024], name[2048], value[1024];
    check(!spawn(missing, words, tasks, host, id, errors), "a program that is missing was started");
    check(!spawn(programs, words, too_many, host, id, (int[1002]){0}), "more tasks than there is room for");
    check(spawn(programs, words, tasks, host, id, errors), "spawn");
    check(!errors[0] && !errors[1] && !errors[2], "a task could not be started");
    sprintf(name, "child-of-%s", job);
    await(name, child);
    check(!id[0] || !strcmp(id, child), "the job has another name");
    check(meet(child), "connect");
    read_cards(child, "child", CHILDREN);
    check(part(child), "disconnect");
    check(!meet("nobody-is-this-job") || PMI == 1, "a job that is not there");
    check(!publish(name, "again"), "a name that is taken is given again");
    check(take_back(name) && !look_up(name, value) && !take_back(name), "a name that was taken back is there");
    sprintf(name, "parent-of-%s", child);
    check(publish(name, job), "publishing");
}

int main(int argc, char **argv)
{
    alarm(40);
    begin();
    if (spawned) {
        be_child(argc, argv);
    } else {
        put_card();
        if (rank == 0)
            be_parent(argv[0], argv[1]);
        fence();
    }
    end();
    printf("%s %d of %d: well\n", spawned ? "child" : "parent", rank, size);
    return 0;
}
