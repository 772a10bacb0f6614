package history_test

// Numbers that somebody gave by hand: the highest there is, one below zero, one that two have.

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cairn-dev/cairn/revision"
)

// TestTheHighestNumber plants a revision with the highest number there is. What is stored is used without a new number;
// what is new is told apart from all other errors, with what a caller needs to go on, and nothing is written.
func TestTheHighestNumber(t *testing.T) {
	ds := agent("agent:1")
	s := newServer(t, ds, revisionOf(t, ds, "agent:1", 1), revisionOf(t, ds, "agent:0", math.MaxInt64))
	v, recorded := mustPass(t, newLog(s), s.parent())
	if v.Change != revision.NoChange || v.Full == nil || imageOf(t, s.stored()[recorded.Update.Name]) != "agent:1" {
		t.Errorf("verdict %+v, recorded %+v", v.Resolution, recorded)
	}
	if diff := cmp.Diff(map[string]int64{"agent:1": 1, "agent:0": math.MaxInt64}, s.numbers()); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}

	edited, before := s.image("agent:2"), len(s.Writes())
	log := newLog(s)
	entries, err := log.Claim(t.Context(), edited, matching)
	if err != nil {
		t.Fatal(err)
	}
	v, err = log.Resolve(t.Context(), edited, entries)
	full, ok := errors.AsType[*revision.NumberError](err)
	if !ok || full.Revision != revisionOf(t, ds, "agent:0", 1).Name {
		t.Fatalf("resolve: %v", err)
	}
	if v == nil || v.Snapshot == nil || v.Update != nil || v.Full == nil {
		t.Fatalf("the verdict beside the error is %+v", v)
	}
	if recorded, err := log.Record(t.Context(), edited, v, nil, nil); recorded != nil || !errors.As(err, &full) || len(s.Writes()) != before {
		t.Errorf("recorded %+v, %v, wrote %v", recorded, err, s.Writes()[before:])
	}

	// Somebody does what the error says.
	planted := s.stored()[full.Revision]
	planted.Revision = 2
	if err := s.Raw.Update(t.Context(), planted); err != nil {
		t.Fatal(err)
	}
	if v, recorded := mustPass(t, newLog(s), s.parent()); v.Full != nil || recorded.Update.Number != 3 {
		t.Errorf("recorded %+v", recorded.Update)
	}
}

// Numbers that cannot be are no obstacle: the next one is higher than all of them, and above zero.
func TestPlantedNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		one, two int64
		want     int64
	}{
		"below zero":        {-7, math.MinInt64, 1},
		"zero":              {0, 0, 1},
		"two of one number": {4, 4, 5},
		"almost the last":   {1, math.MaxInt64 - 1, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			ds := agent("agent:3")
			s := newServer(t, ds, revisionOf(t, ds, "agent:1", c.one), revisionOf(t, ds, "agent:2", c.two))
			if _, recorded := mustPass(t, newLog(s), s.parent()); recorded.Update.Number != c.want {
				t.Errorf("recorded as number %d, want %d", recorded.Update.Number, c.want)
			}
		})
	}
}
