/*
 * Fewer states: every action ends with same(), which replaces the state by one that behaves alike
 * in everything that is checked: what nobody will read any more is cleared, and alike ranks and
 * nodes are put in order. -DPLAIN searches without it: the same verdicts, many more states.
 */

/* --- what nobody will read any more is cleared ----------------------------------------------- */

/* The rank takes no step any more: its death would change nothing. */
#ifdef PLAIN
#define IS_FINISHED(l) (lane[l].pc == DEAD)
#else
#define IS_FINISHED(l) \
    (lane[l].pc == DEAD || (lane[l].pc == RUN && lane[l].call == CALLS && lane[l].buffer == 0))
#endif
/* It looks at its node's list and word, now or in its next call. */
#define LOOKS(l) (!IS_FINISHED(l) && (lane[l].hold || lane[l].pc != RUN))
/* No rank of the node does, nor will one before the node's next PREPARE. */
#define NOBODY_LOOKS(n) \
    (!LOOKS(LOW(n)) && !LOOKS(HIGH(n)) && node[n].pc != 1 && !node[n].buffer)
#define NO_STORES(n) (lane[LOW(n)].buffer == 0 && lane[HIGH(n)].buffer == 0)
/* The node prepares nothing any more; not transaction t. */
#define IS_CLOSED(n)    (node[n].dead || !IS_NEW(n, 2))
#define IS_PAST(n, t)   (node[n].dead || !IS_NEW(n, t))
/* The outcome of the latest transaction changes nothing on the node. */
#define HAS_OUTCOME(n) \
    (node[n].dead || (!IS_NEW(n, txn) && (n == 0 || node[n].txn != txn || node[n].word != OPEN)))
/* Nobody asks what the home word says of the latest transaction. */
#define NEEDS_NO_HOME(n) (NOBODY_LOOKS(n) && IS_PAST(n, txn))

/* The agent takes no step any more that changes anything: nor would its death. */
#ifdef PLAIN
#define IS_THROUGH(n) false
#else
#define IS_THROUGH(n) \
    (node[n].pc == 0 && !node[n].buffer && IS_CLOSED(n) && HAS_OUTCOME(n) && \
     (n != 0 || (txn == 2 && told != OPEN)))
#endif

/* The lane of a finished rank. Its number is read by a visit, which a PREPARE comes before; a
 * PREPARE needs a node that is not closed and all of its lanes absorbed, so does MAY_OPEN on node 0
 * (where closed means that the leader is dead or at its last transaction). */
inline forget_lane(l, n)
{
    if
    :: IS_FINISHED(l) && node[n].pc != 1 && !lane[l].mark && (IS_CLOSED(n) || !IS_ABSORBED(l)) ->
        lane[l].hold = 0;
        lane[l].absorbed = 0;
        lane[l].call = ((n == 0 && lane[l].pc == RUN) -> CALLS : 0); /* the helper may be its own */
        lane[l].pc = ((n == 0 && lane[l].pc == RUN) -> RUN : DEAD)
    :: else
    fi
}

inline forget_node(n)
{
    if
    :: NOBODY_LOOKS(n) ->
        node[n].word = ((node[n].word == COMMITTED || node[n].dead) -> ABORTED : node[n].word);
        if
        :: node[n].dead && NO_STORES(n) ->
            node[n].list = 0;
            node[n].prepared = 0;
            node[n].txn = 0;
            lane[LOW(n)].absorbed = 0;
            lane[HIGH(n)].absorbed = 0
        :: else
        fi
    :: else
    fi;
#ifndef BUG_OLD_VOTE
    /* A vote is counted for the latest transaction, until it is decided; a no says as much as
     * nothing: the leader may give up at any time. */
    if
    :: node[n].vote_txn != txn || !node[n].vote || told != OPEN || home != OPEN ->
        node[n].vote_txn = 0;
        node[n].vote = 0
    :: else
    fi;
#endif
    /* To hear an outcome again changes nothing. */
    node[n].recorded = ((node[n].recorded == txn && txn != 2) -> txn : 0)
}

inline forget_home()
{
    if
    :: home == COMMITTED && (told != OPEN || node[0].dead) && ALL_NODES(NEEDS_NO_HOME) ->
        home = ABORTED
    :: else
    fi;
    if
    :: told == COMMITTED && ALL_NODES(HAS_OUTCOME) -> told = ABORTED
    :: else
    fi;
    asked = ((home == OPEN && !helper_dead) -> asked : 0)
}

/* The call is launched, or its rank is dead. */
#define OVER(l, c) (lane[l].call > c + 1 || (lane[l].call == c + 1 && lane[l].pc == RUN) || \
    lane[l].pc == DEAD)
#if LANES == 4
#define ALL_OVER(c) (OVER(0, c) && OVER(1, c) && OVER(2, c) && OVER(3, c))
#elif LANES == 3
#define ALL_OVER(c) (OVER(0, c) && OVER(1, c) && OVER(2, c))
#else
#define ALL_OVER(c) (OVER(0, c) && OVER(1, c))
#endif

inline forget()
{
    launched0 = (ALL_OVER(0) -> 0 : launched0);
    launched1 = (ALL_OVER(1) -> 0 : launched1);
    launched2 = (ALL_OVER(2) -> 0 : launched2);
#ifndef LIVENESS
    forget_lane(LOW(0), 0);
    forget_lane(LOW(1), 1);
#if RANKS == 2
    forget_lane(HIGH(0), 0);
    forget_lane(HIGH(1), 1);
#endif
    forget_node(0);
    forget_node(1);
#if NODES == 3
    forget_lane(LOW(2), 2);
    forget_node(2);
#endif
    forget_home()
#endif
}

/* --- alike ranks and nodes are put in order --------------------------------------------------- */

#define LANE_KEY(l) (lane[l].call + (lane[l].hold << 2) + (lane[l].absorbed << 3) + \
    (lane[l].pc << 5) + (lane[l].list << 8) + (lane[l].answer << 10) + (lane[l].buffer << 12) + \
    (lane[l].seen << 14) + (lane[l].mark << 15))
#define NODE_KEY(n) (node[n].list + (node[n].prepared << 2) + (node[n].txn << 4) + \
    (node[n].word << 6) + (node[n].dead << 8) + (node[n].pc << 9) + (node[n].known << 11) + \
    (node[n].yes << 13) + (node[n].buffer << 14) + (node[n].vote_txn << 16) + \
    (node[n].vote << 18) + (node[n].recorded << 19))

#define SWAP(a, b) i = a; a = b; b = i

inline swap_lanes(l, m)
{
    SWAP(lane[l].call, lane[m].call);
    SWAP(lane[l].hold, lane[m].hold);
    SWAP(lane[l].absorbed, lane[m].absorbed);
    SWAP(lane[l].pc, lane[m].pc);
    SWAP(lane[l].list, lane[m].list);
    SWAP(lane[l].answer, lane[m].answer);
    SWAP(lane[l].buffer, lane[m].buffer);
    SWAP(lane[l].seen, lane[m].seen);
    SWAP(lane[l].mark, lane[m].mark)
}

inline swap_nodes(n, m)
{
    SWAP(node[n].list, node[m].list);
    SWAP(node[n].prepared, node[m].prepared);
    SWAP(node[n].txn, node[m].txn);
    SWAP(node[n].word, node[m].word);
    SWAP(node[n].dead, node[m].dead);
    SWAP(node[n].pc, node[m].pc);
    SWAP(node[n].known, node[m].known);
    SWAP(node[n].yes, node[m].yes);
    SWAP(node[n].buffer, node[m].buffer);
    SWAP(node[n].vote_txn, node[m].vote_txn);
    SWAP(node[n].vote, node[m].vote);
    SWAP(node[n].recorded, node[m].recorded)
}

/* Ranks of one node are alike (one rank of node 0 has the helper, which is not said until it dies),
 * nodes other than 0 are alike. Not for liveness, whose formula and fairness name processes. */
inline sort()
{
#if RANKS == 2
    if
    :: LANE_KEY(0) > LANE_KEY(1) -> swap_lanes(0, 1)
    :: else
    fi;
    if
    :: LANE_KEY(2) > LANE_KEY(3) -> swap_lanes(2, 3)
    :: else
    fi
#elif NODES == 3
    if
    :: LANE_KEY(1) > LANE_KEY(2) || (LANE_KEY(1) == LANE_KEY(2) && NODE_KEY(1) > NODE_KEY(2)) ->
        swap_lanes(1, 2);
        swap_nodes(1, 2)
    :: else
    fi
#else
    skip
#endif
}

inline same()
{
#ifdef WITNESS
    assert(!(txn == 2 && home == COMMITTED && launched2 == 3 && crashes == CRASHES));
#endif
#ifndef PLAIN
    forget();
#ifndef LIVENESS
    sort();
#endif
#endif
    i = 0;
    result = 0
}
