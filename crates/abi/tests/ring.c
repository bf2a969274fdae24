/* A ring all-reduce: every rank sends a chunk to the next one, and passes on what it gets, 2 (n - 1) times.
 *
 * Arguments: the scenario, the bytes of a chunk, and the directory of the results. Prints the digest. */

#include <stdio.h>
#include <stdlib.h>

#include "ropewalk.h"

static void stop(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

int main(int argc, char **argv) {
    char error[4096];
    rw_event event;
    uint64_t chunk, now = 0;
    uint32_t ranks, rank;
    rw_run *run;
    int next;

    if (argc != 4) stop("expected a scenario, a size and a directory");
    chunk = strtoull(argv[2], NULL, 10);
    run = rw_open(argv[1], NULL, error, sizeof error);
    if (run == NULL) stop(error);
    ranks = rw_ranks(run);
    for (rank = 0; rank < ranks; rank++)
        if (rw_send(run, rank, rank, (rank + 1) % ranks, chunk, 0) != 0) stop(rw_error(run));
    while ((next = rw_next(run, RW_NEVER, &event)) == RW_EVENT) {
        const uint64_t step = event.id / ranks;
        if (event.ps < now || rw_now_ps(run) != event.ps) stop("time goes back");
        now = event.ps;
        if (event.kind != RW_RECEIVED || step + 1 == 2 * (ranks - 1)) continue;
        if (rw_send(run, (step + 1) * ranks + event.rank, event.rank, (event.rank + 1) % ranks, chunk, 0) != 0)
            stop(rw_error(run));
    }
    if (next != RW_IDLE) stop(rw_error(run));
    if (rw_finish(run, argv[3]) != 0) stop(rw_error(run));
    printf("%s\n", rw_digest(run));
    rw_close(run);
    return 0;
}
