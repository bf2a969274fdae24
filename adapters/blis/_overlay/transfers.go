package cluster

// Transfers over a packet-level fabric (ropewalk), in place of a duration that is fixed at the start. The environment chooses:
//
//	BLIS_TRANSFERS=constant            the formula of this simulator, as a check of the seam
//	BLIS_TRANSFERS=ropewalk:SCENARIO   `ropewalk serve SCENARIO`. ROPEWALK names the program. Each instance has as many ranks as
//	                                   its TP; they are counted up from 0, in the order of the instances.

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
	var transport ropewalk.Transport
	switch scenario, isRopewalk := strings.CutPrefix(asked, "ropewalk:"); {
	case asked == "":
		return nil
	case cs.config.PDTransferContention:
		panic("BLIS_TRANSFERS and --pd-transfer-contention both say how transfers share the network; choose one of them")
	case isRopewalk:
		var instances []ropewalk.Instance
		next := uint32(0)
		for _, inst := range cs.instances {
			role := cs.poolMembership[string(inst.ID())]
			// Pools may have a TP of their own. 0 stands for 1, as where instances are made.
			ranks := make([]uint32, max(cs.config.resolveConfigForRole(role).TP, 1))
			for i := range ranks {
				ranks[i] = next
				next++
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
		ranks := int64(cs.config.EffectivePrefillTP())
		transport = &ropewalk.Constant{BaseUs: cs.config.PDTransferBaseLatencyMs * 1000, BytesPerUs: rate, Ranks: ranks}
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

// pullTransfer makes an event of the next transfer that ends before the next event; false if none does. The simulator ends if that event
// is beyond its horizon, or if there is none; then the conversation ends too, and says what went wrong.
func (cs *ClusterSimulator) pullTransfer(next int64) bool {
	if cs.transfers == nil {
		return false
	}
	var ended ropewalk.Ended
	var found bool
	var err error
	if cs.transfers.transport.Pending() > 0 {
		ended, found, err = cs.transfers.transport.Next(next)
	}
	if err != nil {
		panic(err)
	}
	if !found {
		if next == math.MaxInt64 || next > cs.config.Horizon {
			if err := cs.transfers.transport.Close(); err != nil {
				panic(err)
			}
			cs.transfers = nil
		}
		return false
	}
	heap.Push(&cs.clusterEvents, clusterEventEntry{
		event: &KVTransferCompletedEvent{time: ended.At, parentReq: cs.transfers.parents[ended.ID]},
		seqID: cs.nextSeqID(),
	})
	delete(cs.transfers.parents, ended.ID)
	return true
}
