package children

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/ownership"
)

var podResource = schema.GroupResource{Resource: "pods"}

// The ways in which a write fails.
var (
	own      = apierrors.NewForbidden(podResource, "a", errors.New("a policy"))
	errOfAll = apierrors.NewForbidden(podResource, "a", errors.New("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"))
)

// TestEach: which of a few writes are tried, one letter for the kind of each, and what is said of those that fail.
func TestEach(t *testing.T) {
	for name, c := range map[string]struct {
		items       string
		fails       map[string]error
		tried, says string
	}{
		"all well":                      {"a1 b1 a2 b2", nil, "a1 a2 b1 b2", ""},
		"one is refused":                {"a1 a2 a3 b1", map[string]error{"a1": own}, "a1 a2 a3 b1", "policy"},
		"all are refused":               {"a1 a2 a3", map[string]error{"a1": own, "a2": own, "a3": own}, "a1 a2 a3", "policy policy policy"},
		"a quota ends the kind":         {"a1 a2 a3 b1 b2", map[string]error{"a1": errOfAll}, "a1 b1 b2", "quota"},
		"an old read is of one":         {"a1 a2", map[string]error{"a1": fmt.Errorf("%w: a1", ownership.ErrStale)}, "a1 a2", "stale"},
		"the namespace is deleted":      {"a1 a2 b1", map[string]error{"a1": errTerminating(), "b1": errTerminating()}, "a1 b1", ""},
		"which hides no other failure":  {"a1 a2 b1", map[string]error{"a1": errTerminating(), "b1": own}, "a1 b1", "policy"},
		"an answer that never came":     {"a1 a2", map[string]error{"a1": errors.New("connection refused")}, "a1", "connection"},
		"a batch is carried out to end": {"a1 a2 a3 a4", map[string]error{"a2": errOfAll}, "a1 a2 a3", "quota"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var tried []string
			err := each(strings.Fields(c.items), func(item string) schema.GroupKind { return schema.GroupKind{Kind: item[:1]} },
				func() error { return nil },
				func(item string) error {
					mu.Lock()
					defer mu.Unlock()
					tried = append(tried, item)
					return c.fails[item]
				})
			slices.Sort(tried)
			if got := strings.Join(tried, " "); got != c.tried {
				t.Errorf("tried %s, want %s", got, c.tried)
			}
			said := ""
			if err != nil {
				said = err.Error()
			}
			for word := range strings.FieldsSeq(c.says) {
				if !strings.Contains(said, word) {
					t.Errorf("it says %q, want %q", said, word)
				}
				said = strings.Replace(said, word, "", 1)
			}
			if c.says == "" && err != nil {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestEachAsksBetweenBatches: what the writes were decided on may be over by the second batch.
func TestEachAsksBetweenBatches(t *testing.T) {
	var mu sync.Mutex
	done := 0
	err := each(make([]int, 100), func(int) schema.GroupKind { return schema.GroupKind{} },
		func() error {
			if done >= 7 {
				return ownership.ErrGone
			}
			return nil
		},
		func(int) error {
			mu.Lock()
			defer mu.Unlock()
			done++
			return nil
		})
	if !errors.Is(err, ownership.ErrGone) || done != 7 {
		t.Errorf("%d writes, %v", done, err)
	}
}
