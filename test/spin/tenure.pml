/*
 * One partition, two members, the rebalancers and etcd: the protocol of src/core, for liveness only.
 * Safety is searched over the machines themselves (test/model); here Spin asks whether something that
 * must happen can be put off for ever, under weak fairness, with infinitely many moves and bounded faults:
 *
 *   L3  an overdue drain, and an overdue acquire, is resolved (policy `wait` excepted, which says so)
 *   L6  no partition stays ownerless while an eligible member lives
 *   L4  once operators are quiet, it is served again (its part that concerns one partition)
 *
 * What each step here stands for:
 *
 *   member  see                           src/core/ownership.ts stepHeld, stepCampaigning (`seen`)
 *           adopt, skip                   src/core/ownership-transitions.ts notice, adopt
 *           campaign                      src/core/ownership.ts stepAbsent; src/core/election.ts
 *           answer to a campaign          src/core/ownership.ts stepCampaigning
 *           send a hand-over              src/core/ownership-transitions.ts sendHandOver, handOverCommit
 *           answer to a hand-over         src/core/ownership-hand-over.ts settleHandOver, sendAgain
 *   world   execute, lose, time out       src/core/commit.ts (compares), src/runtime/committer.ts
 *           session opens, ends, runs out src/core/session.ts, src/runtime/member-session.ts
 *           mark seen                     src/runtime/member.ts settingsChanged
 *           acquired, drained, wedged     src/runtime/partition-run.ts
 *           drain overdue                 src/core/ownership-draining.ts overdue
 *           acquire overdue               src/core/ownership-transitions.ts giveUpUnused
 *   rebalancer  elected, deposed, dies    src/runtime/rebalancer-election.ts
 *           retarget                      src/core/rebalancer-moves.ts retargetMoves
 *           force                         src/core/rebalancer-moves.ts forceMove, forcedGrantee
 *           mark, close the lease         src/core/rebalancer-moves.ts markForEviction,
 *                                         src/core/rebalancer-evictions.ts
 *   operator    revoke, rewrite, cancel   src/core/rebalancer-plan.ts, src/core/rebalance-requests.ts
 *           leave                         src/runtime/member.ts leave
 *
 * No counters, so that runs may be infinite. A compare of the whole record succeeds exactly when nothing
 * was written since the copy was made (operation ids are unique, nothing is restored here): one bit per
 * commit. A generation matters only as "above all that I remember": one bit per member. A session matters
 * only as "the one that stands": one bit, since a member opens none while its old key stands.
 *
 * Left out, and why that is sound for these properties: restores and halting (they wait for an operator);
 * reading an outdated map (what acts on it is refused by its compare, which is the step `see`); requests of
 * rebalancers under way (all of their commits compare election, record and sessions, so one that lands is
 * the atomic step here, at that moment; the one that compares nothing, closing a lease, may come as late as
 * it likes). One request per member is under way; a later one waits until the earlier has landed or is lost.
 * Time: a deadline may pass whenever its drain is under way, an acquire's only when its handler is stuck;
 * "T has passed" is that the marked member's own deadline has.
 *
 * POLICY, REBALANCERS, the fault budgets and the mutants (MUTANT_...) come by -D from run.ts.
 */

#define WAIT 0
#define FENCE 1
#define EVICT 2

#ifndef POLICY
#define POLICY FENCE
#endif
#ifndef REBALANCERS
#define REBALANCERS 2
#endif
#ifndef REWRITES
#define REWRITES 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef EXPIRIES
#define EXPIRIES 1
#endif
#ifndef LOST
#define LOST 1
#endif
#ifndef WEDGES
#define WEDGES 1
#endif
#ifndef DEPOSALS
#define DEPOSALS 1
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef LEAVES
#define LEAVES 0
#endif

#define MEMBERS 2
#define NONE 2
#define other(m) (1 - (m))

/* Phases of the record. EVICTING exists in one mutant only. */
#define VACANT 0
#define OWNED 1
#define REVOKING 2
#define EVICTING 3

/* Seats. */
#define ABSENT 0
#define CAMPAIGNING 1
#define ACQUIRING 2
#define SERVING 3
#define DRAINING 4
#define HANDING 5

/* Handlers that hang. */
#define SLOW 1
#define FOREVER 2

/* Commits. */
#define NOTHING 0
#define ELECT 1
#define GRANT 2
#define FORCE 3
#define VACATE 4

/* etcd: the record of the partition, who stands, who is elected. */
byte phase = VACANT
byte owner = NONE           /* NONE also once its session is gone */
byte target = NONE
byte rewrites = 0
bit ownerLives = 0
bit key[MEMBERS]            /* members/<m> */
bit mark[MEMBERS]           /* evictions/<m>, under the same lease */
bit closing[MEMBERS]        /* a request to close that lease is under way */
bit elected = 0             /* a rebalancer holds the election */

/* Members. */
bit up[MEMBERS]
bit live[MEMBERS]           /* the session, as the member itself sees it */
bit leaving[MEMBERS]
byte seat[MEMBERS]
bit fresh[MEMBERS]          /* its copy of the record is the latest */
bit news[MEMBERS]           /* the record's grant is above all that it remembers */
bit holds[MEMBERS]          /* the record's grant is the one that its seat is about */
bit forced[MEMBERS]         /* the hand-over is by force */
byte give[MEMBERS]          /* to whom */
byte stuck[MEMBERS]         /* a handler hangs */
bit overran[MEMBERS]        /* the drain deadline was dealt with */
bit heldOff[MEMBERS]

/* The commit of a seat: its kind, whether its compares would succeed, what is known of it. */
byte kind[MEMBERS]
byte grantee[MEMBERS]
bit same[MEMBERS]           /* the record is still the one that it replaces */
bit lives[MEMBERS]          /* the sessions that it requires still stand */
bit landed[MEMBERS]         /* the record is what it wrote */
bit flies[MEMBERS]          /* a copy of it is under way */
bit orphan[MEMBERS]         /* nobody waits for its answer */
bit unknown[MEMBERS]        /* its answer was lost or late: read and see */

/* Faults left. */
byte crashes = CRASHES
byte expiries = EXPIRIES
byte lost = LOST
byte wedges = WEDGES
byte deposals = DEPOSALS
byte restarts = RESTARTS
byte leaves = LEAVES

/* What the properties speak of. */
bit quiet = 0

byte rebalancers = REBALANCERS   /* that have not died for good */

#define owned (phase != VACANT && phase != EVICTING && ownerLives)
#define isEligible(m) (up[m] && !leaving[m])
#define eligible (isEligible(0) || isEligible(1))
#define serves(m) (owner == m && owned && live[m] && seat[m] == SERVING)
#define served (serves(0) || serves(1))
#define wedged (stuck[0] || stuck[1])

/* The drain deadline passed at the owner, and the record still names that grant. */
#define overdue(m) (owner == m && owned && overran[m])
#define drainOverdue (overdue(0) || overdue(1))
#define hangs(m) (owner == m && owned && seat[m] == ACQUIRING && stuck[m])
#define acquireOverdue (hangs(0) || hangs(1))

ltl L3 { [] (drainOverdue -> <> !drainOverdue) }
ltl L3acquire { [] (acquireOverdue -> <> !acquireOverdue) }
ltl L6 { [] ((!owned && eligible) -> <> (owned || !eligible)) }
ltl L4 { [] (quiet -> <> (served || !eligible || wedged)) }

inline written() {
  fresh[0] = (seat[0] < ACQUIRING); fresh[1] = (seat[1] < ACQUIRING);
  same[0] = 0; same[1] = 0;
  landed[0] = 0; landed[1] = 0
}

inline granted(to) {
  written();
  phase = OWNED; owner = to; ownerLives = 1; target = NONE; rewrites = 0;
  news[0] = (to == 0); news[1] = (to == 1);
  holds[0] = 0; holds[1] = 0
}

inline vacated() {
  written();
  phase = VACANT; owner = NONE; ownerLives = 0; target = NONE; rewrites = 0;
  news[0] = 0; news[1] = 0;
  holds[0] = 0; holds[1] = 0
}

/* Member m's session is gone from etcd. */
inline sessionGone(m) {
  key[m] = 0; mark[m] = 0; closing[m] = 0;
  if
  :: owner == m -> owner = NONE; ownerLives = 0; news[m] = 0
  :: else
  fi;
  if
  :: kind[m] == ELECT || kind[m] == FORCE -> lives[m] = 0
  :: else
  fi;
  if
  :: grantee[0] == m -> lives[0] = 0
  :: else
  fi;
  if
  :: grantee[1] == m -> lives[1] = 0
  :: else
  fi
}

inline forget(m) {
  kind[m] = NOTHING; grantee[m] = NONE; same[m] = 0; lives[m] = 0; landed[m] = 0; unknown[m] = 0
}

inline leaveSeat(m) {
  seat[m] = ABSENT; fresh[m] = 1; give[m] = NONE; forced[m] = 0; overran[m] = 0; holds[m] = 0;
  if
  :: flies[m] -> orphan[m] = 1; unknown[m] = 0
  :: else -> forget(m)
  fi
}

/* The member has ended its session itself, for whatever cause. Handlers that hang go on hanging. */
inline sessionEnds(m) {
  live[m] = 0; heldOff[m] = 0;
  leaveSeat(m)
}

inline processEnds(m) {
  sessionEnds(m);
  up[m] = 0; stuck[m] = 0; leaving[m] = 0
}

inline send(m, what, to) {
  kind[m] = what; grantee[m] = to;
  same[m] = fresh[m]; lives[m] = 1; landed[m] = 0; flies[m] = 1; unknown[m] = 0
}

inline drain(m) {
  seat[m] = DRAINING; overran[m] = 0
}

inline handOver(m, to, byForce) {
  seat[m] = HANDING; give[m] = to; forced[m] = byForce
}

#define isTarget(x) (x != NONE && key[x] && !mark[x] && !leaving[x])
#ifdef MUTANT_FORCE_NEEDS_GRANTEE
#define mayForce(x) isTarget(x)
#else
#define mayForce(x) true
#endif

#ifdef MUTANT_ELECT_VACANT_PHASE_ONLY
#define isElectable (phase == VACANT)
#else
#define isElectable (!owned && phase != EVICTING)
#endif

/* The record still names this grant, but not as it was when the hand-over was sent: the move was rewritten. */
inline again(m) {
  forget(m); fresh[m] = 1;
  if
  :: phase == REVOKING -> give[m] = target
  :: else
  fi
}

/* The answer to a hand-over that was refused. */
inline refusedHandOver(m) {
  if
  :: !holds[m] -> leaveSeat(m)
  :: holds[m] && !same[m] -> again(m)
  /* the record stands, so a requirement failed: the grantee died */
  :: holds[m] && same[m] ->
#ifdef MUTANT_NO_VACATE
      flies[m] = 1
#else
      forget(m); give[m] = NONE
#endif
  fi
}

proctype member(byte m) {
end:
  do
  /* see */
  :: atomic { up[m] && live[m] && !fresh[m] ->
      fresh[m] = 1;
      if
      :: (seat[m] == ACQUIRING || seat[m] == SERVING) && !holds[m] -> leaveSeat(m)
      :: (seat[m] == ACQUIRING || seat[m] == SERVING) && holds[m] && phase == REVOKING ->
          give[m] = target; drain(m)
      :: seat[m] == DRAINING && !holds[m] -> leaveSeat(m)
      :: seat[m] == DRAINING && holds[m] && phase == REVOKING -> give[m] = target
      :: seat[m] == HANDING && (landed[m] || (!holds[m] && phase != VACANT)) -> leaveSeat(m)
      :: else
      fi
    }
  /* adopt, or skip what is to be given up again */
  :: atomic { up[m] && live[m] && fresh[m] && seat[m] == ABSENT && owner == m && owned && news[m] ->
      news[m] = 0; holds[m] = 1;
      if
      :: phase == OWNED -> seat[m] = ACQUIRING
      :: phase == REVOKING -> handOver(m, target, 0)
      fi
    }
  /* leave: what is held is drained, the record is not revoked */
  :: atomic { up[m] && live[m] && leaving[m] && (seat[m] == ACQUIRING || seat[m] == SERVING) ->
      give[m] = other(m); drain(m)
    }
  /* campaign */
  :: atomic { up[m] && live[m] && key[m] && !mark[m] && !leaving[m] && !heldOff[m] && fresh[m] &&
      seat[m] == ABSENT && !flies[m] && isElectable ->
      seat[m] = CAMPAIGNING; send(m, ELECT, NONE)
    }
  /* the outcome is unknown: landed, sent again on the same compare, or over */
  :: atomic { up[m] && live[m] && unknown[m] ->
#ifdef MUTANT_UNKNOWN_IS_OVER
      leaveSeat(m)
#else
      if
      :: !landed[m] && same[m] -> unknown[m] = 0; flies[m] = 1
      :: else ->
          if
          :: seat[m] == HANDING && !landed[m] && holds[m] ->
              if
              :: !flies[m] -> again(m)
              :: else -> unknown[m] = 0
              fi
          :: else -> leaveSeat(m)
          fi
      fi
#endif
    }
  /* send a hand-over */
  :: atomic { up[m] && live[m] && seat[m] == HANDING && kind[m] == NOTHING && !flies[m] &&
      (!forced[m] || mayForce(give[m])) ->
      if
      :: isTarget(give[m]) ->
          if
          :: forced[m] -> send(m, FORCE, give[m])
          :: else -> send(m, GRANT, give[m])
          fi
      :: else ->
          send(m, VACATE, NONE)
      fi
    }
  od
}

proctype world(byte m) {
end:
  do
  /* a request is executed; its answer arrives, or is lost */
  :: atomic { flies[m] ->
      flies[m] = 0;
      if
      :: kind[m] == ELECT && same[m] && lives[m] && !ownerLives -> granted(m); landed[m] = 1
      :: (kind[m] == GRANT || kind[m] == FORCE) && same[m] && lives[m] ->
          granted(grantee[m]); landed[m] = 1
      :: kind[m] == VACATE && same[m] -> vacated(); landed[m] = 1
      :: else
      fi;
      if
      :: orphan[m] -> orphan[m] = 0; forget(m)
      :: !orphan[m] && unknown[m]
      :: !orphan[m] && !unknown[m] && lost > 0 -> lost--; unknown[m] = 1
      :: !orphan[m] && !unknown[m] ->
          if
          :: landed[m] || seat[m] == CAMPAIGNING -> leaveSeat(m)
          :: else -> refusedHandOver(m)
          fi
      fi
    }
  /* a request is lost */
  :: atomic { flies[m] && lost > 0 ->
      lost--; flies[m] = 0;
      if
      :: orphan[m] -> orphan[m] = 0; forget(m)
      :: else -> unknown[m] = 1
      fi
    }
  /* its answer comes too late, the request may land yet */
  :: atomic { flies[m] && !orphan[m] && !unknown[m] && lost > 0 -> lost--; unknown[m] = 1 }

  /* the member opens a session, only while its key is absent */
  :: atomic { up[m] && !live[m] && !key[m] -> key[m] = 1; live[m] = 1; fresh[m] = 1 }
  /* it learns that its session is gone */
  :: atomic { up[m] && live[m] && !key[m] -> sessionEnds(m) }
  /* it sees its mark: ends the session here, its process exits */
  :: atomic { up[m] && live[m] && mark[m] -> processEnds(m) }
  /* nobody renews the lease: it is closed, or runs out */
  :: atomic { !live[m] && key[m] -> sessionGone(m) }
  /* a rebalancer closes the lease, however late */
  :: atomic { closing[m] && key[m] -> sessionGone(m) }
  /* faults: a deadline passes, etcd drops a live session, the process dies, one is started again */
  :: atomic { up[m] && live[m] && expiries > 0 -> expiries--; sessionEnds(m) }
  :: atomic { live[m] && key[m] && expiries > 0 -> expiries--; sessionGone(m) }
  :: atomic { up[m] && crashes > 0 -> crashes--; processEnds(m) }
  :: atomic { !up[m] && restarts > 0 -> restarts--; up[m] = 1 }
  /* SIGTERM: nothing is held any more, the session is closed and the process ends */
  :: atomic { up[m] && leaving[m] && seat[m] == ABSENT && !(owner == m && owned && live[m]) -> processEnds(m) }

  /* handlers */
  :: atomic { up[m] && seat[m] == ACQUIRING && !stuck[m] -> seat[m] = SERVING }
  :: atomic { up[m] && seat[m] == DRAINING && !stuck[m] -> handOver(m, give[m], 0) }
  :: atomic { up[m] && !stuck[m] && wedges > 0 && seat[m] >= ACQUIRING && seat[m] <= DRAINING ->
      wedges--;
      if
      :: stuck[m] = FOREVER
#ifdef SLOW_WORK
      :: stuck[m] = SLOW
#endif
      fi
    }
#ifdef SLOW_WORK
  :: atomic { stuck[m] == SLOW -> stuck[m] = 0 }
#endif
#ifndef MUTANT_NO_ACQUIRE_DEADLINE
  /* the acquire deadline: given up unused, to whom elections choose; this member holds off */
  :: atomic { up[m] && seat[m] == ACQUIRING && stuck[m] ->
      heldOff[m] = 1; handOver(m, NONE, 0)
    }
  :: atomic { up[m] && heldOff[m] -> heldOff[m] = 0 }
#endif
  /* the drain deadline passes; then the owner acts by the policy itself */
  :: atomic { up[m] && seat[m] == DRAINING && stuck[m] && !overran[m] -> overran[m] = 1 }
#ifndef MUTANT_NO_OWNER_DEADLINE
#if POLICY == FENCE
  :: atomic { up[m] && seat[m] == DRAINING && overran[m] -> handOver(m, give[m], 1) }
#endif
#if POLICY == EVICT
  :: atomic { up[m] && seat[m] == DRAINING && overran[m] -> processEnds(m) }
#endif
#endif
  od
}

/*
 * All rebalancers: one is elected or none, and so many have not died for good. None remembers anything that
 * a successor would need, so which one it is makes no difference (`mine` exists in one mutant only).
 */
proctype rebalancer() {
  byte x;
  bit mine;
end:
  do
  :: atomic { !elected && rebalancers > 0 -> elected = 1 }
  :: atomic { elected && deposals > 0 -> deposals--; elected = 0; mine = 0 }
#ifndef IMMORTAL
  /* the elected one dies for good, at any moment */
  :: atomic { elected -> rebalancers--; elected = 0; mine = 0 }
#endif
  /* retarget: the target died, another lives */
  :: atomic { elected && phase == REVOKING && ownerLives && rewrites < REWRITES && !isTarget(target) &&
      (isTarget(0) || isTarget(1)) ->
      written(); rewrites++;
      if
      :: isTarget(0) -> target = 0
      :: isTarget(1) -> target = 1
      fi
    }
#if POLICY == FENCE
  /* force: never to the owner whose drain is stuck; to nobody where no other lives */
  :: atomic { elected && phase == REVOKING && ownerLives && drainOverdue && mayForce(other(owner)) ->
      x = other(owner);
      if
      :: isTarget(x) -> granted(x)
      :: else -> vacated()
      fi;
      x = 0
    }
#endif
#if POLICY == EVICT
#ifdef MUTANT_EVICT_PHASE
  /* as first designed: a phase of the record, which only the rebalancer that began it ends */
  :: atomic { elected && phase == REVOKING && ownerLives && drainOverdue ->
      written(); phase = EVICTING; closing[owner] = 1; mine = 1
    }
  :: atomic { elected && phase == EVICTING && mine && !ownerLives -> mine = 0; vacated() }
#else
  /* mark the session; a mark that stands is served by whoever is elected */
  :: atomic { elected && phase == REVOKING && ownerLives && drainOverdue && !mark[owner] ->
      mark[owner] = 1
    }
  :: atomic { elected && mark[0] && !closing[0] -> closing[0] = 1 }
  :: atomic { elected && mark[1] && !closing[1] -> closing[1] = 1 }
#endif
#endif
  od
}

/* Whoever asks for moves: planner and operators. They may go on for ever, or stop at any moment. */
proctype operator() {
end:
  do
  :: atomic { elected && phase == OWNED && ownerLives ->
      written(); phase = REVOKING; rewrites = 0;
      if
      :: target = other(owner)
      :: target = NONE
      fi
    }
  /* a cancel is a rewrite too: the owner drains, then grants itself */
  :: atomic { elected && phase == REVOKING && ownerLives && rewrites < REWRITES ->
      written(); rewrites++;
      if
      :: target != 0 -> target = 0
      :: target != 1 -> target = 1
      fi
    }
  :: atomic { leaves > 0 && up[0] && !leaving[0] -> leaves--; leaving[0] = 1 }
  :: quiet = 1 -> break
  od
}

init {
  atomic {
    byte m = 0;
    do
    :: m < MEMBERS ->
        up[m] = 1; give[m] = NONE; grantee[m] = NONE;
        run member(m); run world(m); m++
    :: else -> break
    od;
    m = 0;
    run rebalancer();
    run operator()
  }
}
