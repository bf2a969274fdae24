/* Makes every mistake that the interface can catch, and prints what it answers. */

#include <stdio.h>
#include <string.h>

#include "ropewalk.h"

static const char FABRIC[] = "[topology.leaf-spine]\nleaves = 2\nspines = 1\nhosts-per-leaf = 2\n";

/* Prints a result, and the reason if the call has failed. */
static void answer(const char *call, int result, const rw_run *run) {
    printf("%s %d %s\n", call, result, rw_error(run));
}

int main(void) {
    const char *const changes[] = {"seed=7", NULL};
    const char *const wrong[] = {"sed=7", NULL};
    char error[4096], cut[8];
    rw_event event;
    rw_run *run;

    if (rw_open("no-such-file.toml", NULL, error, sizeof error) == NULL) printf("open: %.*s\n", (int)strcspn(error, "\n"), error);
    if (rw_open(NULL, NULL, error, sizeof error) == NULL) printf("open: %s\n", error);
    if (rw_open_text("topology = 3", NULL, cut, sizeof cut) == NULL) printf("cut to %u bytes\n", (unsigned)strlen(cut));
    if (rw_open_text(FABRIC, wrong, NULL, 0) == NULL) printf("no place for the reason\n");
    if (rw_open_text("\xff", NULL, error, sizeof error) == NULL) printf("open: %s\n", error);

    run = rw_open_text(FABRIC, changes, error, sizeof error);
    if (run == NULL) return 1;
    printf("ranks %u\n", (unsigned)rw_ranks(run));
    answer("send", rw_send(run, 1, 0, 4, 1, 0), run);
    answer("send", rw_send(run, 1, 0, 1, UINT64_MAX, 0), run);
    answer("timer", rw_timer(run, 1, 9, 0), run);
    answer("next", rw_next(run, RW_NEVER, NULL), run);
    answer("next", rw_next(run, 5000, &event), run);
    answer("late", rw_send_at(run, 4000, 1, 0, 1, 1, 0), run);
    answer("far", rw_send_at(run, UINT64_MAX - 1, 1, 0, 1, 1, 0), run);
    answer("far", rw_next(run, UINT64_MAX - 1, &event), run);
    answer("far", rw_timer(run, 1, 0, UINT64_C(1000000000000000000)), run);
    answer("send", rw_send_at(run, 6000, 1, 0, 1, 1438, 0), run);
    answer("next", rw_next(run, 5500, &event), run);
    answer("next", rw_next(run, RW_NEVER, &event), run);
    printf("event %u of %u at rank %u, %u ps\n", (unsigned)event.kind, (unsigned)event.id, (unsigned)event.rank,
           (unsigned)event.ps);
    answer("directory", rw_finish(run, "/dev/null"), run);
    printf("digest '%s'\n", rw_digest(run));
    answer("finish", rw_finish(run, NULL), run);
    answer("send", rw_send(run, 1, 0, 1, 1, 0), run);
    answer("null", rw_send(NULL, 1, 0, 1, 1, 0), NULL);
    rw_close(run);
    rw_close(NULL);
    return 0;
}
