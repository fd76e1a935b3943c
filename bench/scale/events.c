#include "events.h"

#include <stdlib.h>

static int before(const sim_event_t *a, const sim_event_t *b)
{
    return a->ns != b->ns ? a->ns < b->ns : a->order < b->order;
}

void sim_events_push(sim_events_t *e, sim_event_t event)
{
    if (e->count == e->capacity) {
        e->capacity = e->capacity == 0 ? 4096 : 2 * e->capacity;
        e->heap = realloc(e->heap, e->capacity * sizeof *e->heap);
        if (e->heap == NULL)
            abort();
    }
    event.order = e->pushed++;
    uint32_t at = e->count++;
    while (at > 0 && before(&event, &e->heap[(at - 1) / 2])) {
        e->heap[at] = e->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    e->heap[at] = event;
}

int sim_events_pop(sim_events_t *e, sim_event_t *event)
{
    if (e->count == 0)
        return 0;
    *event = e->heap[0];
    sim_event_t last = e->heap[--e->count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= e->count)
            break;
        if (child + 1 < e->count && before(&e->heap[child + 1], &e->heap[child]))
            child++;
        if (!before(&e->heap[child], &last))
            break;
        e->heap[at] = e->heap[child];
        at = child;
    }
    e->heap[at] = last;
    return 1;
}
