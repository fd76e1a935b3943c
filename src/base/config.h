/*
 * config: every option of attune in one table, which gives flags, ATTUNE_* variables, --help, the
 * man page's OPTIONS section and `attune info`.
 *
 * Order of precedence: flag, then environment variable (an empty one counts as not set), then
 * default. A value that does not parse is an error that names the flag or variable, the value and
 * what is accepted; it is never ignored.
 */
#ifndef ATT_BASE_CONFIG_H
#define ATT_BASE_CONFIG_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct att_config {
    /* where */
    char *run_dir;     /* --run-dir, ATTUNE_RUN_DIR: folder written by a run; "" = attune-<run id> */
    char *run_id;      /* --run-id, ATTUNE_RUN_ID: "" = made up */
    char *node;        /* --node, ATTUNE_NODE: distinguishes several nodes on one machine */
    char *shm_dir;     /* --shm-dir, ATTUNE_SHM_DIR: directory of the node segment, /dev/shm */
    char *plugin_path; /* --plugin-path, ATTUNE_PLUGIN_PATH: colon-separated strategy folders */
    /* search */
    char *strategy;     /* --strategy, ATTUNE_STRATEGY: NAME[:key=value,...] */
    int64_t seed;       /* --seed, ATTUNE_SEED */
    int64_t samples;    /* --samples: usable samples a trial, default 5 */
    double max_cost;    /* --max-cost 1%: time lost in trials over run time; fraction; 0 = no limit */
    double timing_us;   /* --timing-cost: of one call; negative: as the device is */
    double max_slowdown; /* --max-slowdown 3x: a trial slower than this times the incumbent is cut */
    int64_t max_trials; /* --max-trials: trials a task, 0 = the strategy decides */
    int64_t min_bytes;  /* --min-bytes: smaller messages are not tuned */
    int64_t max_channels; /* --max-channels: never more channels than this, 0 = the device decides */
    int64_t reserve_units; /* --reserve-sms: SMs kept free of channels on each device, default 4 */
    bool search_each;   /* --search-each: groups of one kind do not take over a winner */
    bool graphs;        /* --no-graphs: the job captures no CUDA graph */
    char *objective;    /* --objective collective|step: what a sample is of */
    bool reproducible;  /* --reproducible: no change of the order of additions */
    bool observe;       /* --observe: count and time, change nothing */
    char *quarantine;   /* --quarantine RUN: leave out what was on trial at its end */
    char *apply;        /* --apply RUN: use a finished run's settings, do not search */
    double watch_s;     /* --watch SECONDS: interval of the drift watch, 0 = off, default 1 */
    /* safety */
    double wait_ms;     /* --wait-ms: W, longest wait of a call at an undecided fence, default 1000 */
    double in_doubt_ms; /* --in-doubt-ms: default 600000 */
    /* output */
    char *log;          /* --log error|warn|info|debug, ATTUNE_LOG */
    bool quiet;         /* --quiet: no progress line, no table */
    char *trace;        /* --trace off|on[:SIZE]|ring:SIZE, ATTUNE_TRACE: see profile/trace_mode.h */
    char *preload;      /* --preload auto|on|off: the hook also stands in front of NCCL's functions */
    char *counters;     /* --counters off|on|EVENT,...: see docs/counters.md */
    double counter_budget; /* --counter-budget 0.1%: share of the time that reading them may take */
    char *metrics_file; /* --metrics-file: Prometheus text; "" = metrics.prom in the run folder */
    int64_t metrics_port; /* --metrics-port: the same on 127.0.0.1, 0 = off */
    char *variants;     /* --variants nt=128,256 (repeatable): see base/variants.h */
    int64_t variants_memory; /* --variants-memory: most that they may take on a GPU, bytes */
    char *debug_steps;  /* --debug-steps: log each protocol step at this path (tests) */
    /* host fabric */
    char *fabric;       /* --fabric none|real|model, ATTUNE_FABRIC_MODE */
    char *surface;      /* --surface NAME, ATTUNE_FABRIC_SURFACE */
    char *load;         /* --load LOAD, ATTUNE_FABRIC_LOAD */
} att_config_t;

typedef enum att_option_type {
    ATT_OPTION_STRING  = 0,
    ATT_OPTION_INT     = 1,
    ATT_OPTION_REAL    = 2,
    ATT_OPTION_BOOL    = 3,
    ATT_OPTION_BYTES   = 4, /* int64_t, K/M/G */
    ATT_OPTION_PERCENT = 5, /* double; "1%" or "0.01" */
    ATT_OPTION_FACTOR  = 6, /* double; "3x" or "3" */
    ATT_OPTION_CHOICE  = 7, /* one word of `accepts` */
    ATT_OPTION_LIST    = 8  /* string; a flag that is given again adds to it, behind a ';' */
} att_option_type_t;

/* Which programs take an option (bits). */
enum { ATT_FOR_RUN = 1u, ATT_FOR_AGENT = 2u };

typedef struct att_option_row {
    const char *flag;     /* without "--" */
    const char *variable; /* "ATTUNE_..." */
    att_option_type_t type;
    uint32_t programs;
    size_t offset;        /* into att_config_t */
    const char *fallback; /* default, parsed like a value */
    const char *argument; /* "DIR", "NAME[:key=value,...]"; NULL for BOOL (--flag, --no-flag) */
    const char *accepts;  /* for CHOICE "a|b"; else NULL */
    double minimum, maximum; /* for numbers */
    const char *help;     /* one line with the unit */
    const char *section;  /* heading in --help and the man page */
} att_option_row_t;

extern const att_option_row_t att_option_rows[];
extern const size_t att_option_row_count;

/* Defaults, then environment. On an error the config needs no att_config_free. */
int att_config_init(att_config_t *config, att_error_t *error);
void att_config_free(att_config_t *config); /* NULL is fine */
/* Set one option by flag name; `where` is named in the error ("--samples", "ATTUNE_SAMPLES"). */
int att_config_set(att_config_t *config, const char *flag, const char *value, const char *where,
                   att_error_t *error);
/* Take the options of `program` from argv; stops at "--" or the first word that is no option, and
 * returns its index in *next. "--help" gives -ATT_EUSAGE with empty text. Also --flag=value. */
int att_config_parse(att_config_t *config, uint32_t program, int argc, char **argv, int *next,
                     att_error_t *error);
void att_config_print_help(FILE *out, uint32_t program);
/* The value as text that att_config_set takes back; for `attune info` and for handing options over
 * to attuned (after "--flag="). Returns text; a string may need PATH_MAX and more. */
const char *att_config_text(const att_config_t *config, const att_option_row_t *row, char *text,
                            size_t size);

#endif
