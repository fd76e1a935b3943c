/*
 * segment: the shared memory of one node and one run, through which hooks and the agent speak.
 *
 * The first comer, hook or agent, creates it; it has a fixed size and is never truncated. All
 * tables have fixed capacity and only grow: an entry is claimed with an atomic counter, filled, and
 * published by its `state`; it is retired, never reused, except that of a process that is gone: the
 * agent empties it and the next process may claim it. Node identity is the random `node_id`.
 *
 * Who writes what:
 *   process   its hook; `timing` by the agent
 *   group     the first hook that sees the communicator
 *   member    its hook (one per rank of a group in a process)
 *   task      created by the first hook that calls it; home word and schedule by src/base/fence.h
 *   lane      one per (task, member): the hook's call counter and the agent's hold bit
 *
 * Liveness is a POSIX record lock on the file: byte 0 exclusive for the agent, byte 1 shared for
 * hooks, byte 16 + n exclusive for process n, which the kernel drops however the process ends. A
 * segment that nobody locks is the leftover of a dead run and is replaced. Who joins or removes a
 * file holds byte 2 for that moment.
 */
#ifndef ATT_BASE_SEGMENT_H
#define ATT_BASE_SEGMENT_H

#include "attune/record.h"
#include "attune/setting.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ATT_SEGMENT_MAGIC  0x31656e7574746121ull /* "!attune1" */
#define ATT_SEGMENT_LAYOUT 7u

#define ATT_PROCESSES 64
#define ATT_GROUPS    512
#define ATT_MEMBERS   2048
#define ATT_TASKS     2048
#define ATT_LANES     16384
#define ATT_RING      4096 /* records a process, a power of two */
#define ATT_SCHEDULE  16   /* entries of a committed list, the last is the incumbent */
#define ATT_NONE      UINT32_MAX

#define ATT_ADDRESSES    4  /* of one helper */
#define ATT_ADDRESS_TEXT 48 /* IPv4 or IPv6, with scope */

/* State of an entry of any table. */
typedef enum att_entry_state {
    ATT_ENTRY_FREE = 0,
    ATT_ENTRY_CLAIMED = 1, /* being filled: readers skip it */
    ATT_ENTRY_LIVE = 2,
    ATT_ENTRY_RETIRED = 3, /* the communicator or process is gone */
    ATT_ENTRY_EMPTY = 4    /* of a process: its records and counts were taken, it may be claimed again */
} att_entry_state_t;

/* Bits of att_segment_member.pinned: the user forced the knob with an NCCL variable. */
enum {
    ATT_PIN_ALGORITHM = 1u << 0,
    ATT_PIN_PROTOCOL = 1u << 1,
    ATT_PIN_TRANSPORT = 1u << 2,
    ATT_PIN_CHANNELS = 1u << 3,
    ATT_PIN_THREADS = 1u << 4,
    ATT_PIN_CHUNK = 1u << 5
};

/* att_segment_group.variants_state: each step is one compare-and-swap, so that all ranks do the same. */
typedef enum att_variants_state {
    ATT_VARIANTS_OPEN = 0,
    ATT_VARIANTS_MAKE = 1,   /* all ranks are there, with one list */
    ATT_VARIANTS_REFUSE = 2, /* one is missing, or has another list */
    ATT_VARIANTS_USE = 3     /* made; those that failed nowhere are used */
} att_variants_state_t;

/* What a member's stamps are read from. */
typedef enum att_clock_kind {
    ATT_CLOCK_UNKNOWN = 0,
    ATT_CLOCK_HOST = 1,    /* CLOCK_MONOTONIC of the node */
    ATT_CLOCK_VIRTUAL = 2, /* the modelled fabric's: one for the whole job */
    ATT_CLOCK_DEVICE = 3   /* a GPU's own timer */
} att_clock_kind_t;

/* One ring cell: seq tells whose turn it is (Vyukov's bounded queue). */
typedef struct att_cell {
    _Atomic uint64_t seq;
    att_record_t record;
} att_cell_t;
_Static_assert(sizeof(att_cell_t) == 96, "segment layout");

typedef struct att_ring {
    _Alignas(64) _Atomic uint64_t head; /* next cell to write; producers are threads of a process */
    _Alignas(64) _Atomic uint64_t tail; /* next cell to read; the agent alone */
    _Alignas(64) _Atomic uint64_t dropped; /* records that found the ring full */
    att_cell_t cells[ATT_RING];
} att_ring_t;

typedef struct att_segment_process {
    _Alignas(64) _Atomic uint32_t state;  /* att_entry_state_t */
    int32_t pid;                          /* in the hook's own pid namespace */
    uint64_t started_ns;                  /* att_clock_ns() at attach */
    char program[64];                     /* argv[0]'s last part, for messages */
    _Atomic uint32_t guarded; /* 1: the process holds the lock of this entry as long as it lives */
    _Alignas(64) _Atomic uint32_t timing; /* written by the agent: 1 = kernel stamps wanted */
    _Atomic uint32_t marks;               /* written by the agent: 1 = iteration marks wanted */
    _Atomic uint32_t unstamped; /* ATT_UNSTAMPED_*: why no call is stamped any more; 0: they are */
    /* Coverage, counted by the hook. */
    _Alignas(64) _Atomic uint64_t decisions; /* getCollInfo callbacks that got a number */
    _Atomic uint64_t timed;                  /* records with a time */
    _Atomic uint64_t untimed[ATT_UNTIMED_COUNT];
    _Atomic uint64_t frozen;    /* decisions under capture */
    _Atomic uint64_t simulated; /* callbacks that were not calls, or could not be identified */
    _Atomic uint64_t unseen;    /* collectives with a Coll or CollApi event and no decision */
    _Atomic uint64_t anomalies; /* late, repeated or impossible profiler callbacks */
    _Atomic uint64_t waited;    /* calls that waited at an undecided fence */
    _Atomic uint64_t longest_wait_ns;
    _Atomic uint64_t in_doubt; /* calls failed because they stayed in doubt */
    /* Counted by the preload alone (0 without it): calls of the application. */
    _Atomic uint64_t called;   /* collectives that a tuner can be asked about, of 2 and more ranks */
    _Atomic uint64_t answered; /* of these: NCCL asked the hook */
    _Atomic uint64_t bypassed; /* calls that NCCL asks no tuner about: point-to-point, all-to-all */
    _Atomic uint64_t streams;  /* CUDA streams that the calls were made on */
    /* Where its helper serves home words; published by `helper`. */
    _Alignas(64) _Atomic uint32_t helper; /* 1: listening */
    uint32_t helper_port;
    uint8_t helper_key[16];
    char helper_address[ATT_ADDRESSES][ATT_ADDRESS_TEXT]; /* "" = none */
} att_segment_process_t;

/* Why a process gets no stamps, for good: hook/stamps.h. */
enum {
    ATT_UNSTAMPED_UNTOLD = 1 << 0,  /* capture is not known before a call */
    ATT_UNSTAMPED_GRAPH = 1 << 1,   /* it captures CUDA graphs */
    ATT_UNSTAMPED_GATHERS = 1 << 2, /* it makes AllGatherVs */
    ATT_UNSTAMPED_ROOM = 1 << 3     /* NCCL would not get its shared memory */
};

typedef struct att_segment_group {
    _Alignas(64) _Atomic uint32_t state;
    uint32_t ranks;
    uint32_t nodes;
    _Atomic uint32_t duplicate; /* a rank appeared twice: never tuned again */
    uint64_t hash;              /* NCCL's commHash */
    /* Where the home words are served, when that is another node; written by the agent after a test
     * and before the first vote, published by `path`. */
    _Atomic uint32_t path; /* 1: known */
    uint32_t home_port;
    uint8_t home_key[16];
    char home_address[ATT_ADDRESS_TEXT];
    /* Making communicator variants, agreed on by ranks that all share this segment. */
    _Atomic uint32_t variants_digest; /* of the list that they make, 0 none yet */
    _Atomic uint32_t variants_state;  /* att_variants_state_t */
    _Atomic uint32_t variants_ready;  /* ranks that are there to make them */
    _Atomic uint32_t variants_made;   /* ranks that are through with it */
    _Atomic uint32_t variants_failed; /* a bit for each that some rank could not make */
} att_segment_group_t;

typedef struct att_segment_member {
    _Alignas(64) _Atomic uint32_t state;
    uint32_t group;
    uint32_t process;
    uint32_t rank;
    uint32_t nccl_version;       /* NCCL_VERSION_CODE, 0 unknown */
    uint32_t tuner_abi;          /* 5, 6 */
    uint32_t profiler_abi;       /* 5, 6; 0 = no profiler */
    uint32_t event_timing;       /* 1: without profiler, timed by CUDA events */
    uint32_t pinned;             /* ATT_PIN_* */
    uint32_t device_units;       /* SMs (or their counterpart) of the device, 0 unknown */
    uint32_t channels_most;      /* the user's limit, NCCL_MAX_CTAS and the like; 0 none */
    _Atomic uint32_t channels;   /* most channels seen in use by NCCL's own choice (Coll events) */
    uint32_t all_connected;      /* 1: every algorithm is connected at creation */
    _Atomic uint32_t used_pairs; /* (algorithm, protocol) bits that NCCL itself has used */
    uint32_t whole_stamps; /* 1: a channel's stop stamp covers all of its threads; NCCL's covers
                              thread 0, whose role ends early but in Ring */
    _Atomic uint32_t stamped; /* 1: NCCL has made what it needs to stamp calls */
    uint32_t clock_kind;      /* att_clock_kind_t */
    uint64_t clock_id;     /* equal ids: stamps are on one clock; 0 unknown */
    uint8_t device_id[16]; /* GPU UUID; all zero unknown */
    char hook_version[16];
} att_segment_member_t;

/* One entry of a schedule: from first_call on, until the next entry. */
typedef struct att_schedule_entry {
    uint64_t first_call;
    att_setting_t setting;
} att_schedule_entry_t;

/* A committed list. Before entries[0].first_call (= the fence) the previous list holds. */
typedef struct att_schedule {
    uint32_t txn;
    uint32_t count; /* 1..ATT_SCHEDULE */
    att_schedule_entry_t entries[ATT_SCHEDULE];
} att_schedule_t;

typedef struct att_segment_task {
    _Alignas(64) _Atomic uint32_t state;
    uint32_t group;
    uint32_t collective;  /* att_collective_t */
    uint32_t legal_pairs; /* ATT_PAIR_BIT()s that are not IGNORE in NCCL's cost table */
    uint64_t bytes;
    float cost_us[ATT_PAIR_COUNT];      /* NCCL's table at the first call, negative = IGNORE */
    uint32_t home_task;                 /* its index in the home's segment, when `copied` */
    _Alignas(64) _Atomic uint64_t home; /* (txn << 2) | att_home_state_t, see fence.h */
    _Atomic uint64_t prepared;          /* txn of the schedule below */
    _Atomic uint64_t seat;   /* time in ns until which one rank here asks the home, 0 = nobody */
    _Atomic uint32_t copied; /* 1: `home` is this node's copy, the home word is on another node */
    uint32_t reserved;
    att_schedule_t schedule; /* written by the agent while no lane can read it */
    att_setting_t incumbent; /* last entry of the last committed list */
} att_segment_task_t;

typedef struct att_segment_lane {
    _Alignas(64) _Atomic uint64_t word; /* (next call number << 1) | hold */
    _Atomic uint32_t state;
    uint32_t task;
    uint32_t member;
    _Atomic uint32_t absorbed; /* highest txn whose outcome this rank has taken over */
    _Atomic uint64_t switched; /* call number at which the last outcome was taken over */
    _Atomic uint64_t refused;  /* calls failed because a committed setting could not be applied */
    _Atomic uint32_t variants; /* a bit for each communicator variant that its calls can be sent to */
} att_segment_lane_t;
_Static_assert(sizeof(att_segment_lane_t) == 64, "one cache line a lane");

typedef struct att_segment_header {
    uint64_t magic;
    uint32_t layout;
    uint32_t header_bytes;
    uint64_t total_bytes;
    char version[16]; /* attune version that created it */
    char run_id[64];
    uint8_t node_id[16];
    _Atomic uint32_t ready;
    _Atomic uint32_t agent_epoch; /* +1 each time an agent takes over */
    _Atomic uint32_t agent_pid;
    _Atomic uint32_t agent_tuning; /* 1 while an agent is there and tunes */
    uint64_t wait_ns;              /* W: longest wait at an undecided fence */
    uint64_t in_doubt_ns;          /* longest wait when the home word cannot be reached */
    _Alignas(64) _Atomic uint32_t process_count, group_count, member_count, task_count, lane_count;
    _Atomic uint32_t full; /* a table ran full: the rest is not tuned */
} att_segment_header_t;

typedef struct att_segment_memory {
    att_segment_header_t header;
    att_segment_group_t groups[ATT_GROUPS];
    att_segment_member_t members[ATT_MEMBERS];
    att_segment_task_t tasks[ATT_TASKS];
    att_segment_lane_t lanes[ATT_LANES];
    att_segment_process_t processes[ATT_PROCESSES];
    att_ring_t rings[ATT_PROCESSES];
} att_segment_memory_t;

/* How many entries of a table there are. Contents are not trusted: a count beyond the capacity
 * reads as the capacity, never as an index that leads outside. */
static inline uint32_t att_segment_count(const _Atomic uint32_t *count, uint32_t capacity)
{
    uint32_t n = atomic_load_explicit(count, memory_order_acquire);
    return n < capacity ? n : capacity;
}

/* What stands in the entry is whole: it is in use, or was. A process that is killed between
 * claiming and filling leaves an entry that never is. */
static inline bool att_segment_is_filled(const _Atomic uint32_t *state)
{
    uint32_t now = atomic_load_explicit(state, memory_order_acquire);
    return now == ATT_ENTRY_LIVE || now == ATT_ENTRY_RETIRED;
}

/* Who opens: decides the lock that is held until close. */
typedef enum att_segment_role { ATT_SEGMENT_HOOK = 0, ATT_SEGMENT_AGENT = 1 } att_segment_role_t;

struct att_segment; /* one mapping in this process */

/* Identity of a run's segment; NULL fields are taken from the environment: ATTUNE_SHM_DIR (default
 * /dev/shm), ATTUNE_RUN_ID or else SLURM_JOB_ID, ATTUNE_NODE (default none). */
typedef struct att_segment_name {
    const char *directory;
    const char *run_id;
    const char *node;
} att_segment_name_t;

/* Write "<dir>/attune-<uid>-<run>[-<node>]". -ATT_EUSAGE when there is no run id, or a character
 * other than [A-Za-z0-9._-] in it. */
int att_segment_path(const att_segment_name_t *name, char *path, size_t size, att_error_t *error);

/* Create or join. Errors: -ATT_EVERSION (live segment of another layout), -ATT_EBUSY (an agent
 * holds it already; role AGENT), -ATT_ESYSTEM (directory, space), -ATT_EPERMISSION (not
 * private to this user: another owner, another mode than 0600, a second name, no ordinary file). A
 * dead leftover is replaced and said so in one log line. The same process may open the same path
 * again: the mapping is shared and counted. The lock of the stronger role stays until the last
 * close. */
int att_segment_open(const att_segment_name_t *name, att_segment_role_t role,
                     struct att_segment **segment, att_error_t *error);
/* Unmap at the last close; the file is removed when nobody else holds a lock. NULL is fine. */
void att_segment_close(struct att_segment *segment);
/* What comes of that for the others, without unmapping: drop the locks and remove the file when
 * nobody else holds one. For a process that ends while its threads may still touch the memory. */
void att_segment_let_go(struct att_segment *segment);

att_segment_memory_t *att_segment_memory(struct att_segment *segment);
const char *att_segment_file(const struct att_segment *segment);
/* True when some process (not this one) holds the agent's lock. */
bool att_segment_agent_alive(struct att_segment *segment);
/* True when some process (not this one) holds a hook's lock. */
bool att_segment_hooks_alive(struct att_segment *segment);

/* Remove the leftovers of dead runs of this user in the directory; returns how many. */
int att_segment_sweep(const char *directory);

/*
 * Entries. All return the index, or ATT_NONE when the table is full (header.full is then set).
 * They are called outside of the hot path, are lock-free and safe against other processes.
 */
uint32_t att_segment_add_process(att_segment_memory_t *memory, const char *program);
/* This process holds the lock of its entry from now on. */
void att_segment_guard(struct att_segment *segment, uint32_t process);
/* False when the entry's process is gone, whatever it left there; true when that is not known. */
bool att_segment_process_alive(struct att_segment *segment, uint32_t process);
/* Find or create the live group (hash, ranks). */
uint32_t att_segment_group(att_segment_memory_t *memory, uint64_t hash, uint32_t ranks,
                           uint32_t nodes);
/* Claim a member; fields beside state are zero; publish with att_segment_publish_member. A live
 * member of the same group and rank marks the group as duplicate. */
uint32_t att_segment_add_member(att_segment_memory_t *memory, uint32_t group, uint32_t rank,
                                uint32_t process);
void att_segment_publish_member(att_segment_memory_t *memory, uint32_t member);
void att_segment_retire_member(att_segment_memory_t *memory, uint32_t member);
/* Find or create the task (group, collective, bytes, legal_pairs); cost_us as in the task. */
uint32_t att_segment_task(att_segment_memory_t *memory, uint32_t group, uint32_t collective,
                          uint64_t bytes, uint32_t legal_pairs,
                          const float cost_us[ATT_PAIR_COUNT]);
/* Create the lane of (task, member). The caller makes sure that it does so once. */
uint32_t att_segment_add_lane(att_segment_memory_t *memory, uint32_t task, uint32_t member);
/* The same for calls that can be sent to communicator variants (a bit each). */
uint32_t att_segment_add_routed_lane(att_segment_memory_t *memory, uint32_t task, uint32_t member,
                                     uint32_t variants);

#endif
