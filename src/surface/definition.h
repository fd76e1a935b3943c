/*
 * definition: what a surface file holds, read and checked once. Immutable afterwards.
 *
 * The formats are in docs/surfaces.md. A definition owns the JSON document that its strings lie in.
 */
#ifndef ATT_SURFACE_DEFINITION_H
#define ATT_SURFACE_DEFINITION_H

#include "surface/model.h"
#include "surface/surface.h"
#include "surface/table.h"

#include <jansson.h>

#define ATT_SURFACE_VERSION     1
#define ATT_SURFACE_THREADS_MAX 640 /* NCCL_MAX_NTHREADS */

/* One (algorithm, protocol) of a collective. */
typedef struct att_surface_pair {
    int offered;
    double cost_latency_us; /* NCCL's own estimate: latency + bytes / bandwidth */
    double cost_bandwidth;  /* bytes per microsecond */
    att_setting_t native;   /* NCCL's transport, channels, threads and chunk for large messages */
    uint32_t chunk_grain;   /* bytes; chunks are multiples of it */
    uint32_t chunk_max;
    uint32_t transports; /* bit per att_transport_t that has a path */
    att_model_path_t paths[ATT_TRANSPORT_COUNT];
} att_surface_pair_t;

typedef struct att_surface_collective {
    uint32_t offered; /* ATT_PAIR_BIT; 0: the surface does not have this collective */
    att_surface_pair_t pairs[ATT_PAIR_COUNT]; /* index algorithm * 3 + protocol */
} att_surface_collective_t;

struct att_surface {
    att_surface_info_t info;
    char file_name[128]; /* name of a recording that does not say one */
    att_model_load_t loads[ATT_SURFACE_LOADS];
    att_surface_collective_t collectives[ATT_COLLECTIVE_COUNT];
    att_table_t table; /* recorded */
    json_t *document;
};

/* Fill a modelled surface from surface->document. */
int att_definition_read(struct att_surface *surface, att_error_t *error);

#endif
