/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A ToR with Themis as two XDP programs. `from_host` is for the port of a host: it sprays requests over the uplinks (Themis-S) and
 * judges the NACKs of the host's NIC (Themis-D). `from_fabric` is for uplinks: it records the departure of requests to the host.
 * XDP sends a redirected frame at once, so the order of arrival from the fabric is that of departure.
 *
 * What is not RoCEv2 over plain IPv4, and what belongs to no known connection, goes to the kernel's own forwarding: fail open.
 * XDP cannot make a frame, so the NACK that the ToR owes goes to user space through `owed`; a daemon sends it.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
/* Linux 5.17 or later. */
#define themis_loop(most, step, context) bpf_loop(most, step, context, 0)
#include "themis.h"

#define ROCE_PORT 4791
#define CONNECTIONS 4096

struct bth {
	__u8 opcode;
	__u8 flags;
	__be16 partition;
	__be32 queue_pair; /* the low 24 bits */
	__be32 psn;        /* the low 24 bits */
} __attribute__((packed));

/* A queue pair: data names the responder's, ACKs and NACKs the requester's. */
struct end {
	__be32 address;
	__u32 queue_pair;
};

/* An owed NACK: its connection and PSN. */
struct owed {
	__u32 connection;
	__u32 psn;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct themis_rule);
} rule SEC(".maps");

/* The number of a connection, by each of its ends. User space learns who answers whom, as docs/soft-tor.md describes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * CONNECTIONS);
	__type(key, struct end);
	__type(value, __u32);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CONNECTIONS);
	__type(key, __u32);
	__type(value, struct themis_flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} uplinks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} host SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, CONNECTIONS);
	__type(value, struct owed);
} owed SEC(".maps");

/* A RoCEv2 frame. */
struct packet {
	struct bth *bth;
	struct end to;
	__u32 source; /* of the IP packet */
	__u32 psn;
	__u8 syndrome; /* of an ACK or a NACK */
};

/* Reads a frame. Returns 0 if it is not RoCEv2 over IPv4 without options and fragments. */
static __always_inline int parse(struct xdp_md *context, struct packet *packet)
{
	void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	struct ethhdr *link = data;
	struct iphdr *ip = (void *)(link + 1);
	struct udphdr *udp = (void *)(ip + 1);
	struct bth *bth = (void *)(udp + 1);
	__u8 *aeth = (void *)(bth + 1);

	if ((void *)(aeth + 1) > end || link->h_proto != bpf_htons(ETH_P_IP))
		return 0;
	if (ip->version != 4 || ip->ihl != 5 || ip->protocol != IPPROTO_UDP || ip->frag_off & bpf_htons(0x3fff))
		return 0;
	if (udp->dest != bpf_htons(ROCE_PORT))
		return 0;
	packet->bth = bth;
	packet->to.address = ip->daddr;
	packet->to.queue_pair = bpf_ntohl(bth->queue_pair) & 0xffffff;
	packet->source = ip->saddr;
	packet->psn = bpf_ntohl(bth->psn) & 0xffffff;
	packet->syndrome = *aeth;
	return 1;
}

/* Requests of reliable connections: SEND, WRITE, READ, atomics, and the two SENDs that invalidate. */
static __always_inline int is_request(__u8 opcode)
{
	return opcode <= 0x0c || opcode == 0x13 || opcode == 0x14 || opcode == 0x16 || opcode == 0x17;
}

static __always_inline struct themis_flow *flow_of(struct packet *packet, __u32 *number)
{
	__u32 *found = bpf_map_lookup_elem(&connections, &packet->to);

	if (!found)
		return 0;
	*number = *found;
	return bpf_map_lookup_elem(&flows, number);
}

SEC("xdp")
int from_host(struct xdp_md *context)
{
	struct packet packet;
	struct themis_rule *settings;
	struct themis_flow *flow;
	__u32 zero = 0, number;

	settings = bpf_map_lookup_elem(&rule, &zero);
	if (!settings || !parse(context, &packet))
		return XDP_PASS;
	if (is_request(packet.bth->opcode)) {
		/* The base is a hash of what stays the same in a connection, so that flows start on different paths. */
		__u32 base = (packet.source ^ packet.to.address ^ packet.to.queue_pair) * 0x9e3779b1u >> 16;

		return bpf_redirect_map(&uplinks, themis_path(settings, packet.psn, base), XDP_PASS);
	}
	if (packet.bth->opcode != 0x11)
		return XDP_PASS;
	flow = flow_of(&packet, &number);
	if (!flow)
		return XDP_PASS;
	/* ACKs have syndromes 0x00 to 0x1f; 0x60 is the NACK for a missing packet. Others name no missing packet. */
	if (packet.syndrome < 0x20)
		themis_ack(settings, flow, packet.psn);
	else if (packet.syndrome == 0x60 && themis_nack(settings, flow, packet.psn) >= THEMIS_BLOCK)
		return XDP_DROP;
	return XDP_PASS;
}

SEC("xdp")
int from_fabric(struct xdp_md *context)
{
	struct packet packet;
	struct themis_rule *settings;
	struct themis_flow *flow;
	__u32 zero = 0, number;

	settings = bpf_map_lookup_elem(&rule, &zero);
	if (!settings || !parse(context, &packet) || !is_request(packet.bth->opcode))
		return XDP_PASS;
	flow = flow_of(&packet, &number);
	if (flow) {
		int psn = themis_depart(settings, flow, packet.psn);

		if (psn >= 0) {
			struct owed now = { .connection = number, .psn = psn };

			bpf_map_push_elem(&owed, &now, BPF_ANY);
		}
	}
	return bpf_redirect_map(&host, 0, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
