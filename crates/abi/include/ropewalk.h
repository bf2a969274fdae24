/* The C interface of ropewalk: a program sends messages between ranks and pulls events, one after the other.
 *
 * A rank is a GPU of the scenario's [server], or a host of a fabric without servers. All times are picoseconds.
 * A run belongs to one thread at a time. Different runs are independent of each other.
 *
 * Link with -lropewalk, the library that `cargo build --release -p abi` puts into target/release.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef ROPEWALK_H
#define ROPEWALK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A run that the program drives. */
typedef struct rw_run rw_run;

/* What an event reports. */
enum {
    RW_TIMER = 0,      /* a timer has fired */
    RW_SENT = 1,       /* the last byte is acknowledged, or the copy inside the server has ended */
    RW_RECEIVED = 2,   /* the whole message has arrived */
    RW_TRANSFERRED = 3 /* all bytes of a transfer have arrived */
};

/* An event. */
typedef struct {
    uint64_t ps;   /* time of the event */
    uint32_t rank; /* the receiver, the sender, or the owner of the timer */
    uint32_t kind; /* RW_TIMER, RW_SENT, RW_RECEIVED or RW_TRANSFERRED */
    uint64_t id;   /* the program's number of the message, transfer or timer */
} rw_event;

/* Results of rw_next; the other functions return 0, or RW_ERROR. */
enum {
    RW_ERROR = -1, /* the call has failed and changed nothing; rw_error has the reason */
    RW_UNTIL = 0,  /* no event comes up to the given time, which is now */
    RW_EVENT = 1,  /* an event */
    RW_IDLE = 2,   /* no event comes unless the program sends more */
    RW_ENDED = 3   /* the run has ended early: it stalled, ran out of memory, or reached stop.after */
};

/* No bound for rw_next. All other times are at most 1,000,000 s. */
#define RW_NEVER UINT64_MAX

/* The version, for example "0.1.0". */
const char *rw_version(void);

/* Opens a scenario: a path, or the name of a built-in one. `changes` are texts "KEY=VALUE" with a NULL behind the last, or
 * NULL. Unless a workload of the scenario is `program`, the program takes the place of all of them.
 * Returns NULL on a mistake, and writes up to `size` bytes of the reason to `error`, with a zero at the end. */
rw_run *rw_open(const char *scenario, const char *const *changes, char *error, size_t size);

/* Opens a scenario from its text in TOML. */
rw_run *rw_open_text(const char *toml, const char *const *changes, char *error, size_t size);

/* Number of ranks. */
uint32_t rw_ranks(const rw_run *run);

/* Time of the last event, or the time up to which the run has gone without any. */
uint64_t rw_now_ps(const rw_run *run);

/* Sends a message now. `id` comes back in its events. A message of 0 bytes is sent as 1 byte. With `program.qps`, the tag
 * selects the queue pair. */
int rw_send(rw_run *run, uint64_t id, uint32_t from, uint32_t to, uint64_t bytes, uint32_t tag);

/* Sends a message at a time that is now or later. */
int rw_send_at(rw_run *run, uint64_t at_ps, uint64_t id, uint32_t from, uint32_t to, uint64_t bytes, uint32_t tag);

/* Sends bytes from the ranks of one instance to those of another now, such as keys and values. Each rank of the larger instance sends or
 * receives an equal part. One event, RW_TRANSFERRED, comes at the first rank of `to` when all bytes have arrived. */
int rw_transfer(rw_run *run, uint64_t id, const uint32_t *from, size_t from_count, const uint32_t *to, size_t to_count,
                uint64_t bytes);

/* Sets a timer of a rank. With 0 it fires after all else that happens now. */
int rw_timer(rw_run *run, uint64_t id, uint32_t rank, uint64_t after_ps);

/* Plays up to the next event, but not beyond `until_ps`, which is now or later. Events come in order of time. */
int rw_next(rw_run *run, uint64_t until_ps, rw_event *event);

/* Plays all messages to their end and writes the results into a directory; with NULL it writes none. Returns RW_ERROR if
 * the simulation failed. Only rw_digest, rw_now_ps, rw_ranks, rw_error and rw_close take a finished run. */
int rw_finish(rw_run *run, const char *directory);

/* The digest of a finished run, 32 hexadecimal digits: equal digests mean equal outcomes. Before, an empty text. */
const char *rw_digest(const rw_run *run);

/* The reason of the last error, or an empty text. It lives until the next call with this run. */
const char *rw_error(const rw_run *run);

/* Frees a run; NULL is allowed. A run that is not finished is dropped. */
void rw_close(rw_run *run);

#ifdef __cplusplus
}
#endif
#endif
