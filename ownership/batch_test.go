package ownership_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/cairn-dev/cairn/ownership"
)

// TestEachIsBounded: however many there are, no more than AtOnce are under way at a time, and as many as that are.
func TestEachIsBounded(t *testing.T) {
	var mu sync.Mutex
	running, most, done := 0, 0, 0
	full := make(chan struct{})
	err := ownership.Each(make([]int, 3000), func(int) error {
		mu.Lock()
		running++
		most = max(most, running)
		if running == ownership.AtOnce && most == ownership.AtOnce && done == 0 {
			close(full) // all that may be are under way
			done = 1
		}
		mu.Unlock()
		<-full
		mu.Lock()
		defer mu.Unlock()
		running--
		return errors.New("no")
	})
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // what Each returns itself
	if most != ownership.AtOnce || !ok || len(joined.Unwrap()) != 3000 {
		t.Errorf("%d at once", most)
	}
}
