// Package ropewalk moves keys and values (KV) of a serving simulator over a packet-level fabric.
//
// A transfer has no duration when it starts: others may come and share its links. So a simulator starts transfers, and asks for the next
// one that ends before its own next event. Times are whole microseconds, and ends are rounded up.
package ropewalk

import "math"

// Ended is a transfer that has ended.
type Ended struct {
	ID uint64
	At int64 // us
}

// Transport moves bytes between instances.
type Transport interface {
	// Start begins a transfer of so many bytes of all ranks together, at a time that is not before any that Next has reached.
	Start(id uint64, from, to string, bytes int64, at int64) error
	// Next returns the next transfer that ends, at `until` at the latest; false if none does.
	Next(until int64) (Ended, bool, error)
	// Pending is the number of transfers that have not ended.
	Pending() int
	// Close ends the conversation; it is an error if the run had faults.
	Close() error
}

// Constant is a transport of one rate for all, without a fabric: a stand-in for tests.
type Constant struct {
	BaseUs     float64 // before the first byte
	BytesPerUs float64 // of each rank; 0 if bytes take no time
	Ranks      int64   // of an instance
	pending    []Ended
}

func (c *Constant) Start(id uint64, from, to string, bytes int64, at int64) error {
	us := c.BaseUs
	if c.BytesPerUs > 0 {
		us += float64(bytes) / float64(max(c.Ranks, 1)) / c.BytesPerUs
	}
	c.pending = append(c.pending, Ended{ID: id, At: at + max(int64(math.Ceil(us)), 1)})
	return nil
}

// Next returns the earliest one; of equal ones, the one that started first.
func (c *Constant) Next(until int64) (Ended, bool, error) {
	first := -1
	for i, one := range c.pending {
		if one.At <= until && (first < 0 || one.At < c.pending[first].At) {
			first = i
		}
	}
	if first < 0 {
		return Ended{}, false, nil
	}
	ended := c.pending[first]
	c.pending = append(c.pending[:first], c.pending[first+1:]...)
	return ended, true, nil
}

func (c *Constant) Pending() int { return len(c.pending) }
func (c *Constant) Close() error { return nil }
