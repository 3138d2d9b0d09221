/* PMI-2 for C: link with -lpmi2 (`pkg-config --cflags --libs pmi2`).
 *
 * The functions are those of Slurm's library, and a program that was compiled against its header runs with this library
 * unchanged. Below them are extensions. Every function returns PMI2_SUCCESS or one of the codes; PMI2_DEBUG=1 in the
 * environment has the reasons said. All may be called by several threads at once. */
#ifndef PMI2_H_INCLUDED
#define PMI2_H_INCLUDED

#ifdef __cplusplus
extern "C" {
#endif

/* What the buffers of callers should hold, with the NUL. */
#define PMI2_MAX_KEYLEN 64
#define PMI2_MAX_VALLEN 1024
#define PMI2_MAX_ATTRVALUE 1024

/* No rank, where one may be given as a hint. */
#define PMI2_ID_NULL -1

#define PMI2_SUCCESS 0
#define PMI2_FAIL -1                /* a fault of the library itself */
#define PMI2_ERR_INIT 1             /* PMI2_Init has not been called, or PMI2_Finalize has */
#define PMI2_ERR_NOMEM 2
#define PMI2_ERR_INVALID_ARG 3      /* null where something must be, or nothing of the kind is under way */
#define PMI2_ERR_INVALID_KEY 4
#define PMI2_ERR_INVALID_KEY_LENGTH 5
#define PMI2_ERR_INVALID_VAL 6
#define PMI2_ERR_INVALID_VAL_LENGTH 7
#define PMI2_ERR_INVALID_LENGTH 8
#define PMI2_ERR_INVALID_NUM_ARGS 9
#define PMI2_ERR_INVALID_ARGS 10
#define PMI2_ERR_INVALID_NUM_PARSED 11
#define PMI2_ERR_INVALID_KEYVALP 12
#define PMI2_ERR_INVALID_SIZE 13
#define PMI2_ERR_OTHER 14           /* the server refuses, or is gone */

/* How another job is reached. This library sets nothing there: its keys are read with PMI2_KVS_Get. */
typedef struct PMI2_Connect_comm {
    int (*read)(void *buffer, int length, void *context);
    int (*write)(const void *buffer, int length, void *context);
    void *ctx;
    int isMaster;
} PMI2_Connect_comm_t;

/* A key and its value, as MPICH 3 has them. Only these two are read. */
typedef struct MPID_Info {
    int handle;
    int pobj_mutex;
    int ref_count;
    struct MPID_Info *next;
    char *key;
    char *value;
} MPID_Info;

/* Connects, once; later calls give the same numbers. A program that was started alone is a job of one. `spawned` is
 * whether another job has started this one; `appnum` is which part of the command this is, or -1. */
int PMI2_Init(int *spawned, int *size, int *rank, int *appnum);
int PMI2_Finalize(void);
int PMI2_Initialized(void);

/* Ends the job, or with a `flag` of 0 this task, and exits with `flag`. */
int PMI2_Abort(int flag, const char msg[]);

/* Puts a pair, which all tasks get after the next fence. */
int PMI2_KVS_Put(const char key[], const char value[]);
/* Waits for all tasks. */
int PMI2_KVS_Fence(void);
/* Gets a value of a job, or with a null `jobid` of this one, that the task `src_pmi_id` or PMI2_ID_NULL has put. The
 * length of one that does not fit is negative; of one that nobody has put, the code is PMI2_ERR_OTHER. */
int PMI2_KVS_Get(const char *jobid, int src_pmi_id, const char key[], char value[], int maxvalue, int *vallen);

int PMI2_Job_GetId(char jobid[], int jobid_size);
int PMI2_Job_GetRank(int *rank);
/* The size of the job, although the name and Slurm's header say otherwise. */
int PMI2_Info_GetSize(int *size);
int PMI2_Job_Connect(const char jobid[], PMI2_Connect_comm_t *conn);
int PMI2_Job_Disconnect(const char jobid[]);
/* Starts a job. `argvs[i]` has `argcs[i]` arguments, without the program's name, and `info_keyval_vectors[i]` is an array
 * of `info_keyval_sizes[i]`; `preput_keyval_vector[i]` points to one pair. `errors` has room for one code of each task. */
int PMI2_Job_Spawn(int count, const char *cmds[], int argcs[], const char **argvs[], const int maxprocs[],
                   const int info_keyval_sizes[], const struct MPID_Info *info_keyval_vectors[],
                   int preput_keyval_size, const struct MPID_Info *preput_keyval_vector[],
                   char jobId[], int jobIdSize, int errors[]);

/* Attributes of the node, which tasks there see at once; with `waitfor`, one that nobody has put is waited for. */
int PMI2_Info_PutNodeAttr(const char name[], const char value[]);
int PMI2_Info_GetNodeAttr(const char name[], char value[], int valuelen, int *found, int waitfor);
int PMI2_Info_GetNodeAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found);
/* Attributes of the job: PMI_process_mapping, universeSize, hasNameServ. */
int PMI2_Info_GetJobAttr(const char name[], char value[], int valuelen, int *found);
int PMI2_Info_GetJobAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found);

/* Names that all jobs of a session look up. */
int PMI2_Nameserv_publish(const char service_name[], const struct MPID_Info *info_ptr, const char port[]);
int PMI2_Nameserv_lookup(const char service_name[], const struct MPID_Info *info_ptr, char port[], int portLen);
int PMI2_Nameserv_unpublish(const char service_name[], const struct MPID_Info *info_ptr);

/* A ring of all tasks: `rank` is the number in it, and `left` and `right` get the values of the neighbours. */
#define HAVE_PMIX_RING 1
int PMIX_Ring(const char value[], int *rank, int *ranks, char left[], char right[], int maxvalue);

/* All tasks bring a value and get everybody's. `buffer` has PMI2_MAX_VALLEN bytes for each task of the job: the value of
 * rank r, which ends with a NUL, is at r * PMI2_MAX_VALLEN. It is empty for a task that has ended. */
#define HAVE_PMIX_ALLGATHER 1
int PMIX_Allgather(const char value[], void *buffer);

/* A collective that was begun: one fence and one allgather may be under way at once. */
typedef unsigned long long PMIX_Request;
#define PMIX_REQUEST_NULL 0ULL

/* Begins an allgather. `buffer` is filled when PMIX_Wait returns, and must be left alone until then. */
#define HAVE_PMIX_IALLGATHER 1
int PMIX_Iallgather(const char value[], void *buffer, PMIX_Request *request);
/* Begins a fence. Until PMIX_Wait has returned, the functions PMI2_KVS_... return PMI2_ERR_OTHER; all others may be
 * called. */
#define HAVE_PMIX_KVS_IFENCE 1
int PMIX_KVS_Ifence(PMIX_Request *request);
/* Waits for the end of what was begun, and makes the request PMIX_REQUEST_NULL. */
#define HAVE_PMIX_WAIT 1
int PMIX_Wait(PMIX_Request *request);

/* The same by the names of MVAPICH. */
#define HAVE_PMI2_KVS_IFENCE 1
int PMI2_KVS_Ifence(void);
#define HAVE_PMI2_KVS_WAIT 1
int PMI2_KVS_Wait(void);
#define HAVE_PMI2_IALLGATHER 1
int PMI2_Iallgather(const char value[]);
#define HAVE_PMI2_IALLGATHER_WAIT 1
int PMI2_Iallgather_wait(void *buffer);
/* The same where the library has the room: `buffer` is set to it, and the values are there until the next call. */
#define HAVE_PMI2_SHMEM_IALLGATHER 1
int PMI2_SHMEM_Iallgather(const char value[]);
#define HAVE_PMI2_SHMEM_IALLGATHER_WAIT 1
int PMI2_SHMEM_Iallgather_wait(void **buffer);

#ifdef __cplusplus
}
#endif

#endif
