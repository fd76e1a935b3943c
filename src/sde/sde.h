/* sde: what libattune-sde.so exports besides what PAPI looks for. */
#ifndef ATT_SDE_SDE_H
#define ATT_SDE_SDE_H

/* Register the events that have come since the library was loaded: those of new tasks. Returns how
 * many events there are. */
int attune_sde_update(void);

#endif
