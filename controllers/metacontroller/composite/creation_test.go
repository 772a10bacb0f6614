package composite

// How often a hook is asked about a parent that is new.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// TestQuestionsOfACreation: one before there are children, one when they are ready; and one more if the hook's own
// status has changed by that, because a hook may want to see that it was stored. Whoever declares that status changes
// are to be ignored does not.
func TestQuestionsOfACreation(t *testing.T) {
	counts := func(q *hook.Question) string {
		n := 0
		for _, g := range q.Children {
			n += len(g.Objects)
		}
		return fmt.Sprintf(`{"n":%d}`, n)
	}
	constant := func(*hook.Question) string { return `{"n":3}` }
	ignoring := strings.Replace(catSpec, "resource: cats\n", "resource: cats\n  ignoreStatusChanges: true\n", 1)
	for name, c := range map[string]struct {
		spec   string
		status func(q *hook.Question) string
		want   int
	}{
		"a constant status":          {catSpec, constant, 2},
		"a status that counts":       {catSpec, counts, 3},
		"and nobody who looks at it": {ignoring, counts, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPasses(t, c.spec)
			told := map[string]bool{} // who is told the same is not asked
			p.hook = func(q *hook.Question) string {
				question := q.Version
				for _, g := range q.Children {
					for _, o := range g.Objects {
						question += " " + o.GetName() + "@" + o.GetResourceVersion()
					}
				}
				told[question] = true
				return strings.Replace(wantsPods(q), `{"wants":3}`, c.status(q), 1)
			}
			for i := range 150 {
				p.clock.Step(10 * time.Millisecond)
				if i == 5 {
					p.makeReady()
				}
				_, err := p.r.Reconcile(t.Context(), p.request())
				must(t, err)
			}
			if n := len(told); n != c.want || !strings.HasPrefix(p.updated(), "True") || !p.tomSays("n") {
				t.Errorf("%d questions, want %d; %s", n, c.want, p.updated())
			}
		})
	}
}
