package ropewalk

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// psPerUs is the number of picoseconds, ropewalk's unit, in a microsecond.
const psPerUs = 1_000_000

// Latest is the last time that ropewalk knows, in us.
const Latest int64 = 1_000_000_000_000

// Instance is some ranks of a fabric that hold a model together.
type Instance struct {
	Name  string   `json:"name"`
	Ranks []uint32 `json:"ranks"`
}

// Pipe is a conversation with `ropewalk serve`.
type Pipe struct {
	requests io.WriteCloser
	answers  *bufio.Reader
	wait     func() error
	now      int64 // us that the session has reached
	pending  int
}

type answer struct {
	Error string `json:"error"`
	Event string `json:"event"`
	State string `json:"state"`
	ID    uint64 `json:"id"`
	Ps    int64  `json:"ps"`
	// What went wrong in the run, at its end.
	Faults []string `json:"faults"`
}

// Open starts `program serve scenario` and names the instances.
func Open(program, scenario string, instances []Instance) (*Pipe, error) {
	command := exec.Command(program, "serve", scenario)
	command.Stderr = os.Stderr
	requests, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	answers, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	return Join(requests, answers, command.Wait, instances)
}

// Join speaks over any two streams; `wait` is called at the end.
func Join(requests io.WriteCloser, answers io.Reader, wait func() error, instances []Instance) (*Pipe, error) {
	pipe := &Pipe{requests: requests, answers: bufio.NewReader(answers), wait: wait}
	if _, err := pipe.read(); err != nil { // the greeting
		return nil, err
	}
	_, err := pipe.ask(struct {
		Do   string     `json:"do"`
		List []Instance `json:"list"`
	}{"instances", instances})
	return pipe, err
}

func (p *Pipe) read() (answer, error) {
	line, err := p.answers.ReadBytes('\n')
	if err != nil {
		return answer{}, fmt.Errorf("ropewalk: no answer: %w", err)
	}
	var told answer
	if err := json.Unmarshal(line, &told); err != nil {
		return answer{}, fmt.Errorf("ropewalk: %w in %q", err, line)
	}
	if told.Error != "" {
		return answer{}, fmt.Errorf("ropewalk: %s", told.Error)
	}
	return told, nil
}

func (p *Pipe) ask(request any) (answer, error) {
	line, err := json.Marshal(request)
	if err != nil {
		return answer{}, err
	}
	if _, err := p.requests.Write(append(line, '\n')); err != nil {
		return answer{}, fmt.Errorf("ropewalk: %w", err)
	}
	return p.read()
}

func (p *Pipe) Start(id uint64, from, to string, bytes int64, at int64) error {
	if at > Latest {
		return fmt.Errorf("ropewalk: transfer %d starts at %d us; expected at most %d us", id, at, Latest)
	}
	for p.now < at {
		// Without transfers under way nothing ends on the way there.
		if ended, found, err := p.Next(at); err != nil || found {
			return errors(err, ended)
		}
	}
	_, err := p.ask(struct {
		Do    string `json:"do"`
		ID    uint64 `json:"id"`
		From  string `json:"from"`
		To    string `json:"to"`
		Bytes int64  `json:"bytes"`
	}{"transfer", id, from, to, bytes})
	if err == nil {
		p.pending++
	}
	return err
}

func errors(err error, ended Ended) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("ropewalk: transfer %d ended at %d us; ask for ends before you start another one later", ended.ID, ended.At)
}

func (p *Pipe) Next(until int64) (Ended, bool, error) {
	until = min(until, Latest)
	told, err := p.ask(struct {
		Do    string `json:"do"`
		Until int64  `json:"until_ps"`
	}{"next", until * psPerUs})
	if err != nil {
		return Ended{}, false, err
	}
	if told.Event != "transferred" {
		if told.State == "ended" {
			return Ended{}, false, fmt.Errorf("ropewalk: the run has ended early")
		}
		p.now = max(p.now, until)
		return Ended{}, false, nil
	}
	p.pending--
	at := (told.Ps + psPerUs - 1) / psPerUs
	p.now = max(p.now, at-1)
	return Ended{ID: told.ID, At: at}, true, nil
}

func (p *Pipe) Pending() int { return p.pending }

// Close ends the conversation. Faults of the run are an error.
func (p *Pipe) Close() error {
	told, err := p.ask(map[string]string{"do": "finish"})
	if err != nil {
		return err
	}
	if err := p.requests.Close(); err != nil {
		return err
	}
	// A run with faults ends the program with a status of its own, which says less.
	err = p.wait()
	if len(told.Faults) > 0 {
		return fmt.Errorf("ropewalk: the run failed: %s", strings.Join(told.Faults, "; "))
	}
	return err
}
