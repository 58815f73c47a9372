/*
 * A model of ingest: one upload on its way from POST /uploads to a row or a reject, while anything crashes.
 * `go tool task model` lets Spin try all orders of the steps, with a crash at each of them.
 *
 * How to read Promela, if you write Go:
 *   - An `active proctype` is a goroutine; `active [2]` starts two of them.
 *   - `a; b` and `a -> b` mean the same. A condition that stands alone waits until it is true.
 *   - `if` and `do` take any branch (::) that does not have to wait, as `select` does. `do` repeats.
 *   - Nothing happens between the steps of an `atomic`. `inline` is a macro.
 *   - At a label that begins with `end`, a process may wait forever: it has nothing to do.
 *   - In `ltl`, [] means always and <> means eventually.
 *
 * What it leaves out: batches, because a transaction stores all of a batch or nothing, and workers bisect a batch that
 * the database refuses down to single uploads; the priority lane, which is a worker whose ack gets lost; the times
 * STREAM_KEEP and REJECTS_KEEP: messages are purged as soon as they are settled, and rejects are kept.
 *
 * What it assumes: faults are finite, FAULTS of them, at any steps. Then no run goes on forever, so that every process
 * that can continue does so.
 *
 * A macro in #ifdef or #ifndef (but FAULTS) is a mistake that Spin must find: model_test.go sets one after the other.
 */
#ifndef FAULTS
#define FAULTS 2
#endif
#define MESSAGES 4 /* an upload is sent again only after a fault: enough for 3 faults */
#define CAPACITY 2 /* messages in a full stream */

mtype = { GOOD, REFUSED_BY_DATABASE, OF_UNKNOWN_UNIT };
mtype = { ABSENT, BUFFERED, SYNCED, DELETED };

byte faults = FAULTS;
mtype kind;                /* of the upload */
bool confirmed;            /* its sender got 202, and deleted its copy */

/* The stream UPLOADS. Each arrival of the upload is a message of its own (decision 39 b). */
mtype message[MESSAGES] = ABSENT; /* on the disk of NATS */
byte last, size;           /* messages that were published; those in the stream */
byte held[MESSAGES];       /* workers that hold the message in memory */
bool delivered[MESSAGES];  /* NATS waits for an ack */
bool settled[MESSAGES];    /* NATS has the ack */

/* The database. */
bool available = true;     /* it accepts transactions */
bool registered;           /* the unit is in a device, if it was unknown */
byte rows;                 /* rows of readings that the upload has */
byte unsynced;             /* those that are not on disk yet: none, because of synchronous_commit=on */
byte rejects[MESSAGES];    /* rejects of this arrival */
bool replayed[MESSAGES];   /* replayed_at of the reject is set */

hidden byte m;             /* a message within one atomic step */
#define some(is, number) if :: is(0) -> number = 0 :: is(1) -> number = 1 \
                            :: is(2) -> number = 2 :: is(3) -> number = 3 fi
#define any(is) (is(0) || is(1) || is(2) || is(3))
#define every(is) (is(0) && is(1) && is(2) && is(3))

#define buffered(m) (message[m] == BUFFERED)
#define synced(m) (message[m] == SYNCED)
#define rejected(m) (rejects[m] > 0)
#define purgeable(m) (synced(m) && settled[m])
#define deliverable(m) (synced(m) && !delivered[m] && !settled[m])
#define abandoned(m) (delivered[m] && held[m] == 0)
#define in_work(m) (faults > 0 && delivered[m] && held[m] > 0)
#define replayable(m) (available && registered && rejected(m) && !replayed[m])
#define has_outcome (rows > 0 || any(rejected))

/* ---- What must hold after each step ---- */

#define once(m) (rejects[m] <= 1)
#define accounted(m) (!settled[m] || rows > 0 || rejected(m))
inline check() {
  assert(rows <= 1 && every(once));                     /* never two rows, nor two rejects of one arrival */
  assert(!(kind == GOOD && any(rejected)));             /* never stored and rejected; a reject of an unknown */
  assert(!(kind == REFUSED_BY_DATABASE && rows > 0));   /* unit stays beside the row that its replay stores */
  assert(!confirmed || any(synced) || has_outcome);     /* what got 202 has a durable copy */
  assert(every(accounted))                              /* what a worker acknowledged is a row or a reject */
}

/* One more branch: a crash, or a response that gets lost. */
#define or_fail(restart) :: atomic { faults > 0 -> faults--; goto restart }

/* ---- A device, and the receiver that answers it: internal/receiver/uploads.go, internal/queue/publish.go ---- */

active proctype device() {
  if :: kind = GOOD :: kind = REFUSED_BY_DATABASE :: kind = OF_UNKNOWN_UNIT fi;
send: /* again after a 503, and without a response */
#ifdef CONFIRM_BEFORE_APPEND
  atomic { confirmed = true; check() };
#endif
  if /* To wait here is to get 503, and to send again. */
  :: atomic { size < CAPACITY -> message[last] = BUFFERED; last++; size++ } /* A full stream refuses it (DiscardNew). */
#ifdef CONFIRM_BEFORE_APPEND
  or_fail(end)
#endif
  fi;
  if /* NATS sends the PubAck after the sync (sync_interval: always), or it crashes before. */
#ifdef PUBACK_BEFORE_SYNC
  :: atomic { message[last - 1] == BUFFERED -> confirmed = true; check() }
#endif
  :: atomic { message[last - 1] == SYNCED || message[last - 1] == DELETED -> confirmed = true; check() }
  :: message[last - 1] == ABSENT -> goto send
  or_fail(send) /* The receiver crashes, or gets no PubAck: the message may be stored all the same. */
  fi;
  if :: goto end or_fail(send) /* The 202 gets lost. */ fi;
end: skip
}

/* ---- NATS: deploy/nats.conf, internal/queue/declare.go ---- */

active proctype nats() {
  byte n;
end:
  do
  :: atomic { some(buffered, m); message[m] = SYNCED }
  :: atomic { some(abandoned, m); delivered[m] = false } /* AckWait: the worker with the message crashed. */
  :: atomic { some(in_work, m); faults--; delivered[m] = false } /* Or it was paused, and will continue. */
  :: atomic { /* A crash loses what is not synced, all deliveries, and acks that are not on disk. */
       faults > 0 -> faults--;
       do
       :: n == MESSAGES -> n = 0; break
       :: n < MESSAGES ->
          if :: buffered(n) -> message[n] = ABSENT; size-- :: else fi;
          if :: purgeable(n) -> settled[n] = false :: true fi;
          delivered[n] = false; n++
       od; check() }
  od
}

/* ---- Workers: internal/worker/worker.go and write.go, internal/store/write/batch.go ---- */

#ifdef INSERT_WITHOUT_KEY
#define upsert(count) count++
#else
#define upsert(count) count = 1 /* ON CONFLICT: the same row again changes nothing (decisions 38, 41 l) */
#endif
#ifdef ASYNCHRONOUS_COMMIT
#define commit() unsynced = rows
#else
#define commit() skip
#endif

active [2] proctype worker() {
  byte own;
  bool reject, stored;
end_fetch:
  atomic { some(deliverable, own); delivered[own] = true; held[own]++ };
  if /* It reads the installations before the transaction. */
  :: reject = (kind == OF_UNKNOWN_UNIT && !registered)
  or_fail(crash)
  fi;
#ifdef ACK_BEFORE_COMMIT
  atomic { settled[own] = true; check() };
#endif
  if /* During an outage it returns the message and tries again. To wait here is the same. */
  :: atomic { available && reject -> upsert(rejects[own]); stored = true; check() }
  :: atomic { available && !reject && kind != REFUSED_BY_DATABASE -> upsert(rows); commit(); stored = true; check() }
#ifdef RETURN_WHAT_IS_REFUSED
  :: available && kind == REFUSED_BY_DATABASE
#else
  :: atomic { available && kind == REFUSED_BY_DATABASE -> upsert(rejects[own]); stored = true; check() }
#endif
  or_fail(crash)
  fi;
  if
  :: atomic { delivered[own] = false; settled[own] = settled[own] || stored; check() } /* ack, or nak */
  :: atomic { faults > 0 -> faults--; delivered[own] = false } /* The response to the commit got lost: nak. */
  or_fail(crash)
  fi;
crash: /* The memory of the process is gone; NATS detects that by AckWait. The end of a batch forgets it, too. */
  atomic { held[own]--; own = 0; stored = false; reject = false };
  goto end_fetch
}

active proctype purge() { /* internal/queue/purge.go */
end:
  do
#ifdef DROP_UNSETTLED /* Discard: old, an age limit, or a purge above the ack floor */
  :: atomic { some(synced, m); message[m] = DELETED; size--; check() }
#endif
  :: atomic { some(purgeable, m); message[m] = DELETED; size--; check() }
  od
}

/* ---- The database and its operator: internal/queue/state.go, WriteReplay in internal/store/write/batch.go ---- */

active proctype database() {
end:
  do
  :: atomic { faults > 0 -> faults--; available = false; rows = rows - unsynced; unsynced = 0; check() };
     available = true
#ifdef ASYNCHRONOUS_COMMIT
  :: unsynced > 0 -> unsynced = 0
#endif
  od
}

active proctype operator() {
  bool again = true;
end_work:
  do
  :: atomic { kind == OF_UNKNOWN_UNIT && !registered -> registered = true }
  :: atomic { again -> again = false; m = 0; /* `stream replay`: NATS delivers all that it has again. */
       do :: m < MESSAGES -> settled[m] = settled[m] && !synced(m); delivered[m] = false; m++ :: else -> break od }
  :: atomic { some(replayable, m); /* `rejects replay`: one transaction, which keeps the reject (decision 41 k). */
#ifdef REPLAY_DELETES_FIRST
       rejects[m] = 0; check() };
     atomic { available ->
#endif
       if :: kind != REFUSED_BY_DATABASE -> upsert(rows); commit() :: else fi; replayed[m] = true; check() }
  od
}

/* In every run, the sender gets 202 at last, and the upload is a row or a reject from then on. */
ltl outcome { <>[] (confirmed && has_outcome) }
