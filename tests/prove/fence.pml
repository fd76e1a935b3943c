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
 * is private after it. All state is global (memory.pml), so that states which behave alike can be
 * made one (reduce.pml). For safety one process takes the steps of all; for liveness, where it
 * matters who gets turns, each takes its own.
 */
#include "memory.pml"

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
    lane[l].absorbed = node[NODE(l)].prepared; /* and hold goes off with the buffer */
#else
    lane[l].hold = 0;
#endif
    lane[l].buffer = node[NODE(l)].prepared
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

/* att_lane_next and att_lane_enter: one locked add gives the number and the hold bit; with hold the
 * list and the outcome are looked at. (Nobody reads the number of a lane with hold, so whatever
 * happens between the add and the look might as well happen before the add.) */
inline next_call(l)
{
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
    fi
}

/* att_wait_step: the outcome is there. */
inline learn(l)
{
    lane[l].pc == WAIT && HELD_STATE(l) != OPEN -> absorb(l)
}

/* W is over: on node 0 the rank swaps the word itself, elsewhere it asks. */
inline lose_patience(l)
{
    lane[l].pc == WAIT && HELD_STATE(l) == OPEN &&
    (NODE(l) != 0 || home_txn <= node[NODE(l)].prepared) ->
#ifdef BUG_SILENCE
    release(l);
    launch(l)
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
    fi
#endif
}

/* att_wait_answer: the answer goes into the copy, which is then looked at again. */
inline hear_answer(l)
{
    lane[l].pc == TOLD ->
    drain_rank(l);
    if
    :: lane[l].answer != NONE -> decide_copy(NODE(l), node[NODE(l)].prepared, lane[l].answer)
    :: else
    fi;
    lane[l].answer = 0;
    lane[l].pc = WAIT
}

/* The request or its answer is lost or late: the rank looks again and asks again. (Left out of the
 * search for liveness, where the home can be reached.) */
inline hear_nothing(l)
{
    lane[l].pc == ASK -> lane[l].pc = WAIT
}

inline store(l)
{
    lane[l].buffer != 0 -> drain_rank(l)
}

#define RANK_STEPS(l) \
    :: d_step { next_call(l); same() } \
    :: d_step { learn(l); same() } \
    :: d_step { lose_patience(l); same() } \
    :: d_step { hear_answer(l); same() } \
    :: d_step { store(l); same() }
#define RANK_LOSSES(l) \
    :: d_step { hear_nothing(l); same() }

/* The thread in rank 0's process that serves the home word: att_home_answer. */
inline serve(l)
{
    !helper_dead && lane[l].pc == ASK ->
    decide_home(node[NODE(l)].prepared, ABORTED);
    lane[l].answer = result;
    lane[l].pc = TOLD
}

/* A request that arrives again, or after its rank has ceased to wait. */
inline serve_late()
{
    !helper_dead && asked && home == OPEN -> home = ABORTED
}

#if LANES - RANKS > 1
#define SERVE_SECOND :: d_step { serve(RANKS + 1); same() }
#else
#define SERVE_SECOND
#endif
#define HELPER_STEPS \
    :: d_step { serve(RANKS); same() } \
    SERVE_SECOND \
    :: d_step { serve_late(); same() }

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

/* att_voter_prepare: a PREPARE of an id that is not new is dropped. Ready: open the copy (locked),
 * write the list and prepared. Plain stores, but nobody looks at them (write_list) before the first
 * locked instruction on a lane, which drains them. */
inline hear_prepare(n, t)
{
    !node[n].dead && node[n].pc == 0 && t <= txn && IS_NEW(n, t) && READY(n) &&
    (n == 0 || (node[n].word != OPEN && node[n].txn < t)) ->
    drain_agent(n);
    write_list(n);
    node[n].known = t;
    if
    :: n != 0 -> node[n].txn = t; node[n].word = OPEN
    :: else
    fi;
    node[n].list = t;
    node[n].prepared = t;
    node[n].yes = 1;
    node[n].pc = 1
}

/* Not ready, or another reason for a no (channels, ranks that left). */
inline refuse(n, t)
{
    !node[n].dead && node[n].pc == 0 && t <= txn && IS_NEW(n, t) ->
    drain_agent(n);
    node[n].known = t;
    send_vote(n, 0)
}

/* One lane of att_vote_prepare: hold, in one compare-and-swap with the number; once the vote is no,
 * the lane has only the abort to absorb. */
inline visit(n, m)
{
    !node[n].dead && node[n].pc == 1 && !lane[m].seen ->
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

inline report_vote(n)
{
    !node[n].dead && node[n].pc == 2 -> send_vote(n, node[n].yes)
}

/* att_voter_outcome: noted once; a late or repeated one changes nothing. */
inline hear_outcome(n)
{
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
    fi
}

inline store_agent(n)
{
    node[n].buffer -> drain_agent(n)
}

#if RANKS == 2
#define VISIT_SECOND(n) :: d_step { visit(n, HIGH(n)); same() }
#else
#define VISIT_SECOND(n)
#endif
#define AGENT_STEPS(n) \
    :: d_step { hear_prepare(n, 1); same() } \
    :: d_step { hear_prepare(n, 2); same() } \
    :: d_step { refuse(n, 1); same() } \
    :: d_step { refuse(n, 2); same() } \
    :: d_step { visit(n, LOW(n)); same() } \
    VISIT_SECOND(n) \
    :: d_step { report_vote(n); same() } \
    :: d_step { hear_outcome(n); same() } \
    :: d_step { store_agent(n); same() }

/* --- leader ---------------------------------------------------------------------------------- */

#ifdef BUG_OLD_VOTE
#define SAID_YES(n) (node[n].vote_txn != 0 && node[n].vote)
#else
#define SAID_YES(n) (node[n].vote_txn == txn && node[n].vote)
#endif
#define RECORDED(n) (node[n].recorded == txn)
/* The home keeps an outcome until every node has noted it and the ranks of its own node have taken
 * it over: they have no copy. */
#ifdef BUG_HOME_FORGETS
#define MAY_OPEN true
#else
#define MAY_OPEN (ALL_NODES(RECORDED) && READY(0))
#endif
#define LEADS (!node[0].dead && txn != 0)

/* att_coordinator_begin */
inline begin()
{
    !node[0].dead && txn < 2 && home != OPEN && (txn == 0 || told != OPEN) && MAY_OPEN ->
    txn = txn + 1;
    home_txn = txn;
    home = OPEN;
    told = OPEN;
    asked = 0
}

/* Yes from everybody. Telling is part of the action: to be told late is to hear late. */
inline commit()
{
    LEADS && told == OPEN && ALL_NODES(SAID_YES) ->
#ifdef BUG_TOLD_EARLY
    told = COMMITTED
#else
    decide_home(txn, COMMITTED);
    told = result
#endif
}

/* A no, or time is up. */
inline give_up()
{
    LEADS && told == OPEN ->
    decide_home(txn, ABORTED);
    told = result
}

#ifdef BUG_TOLD_EARLY
#define SWAP_LATE :: d_step { LEADS && told == COMMITTED && home == OPEN -> home = COMMITTED; same() }
#else
#define SWAP_LATE
#endif
#define LEADER_STEPS \
    :: d_step { begin(); same() } \
    :: d_step { commit(); same() } \
    SWAP_LATE \
    :: d_step { give_up(); same() }

#include "reduce.pml"

/* --- crashes --------------------------------------------------------------------------------- */

#define MAY_DIE (crashes < CRASHES)

/* Stores that are buffered land; what was private is gone. */
inline stop_rank(l)
{
    drain_rank(l);
    lane[l].pc = DEAD;
    lane[l].list = 0;
    lane[l].answer = 0;
    crashes = crashes + 1
}

/* Another rank of node 0 lives: while the helper does, it may be that one's. */
#if RANKS == 2
#define OTHER_ALIVE(l) (lane[1 - (l)].pc != DEAD)
#else
#define OTHER_ALIVE(l) false
#endif

inline die_rank(l)
{
    MAY_DIE && !IS_FINISHED(l) && (NODE(l) != 0 || helper_dead || OTHER_ALIVE(l)) -> stop_rank(l)
}

inline die_with_helper(l)
{
    MAY_DIE && lane[l].pc != DEAD && !helper_dead ->
    stop_rank(l);
    helper_dead = 1
}

inline die_agent(n)
{
    MAY_DIE && !node[n].dead && !IS_THROUGH(n) ->
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

#define DEATH_OF_RANK(l)  :: d_step { die_rank(l); same() }
#define DEATH_OF_AGENT(n) :: d_step { die_agent(n); same() }
#define DEATH_AT_HOME(l)  DEATH_OF_RANK(l) :: d_step { die_with_helper(l); same() }

#if LANES == 4
#define EACH_RANK(what) what(0) what(1) what(2) what(3)
#elif LANES == 3
#define EACH_RANK(what) what(0) what(1) what(2)
#else
#define EACH_RANK(what) what(0) what(1)
#endif
#if NODES == 3
#define EACH_AGENT(what) what(0) what(1) what(2)
#else
#define EACH_AGENT(what) what(0) what(1)
#endif
#if RANKS == 2
#define DEATHS DEATH_AT_HOME(0) DEATH_AT_HOME(1) DEATH_OF_RANK(2) DEATH_OF_RANK(3) EACH_AGENT(DEATH_OF_AGENT)
#elif NODES == 3
#define DEATHS DEATH_AT_HOME(0) DEATH_OF_RANK(1) DEATH_OF_RANK(2) EACH_AGENT(DEATH_OF_AGENT)
#else
#define DEATHS DEATH_AT_HOME(0) DEATH_OF_RANK(1) EACH_AGENT(DEATH_OF_AGENT)
#endif

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

proctype Rank(byte l)
{
end:
    do
    RANK_STEPS(l)
    od
}

proctype Helper()
{
end:
    do
    HELPER_STEPS
    od
}

proctype Agent(byte n)
{
end:
    do
    AGENT_STEPS(n)
    od
}

proctype Leader()
{
end:
    do
    LEADER_STEPS
    od
}

/* Nobody has to die: fairness would have it so. */
proctype Crash()
{
end:
    do
    DEATHS
    :: MAY_DIE -> crashes = CRASHES
    od
}
#endif

init
{
    d_step {
        home = ABORTED;
        i = 0;
        do
        :: i < NODES -> node[i].word = ABORTED; i++
        :: else -> break
        od;
        i = 0
    }
#ifdef LIVENESS
    atomic {
        run Rank(0);
        run Rank(1);
        run Agent(0);
        run Agent(1);
        run Helper();
        run Leader();
        run Crash()
    }
#else
end:
    do
    EACH_RANK(RANK_STEPS)
    EACH_RANK(RANK_LOSSES)
    HELPER_STEPS
    EACH_AGENT(AGENT_STEPS)
    LEADER_STEPS
    DEATHS
    od
#endif
}
