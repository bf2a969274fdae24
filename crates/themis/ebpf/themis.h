/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Themis in C, for eBPF programs and for hosts: the path of a packet (Themis-S), and the judgement of NACKs (Themis-D) in the
 * sound mode. The rule is that of the crate `themis`, whose file src/filter.rs explains it. The test vectors hold both.
 *
 * No memory is allocated and every loop has a constant bound, as the kernel's verifier demands. Functions of one flow must not
 * run at the same time; the caller takes a lock, or steers a flow to one processor.
 */
#ifndef THEMIS_H
#define THEMIS_H

#ifndef THEMIS_INLINE
#define THEMIS_INLINE static inline __attribute__((always_inline))
#endif

/* Entries of a ring, at most; a power of two, so that a mask proves an index. Our choice: 256 packets of 1 kB are the round
 * trip of a last hop of 5 us at 400 Gb/s. */
#define THEMIS_RING 256
#define THEMIS_PSNS (1u << 24)

/* Settings that all flows share. */
struct themis_rule {
	unsigned int mask;        /* bits of a PSN that the ring keeps: 0xff, 0xffff or 0xffffff */
	unsigned short slots;     /* number of paths N, at least 1 */
	unsigned short ring;      /* entries of the ring in use, 1 to THEMIS_RING */
	unsigned short age_limit; /* later packets after which a missing packet is lost on the last hop */
	unsigned short watch;     /* 1: follow a packet over the last hop after its NACK was blocked */
};

enum themis_wait { THEMIS_IDLE, THEMIS_ARMED, THEMIS_WATCHING };

/* State of a queue pair at its destination ToR. All zeros is a new one. */
struct themis_flow {
	unsigned int blocked;     /* PSN of the blocked NACK */
	unsigned short next;      /* ring index of the next write */
	unsigned short len;       /* entries written, up to the ring's length */
	unsigned short live;      /* the newest of them that no search has dequeued */
	unsigned short left;      /* while watching: departures until the packet is lost */
	unsigned int wait;
	unsigned int ring[THEMIS_RING];
};

/* A verdict on a NACK. Those below THEMIS_BLOCK let it pass. */
enum themis_verdict {
	THEMIS_SAME_PATH,
	THEMIS_SEEN_BEFORE,
	THEMIS_OLD_ENTRY,
	THEMIS_NO_TRIGGER,
	THEMIS_BLOCK,
	THEMIS_ON_THE_WIRE = THEMIS_BLOCK,
	THEMIS_OTHER_PATH,
};

/* Themis-S: the path of a packet, 0 to N - 1. `base` is the flow's ECMP hash. */
THEMIS_INLINE unsigned int themis_path(const struct themis_rule *rule, unsigned int psn, unsigned int base)
{
	unsigned int slots = rule->slots ? rule->slots : 1;

	return ((psn & (THEMIS_PSNS - 1)) % slots + base % slots) % slots;
}

/* Serial-number comparison of whole PSNs. */
THEMIS_INLINE int themis_after(unsigned int a, unsigned int b)
{
	unsigned int distance = (a - b) & (THEMIS_PSNS - 1);

	return distance != 0 && distance < THEMIS_PSNS / 2;
}

/* A data packet starts its transmission to the NIC. Returns the PSN of the NACK that must be sent to the sender now, or -1. */
THEMIS_INLINE int themis_depart(const struct themis_rule *rule, struct themis_flow *flow, unsigned int psn)
{
	unsigned int slots = rule->slots ? rule->slots : 1;
	int lost = 0;

	flow->ring[flow->next & (THEMIS_RING - 1)] = psn & rule->mask;
	flow->next = flow->next + 1 >= rule->ring ? 0 : flow->next + 1;
	if (flow->len < rule->ring)
		flow->len++;
	if (flow->live < rule->ring)
		flow->live++;

	if (flow->wait == THEMIS_IDLE)
		return -1;
	if (psn == flow->blocked) {
		/* The late packet passes, or a second copy of it. The NIC will not repeat its NACK: follow the packet. */
		flow->wait = rule->watch ? THEMIS_WATCHING : THEMIS_IDLE;
		flow->left = rule->age_limit;
		return -1;
	}
	if (flow->wait == THEMIS_ARMED) {
		lost = themis_after(psn, flow->blocked) && psn % slots == flow->blocked % slots;
	} else {
		if (flow->left)
			flow->left--;
		lost = flow->left == 0;
	}
	if (!lost)
		return -1;
	flow->wait = THEMIS_IDLE;
	return (int)flow->blocked;
}

/* An ACK for all packets up to `psn` comes up from the NIC. */
THEMIS_INLINE void themis_ack(const struct themis_rule *rule, struct themis_flow *flow, unsigned int psn)
{
	if (rule->watch && flow->wait != THEMIS_IDLE && !themis_after(flow->blocked, psn))
		flow->wait = THEMIS_IDLE;
}

/* What a search in the ring looks for, and what it has found. */
struct themis_search {
	const struct themis_flow *flow;
	unsigned int expected, mask, slots, ring, count, live;
	int age;     /* age of the newest copy of the expected packet; the newest entry has age 0; -1 for none */
	int trigger; /* age of the oldest later entry that no search has dequeued, or -1 */
	unsigned int later, same_slot;
};

/* Looks at the entry of age `i`. Returns 1 behind the last one. */
static long themis_look(unsigned int i, void *context)
{
	struct themis_search *search = context;
	unsigned int at, seen, distance, slots = search->slots ? search->slots : 1;

	if (i >= search->count)
		return 1;
	at = search->flow->next + search->ring - 1 - i;
	if (at >= search->ring)
		at -= search->ring;
	seen = search->flow->ring[at & (THEMIS_RING - 1)];
	distance = (seen - search->expected) & search->mask;
	if (distance == 0) {
		if (search->age < 0)
			search->age = (int)i;
	} else if (distance <= search->mask >> 1) {
		search->later = 1;
		if (i < search->live)
			search->trigger = (int)i;
		if (seen % slots == search->expected % slots)
			search->same_slot = 1;
	}
	return 0;
}

/* Calls `step` with 0, 1, ... until it returns 1. The kernel's verifier follows every turn of a loop, but a callback only once. */
#ifndef themis_loop
THEMIS_INLINE void themis_loop(unsigned int most, long (*step)(unsigned int, void *), void *context)
{
	unsigned int i;

	for (i = 0; i < most && !step(i, context); i++)
		;
}
#endif

/* A NACK for `expected` comes up from the NIC. */
THEMIS_INLINE enum themis_verdict themis_nack(const struct themis_rule *rule, struct themis_flow *flow,
					      unsigned int expected)
{
	struct themis_search search = {
		.flow = flow,
		.expected = expected,
		.mask = rule->mask,
		.slots = rule->slots,
		.ring = rule->ring,
		/* Entries that PSNs of this width cannot order would look newer than they are. */
		.count = flow->len < rule->mask >> 1 ? flow->len : rule->mask >> 1,
		.live = flow->live,
		.age = -1,
		.trigger = -1,
	};
	int age, trigger;

	themis_loop(THEMIS_RING, themis_look, &search);
	age = search.age;
	trigger = search.trigger;
	flow->wait = THEMIS_IDLE;
	/* Dequeue up to the trigger: the last hop is FIFO, so every later NACK has a later trigger. */
	if (trigger >= 0)
		flow->live = (unsigned short)trigger;
	if (age >= 0) {
		if (trigger >= 0 && trigger < age)
			return THEMIS_SEEN_BEFORE;
		if (age >= rule->age_limit)
			return THEMIS_OLD_ENTRY;
		if (rule->watch) {
			flow->blocked = expected;
			flow->left = (unsigned short)(rule->age_limit - age);
			flow->wait = THEMIS_WATCHING;
		}
		return THEMIS_ON_THE_WIRE;
	}
	if (search.same_slot)
		return THEMIS_SAME_PATH;
	/* In doubt, let it pass: a false NACK costs a retransmission, a missing one a timeout. */
	if (!search.later)
		return THEMIS_NO_TRIGGER;
	flow->blocked = expected;
	flow->wait = THEMIS_ARMED;
	return THEMIS_OTHER_PATH;
}

#endif
