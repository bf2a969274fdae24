package ropewalk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
)

var instances = []Instance{{"p0", []uint32{0, 1}}, {"p1", []uint32{2, 3}}, {"d0", []uint32{4, 5}}, {"d1", []uint32{6, 7}}}

// recorded plays ropewalk's part of a recorded conversation: each request must be the recorded one.
func recorded(t *testing.T) *Pipe {
	t.Helper()
	text, err := os.ReadFile("testdata/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	requests, toServe := io.Pipe()
	fromServe, answers := io.Pipe()
	go func() {
		defer answers.Close()
		heard := bufio.NewScanner(requests)
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			var turn struct{ Send, Answer json.RawMessage }
			if err := json.Unmarshal([]byte(line), &turn); err != nil {
				t.Error(err)
				return
			}
			if turn.Send != nil {
				heard.Scan()
				if !same(turn.Send, heard.Bytes()) {
					t.Errorf("expected %s, the adapter sent %s", turn.Send, heard.Bytes())
					return
				}
			}
			answers.Write(append(bytes.TrimSpace(turn.Answer), '\n'))
		}
	}()
	pipe, err := Join(toServe, fromServe, func() error { return nil }, instances)
	if err != nil {
		t.Fatal(err)
	}
	return pipe
}

func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// ends asks for all transfers that end up to a time.
func ends(t *testing.T, transport Transport, until int64, count int) []Ended {
	t.Helper()
	var all []Ended
	for range count {
		ended, found, err := transport.Next(until)
		if err != nil || !found {
			t.Fatalf("%v %v", found, err)
		}
		all = append(all, ended)
	}
	return all
}

func start(t *testing.T, transport Transport, id uint64, from, to string, at int64) {
	t.Helper()
	if err := transport.Start(id, from, to, 20_000_000, at); err != nil {
		t.Fatal(err)
	}
}

// Two transfers to one instance share its NICs and take twice as long; two to different ones do not, as no count of transfers can tell.
func TestTransfersSlowEachOtherOnlyWhereTheyShareLinks(t *testing.T) {
	pipe := recorded(t)
	start(t, pipe, 1, "p0", "d0", 100)
	alone := ends(t, pipe, 5_000, 1)[0].At - 100
	if line := int64(10_000_000 * 8 / 100_000); alone < line || alone > line*11/10 {
		t.Errorf("10 MB at 100 Gb/s take %d us, found %d", line, alone)
	}
	start(t, pipe, 2, "p0", "d0", 10_000)
	start(t, pipe, 3, "p1", "d0", 10_000)
	if pipe.Pending() != 2 {
		t.Errorf("two are under way, found %d", pipe.Pending())
	}
	shared := ends(t, pipe, 20_000, 2)[1].At - 10_000
	if shared < 2*alone-50 || shared > 2*alone {
		t.Errorf("two into one instance: expected some %d us, found %d", 2*alone, shared)
	}
	start(t, pipe, 4, "p0", "d0", 30_000)
	start(t, pipe, 5, "p1", "d1", 30_000)
	if apart := ends(t, pipe, 40_000, 2)[1].At - 30_000; apart != alone {
		t.Errorf("two into different instances: expected %d us, found %d", alone, apart)
	}
	if err := pipe.Close(); err != nil {
		t.Error(err)
	}
}

func TestAConstantRateKnowsNoFabric(t *testing.T) {
	fake := &Constant{BaseUs: 50, BytesPerUs: 25_000, Ranks: 2}
	start(t, fake, 1, "p0", "d0", 100)
	start(t, fake, 2, "p1", "d0", 50)
	if _, found, _ := fake.Next(499); found {
		t.Error("10 MB at 25 GB/s take 450 us")
	}
	if all := ends(t, fake, 1000, 2); all[0] != (Ended{2, 500}) || all[1] != (Ended{1, 550}) {
		t.Errorf("%v", all)
	}
}

func TestAnErrorOfRopewalkIsOneHere(t *testing.T) {
	answers := strings.NewReader("{\"ropewalk\":\"0\"}\n{\"error\":\"rank 9 does not exist\"}\n")
	_, err := Join(nopCloser{io.Discard}, answers, nil, instances)
	if err == nil || !strings.Contains(err.Error(), "rank 9") {
		t.Errorf("%v", err)
	}
	if _, err := Join(nopCloser{io.Discard}, strings.NewReader(""), nil, instances); err == nil {
		t.Error("a program that says nothing is no ropewalk")
	}
}

func TestFaultsOfTheRunAndTimesBeyondTheLastAreErrors(t *testing.T) {
	answers := strings.NewReader("{\"ropewalk\":\"0\"}\n{\"ps\":0}\n{\"ps\":5,\"faults\":[\"it stalled\",\"and lost\"]}\n")
	ended := false
	pipe, err := Join(nopCloser{io.Discard}, answers, func() error { ended = true; return nil }, instances)
	if err != nil {
		t.Fatal(err)
	}
	if err := pipe.Start(1, "p0", "d0", 1, Latest+1); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a start beyond the last time: %v", err)
	}
	if err := pipe.Close(); err == nil || !strings.Contains(err.Error(), "it stalled; and lost") || !ended {
		t.Errorf("%v %v", err, ended)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
