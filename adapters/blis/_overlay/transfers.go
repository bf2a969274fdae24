package cluster

// Transfers over a packet-level fabric (ropewalk), in place of a duration that is fixed at the start. The environment chooses:
//
//	BLIS_TRANSFERS=constant            the formula of this simulator, as a check of the seam
//	BLIS_TRANSFERS=ropewalk:SCENARIO   `ropewalk serve SCENARIO`; instance i has ranks i x TP and up. ROPEWALK names the program.

import (
	"container/heap"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/inference-sim/inference-sim/sim/latency"
	"ropewalk"
)

// networkTransfers are transfers under way.
type networkTransfers struct {
	transport ropewalk.Transport
	parents   map[uint64]*ParentRequest
	started   uint64
}

// openTransfers returns nil if no transport is asked for.
func openTransfers(cs *ClusterSimulator) *networkTransfers {
	asked := os.Getenv("BLIS_TRANSFERS")
	tp := int64(cs.config.EffectivePrefillTP())
	var transport ropewalk.Transport
	switch scenario, isRopewalk := strings.CutPrefix(asked, "ropewalk:"); {
	case asked == "" || cs.config.PDTransferContention:
		return nil
	case isRopewalk:
		var instances []ropewalk.Instance
		for i, inst := range cs.instances {
			ranks := make([]uint32, tp)
			for rank := range ranks {
				ranks[rank] = uint32(int64(i)*tp + int64(rank))
			}
			instances = append(instances, ropewalk.Instance{Name: string(inst.ID()), Ranks: ranks})
		}
		program := os.Getenv("ROPEWALK")
		if program == "" {
			program = "ropewalk"
		}
		pipe, err := ropewalk.Open(program, scenario, instances)
		if err != nil {
			panic(err)
		}
		transport = pipe
	case asked == "constant":
		rate := cs.config.PDTransferBandwidthGBps * 1000
		transport = &ropewalk.Constant{BaseUs: cs.config.PDTransferBaseLatencyMs * 1000, BytesPerUs: rate, Ranks: tp}
	default:
		panic(fmt.Sprintf("BLIS_TRANSFERS=%q: expected constant or ropewalk:SCENARIO", asked))
	}
	return &networkTransfers{transport: transport, parents: map[uint64]*ParentRequest{}}
}

// startTransfer starts the transfer of a request; false if durations are fixed at the start.
func (cs *ClusterSimulator) startTransfer(parent *ParentRequest, at int64) bool {
	if cs.transfers == nil {
		if cs.transfers = openTransfers(cs); cs.transfers == nil {
			return false
		}
	}
	tp := cs.config.EffectivePrefillTP()
	perToken, err := latency.KVBytesPerToken(cs.config.ModelConfig, tp)
	if err != nil {
		panic(err)
	}
	perRank := float64(parent.NumKVBlocks) * (float64(cs.config.BlockSizeTokens) * perToken)
	cs.transfers.started++
	id := cs.transfers.started
	cs.transfers.parents[id] = parent
	bytes := int64(math.Ceil(perRank)) * int64(tp)
	from, to := string(parent.PrefillInstanceID), string(parent.DecodeInstanceID)
	if err := cs.transfers.transport.Start(id, from, to, bytes, at); err != nil {
		panic(err)
	}
	return true
}

// pullTransfer makes an event of the next transfer that ends before the next event; false if none does.
func (cs *ClusterSimulator) pullTransfer(next int64) bool {
	if cs.transfers == nil || cs.transfers.transport.Pending() == 0 {
		return false
	}
	ended, found, err := cs.transfers.transport.Next(next)
	if err != nil {
		panic(err)
	}
	if !found {
		return false
	}
	heap.Push(&cs.clusterEvents, clusterEventEntry{
		event: &KVTransferCompletedEvent{time: ended.At, parentReq: cs.transfers.parents[ended.ID]},
		seqID: cs.nextSeqID(),
	})
	delete(cs.transfers.parents, ended.ID)
	return true
}
