/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs events through themis.h on a host. Lines of the input: `rule MASK SLOTS RING AGE WATCH` starts a new flow, and `data P`,
 * `ack P`, `nack P`, `path P BASE` are its events. Outcomes are printed as in the test vectors.
 */
#include "themis.h"
#include <stdio.h>
#include <string.h>

int main(void)
{
	static const char *names[] = { "forward same-path",  "forward seen-before", "forward old-entry",
				       "forward no-trigger", "block on-the-wire",   "block other-path" };
	static struct themis_flow flow;
	struct themis_rule rule = { 0 };
	char line[128], kind[16];
	unsigned int n[5];

	while (fgets(line, sizeof(line), stdin)) {
		int count = sscanf(line, "%15s %u %u %u %u %u", kind, n, n + 1, n + 2, n + 3, n + 4) - 1;

		if (!strcmp(kind, "rule") && count == 5 && n[2] >= 1 && n[2] <= THEMIS_RING) {
			memset(&flow, 0, sizeof(flow));
			rule = (struct themis_rule){ n[0], n[1], n[2], n[3], n[4] };
			printf("rule\n");
		} else if (!strcmp(kind, "data") && count == 1) {
			int owed = themis_depart(&rule, &flow, n[0]);

			if (owed >= 0)
				printf("data %u: owe %d\n", n[0], owed);
		} else if (!strcmp(kind, "ack") && count == 1) {
			themis_ack(&rule, &flow, n[0]);
		} else if (!strcmp(kind, "nack") && count == 1) {
			printf("nack %u: %s\n", n[0], names[themis_nack(&rule, &flow, n[0])]);
		} else if (!strcmp(kind, "path") && count == 2) {
			printf("path %u\n", themis_path(&rule, n[0], n[1]));
		} else {
			fprintf(stderr, "not understood: %s", line);
			return 2;
		}
	}
	return 0;
}
