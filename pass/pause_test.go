package pass_test

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// A child that ends again and again is replaced later each time, a quarter of an hour at most; elsewhere, and after an
// edit, at once.
func TestPause(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1000, 0))
	p := pass.New(pass.Config{Consistency: ownership.NewConsistencyStore(nil), Clock: clock}).NewPass(web())
	want := time.Second
	for range 12 {
		if got := p.Pause("new", "a"); got != (pass.Wait{}) {
			t.Errorf("it has to wait %s", got)
		}
		p.Replaced("new", "a")
		if got := p.Pause("new", "a"); got.Length != want || !got.End.Equal(clock.Now().Add(want)) {
			t.Errorf("the next one has to wait %s, want %s", got, want)
		}
		if other, edited := p.Pause("new", "b"), p.Pause("newer", "a"); other.Length != 0 || edited.Length != 0 {
			t.Errorf("another place waits %s, another revision %s", other, edited)
		}
		limited := p.PauseAtMost(time.Minute, "new", "a")
		if most := min(want, time.Minute); limited.Length != most || !limited.End.Equal(clock.Now().Add(most)) {
			t.Errorf("with a limit of a minute the next one has to wait %s", limited)
		}
		clock.Step(want)
		want = min(2*want, 15*time.Minute)
	}
	clock.Step(time.Hour)
	if p.Replaced("new", "a"); p.Pause("new", "a").Length != time.Second {
		t.Errorf("after a long time it waits %s", p.Pause("new", "a"))
	}
}
