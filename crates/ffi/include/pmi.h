/* PMI-1 for C: link with -lpmi (`pkg-config --cflags --libs pmi`).
 *
 * The functions are those of Slurm's library, and a program that was compiled against its header runs with this library
 * unchanged, but for two limits of the protocol: names, keys and values have neither blanks nor line ends. Every function
 * returns PMI_SUCCESS or one of the codes; PMI_DEBUG=1 in the environment has the reasons said. All may be called by
 * several threads at once. */
#ifndef PMI_H
#define PMI_H

#ifdef __cplusplus
extern "C" {
#endif

#define PMI_SUCCESS 0
#define PMI_FAIL -1                 /* the server refuses, or is gone, or PMI_Init has not been called */
#define PMI_ERR_INIT 1
#define PMI_ERR_NOMEM 2
#define PMI_ERR_INVALID_ARG 3
#define PMI_ERR_INVALID_KEY 4       /* also of a key that nobody has put */
#define PMI_ERR_INVALID_KEY_LENGTH 5
#define PMI_ERR_INVALID_VAL 6
#define PMI_ERR_INVALID_VAL_LENGTH 7
#define PMI_ERR_INVALID_LENGTH 8    /* the room is too small */
#define PMI_ERR_INVALID_NUM_ARGS 9
#define PMI_ERR_INVALID_ARGS 10
#define PMI_ERR_INVALID_NUM_PARSED 11
#define PMI_ERR_INVALID_KEYVALP 12
#define PMI_ERR_INVALID_SIZE 13
#define PMI_ERR_INVALID_KVS 14

typedef int PMI_BOOL;
#define PMI_TRUE 1
#define PMI_FALSE 0

typedef struct PMI_keyval_t {
    char *key;
    char *val;
} PMI_keyval_t;

/* Connects, once. A program that was started alone is a job of one. `spawned` is whether another job has started it. */
int PMI_Init(int *spawned);
int PMI_Initialized(PMI_BOOL *initialized);
int PMI_Finalize(void);
/* Ends the job with this status. */
int PMI_Abort(int exit_code, const char error_msg[]);

int PMI_Get_size(int *size);
int PMI_Get_rank(int *rank);
int PMI_Get_universe_size(int *size);
/* Which part of the command this is, or -1. */
int PMI_Get_appnum(int *appnum);
/* The ranks on this node. */
int PMI_Get_clique_size(int *size);
int PMI_Get_clique_ranks(int ranks[], int length);
/* The job's id is the name of its space of keys. */
int PMI_Get_id(char id_str[], int length);
int PMI_Get_kvs_domain_id(char id_str[], int length);
int PMI_Get_id_length_max(int *length);

/* Waits for all tasks: what was put is then everybody's. */
int PMI_Barrier(void);
/* The same in two steps, by the names of MVAPICH. */
#define HAVE_PMI_IBARRIER 1
int PMI_Ibarrier(void);
#define HAVE_PMI_WAIT 1
int PMI_Wait(void);

/* How much room things need, with the NUL. */
int PMI_KVS_Get_name_length_max(int *length);
int PMI_KVS_Get_key_length_max(int *length);
int PMI_KVS_Get_value_length_max(int *length);
int PMI_KVS_Get_my_name(char kvsname[], int length);
int PMI_KVS_Create(char kvsname[], int length);
int PMI_KVS_Destroy(const char kvsname[]);
int PMI_KVS_Put(const char kvsname[], const char key[], const char value[]);
/* Nothing is left to do: a put is sent at once. */
int PMI_KVS_Commit(const char kvsname[]);
int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length);
/* All pairs of a space, behind which the key is empty. */
int PMI_KVS_Iter_first(const char kvsname[], char key[], int key_len, char val[], int val_len);
int PMI_KVS_Iter_next(const char kvsname[], char key[], int key_len, char val[], int val_len);

/* Names that all jobs of a session look up. A port has up to 1,023 bytes. */
int PMI_Publish_name(const char service_name[], const char port[]);
int PMI_Unpublish_name(const char service_name[]);
int PMI_Lookup_name(const char service_name[], char port[]);

/* Starts a job. `argvs[i]`, if it is not null, ends with null; `errors` has room for one code of each task. */
int PMI_Spawn_multiple(int count, const char *cmds[], const char **argvs[], const int maxprocs[],
                       const int info_keyval_sizesp[], const PMI_keyval_t *info_keyval_vectors[],
                       int preput_keyval_size, const PMI_keyval_t preput_keyval_vector[], int errors[]);

/* Pairs of a command line, given back by PMI_Free_keyvals: `PMI_KEY=VALUE` words at the front of `args`, and all options
 * with their values. */
int PMI_Parse_option(int num_args, char *args[], int *num_parsed, PMI_keyval_t **keyvalp, int *size);
int PMI_Args_to_keyval(int *argcp, char *((*argvp)[]), PMI_keyval_t **keyvalp, int *size);
int PMI_Free_keyvals(PMI_keyval_t keyvalp[], int size);
/* What options there are, in words; PMI_ERR_NOMEM where they do not fit. */
int PMI_Get_options(char *str, int *length);

#ifdef __cplusplus
}
#endif

#endif
