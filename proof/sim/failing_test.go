package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cairn-dev/cairn/proof/check/recording"
	"github.com/cairn-dev/cairn/proof/scenario"
)

// TestADeadlineCostsNothing: a rollout that succeeds takes as many requests with a deadline as without one, also where
// its status is written while it runs; and at rest there is none.
func TestADeadlineCostsNothing(t *testing.T) {
	const script = `controllers %[1]s

nodes 3
create %[1]s web image=app:1 %[2]s
settle
edit %[1]s web image=app:2
wait 1 pods of web image=app:2
settle
expect 3 pods of web image=app:2
`
	for kind, set := range map[string]string{"daemonset": "", "statefulset": "replicas=3"} {
		t.Run(kind, func(t *testing.T) {
			cost := func(options string) (requests []string) {
				synctest.Test(t, func(t *testing.T) {
					s, err := scenario.Parse("cost", strings.NewReader("# What it costs.\n\n"+fmt.Sprintf(script, kind, set+options)))
					if err != nil {
						t.Fatal(err)
					}
					stage := Open(KindsOf(kind)...)
					defer stage.Close()
					if _, err := s.Play(t.Context(), stage); err != nil {
						t.Fatal(err)
					}
					for _, c := range stage.w.history.Calls {
						if c.Sort == recording.Request {
							requests = append(requests, c.What)
						}
					}
				})
				return requests
			}
			without := cost("")
			with := cost(" metadata.annotations[cairn.dev/progress-deadline]=10m metadata.annotations[cairn.dev/on-deadline]=undo")
			t.Logf("%d requests", len(with))
			if len(with) == 0 || len(with) != len(without) {
				t.Errorf("%d requests with a deadline, and %d without:\n%s\n\n%s", len(with), len(without), strings.Join(with, "\n"), strings.Join(without, "\n"))
			}
		})
	}
}
