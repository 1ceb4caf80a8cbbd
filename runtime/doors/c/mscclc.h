/* libmscclc: collectives by proved plans, for C programs and for languages that call C.
 *
 *   mscclc_unique_id_t id;                             // one process makes it, and sends it to all
 *   mscclc_unique_id(&id);
 *   mscclc_comm_t *comm;
 *   mscclc_comm_create(&comm, ranks, &id, rank, NULL);             // all ranks
 *   mscclc_allreduce(comm, in, out, count, MSCCLC_F16, MSCCLC_SUM, stream);
 *   mscclc_stream_synchronize(comm, stream);
 *   mscclc_comm_destroy(comm);
 *
 * Results. Every function that can fail says how; mscclc_last_error() then has the reasons, as
 * text, until the thread's next call that fails. Nothing is printed, unless MSCCLC_DEBUG asks for a
 * log.
 *
 * Handles are opaque. A function that gets NULL, or a handle that it has not been given (one that
 * was destroyed, as long as no other has come to its place), answers MSCCLC_INVALID_ARGUMENT and
 * does nothing; but destroying NULL is a success. Destroying a handle that another thread is inside
 * of a function with is MSCCLC_INVALID_USAGE, and changes nothing. Destroying one twice after
 * another was made is undefined, as with free().
 *
 * Threads. A communicator, and the plans and buffers of it, are for one thread at a time; a second
 * one that enters meanwhile gets MSCCLC_INVALID_USAGE, and the first is not disturbed. Threads may
 * take turns; that all ranks then make the same calls in one order is the caller's affair.
 * Different communicators are independent. The functions that any thread may call at any time say
 * so. After fork() the child may not use what the parent has made, except unique ids: it gets
 * MSCCLC_INVALID_USAGE, also where it destroys it, and the parent is not disturbed.
 *
 * Collective functions must be called by all ranks of the communicator in the same order. Where one
 * rank cannot do its part, all of them fail.
 *
 * Streams are cudaStream_t of the communicator's GPU; on the host device, of
 * mscclc_stream_create(), where NULL is none. Sizes are in bytes where they are called bytes, and
 * in elements where they are called count.
 *
 * No thread may be cancelled (pthread_cancel) inside a function, and no C++ exception may leave a
 * callback: the library has a C++ runtime of its own, and either ends the process.
 *
 * Structs begin with their size, as the caller was compiled with it: set it by the macros. Later
 * versions add members at the end, and functions; they change and remove none (docs/c_api.md). */
#ifndef MSCCLC_H_
#define MSCCLC_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MSCCLC_API __attribute__((visibility("default")))
#else
#define MSCCLC_API
#endif

/* ---- Results ---- */
typedef int32_t mscclc_result_t;
enum mscclc_result {
  MSCCLC_SUCCESS = 0,
  MSCCLC_INVALID_ARGUMENT = 1, /* this call's arguments; nothing was done */
  MSCCLC_INVALID_USAGE = 2,    /* not now, ranks that do different things, or a wrong variable */
  MSCCLC_NO_PLAN = 3,          /* no plan serves the call, or there is no plan of this name */
  MSCCLC_NOT_PROVED = 4,     /* a program or plan is wrong: it does not compile, or is not proved */
  MSCCLC_PEER_FAILED = 5,    /* another rank has died, given up or could not do its part */
  MSCCLC_TIMEOUT = 6,        /* ranks did not come, or a call hangs */
  MSCCLC_ABORTED = 7,        /* mscclc_comm_abort() was called */
  MSCCLC_OUT_OF_MEMORY = 8,  /* of the device or the host; or descriptors or threads */
  MSCCLC_SYSTEM_ERROR = 9,   /* driver, files, network */
  MSCCLC_INTERNAL_ERROR = 10 /* a mistake of this library */
};

/* A fixed text for a result, "no plan"; of no result, "unknown result". Never NULL. Any thread. */
MSCCLC_API const char *mscclc_result_text(mscclc_result_t result);
/* Why the last call of this thread that failed has failed: one or more lines; "" if none has. Valid
 * until the thread's next call that fails. Never NULL. Any thread. */
MSCCLC_API const char *mscclc_last_error(void);
/* "1.2.3", of the library that runs. Any thread. */
MSCCLC_API const char *mscclc_version(void);

/* Gets the lines of the log, without their ends, whatever MSCCLC_DEBUG_FILE says. Which lines there
 * are, MSCCLC_DEBUG and MSCCLC_DEBUG_SUBSYS say. Called by a thread of this library, one call at a
 * time, soon after the line was written; it may call this library. If it takes so long that more
 * than 10000 lines wait, some are lost, and a line says how many. NULL: lines go to the file again.
 * Any thread. When it returns, the callback before it has had its lines and is not called any more;
 * in that callback itself it does not wait, and lines that are left go where they go now. A process
 * that ends while a callback is set gives it a second for the lines that it has not had. */
typedef void (*mscclc_log_fn)(void *user, const char *line);
MSCCLC_API mscclc_result_t mscclc_set_log(mscclc_log_fn log, void *user);

/* ---- Types ---- */
typedef int32_t mscclc_dtype_t;
enum mscclc_dtype {
  MSCCLC_F32 = 0,
  MSCCLC_F16 = 1,
  MSCCLC_BF16 = 2,
  MSCCLC_F64 = 3,
  MSCCLC_I32 = 4,
  MSCCLC_U32 = 5,
  MSCCLC_I64 = 6,
  MSCCLC_U64 = 7,
  MSCCLC_I8 = 8,
  MSCCLC_U8 = 9,
  MSCCLC_E4M3 = 10,
  MSCCLC_E5M2 = 11,
  MSCCLC_E4M3B15 = 12,
  MSCCLC_DTYPE_DEFAULT = -1 /* as type to add up in: the data type's own */
};

/* MSCCLC_AVG divides by the number of ranks. */
typedef int32_t mscclc_op_t;
enum mscclc_op { MSCCLC_SUM = 1, MSCCLC_MIN = 2, MSCCLC_MAX = 3, MSCCLC_PROD = 4, MSCCLC_AVG = 5 };

typedef int32_t mscclc_kind_t;
enum mscclc_kind {
  MSCCLC_ALLREDUCE = 1,
  MSCCLC_REDUCE = 2,
  MSCCLC_ALLGATHER = 3,
  MSCCLC_GATHER = 4,
  MSCCLC_REDUCESCATTER = 5,
  MSCCLC_ALLTOALL = 6,
  MSCCLC_ALLTOALLV = 7,
  MSCCLC_BROADCAST = 8,
  MSCCLC_SCATTER = 9,
  MSCCLC_SENDRECV = 10,
  MSCCLC_BARRIER = 11
};

typedef struct mscclc_comm mscclc_comm_t;
typedef struct mscclc_registry mscclc_registry_t;
typedef struct mscclc_plan mscclc_plan_t;
typedef struct mscclc_memory mscclc_memory_t;
typedef void *mscclc_stream_t;

/* ---- Communicators ---- */
/* A text that ends with 0; all 128 bytes may be copied. */
typedef struct mscclc_unique_id {
  char text[128];
} mscclc_unique_id_t;

#define MSCCLC_HOST (-1)
/* What the bits of sums keep to (docs/bits.md). */
typedef int32_t mscclc_order_t;
enum mscclc_order {
  MSCCLC_ORDER_DEFAULT = 0, /* of a call: as its communicator says; of that: as MSCCLC_ORDER says */
  MSCCLC_ORDER_ANY,
  MSCCLC_ORDER_REPLICATED,
  MSCCLC_ORDER_RANKS,
  MSCCLC_ORDER_TREE,
  MSCCLC_ORDER_EXACT
};

/* How a rank takes part. Begin with MSCCLC_CONFIG_INIT. */
typedef struct mscclc_config {
  size_t size;
  /* The GPU, as cudaSetDevice() numbers it; MSCCLC_HOST: this machine's processor and memory. */
  int32_t device;
  /* How long ranks wait for one another, in milliseconds; 0: as MSCCLC_TIMEOUT says. That of the
   * process that made the unique id bounds it, too. */
  uint32_t timeout_ms;
  /* Allreduces of up to so many bytes find their plans loaded when create() returns. */
  uint64_t ready_bytes;
  /* Where plans come from; NULL: the registry of the process, or the parent's in
   * mscclc_comm_split(). It may be destroyed at once. */
  mscclc_registry_t *registry;
  /* So many communicators of the GPU, this one counted, make calls in orders that ranks differ in,
   * as those of messages do. Each gets plans whose thread blocks have room beside those of the
   * others, or calls might wait for one another's. 0: only this one. The same on all ranks. */
  uint64_t beside;
  /* What the bits of sums keep to, of calls that do not say it. The same on all ranks. */
  mscclc_order_t order;
  /* Not 0: the process ends (SIGABRT) as soon as a call of this rank was cut short, as another rank
   * has failed or it waited too long, unless a function has returned an error before. What follows
   * on the stream would take incomplete data for whole. */
  uint64_t ends_process;
} mscclc_config_t;
#define MSCCLC_CONFIG_INIT \
  { sizeof(mscclc_config_t), 0, 0, 0, NULL, 0, 0, 0 }

/* A key-value store that all ranks share: c10d's, Redis, files, MPI. Callbacks answer 0, or
 * anything else where they fail; they are called in the thread of mscclc_comm_create_store(). */
typedef struct mscclc_store {
  size_t size;
  void *user;
  int (*set)(void *user, const char *key, const void *value, size_t bytes);
  /* Waits for the key, at most timeout_ms or until given_up. *bytes: the room, then the length. */
  int (*get)(void *user, const char *key, void *value, size_t *bytes, uint32_t timeout_ms);
  /* The key is not needed any more. May be NULL. */
  int (*remove)(void *user, const char *key);
  /* Not 0: this rank waits no longer for ranks that have not come, which learn it. May be NULL. */
  int (*given_up)(void *user);
} mscclc_store_t;
#define MSCCLC_STORE_INIT \
  { sizeof(mscclc_store_t), NULL, NULL, NULL, NULL, NULL }

/* Makes an id of a communicator that is to be, and serves it: the process must live until all ranks
 * have come. They are waited for as long as this process' MSCCLC_TIMEOUT says. Any thread. */
MSCCLC_API mscclc_result_t mscclc_unique_id(mscclc_unique_id_t *id);

/* Collective over the `ranks` ranks of an id, each its own `rank`; an id is for one communicator.
 * NULL config: MSCCLC_CONFIG_INIT. *comm is NULL after an error. Any thread. */
MSCCLC_API mscclc_result_t mscclc_comm_create(mscclc_comm_t **comm, uint32_t ranks,
                                              const mscclc_unique_id_t *id, uint32_t rank,
                                              const mscclc_config_t *config);
/* The same for a process that torchrun, mpirun or srun has started, or that has MSCCLC_RANK and
 * MSCCLC_WORLD_SIZE. `name` distinguishes communicators that a job makes at the same time; NULL:
 * "". The GPU is the config's, not the launcher's. */
MSCCLC_API mscclc_result_t mscclc_comm_create_env(mscclc_comm_t **comm, const char *name,
                                                  const mscclc_config_t *config);
/* The same for ranks that share a store. `name`, at most 200 bytes, is put before all keys: one
 * that no communicator of this store has had, nor one that could not be made: its reason stays. */
MSCCLC_API mscclc_result_t mscclc_comm_create_store(mscclc_comm_t **comm, uint32_t ranks,
                                                    uint32_t rank, const mscclc_store_t *store,
                                                    const char *name,
                                                    const mscclc_config_t *config);
/* Collective: ranks with the same color, not negative, form a new communicator, in the order of
 * their keys, then of their ranks here. A negative color: *child is NULL. NULL config: the
 * parent's. Parent and child live independently. */
MSCCLC_API mscclc_result_t mscclc_comm_split(mscclc_comm_t *comm, int32_t color, int32_t key,
                                             mscclc_comm_t **child, const mscclc_config_t *config);

MSCCLC_API mscclc_result_t mscclc_comm_rank(const mscclc_comm_t *comm, uint32_t *rank);
MSCCLC_API mscclc_result_t mscclc_comm_size(const mscclc_comm_t *comm, uint32_t *ranks);
MSCCLC_API mscclc_result_t mscclc_comm_device(const mscclc_comm_t *comm, int32_t *device);

/* Whether the communicator has failed: MSCCLC_SUCCESS, or what has happened. Does not wait. Any
 * thread, at any time before mscclc_comm_destroy(). */
MSCCLC_API mscclc_result_t mscclc_comm_async_error(const mscclc_comm_t *comm);
/* Ends all calls of all ranks; the others report `why`; NULL: "aborted". The communicator can only
 * be destroyed then. Does not wait for other ranks. Any thread, at any time before
 * mscclc_comm_destroy(). */
MSCCLC_API mscclc_result_t mscclc_comm_abort(mscclc_comm_t *comm, const char *why);
/* Waits until all that the communicator has launched has ended; it takes no more calls. Twice:
 * MSCCLC_INVALID_USAGE. */
MSCCLC_API mscclc_result_t mscclc_comm_finalize(mscclc_comm_t *comm);
/* Frees it, with its plans; waits for what it has launched, but not for other ranks. Graphs that
 * hold its calls must not be launched any more. */
MSCCLC_API mscclc_result_t mscclc_comm_destroy(mscclc_comm_t *comm);

/* ---- Memory and streams ---- */
/* Device memory, zeros, that peers can map; any allocator's will do for calls, too. Lives until the
 * last release; it may outlive the communicator. Local. */
MSCCLC_API mscclc_result_t mscclc_memory_create(mscclc_comm_t *comm, size_t bytes,
                                                mscclc_memory_t **memory);
/* Any thread. NULL for what is no memory. */
MSCCLC_API void *mscclc_memory_address(const mscclc_memory_t *memory);
MSCCLC_API size_t mscclc_memory_bytes(const mscclc_memory_t *memory);
/* One more owner, and one less. Any thread. */
MSCCLC_API mscclc_result_t mscclc_memory_retain(mscclc_memory_t *memory);
MSCCLC_API mscclc_result_t mscclc_memory_release(mscclc_memory_t *memory);

/* Copies between memory of the host and of the device, and waits for that, not for streams. */
MSCCLC_API mscclc_result_t mscclc_write(mscclc_comm_t *comm, void *to, const void *from,
                                        size_t bytes);
MSCCLC_API mscclc_result_t mscclc_read(mscclc_comm_t *comm, void *to, const void *from,
                                       size_t bytes);

/* Collective: makes memory known to all ranks, for mscclc_call_t::registered; sizes may differ. It
 * must live until all ranks have deregistered it. Where it overlaps what was registered before, it
 * does so alike on all ranks. */
MSCCLC_API mscclc_result_t mscclc_register(mscclc_comm_t *comm, void *address, size_t bytes,
                                           uint64_t *registration);
/* Where this process reads and writes what `rank` has registered, and how many bytes, until that
 * ends here. *address is NULL where no access leads to that rank, or there are no bytes. Local. */
MSCCLC_API mscclc_result_t mscclc_registered_address(mscclc_comm_t *comm, uint64_t registration,
                                                     uint32_t rank, void **address, size_t *bytes);
/* On all ranks; does not wait. */
MSCCLC_API mscclc_result_t mscclc_deregister(mscclc_comm_t *comm, uint64_t registration);

/* A stream of the communicator's device; to be destroyed before the communicator. */
MSCCLC_API mscclc_result_t mscclc_stream_create(mscclc_comm_t *comm, mscclc_stream_t *stream);
MSCCLC_API mscclc_result_t mscclc_stream_destroy(mscclc_comm_t *comm, mscclc_stream_t stream);
/* Waits for all work on a stream, and reports what has gone wrong in its calls. */
MSCCLC_API mscclc_result_t mscclc_stream_synchronize(mscclc_comm_t *comm, mscclc_stream_t stream);
/* Marks the end of what is on a stream by now. Numbers of a stream's marks grow; 0: none, as it is
 * captured. `reached`: the last one before which all work is known to have ended. Does not wait. */
MSCCLC_API mscclc_result_t mscclc_stream_mark(mscclc_comm_t *comm, mscclc_stream_t stream,
                                              uint64_t *mark, uint64_t *reached);

/* ---- Collectives ----
 *
 * They return when the work is queued; the first call that needs a plan also waits for the other
 * ranks, which load it, too. All may be captured in a CUDA graph, the first ones as well. Buffers
 * are of the device, aligned to nothing more than their elements, and in place where NCCL allows
 * it. Calls of a communicator run in their order, whatever their streams. */

/* A type that only externals have: powers of two, without a sign. */
#define MSCCLC_E8M0 64
/* An external of a plan with row functions: a tensor whose rows follow one another without gaps, or
 * a scalar. What the plan declares of it must be so. */
typedef struct mscclc_external {
  const char *name;
  void *data; /* of the device: rows and columns at multiples of 16 bytes, others of their own.
               * NULL: a scalar that is `value` */
  mscclc_dtype_t dtype; /* or MSCCLC_E8M0; where the plan says T, the call's */
  float value;          /* rounded to dtype */
  uint64_t rows;        /* at least those of the call; of what has none, 1 */
  uint64_t columns;     /* values in a row: of groups their number, of tokens and scalars 1 */
  uint64_t reserved;    /* 0 */
} mscclc_external_t;

/* An array of flags of a plan that overlaps with other work, a GEMM say. All calls of a loaded plan
 * have the same arrays, whose words are 0 when the first one is launched. */
typedef struct mscclc_flags {
  const char *name;
  void *words;       /* of the device, at a multiple of a word's size: both sides change them */
  uint64_t count;    /* of words: at least as many as the plan has flags */
  uint32_t bits;     /* of a word: 32 or 64 */
  uint32_t reserved; /* 0 */
} mscclc_flags_t;

/* What the caller promises of a plan with flags, and of the side that raises or awaits them. The
 * last is for all plans whose ranks do not meet in calls: the call is only compared. */
typedef int32_t mscclc_launch_order_t;
enum {
  MSCCLC_OTHER_FIRST = 0, /* nothing: the other side may hold its room before the plan has begun */
  MSCCLC_PLAN_FIRST = 1,  /* all of the plan's blocks are resident before the other side begins */
  MSCCLC_OTHER_ONLY = 2   /* something else does it, at all ranks: nothing is launched */
};

typedef struct mscclc_call {
  size_t size;
  mscclc_kind_t kind;
  mscclc_dtype_t dtype;
  mscclc_op_t op;            /* of allreduce, reduce and reducescatter */
  mscclc_dtype_t accumulate; /* the type to add up in, or MSCCLC_DTYPE_DEFAULT */
  uint32_t root;             /* of reduce, gather, broadcast and scatter */
  int32_t registered; /* not 0: both buffers are registered, at the same offsets on all ranks; a
                       * call of a rank that breaks this promise is refused (call-differs) */
  int64_t shift;      /* of sendrecv: to the rank so many places on, and from so many back */
  uint64_t count;     /* elements of one rank's part, as NCCL counts them */
  const void *input;
  void *output;
  const uint64_t *counts;         /* of alltoallv: ranks * ranks; [s * ranks + d] go from s to d */
  const uint64_t *input_offsets;  /* of alltoallv: where each rank's row begins, in elements; */
  const uint64_t *output_offsets; /*   NULL: rows follow one another */
  const char *tag;                /* plans with tags serve only calls with one of them; or NULL */
  mscclc_order_t order; /* of allreduce, reduce and reducescatter; the same on all ranks */
  const mscclc_external_t *externals; /* of mscclc_plan_launch(): each that the plan declares */
  size_t externals_count;
  const mscclc_flags_t *flags; /* of mscclc_plan_launch(): each array that the plan declares */
  size_t flags_count;
  uint32_t budget; /* of a plan with flags: what it may hold of multiprocessors; 0: not known */
  mscclc_launch_order_t launch_order;
} mscclc_call_t;
#define MSCCLC_CALL_INIT                                                                          \
  {                                                                                               \
    sizeof(mscclc_call_t), MSCCLC_BARRIER, MSCCLC_F32, MSCCLC_SUM, MSCCLC_DTYPE_DEFAULT, 0, 0, 1, \
        0, NULL, NULL, NULL, NULL, NULL, NULL, MSCCLC_ORDER_DEFAULT, NULL, 0, NULL, 0, 0,         \
        MSCCLC_OTHER_FIRST                                                                        \
  }

/* Any collective, with all that can be said of it. */
MSCCLC_API mscclc_result_t mscclc_collective(mscclc_comm_t *comm, const mscclc_call_t *call,
                                             mscclc_stream_t stream);
/* The name of the plan that serves a call, and why; MSCCLC_NO_PLAN: none does. *text, lines that
 * end with 0, is to be freed by mscclc_free(): the plan's name, then why it; or a line for each
 * plan that was passed over. A call that needs no plan gives "". Local; loads nothing. Here and in
 * mscclc_waits(), a buffer that is NULL lies apart from the other. */
MSCCLC_API mscclc_result_t mscclc_choose(mscclc_comm_t *comm, const mscclc_call_t *call,
                                         int32_t capturing, char **text);
/* *waits: 1 if the call would wait for the other ranks on the host, as the first that needs its
 * plan does; else 0. Of buffers that are not registered, where they lie does not matter. Local. */
MSCCLC_API mscclc_result_t mscclc_waits(mscclc_comm_t *comm, const mscclc_call_t *call,
                                        mscclc_stream_t stream, int32_t *waits);

MSCCLC_API mscclc_result_t mscclc_allreduce(mscclc_comm_t *comm, const void *input, void *output,
                                            uint64_t count, mscclc_dtype_t dtype, mscclc_op_t op,
                                            mscclc_stream_t stream);
MSCCLC_API mscclc_result_t mscclc_reduce(mscclc_comm_t *comm, const void *input, void *output,
                                         uint64_t count, mscclc_dtype_t dtype, mscclc_op_t op,
                                         uint32_t root, mscclc_stream_t stream);
/* `count` elements of each rank. */
MSCCLC_API mscclc_result_t mscclc_allgather(mscclc_comm_t *comm, const void *input, void *output,
                                            uint64_t count, mscclc_dtype_t dtype,
                                            mscclc_stream_t stream);
MSCCLC_API mscclc_result_t mscclc_gather(mscclc_comm_t *comm, const void *input, void *output,
                                         uint64_t count, mscclc_dtype_t dtype, uint32_t root,
                                         mscclc_stream_t stream);
/* `count` elements to each rank. */
MSCCLC_API mscclc_result_t mscclc_reducescatter(mscclc_comm_t *comm, const void *input,
                                                void *output, uint64_t count, mscclc_dtype_t dtype,
                                                mscclc_op_t op, mscclc_stream_t stream);
MSCCLC_API mscclc_result_t mscclc_scatter(mscclc_comm_t *comm, const void *input, void *output,
                                          uint64_t count, mscclc_dtype_t dtype, uint32_t root,
                                          mscclc_stream_t stream);
/* `count` elements from each rank to each. */
MSCCLC_API mscclc_result_t mscclc_alltoall(mscclc_comm_t *comm, const void *input, void *output,
                                           uint64_t count, mscclc_dtype_t dtype,
                                           mscclc_stream_t stream);
/* As mscclc_call_t says of counts, which must be the same on all ranks, and offsets. */
MSCCLC_API mscclc_result_t mscclc_alltoallv(mscclc_comm_t *comm, const void *input, void *output,
                                            const uint64_t *counts, const uint64_t *input_offsets,
                                            const uint64_t *output_offsets, mscclc_dtype_t dtype,
                                            mscclc_stream_t stream);
MSCCLC_API mscclc_result_t mscclc_broadcast(mscclc_comm_t *comm, const void *input, void *output,
                                            uint64_t count, mscclc_dtype_t dtype, uint32_t root,
                                            mscclc_stream_t stream);
/* Every rank sends to the rank `shift` places on, and receives from the one `shift` places back. */
MSCCLC_API mscclc_result_t mscclc_sendrecv(mscclc_comm_t *comm, const void *input, void *output,
                                           uint64_t count, mscclc_dtype_t dtype, int64_t shift,
                                           mscclc_stream_t stream);
/* No rank's work after it on its stream begins before all ranks' work before it has ended. */
MSCCLC_API mscclc_result_t mscclc_barrier(mscclc_comm_t *comm, mscclc_stream_t stream);

/* Collectives of this thread between the two are only noted, and made by the outermost end: for a
 * thread that drives several ranks. Buffers must live until then; arrays of counts are copied. A
 * call that is refused makes the end fail, too, and then none is made; the thread's next group
 * begins anew. Other functions are not held back. */
MSCCLC_API mscclc_result_t mscclc_group_start(void);
MSCCLC_API mscclc_result_t mscclc_group_end(void);

/* ---- Plans ---- */
/* The plans that a communicator picks from: folders, plans in memory, and, asked last, the library
 * that is compiled in. Begins with what MSCCLC_PLAN_PATH names. Registries are safe for any
 * threads; ranks must have the same plans at each call. Destroyed, one stays its communicators'. */
MSCCLC_API mscclc_result_t mscclc_registry_create(mscclc_registry_t **registry);
/* The registry of the process, one more owner of it. */
MSCCLC_API mscclc_result_t mscclc_registry_default(mscclc_registry_t **registry);
MSCCLC_API mscclc_result_t mscclc_registry_destroy(mscclc_registry_t *registry);
/* A plan's file, or a folder of plans, and of rows for GEMMs that overlap. */
MSCCLC_API mscclc_result_t mscclc_registry_add(mscclc_registry_t *registry, const char *path);
/* A plan as JSON; `name` for messages and selectors. `id`, or NULL: gets its hash, 64 digits, 0. */
MSCCLC_API mscclc_result_t mscclc_register_plan(mscclc_registry_t *registry, const char *json,
                                                size_t bytes, const char *name, char id[65]);
/* Takes out a plan by its name or content hash; what has picked it goes on. */
MSCCLC_API mscclc_result_t mscclc_remove_plan(mscclc_registry_t *registry, const char *plan);

/* What a choice may depend on: all of it is the same on all ranks. */
typedef struct mscclc_request {
  size_t size;
  mscclc_kind_t kind;
  mscclc_dtype_t dtype;
  mscclc_op_t op;
  mscclc_dtype_t accumulate; /* or MSCCLC_DTYPE_DEFAULT */
  uint32_t ranks;
  uint32_t nodes; /* machines; 0: ranks are spread over them unevenly */
  uint32_t root;
  int32_t in_place; /* the plan must be right in place */
  int64_t shift;
  uint64_t bytes; /* the larger of a rank's input and output */
  int32_t registered;
  int32_t capturing;
  uint32_t architecture;    /* 90 for compute capability 9.0; 0: no GPUs, or not known */
  uint32_t multiprocessors; /* 0: no GPUs, or not known */
  const char *tag;          /* never NULL */
  int32_t either_place;     /* and out of place: some ranks may be so; in_place is 1 then */
  mscclc_order_t order;     /* of its sums, never MSCCLC_ORDER_DEFAULT */
} mscclc_request_t;

typedef int32_t mscclc_selection_t;
enum mscclc_selection {
  MSCCLC_SELECT_USUAL = 0, /* what the registry would pick */
  MSCCLC_SELECT_PLAN = 1, /* the registered plan whose name or content hash was written to `plan` */
  MSCCLC_SELECT_NONE = 2  /* no plan: the call fails with MSCCLC_NO_PLAN */
};

/* It depends only on the request, and is the same on all ranks; `plan` has room for 256 bytes with
 * the 0. Called from any threads at once; it must not call this library, where what asks it again
 * is refused. Answers are kept. */
typedef mscclc_selection_t (*mscclc_selector_fn)(void *user, const mscclc_request_t *request,
                                                 char plan[256]);
/* NULL: none. `user` must live as long as communicators of the registry. */
MSCCLC_API mscclc_result_t mscclc_set_selector(mscclc_registry_t *registry,
                                               mscclc_selector_fn selector, void *user);

/* Compiles a program of the language and proves the plan. `name` is the file's, for messages;
 * `defines`: "R=8" …, as -D takes them. *json gets the plan, *diagnostics what the compiler says
 * (warnings, errors); both end with 0 and are to be freed by mscclc_free(), or NULL. Imports are
 * not read. MSCCLC_NOT_PROVED: *diagnostics says why. Local; any thread; needs no communicator. */
MSCCLC_API mscclc_result_t mscclc_compile(const char *source, size_t bytes, const char *name,
                                          const char *const *defines, size_t defines_count,
                                          char **json, char **diagnostics);

/* The library's plan for "allreduce_norm" or another of docs/fusion.md, proved, for up to 72 ranks.
 * `rows`: of the message, the larger of input and output. `order`: of the sum; default: as
 * MSCCLC_ORDER says. One that no plan keeps is MSCCLC_INVALID_USAGE. *json, the plan, and *choice,
 * what it was compiled of ("allreduce_norm_1shot:R=2,N=6144,B=8,T=768"), are to be freed by
 * mscclc_free(); *most_rows: it is the same up to so many. Each may be NULL; without `json` nothing
 * is compiled. Local; any thread; needs no communicator. */
MSCCLC_API mscclc_result_t mscclc_row_plan(const char *name, uint32_t ranks, uint64_t columns,
                                           uint64_t rows, mscclc_dtype_t dtype,
                                           mscclc_order_t order, char **json, char **choice,
                                           uint64_t *most_rows);
/* A plan of any multiple of some columns, for so many, as it must be loaded: *fixed, to be freed by
 * mscclc_free(). Loading proves it. Local; any thread; needs no communicator. */
MSCCLC_API mscclc_result_t mscclc_plan_columns(const char *json, size_t bytes, uint64_t columns,
                                               char **fixed);

/* What a call of a plan takes on a machine, and why, predicted (docs/cost_model.md), whether the
 * plan is proved, and what the library's other plans would take, as 'mscclc explain --json' says it
 * of a plan: for profilers and tuners. It may take a second. `json` is the plan; `message_bytes`:
 * the larger of input and output; `machine`: the name of a built-in machine, such as "4xH200", or
 * the path of a machine file. *explanation, a JSON object that ends with 0, is to be freed by
 * mscclc_free(). Local; any thread; needs no communicator. */
MSCCLC_API mscclc_result_t mscclc_plan_explain(const char *json, size_t bytes,
                                               uint64_t message_bytes, mscclc_dtype_t dtype,
                                               const char *machine, char **explanation);
/* How mscclc_plan_of_trace() lays JSON out, not by levels: in one line, and without any space. */
#define MSCCLC_JSON_LINE (-1)
#define MSCCLC_JSON_COMPACT (-2)
/* The list "gpus" of the plan that MSCCL++'s Python language makes of a program, as JSON. `trace`
 * is what our package for Python keeps of the program's calls: words that may change with each
 * version, so that this function is only for the package. *gpus, and *places, where in the program
 * each op was called, are to be freed by mscclc_free(). Either may be NULL; without both, only
 * signals are compared with waits. MSCCLC_NOT_PROVED: the program is wrong, mscclc_last_error()
 * says why, and *wrong_at where; UINT64_MAX: nowhere in particular. Local; any thread. */
MSCCLC_API mscclc_result_t mscclc_plan_of_trace(const uint64_t *trace, size_t words, int32_t indent,
                                                char **gpus, uint64_t **places,
                                                size_t *places_count, uint64_t *wrong_at);

/* Frees what this library has handed out to be freed. NULL is fine. Any thread. */
MSCCLC_API void mscclc_free(char *text);

/* Collective: loads a plan for messages up to `max_bytes`, and elements as wide as `dtype`. One
 * with flags is for buffers that are registered (mscclc_register()), where peers reach them: others
 * would be copied, which flags of theirs do not allow. */
MSCCLC_API mscclc_result_t mscclc_plan_load(mscclc_comm_t *comm, const char *json, size_t bytes,
                                            const char *name, uint64_t max_bytes,
                                            mscclc_dtype_t dtype, mscclc_plan_t **plan);
/* Collective, before loads for a rank's next call, of plans that the others may have already: those
 * that make the call instead, and this one, get an error (call-differs), and none waits. */
MSCCLC_API mscclc_result_t mscclc_plan_meet(mscclc_comm_t *comm);
/* How large this rank's buffers are for a message of `bytes`: the larger of input and output. 0:
 * there is none. An output of its own type (rows of e4m3): for elements as wide as `dtype` of
 * mscclc_plan_load(). MSCCLC_INVALID_ARGUMENT: no message of the plan has that size. Local. */
MSCCLC_API mscclc_result_t mscclc_plan_buffers(mscclc_plan_t *plan, uint64_t bytes, uint64_t *input,
                                               uint64_t *output);
/* Launches a loaded plan; not held back by groups, but in one order on all ranks with calls by name
 * and of other plans. `bytes`: of the message, the larger of input and output. Of the call, dtype,
 * op, accumulate, input, output, registered, externals, flags, budget and launch_order matter. */
MSCCLC_API mscclc_result_t mscclc_plan_launch(mscclc_plan_t *plan, const mscclc_call_t *call,
                                              uint64_t bytes, mscclc_stream_t stream);
/* Its owner's to call, before the communicator's end; local. What its calls use stays until they
 * have ended; a graph that holds any must not be launched any more. */
MSCCLC_API mscclc_result_t mscclc_plan_destroy(mscclc_plan_t *plan);

/* ---- GEMMs that overlap with collectives (docs/overlap.md) ---- */

typedef struct mscclc_overlap mscclc_overlap_t;
/* R ranks; A, B and out are this rank's, row-major without gaps. m: the rows that its GEMM has. */
typedef int32_t mscclc_overlap_kind_t;
enum mscclc_overlap_kind {
  MSCCLC_ALLGATHER_GEMM = 1,     /* out[i] [m, n[i]] = all ranks' A [m / R, k] * B[i] [k, n[i]] */
  MSCCLC_GEMM_REDUCESCATTER = 2, /* out [m / R, n]: this rank's rows of the sum of A * B */
  MSCCLC_GEMM_ALLREDUCE = 3,     /* out [m, n] = the sum over ranks of A [m, k] * B [k, n] */
  MSCCLC_ALLTOALL_GEMM = 4       /* out[i] [m, n[i]] = what came * B[i]; A [m, k] by receiver */
};

/* d [m, n] = a_scale * b_scale * a [m, k] * b [k, n], plus d if `accumulate`, plus bias. */
typedef struct mscclc_gemm {
  size_t size;
  uint64_t m, n, k; /* none is 0 */
  const void *a, *b;
  void *d;
  uint64_t a_stride, b_stride, d_stride; /* elements from a row to the next, as it lies in memory */
  int32_t b_transposed, accumulate;      /* b_transposed, not 0: b lies as [n, k] */
  mscclc_dtype_t a_dtype, b_dtype, d_dtype;
  uint32_t multiprocessors;       /* of a GPU: to take at most; 0: all */
  const float *a_scale, *b_scale; /* one value each; NULL: 1 */
  const void *bias;               /* n of d_dtype; NULL: none */
  void *workspace;                /* until the next product on the stream; NULL: none */
  size_t workspace_bytes;
} mscclc_gemm_t;

/* Puts a product on a stream; 0, or it fails. On GPUs: within mscclc_overlap_run(), and must not
 * wait; and within mscclc_overlap_create(), once a shape, with zeros: a, b, d are one. On the host
 * device: in the stream's thread at its turn, ended on return. It must not call this library. */
typedef int (*mscclc_gemm_fn)(void *user, const mscclc_gemm_t *gemm, mscclc_stream_t stream);

/* GELU by its approximation with tanh, of the rounded product. */
enum mscclc_activation { MSCCLC_NO_ACTIVATION = 0, MSCCLC_GELU = 1 };

/* The same on all ranks, except device, gemm…, caller_workspace, b_transposed (not cublasmp). */
typedef struct mscclc_overlap_config {
  size_t size;
  mscclc_overlap_kind_t kind;
  int32_t device;                  /* as mscclc_config_t::device, where there is no communicator */
  uint64_t m, k;                   /* m: a multiple of the ranks, except of gemm_allreduce */
  const uint64_t *n;               /* of each B; read by mscclc_overlap_create() only */
  uint32_t weights;                /* how many B for one gathered A; 1 where sums are made */
  int32_t b_transposed;            /* not 0: each B lies as [n, k] */
  mscclc_dtype_t a_dtype, b_dtype; /* f32, f16 or bf16, the same; or each e4m3 or e5m2 */
  mscclc_dtype_t out_dtype; /* f32, f16, bf16; partial sums travel in it, and are added in f32 */
  mscclc_order_t order;     /* of sums over ranks */
  int32_t bias;             /* not 0: calls give one for each B, added once, after the sum */
  const char *backend;      /* mscclc_overlap_backends() has them; NULL: "auto" */
  uint32_t chunks, budget;  /* of each rank's rows, to 64; multiprocessors; 0: as measured */
  mscclc_gemm_fn gemm;      /* NULL: cuBLASLt on GPUs, a plain one on the host device */
  void *gemm_user;
  size_t gemm_workspace_bytes; /* of mscclc_gemm_t, for `gemm`; 2^46 at most */
  int32_t caller_workspace;    /* not 0: calls give a workspace */
  int32_t activation;          /* of what is complete, with its bias: mscclc_activation */
  const char *agreed; /* what else callers do alike, for an error where ranks differ; NULL: "" */
} mscclc_overlap_config_t;
#define MSCCLC_OVERLAP_CONFIG_INIT                                                     \
  {                                                                                    \
    sizeof(mscclc_overlap_config_t), 0, 0, 0, 0, NULL, 1, 0, MSCCLC_BF16, MSCCLC_BF16, \
        MSCCLC_BF16, MSCCLC_ORDER_DEFAULT, 0, NULL, 0, 0, NULL, NULL, 0, 0, 0, NULL    \
  }

/* One run: memory at multiples of 16 bytes, scales of 4. Arrays have `weights` entries. */
typedef struct mscclc_overlap_call {
  size_t size;
  const void *a;
  const void *const *b;
  void *const *out;        /* overlap nothing else of the call */
  const void *const *bias; /* n of out_dtype each; NULL: none */
  const float *a_scale;    /* of 8 bits: one value, the same on all ranks that gather; NULL: 1 */
  const float *const *b_scale; /* one value for each B, or NULL: 1; or NULL */
  void *gathered, *workspace;  /* gets what was gathered, or NULL; where the config says so */
  size_t workspace_bytes;
  void *const *pre_activation; /* gets, as out, what the activation is of; NULL: nothing does */
} mscclc_overlap_call_t;
#define MSCCLC_OVERLAP_CALL_INIT \
  { sizeof(mscclc_overlap_call_t), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL }

/* Collective. *overlap keeps what it needs of `comm`; NULL comm: one rank, which needs none. */
MSCCLC_API mscclc_result_t mscclc_overlap_create(mscclc_comm_t *comm,
                                                 const mscclc_overlap_config_t *config,
                                                 mscclc_overlap_t **overlap);
/* Bytes of mscclc_overlap_call_t::workspace. Local. */
MSCCLC_API mscclc_result_t mscclc_overlap_workspace(mscclc_overlap_t *overlap, size_t *bytes);
/* Queues a run; does not wait. All ranks run the same objects in the same order, and capture the
 * same. On the host device without a communicator: NULL stream, and it has ended on return. */
MSCCLC_API mscclc_result_t mscclc_overlap_run(mscclc_overlap_t *overlap,
                                              const mscclc_overlap_call_t *call,
                                              mscclc_stream_t stream);
/* A JSON object: "backend", "chunks", "budget", "why"; "memory", the device's bytes that it holds;
 * "in_graphs", of the first four, where captured runs differ. mscclc_free() frees *text. Local. */
MSCCLC_API mscclc_result_t mscclc_overlap_explain(mscclc_overlap_t *overlap, char **text);
/* A JSON list of "name", "available", "why", so freed; without `gemm`. No cuInit(). Any thread. */
MSCCLC_API mscclc_result_t mscclc_overlap_backends(int32_t device, char **text);
/* Waits for its device; with NCCL, for other ranks. Comm may be gone; no graph may run it then. */
MSCCLC_API mscclc_result_t mscclc_overlap_destroy(mscclc_overlap_t *overlap);

#ifdef __cplusplus
}
#endif

#endif /* MSCCLC_H_ */
