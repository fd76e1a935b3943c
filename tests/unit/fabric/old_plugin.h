/* old_counts: what the library of old_plugin.c was called for. */
#ifndef ATT_TEST_FABRIC_OLD_PLUGIN_H
#define ATT_TEST_FABRIC_OLD_PLUGIN_H

typedef struct old_counts {
    _Atomic int tuner;    /* inits and questions */
    _Atomic int profiler; /* Coll events */
    _Atomic int tree;     /* of them with algorithm TREE */
    _Atomic int env;      /* inits */
} old_counts_t;

extern old_counts_t old_counts;

#endif
