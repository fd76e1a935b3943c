/*
 * The fence protocol: agents, ranks and one home word. docs/proof.md maps each action to the C code.
 *
 * NODES nodes with RANKS ranks each make CALLS calls of one task while the leader (in the agent of
 * node 0) tries two switches, transactions 1 and 2. Checked: two ranks that launch the same call
 * launch it with the same setting (launch), nobody changes what a rank is reading (write_list), and
 * with -DLIVENESS that a rank at an undecided fence gets away while the process that serves the home
 * word runs, whatever the agents do.
 *
 * The world is worse than the real one:
 *  - Every process stops for good at any point, CRASHES of them. A pause is a step that comes late:
 *    there is no clock, any wait may end at any moment.
 *  - A message, once sent, stays on the wire: it arrives late, never, or again.
 *  - Plain stores go through a store buffer of one entry (x86-TSO). The process's next store, locked
 *    instruction or message drains it; else it drains at any time, or only when the process dies.
 *
 * Every option of a do loop is one atomic action: one locked instruction or one plain store, with
 * the loads before it that nobody can disturb (the assertions of write_list say why) and with what
 * is private after it. All state is global, so that states which differ only in the numbering of
 * alike ranks or nodes can be made one (sort).
 */
#ifndef NODES
#define NODES 2
#endif
#ifndef RANKS
#define RANKS 2
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#define CALLS 3
#define LANES (NODES * RANKS)

/* Transaction t proposes setting t from call t on, for LENGTH calls, then setting 0. */
#define LENGTH              2
#define FENCE(t)            (t)
#define SETTING(list, call) ((list != 0 && call < FENCE(list) + LENGTH) -> list : 0)

/* State of a home word. */
#define OPEN      0
#define COMMITTED 1
#define ABORTED   2
#define NONE      3 /* the word is beyond the transaction */

/* Where a rank is. */
#define RUN  0 /* between two calls */
#define WAIT 1 /* its call found hold, at the fence */
#define ASK  2 /* its time W is over: a request is on its way to the home */
#define TOLD 3 /* the answer is on its way back */
#define DEAD 4

typedef lane_t {
    /* shared: the lane of the segment */
    unsigned call : 2;     /* word: next call */
    unsigned hold : 1;     /* word: hold bit */
    unsigned absorbed : 2; /* last transaction taken over */
    /* the rank's own */
    unsigned pc : 3;
    unsigned list : 2;     /* list in force */
    unsigned answer : 2;
    unsigned buffer : 2;   /* buffered store to absorbed, 0 = none */
    /* the agent's own */
    unsigned seen : 1;     /* visited by the prepare that is going on */
    unsigned mark : 1;     /* the agent's buffered store is to this lane */
};

typedef node_t {
    /* shared: the task of the segment */
    unsigned list : 2;     /* transaction whose list is written there */
    unsigned prepared : 2;
    unsigned txn : 2;      /* the copy of the home word; not used on node 0 */
    unsigned word : 2;
    /* the agent's own */
    unsigned dead : 1;
    unsigned pc : 2;       /* 0 idle, 1 visiting lanes, 2 about to vote */
    unsigned known : 2;    /* latest transaction that it prepared or was told the outcome of */
    unsigned yes : 1;      /* its vote so far */
    unsigned buffer : 1;   /* a buffered store, to the marked lane */
    /* its latest messages to the leader */
    unsigned vote_txn : 2;
    unsigned vote : 1;     /* 1 = yes */
    unsigned recorded : 2; /* has noted the outcome of this one */
};

lane_t lane[LANES];
node_t node[NODES];
unsigned home_txn : 2;
unsigned home : 2;
/* the leader's own */
unsigned txn : 2;  /* the latest transaction; PREPARE of it is on the wire */
unsigned told : 2; /* OUTCOME of it on the wire: COMMITTED, ABORTED; OPEN: nothing told yet */
unsigned asked : 1; /* a RESOLVE of it is on the wire */
unsigned helper_dead : 1;
unsigned crashes : 2;
unsigned launched0 : 2; /* setting + 1 of the first launch of call 0, 1, 2; 0 = not launched */
unsigned launched1 : 2;
unsigned launched2 : 2;
hidden int i; /* scratch */
hidden byte result;

#define NODE(l) ((l) / RANKS)
#define LOW(n)  ((n) * RANKS)
#define HIGH(n) ((n) * RANKS + RANKS - 1)

/* --- memory ---------------------------------------------------------------------------------- */

inline drain_rank(l)
{
    if
    :: lane[l].buffer != 0 -> lane[l].absorbed = lane[l].buffer; lane[l].buffer = 0
    :: else
    fi
}

#ifdef BUG_PLAIN_HOLD
#define LAND(l, n) if :: node[n].yes -> lane[l].hold = 1 :: else -> lane[l].absorbed = node[n].known fi
#else
#define LAND(l, n) lane[l].absorbed = node[n].known
#endif

inline drain_agent(n)
{
    if
    :: node[n].buffer ->
        if
        :: lane[LOW(n)].mark -> LAND(LOW(n), n)
        :: else -> LAND(HIGH(n), n)
        fi;
        lane[LOW(n)].mark = 0;
        lane[HIGH(n)].mark = 0
    :: else
    fi;
    node[n].buffer = 0
}

/* att_home_decide of the home word: what it then holds for transaction t is in result. */
inline decide_home(t, wanted)
{
    if
    :: home_txn == t ->
#ifdef BUG_HOME_TWICE
        home = wanted;
#else
        if
        :: home == OPEN -> home = wanted
        :: else
        fi;
#endif
        result = home
    :: home_txn < t -> home_txn = t; home = ABORTED; result = ABORTED
#ifdef BUG_OLD_ANSWER
    :: else -> result = ABORTED
#else
    :: else -> result = NONE
#endif
    fi
}

/* The copy of node n learns the outcome of t, unless it never opened t. */
inline decide_copy(n, t, what)
{
    if
    :: node[n].txn == t && node[n].word == OPEN -> node[n].word = what
#ifdef BUG_COPY_OVERWRITTEN
    :: node[n].txn < t -> node[n].txn = t; node[n].word = what
#endif
    :: else
    fi
}

/* What a rank of node n sees of t in its own segment. */
#define STATE(n, t) ((n) == 0 -> (home_txn == (t) -> home : OPEN) : \
    (node[n].txn == (t) -> node[n].word : OPEN))

/* --- making states alike --------------------------------------------------------------------- */

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
#define FORGET(c, var) if :: ALL_OVER(c) -> var = 0 :: else fi

/* Ranks of one node are alike (one rank of node 0 has the helper, which is not said until it dies),
 * nodes other than 0 are alike. What nobody will read any more is cleared. */
inline sort()
{
#ifdef WITNESS
    assert(!(txn == 2 && home == COMMITTED && launched2 == 3 && crashes == CRASHES));
#endif
    FORGET(0, launched0);
    FORGET(1, launched1);
    FORGET(2, launched2);
#ifndef LIVENESS
#if RANKS == 2
    if
    :: LANE_KEY(0) > LANE_KEY(1) -> swap_lanes(0, 1)
    :: else
    fi;
    if
    :: LANE_KEY(2) > LANE_KEY(3) -> swap_lanes(2, 3)
    :: else
    fi;
#elif NODES == 3
    if
    :: LANE_KEY(1) > LANE_KEY(2) || (LANE_KEY(1) == LANE_KEY(2) && NODE_KEY(1) > NODE_KEY(2)) ->
        swap_lanes(1, 2);
        swap_nodes(1, 2)
    :: else
    fi;
#endif
#endif
    i = 0;
    result = 0
}

/* --- ranks ----------------------------------------------------------------------------------- */

#define LAUNCH(c, var) \
    :: lane[l].call == c + 1 -> assert(var == 0 || var == i); var = i

/* The collective starts. The oracle: everybody else launched it with the same setting. */
inline launch(l)
{
    i = SETTING(lane[l].list, lane[l].call - 1) + 1;
    if
    LAUNCH(0, launched0)
    LAUNCH(1, launched1)
    LAUNCH(2, launched2)
    fi;
    if
    :: SETTING(lane[l].list, lane[l].call) == 0 || lane[l].call == CALLS -> lane[l].list = 0
    :: else
    fi;
    lane[l].pc = RUN;
    lane[l].answer = 0
}

/* release_hold: hold off (locked), then absorbed (plain). */
inline release(l)
{
    drain_rank(l);
#ifdef BUG_ABSORBED_FIRST
    lane[l].absorbed = node[NODE(l)].prepared;
    lane[l].buffer = 3; /* a mark: hold goes off later */
#else
    lane[l].hold = 0;
    lane[l].buffer = node[NODE(l)].prepared
#endif
}

#define HELD_STATE(l) STATE(NODE(l), node[NODE(l)].prepared)

/* take_over: take the list or drop it. */
inline absorb(l)
{
    if
    :: HELD_STATE(l) == COMMITTED -> lane[l].list = node[NODE(l)].list
    :: else
    fi;
    release(l);
    launch(l)
}

proctype Rank(byte l)
{
end:
    do
    /* att_lane_next and att_lane_enter: one locked add gives the number and the hold bit; with hold
     * the list and the outcome are looked at. (Nobody reads the number of a lane with hold, so
     * whatever happens between the add and the look might as well happen before the add.) */
    :: d_step {
        lane[l].pc == RUN && lane[l].call < CALLS ->
        drain_rank(l);
        lane[l].call = lane[l].call + 1;
        if
        :: !lane[l].hold -> launch(l)
        :: lane[l].hold && lane[l].call - 1 < FENCE(node[NODE(l)].list) ->
            if
            :: HELD_STATE(l) == ABORTED -> release(l)
            :: else
            fi;
            launch(l)
        :: else ->
            if
            :: HELD_STATE(l) == OPEN -> lane[l].pc = WAIT
            :: else -> absorb(l)
            fi
        fi;
        sort()
    }
    /* att_wait_step: the outcome is there. */
    :: d_step {
        lane[l].pc == WAIT && HELD_STATE(l) != OPEN ->
        absorb(l);
        sort()
    }
    /* W is over: on node 0 the rank swaps the word itself, elsewhere it asks. */
    :: d_step {
        lane[l].pc == WAIT && HELD_STATE(l) == OPEN &&
        (NODE(l) != 0 || home_txn <= node[NODE(l)].prepared) ->
#ifdef BUG_SILENCE
        release(l);
        launch(l);
#else
        if
        :: NODE(l) == 0 ->
            drain_rank(l);
            decide_home(node[NODE(l)].prepared, ABORTED)
        :: else ->
            if
            :: node[NODE(l)].prepared == txn -> asked = 1
            :: else
            fi;
            lane[l].pc = ASK
        fi;
#endif
        sort()
    }
    /* att_wait_answer: the answer goes into the copy, which is then looked at again. */
    :: d_step {
        lane[l].pc == TOLD ->
        drain_rank(l);
        if
        :: lane[l].answer != NONE -> decide_copy(NODE(l), node[NODE(l)].prepared, lane[l].answer)
        :: else
        fi;
        lane[l].answer = 0;
        lane[l].pc = WAIT;
        sort()
    }
#ifdef BUG_ABSORBED_FIRST
    :: d_step { lane[l].buffer == 3 -> lane[l].buffer = 0; lane[l].hold = 0; sort() }
#else
    :: d_step { lane[l].buffer != 0 -> drain_rank(l); sort() }
#endif
    od
}

/* The thread in rank 0's process that serves the home word. */
proctype Helper()
{
end:
    do
#define SERVE(m) \
    :: d_step { \
        !helper_dead && lane[m].pc == ASK -> \
        decide_home(node[NODE(m)].prepared, ABORTED); \
        lane[m].answer = result; \
        lane[m].pc = TOLD; \
        sort() \
    }
    SERVE(RANKS)
#if LANES - RANKS > 1
    SERVE(RANKS + 1)
#endif
    /* A request that arrives again, or after its rank has ceased to wait. */
    :: d_step { !helper_dead && asked && home == OPEN -> home = ABORTED }
    od
}

/* --- agents ---------------------------------------------------------------------------------- */

#define IS_ABSORBED(l) (lane[l].absorbed == node[NODE(l)].prepared)
#define READY(n)       (IS_ABSORBED(LOW(n)) && IS_ABSORBED(HIGH(n)))

/* A message to the leader; nobody reads it when the leader is dead. */
inline send_vote(n, what)
{
    drain_agent(n);
    if
    :: !node[0].dead -> node[n].vote_txn = node[n].known; node[n].vote = what
    :: else
    fi;
    node[n].yes = 0;
    node[n].pc = 0
}

/* Nobody of this node looks at the list or at prepared: no rank is in the slow path. */
#define AWAY(l) (lane[l].pc == RUN || lane[l].pc == DEAD)
inline write_list(n)
{
    assert(AWAY(LOW(n)) && AWAY(HIGH(n)) && !lane[LOW(n)].hold && !lane[HIGH(n)].hold)
}

#ifdef BUG_OLD_PREPARE
#define IS_NEW(n, t) true
#else
#define IS_NEW(n, t) (node[n].known < t)
#endif
#ifdef BUG_OFF_BY_ONE
#define LIMIT(n) (FENCE(node[n].known) + 1)
#else
#define LIMIT(n) FENCE(node[n].known)
#endif

/* One lane of att_vote_prepare: hold, in one compare-and-swap with the number; once the vote is no,
 * the lane has only the abort to absorb. */
inline visit(n, m)
{
    drain_agent(n);
    lane[m].seen = 1;
    if
    :: node[n].yes && lane[m].call <= LIMIT(n) ->
#ifdef BUG_PLAIN_HOLD
        lane[m].mark = 1;
        node[n].buffer = 1
#else
        lane[m].hold = 1
#endif
    :: else ->
        node[n].yes = 0;
        lane[m].mark = 1;
        node[n].buffer = 1
    fi;
    if
    :: lane[LOW(n)].seen && lane[HIGH(n)].seen ->
        lane[LOW(n)].seen = 0;
        lane[HIGH(n)].seen = 0;
        node[n].pc = 2
    :: else
    fi
}

proctype Agent(byte n)
{
end:
    do
    /* att_voter_prepare: a PREPARE of an id that is not new is dropped. Ready: open the copy
     * (locked), write the list and prepared. Plain stores, but nobody looks at them (write_list)
     * before the first locked instruction on a lane, which drains them. */
#define HEAR_PREPARE(t) \
    :: d_step { \
        !node[n].dead && node[n].pc == 0 && t <= txn && IS_NEW(n, t) && READY(n) && \
        (n == 0 || (node[n].word != OPEN && node[n].txn < t)) -> \
        drain_agent(n); \
        write_list(n); \
        node[n].known = t; \
        if \
        :: n != 0 -> node[n].txn = t; node[n].word = OPEN \
        :: else \
        fi; \
        node[n].list = t; \
        node[n].prepared = t; \
        node[n].yes = 1; \
        node[n].pc = 1; \
        sort() \
    } \
    /* Not ready, or another reason for a no (channels, ranks that left). */ \
    :: d_step { \
        !node[n].dead && node[n].pc == 0 && t <= txn && IS_NEW(n, t) -> \
        drain_agent(n); \
        node[n].known = t; \
        send_vote(n, 0); \
        sort() \
    }
    HEAR_PREPARE(1)
    HEAR_PREPARE(2)
    :: d_step { !node[n].dead && node[n].pc == 1 && !lane[LOW(n)].seen -> visit(n, LOW(n)); sort() }
#if RANKS == 2
    :: d_step { !node[n].dead && node[n].pc == 1 && !lane[HIGH(n)].seen -> visit(n, HIGH(n)); sort() }
#endif
    :: d_step { !node[n].dead && node[n].pc == 2 -> send_vote(n, node[n].yes); sort() }
    /* att_voter_outcome: noted once; a late or repeated one changes nothing. */
    :: d_step {
        !node[n].dead && node[n].pc == 0 && told != OPEN && node[n].recorded != txn ->
        drain_agent(n);
        node[n].known = txn;
        if
        :: n != 0 -> decide_copy(n, txn, told)
        :: else
        fi;
        if
        :: !node[0].dead -> node[n].recorded = txn
        :: else
        fi;
        sort()
    }
    :: d_step { node[n].buffer -> drain_agent(n); sort() }
    od
}

/* --- leader ---------------------------------------------------------------------------------- */

#ifdef BUG_OLD_VOTE
#define SAID_YES(n) (node[n].vote_txn != 0 && node[n].vote)
#else
#define SAID_YES(n) (node[n].vote_txn == txn && node[n].vote)
#endif
#define RECORDED(n) (node[n].recorded == txn)
#if NODES == 3
#define ALL(condition) (condition(0) && condition(1) && condition(2))
#else
#define ALL(condition) (condition(0) && condition(1))
#endif
/* The home keeps an outcome until every node has noted it and the ranks of its own node have taken
 * it over: they have no copy. */
#ifdef BUG_HOME_FORGETS
#define MAY_OPEN true
#else
#define MAY_OPEN (ALL(RECORDED) && READY(0))
#endif

proctype Leader()
{
end:
    do
    /* att_coordinator_begin */
    :: d_step {
        !node[0].dead && txn < 2 && home != OPEN && (txn == 0 || told != OPEN) && MAY_OPEN ->
        txn = txn + 1;
        home_txn = txn;
        home = OPEN;
        told = OPEN;
        asked = 0;
        sort()
    }
#ifdef BUG_TOLD_EARLY
    :: d_step { !node[0].dead && txn != 0 && told == OPEN && ALL(SAID_YES) -> told = COMMITTED; sort() }
    :: d_step { !node[0].dead && txn != 0 && told == COMMITTED && home == OPEN -> home = COMMITTED; sort() }
#else
    /* Yes from everybody. Telling is part of the action: to be told late is to hear late. */
    :: d_step {
        !node[0].dead && txn != 0 && told == OPEN && ALL(SAID_YES) ->
        decide_home(txn, COMMITTED);
        told = result;
        sort()
    }
#endif
    /* A no, or time is up. */
    :: d_step {
        !node[0].dead && txn != 0 && told == OPEN ->
        decide_home(txn, ABORTED);
        told = result;
        sort()
    }
    od
}

/* --- crashes --------------------------------------------------------------------------------- */

/* Stores that are buffered land; what was private is gone. */
inline die_rank(l)
{
    drain_rank(l);
    lane[l].pc = DEAD;
    lane[l].list = 0;
    lane[l].answer = 0;
    crashes = crashes + 1
}

inline die_agent(n)
{
    drain_agent(n);
    node[n].dead = 1;
    node[n].pc = 0;
    node[n].known = 0;
    node[n].yes = 0;
    lane[LOW(n)].seen = 0;
    lane[HIGH(n)].seen = 0;
    crashes = crashes + 1;
    if
    :: n == 0 -> /* nobody counts votes any more */
        i = 0;
        do
        :: i < NODES -> node[i].vote_txn = 0; node[i].vote = 0; node[i].recorded = 0; i++
        :: else -> break
        od
    :: else
    fi
}

/* Another rank of node 0 lives: while the helper does, it may be that one's. */
#if RANKS == 2
#define OTHER_ALIVE(l) (lane[1 - (l)].pc != DEAD)
#else
#define OTHER_ALIVE(l) false
#endif

proctype Crash()
{
end:
    do
#define CRASH_RANK(l) \
    :: d_step { crashes < CRASHES && lane[l].pc != DEAD -> die_rank(l); sort() }
#define CRASH_RANK_AT_HOME(l) \
    :: d_step { \
        crashes < CRASHES && lane[l].pc != DEAD && (helper_dead || OTHER_ALIVE(l)) -> \
        die_rank(l); \
        sort() \
    } \
    :: d_step { \
        crashes < CRASHES && lane[l].pc != DEAD && !helper_dead -> \
        die_rank(l); \
        helper_dead = 1; \
        sort() \
    }
#define CRASH_AGENT(n) \
    :: d_step { crashes < CRASHES && !node[n].dead -> die_agent(n); sort() }
    CRASH_RANK_AT_HOME(0)
#if RANKS == 2
    CRASH_RANK_AT_HOME(1)
    CRASH_RANK(2)
    CRASH_RANK(3)
#else
    CRASH_RANK(1)
#endif
    CRASH_AGENT(0)
    CRASH_AGENT(1)
#if NODES == 3
    CRASH_RANK(2)
    CRASH_AGENT(2)
#endif
    od
}

#ifdef LIVENESS
/* Bounded waiting: a rank whose call found hold gets away, whatever stops or dies but the process
 * that serves the home word. Every process that lives is given turns (weak fairness); how many of
 * its own steps it takes is bounded by the order of its places: WAIT, ASK, TOLD, WAIT, RUN. */
#define IS_HELD(l) (lane[l].pc != RUN && lane[l].pc != DEAD)
#define waits0     IS_HELD(0)
#define waits1     IS_HELD(1)
ltl bounded_waiting {
    [] ((waits0 -> <> (!waits0 || helper_dead)) && (waits1 -> <> (!waits1 || helper_dead)))
}
#endif

init {
    atomic {
        home = ABORTED;
        for (i : 0 .. LANES - 1) {
            run Rank(i)
        }
        for (i : 0 .. NODES - 1) {
            node[i].word = ABORTED;
            run Agent(i)
        }
        i = 0;
        run Helper();
        run Leader();
        run Crash()
    }
}
