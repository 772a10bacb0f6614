package ownership_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cairn-dev/cairn/ownership"
)

// TestEachIsBounded: however many there are, AtOnce are under way at a time, and each is done.
func TestEachIsBounded(t *testing.T) {
	const items = 3000
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		proceed := make(chan struct{})
		result := make(chan error)
		go func() {
			result <- ownership.Each(make([]int, items), func(int) error {
				running.Add(1)
				<-proceed
				return errors.New("no")
			})
		}()
		synctest.Wait()
		if got := running.Load(); got != ownership.AtOnce {
			t.Errorf("%d are under way", got)
		}
		close(proceed)
		joined, ok := (<-result).(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) != items || running.Load() != items {
			t.Errorf("%d of %d were done", running.Load(), items)
		}
	})
}
