/* What the fence's model is made of: its size, the state of lanes, nodes and home word, and what a store,
 * a locked instruction or a death does to them. */
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
#if NODES == 3
#define ALL_NODES(condition) (condition(0) && condition(1) && condition(2))
#else
#define ALL_NODES(condition) (condition(0) && condition(1))
#endif

/* --- memory ---------------------------------------------------------------------------------- */

inline drain_rank(l)
{
    if
    :: lane[l].buffer != 0 ->
#ifdef BUG_ABSORBED_FIRST
        lane[l].hold = 0;
#else
        lane[l].absorbed = lane[l].buffer;
#endif
        lane[l].buffer = 0
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
