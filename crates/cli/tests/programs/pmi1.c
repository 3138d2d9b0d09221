/* What a PMI-1 program does with the client library of Slurm, compiled against its header: every rank puts a card, meets
 * the others, reads all cards, walks through them, learns who is on its node, and shares a space of keys and a name. */
#define _GNU_SOURCE
#include <slurm/pmi.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static char job[256];

static void check(int is_well, const char *what)
{
    if (!is_well) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        exit(1);
    }
}

static void returns(int expected, int code, const char *what)
{
    if (code != expected) {
        fprintf(stderr, "rank %d: %s returned %d, and not %d\n", rank, what, code, expected);
        exit(1);
    }
}

static void call(int code, const char *what)
{
    returns(PMI_SUCCESS, code, what);
}

/* The longest value that every server takes. */
static void card_of(int of, char value[1024])
{
    memset(value, 'a' + of % 26, 1023);
    value[1023] = 0;
    int bytes = sprintf(value, "card=of=%d", of);
    value[bytes] = '-';
}

static void know_each_other(void)
{
    int name_max, key_max, value_max, universe, app, clique, i, is_in = 0;
    char id[256];
    call(PMI_KVS_Get_name_length_max(&name_max), "longest name");
    call(PMI_KVS_Get_key_length_max(&key_max), "longest key");
    call(PMI_KVS_Get_value_length_max(&value_max), "longest value");
    check(name_max == 256 && key_max == 64, "other limits than the server's");
    check(value_max == 1024 || value_max == (1 << 18) + 1, "neither the server's limit nor that of an inherited connection");
    call(PMI_Get_universe_size(&universe), "universe");
    check(universe >= size, "a universe smaller than the job");
    call(PMI_Get_appnum(&app), "appnum");
    check(app == 0, "another part of the command");
    call(PMI_Get_id(id, sizeof id), "id");
    check(!strcmp(id, job), "the id is not the name of the space");
    returns(PMI_ERR_INVALID_LENGTH, PMI_Get_id(id, 3), "an id that does not fit");
    call(PMI_Get_clique_size(&clique), "number of neighbours");
    check(clique == atoi(getenv("MPI_LOCALNRANKS")), "another number of neighbours");
    int *ranks = calloc(clique, sizeof *ranks);
    call(PMI_Get_clique_ranks(ranks, clique), "neighbours");
    returns(PMI_ERR_INVALID_LENGTH, PMI_Get_clique_ranks(ranks, clique - 1), "too few neighbours");
    for (i = 0; i < clique; i++)
        is_in += ranks[i] == rank;
    check(is_in == 1, "no neighbour of itself");
    free(ranks);
}

static void exchange(void)
{
    char key[64], value[1024], expected[1024];
    int of, pairs = 0;
    sprintf(key, "card-%d", rank);
    card_of(rank, value);
    call(PMI_KVS_Put(job, key, value), "put");
    call(PMI_KVS_Commit(job), "commit");
    call(PMI_Barrier(), "barrier");
    for (of = 0; of < size; of++) {
        sprintf(key, "card-%d", of);
        card_of(of, expected);
        call(PMI_KVS_Get(job, key, value, sizeof value), "get");
        check(!strcmp(value, expected), "a card is not what was put");
    }
    returns(PMI_ERR_INVALID_LENGTH, PMI_KVS_Get(job, key, value, 1023), "a value that does not fit");
    returns(PMI_ERR_INVALID_KEY, PMI_KVS_Get(job, "nobody-puts-this", value, sizeof value), "a get of none");
    returns(PMI_ERR_INVALID_VAL, PMI_KVS_Put(job, "key", "two words"), "a value with a blank");
    returns(PMI_ERR_INVALID_KEY, PMI_KVS_Put(job, NULL, "value"), "no key");
    for (int code = PMI_KVS_Iter_first(job, key, sizeof key, value, sizeof value); key[0];
         code = PMI_KVS_Iter_next(job, key, sizeof key, value, sizeof value)) {
        call(code, "walk");
        pairs += !strncmp(key, "card-", 5);
    }
    check(pairs == size, "a walk does not come past all cards");
}

/* Rank 0 makes a space and publishes a name, and tells nobody but through the cards. */
static void share(void)
{
    char space[256], value[1024], port[1024], service[512];
    sprintf(service, "service-of-%s", job);
    if (rank == 0) {
        call(PMI_KVS_Create(space, sizeof space), "making of a space");
        call(PMI_KVS_Put(job, "space", space), "put of its name");
        call(PMI_KVS_Put(space, "key", "in-another-space"), "put there");
        call(PMI_Publish_name(service, "port=1"), "publishing");
    }
    call(PMI_Barrier(), "barrier");
    call(PMI_KVS_Get(job, "space", space, sizeof space), "get of a space's name");
    call(PMI_KVS_Get(space, "key", value, sizeof value), "get there");
    check(!strcmp(value, "in-another-space"), "another space has another value");
    call(PMI_Lookup_name(service, port), "lookup");
    check(!strcmp(port, "port=1"), "another port");
    returns(PMI_FAIL, PMI_Lookup_name("nobody-publishes-this", port), "lookup of none");
    call(PMI_Barrier(), "barrier");
    if (rank == 0)
        call(PMI_Unpublish_name(service), "taking back");
}

/* No server is needed for these. */
static void parse(void)
{
    char *words[] = {"PMI_A=1", "PMI_B=x=y", "-n", "4"}, *command[] = {"./program", "-n", "4", "-v"};
    PMI_keyval_t *pairs;
    int parsed, count, argc = 4;
    char text[256];
    call(PMI_Parse_option(4, words, &parsed, &pairs, &count), "parsing");
    check(parsed == 2 && count == 2 && !strcmp(pairs[1].key, "PMI_B") && !strcmp(pairs[1].val, "x=y"), "other options");
    call(PMI_Free_keyvals(pairs, count), "freeing");
    call(PMI_Parse_option(2, words + 2, &parsed, &pairs, &count), "parsing of none");
    check(parsed == 0 && count == 0, "options that are none");
    call(PMI_Free_keyvals(pairs, count), "freeing of none");
    call(PMI_Args_to_keyval(&argc, (char *((*)[]))command, &pairs, &count), "arguments");
    check(count == 3 && !pairs[0].key && !strcmp(pairs[1].val, "4") && !pairs[2].val, "other arguments");
    call(PMI_Free_keyvals(pairs, count), "freeing");
    int length = sizeof text;
    call(PMI_Get_options(text, &length), "options in words");
    length = 4;
    returns(PMI_ERR_NOMEM, PMI_Get_options(text, &length), "options in few words");
}

/* The names of MVAPICH for a barrier in two steps. */
static void meet_in_two_steps(void)
{
    char value[1024];
    int (*begin)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PMI_Ibarrier");
    int (*wait)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PMI_Wait");
    check(begin && wait, "this is not the library of Convoke");
    call(begin(), "begin of a barrier");
    call(PMI_KVS_Get(job, "card-0", value, sizeof value), "get meanwhile");
    call(wait(), "its end");
    returns(PMI_FAIL, wait(), "its end again");
}

int main(void)
{
    int spawned, is_initialized;
    char host[256];
    returns(PMI_FAIL, PMI_Get_rank(&rank), "rank before the beginning");
    call(PMI_Init(&spawned), "init");
    call(PMI_Initialized(&is_initialized), "initialized");
    call(PMI_Get_rank(&rank), "rank");
    call(PMI_Get_size(&size), "size");
    check(is_initialized && !spawned, "it is somebody else");
    call(PMI_KVS_Get_my_name(job, sizeof job), "name of the space");
    know_each_other();
    exchange();
    /* Who was started alone has nobody to share with. */
    if (size > 1)
        share();
    parse();
    meet_in_two_steps();
    call(PMI_Finalize(), "finalize");
    call(PMI_Initialized(&is_initialized), "initialized");
    check(!is_initialized, "initialized after its end");
    gethostname(host, sizeof host);
    printf("rank %d of %d on %s: well, with Convoke's library\n", rank, size, host);
    return 0;
}
