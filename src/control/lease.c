#include "control/lease.h"

#include "base/step.h"

#define OWN (1u << ATT_TREE_FAN)

static bool leads(const att_lease_view_t *view)
{
    return view->place->leader == view->self;
}

static void down(const att_lease_view_t *view, uint32_t type)
{
    for (uint32_t c = 0; c < view->place->child_count; c++)
        view->ops->send(view->context, view->place->children[c], type);
}

static void look(att_lease_t *lease, const att_lease_view_t *view)
{
    if (lease->state != ATT_LEASE_TAKING || lease->missing != 0)
        return;
    lease->state = ATT_LEASE_HELD;
    lease->turns++;
    if (leads(view))
        view->ops->step(view->context, ATT_STEP_TAKEN);
    else
        view->ops->send(view->context, view->place->parent, ATT_MESSAGE_TAKEN);
}

static void take(att_lease_t *lease, const att_lease_view_t *view)
{
    lease->state = ATT_LEASE_TAKING;
    lease->missing = ((1u << view->place->child_count) - 1) | OWN;
    lease->begun = 0;
    lease->used_ns = 0;
    down(view, ATT_MESSAGE_TAKE);
    att_node_turn_request(view->turn, view->group);
}

static void give(att_lease_t *lease, const att_lease_view_t *view)
{
    lease->state = ATT_LEASE_NONE;
    down(view, ATT_MESSAGE_GIVE);
    att_node_turn_end(view->turn, view->group);
    if (!leads(view))
        return;
    view->ops->step(view->context, ATT_STEP_GIVEN);
    view->ops->send(view->context, view->keeper, ATT_MESSAGE_RETURN);
}

int att_lease_may(att_lease_t *lease, const att_lease_view_t *view, uint64_t now_ns)
{
    if (lease->state == ATT_LEASE_HELD) {
        lease->used_ns = now_ns;
        return lease->begun < ATT_LEASE_LISTS;
    }
    if (lease->state == ATT_LEASE_NONE) {
        lease->state = ATT_LEASE_ASKED;
        view->ops->step(view->context, ATT_STEP_ASKED);
        view->ops->send(view->context, view->keeper, ATT_MESSAGE_ASK);
    }
    return 0;
}

void att_lease_list(att_lease_t *lease, int change, uint64_t now_ns)
{
    if (change > 0) {
        lease->lists++;
        lease->begun++;
        lease->list_ns = now_ns;
    } else if (lease->lists > 0) {
        lease->lists--;
        lease->lasted_ns = now_ns - lease->list_ns;
    }
    lease->used_ns = now_ns;
}

void att_lease_message(att_lease_t *lease, const att_lease_view_t *view, uint32_t type,
                       uint32_t child)
{
    switch (type) {
    case ATT_MESSAGE_GRANT:
        if (leads(view) && lease->state == ATT_LEASE_ASKED)
            take(lease, view);
        break;
    case ATT_MESSAGE_TAKE:
        if (!leads(view) && lease->state == ATT_LEASE_NONE)
            take(lease, view);
        break;
    case ATT_MESSAGE_TAKEN:
        if (child < ATT_TREE_FAN)
            lease->missing &= ~(1u << child);
        look(lease, view);
        break;
    case ATT_MESSAGE_GIVE:
        if (!leads(view) && lease->state != ATT_LEASE_NONE)
            give(lease, view);
        break;
    default:
        break;
    }
}

void att_lease_yielded(att_lease_t *lease, const att_lease_view_t *view)
{
    lease->missing &= ~OWN;
    view->ops->step(view->context, ATT_STEP_YIELDED);
    look(lease, view);
}

void att_lease_step(att_lease_t *lease, const att_lease_view_t *view, uint64_t now_ns)
{
    if (lease->state != ATT_LEASE_HELD || !leads(view) || lease->lists > 0)
        return;
    if (lease->used_ns == 0)
        lease->used_ns = now_ns;
    uint64_t idle_ns = lease->lasted_ns / ATT_LEASE_IDLE;
    if (idle_ns < ATT_LEASE_IDLE_NS)
        idle_ns = ATT_LEASE_IDLE_NS;
    if (lease->begun >= ATT_LEASE_LISTS || now_ns - lease->used_ns > idle_ns)
        give(lease, view);
}

void att_lease_end(att_lease_t *lease, const att_lease_view_t *view)
{
    if (lease->state == ATT_LEASE_HELD || lease->state == ATT_LEASE_TAKING)
        give(lease, view);
    else if (lease->state == ATT_LEASE_ASKED)
        view->ops->send(view->context, view->keeper, ATT_MESSAGE_RETURN);
    lease->state = ATT_LEASE_NONE;
}
